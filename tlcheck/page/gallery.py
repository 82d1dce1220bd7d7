"""The pictures of one kernel: every buffer with a layout, and every destination of an atomic, with its lanes marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tlcheck.page.picture import OFFSET, Mark, Picture, picture
from tlcheck.program.atomics import atomics
from tlcheck.program.layouts import layouts
from tlcheck.program.walk import walk
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Buffer, Layout, Snapshot
from tlcheck.targets.lookup import warp_of
from tlcheck.verdicts.claim import Claim
from tlcheck.witness import Accesses, Addition

_VECTORS = (2, 4, 8)
_CHECKPOINTS = (Checkpoint.INTENT, Checkpoint.TILE_OPS)  # annotates; has all that were inferred


@dataclass(frozen=True)
class Gallery:
    """Names are those of the kernel, numbered where they repeat. widths: see `_widths`. warp: threads of one."""

    layouts: Mapping[str, Layout]
    buffers: Mapping[str, Buffer]
    claims: Sequence[Claim]
    widths: Mapping[str, int]
    warp: int

    @property
    def names(self) -> list[str]:
        """Return what there are pictures of: destinations of refuted atomics first."""
        wrong = [a.buffer for a in self.claims if a.finding is not None]
        added = [a.buffer for a in self.claims if a.buffer in self.buffers]
        return list(dict.fromkeys([*wrong, *added, *sorted(self.layouts)]))

    def picture(self, name: str) -> Picture | str:
        """Draw a buffer; return why there is none, in words."""
        own = [each for claim in self.claims for each in (claim, *claim.also) if each.buffer == name]
        witnesses = [claim.finding.witness for claim in own if claim.finding is not None]
        witness = next((w for w in witnesses if isinstance(w, Addition)), None)
        race = next((w for w in witnesses if isinstance(w, Accesses)), None)
        at = witness.element if witness is not None and witness.element is not None else race.index if race else ()
        drawn = picture(name, self.layouts.get(name), self.buffers.get(name), self.warp, at)
        if isinstance(drawn, str) or drawn.kind != OFFSET:
            return drawn
        drawn = replace(drawn, vector=self.widths.get(name, 0))
        drawn = drawn if witness is None else marked(drawn, witness)
        return drawn if race is None else accessed(drawn, race)


def gallery(snapshot: Snapshot, claims: Sequence[Claim] = ()) -> Gallery:
    """claims: what checking the snapshot found."""
    found = {name: walk(function) for name, function in snapshot.checkpoints.items()}
    programs = [found[name] for name in _CHECKPOINTS if name in found]
    buffers: dict[str, Buffer] = {}
    for program in programs:
        buffers = {**program.buffers, **buffers}
    # elements that one vector instruction adds, at most, by the name of the buffer that it adds to
    widths: dict[str, int] = {}
    for program in list(found.values()):
        for site in atomics(program).sites:
            name = site.target.buffer.name
            if site.width in _VECTORS:
                widths[name] = max(widths.get(name, 0), site.width)
    return Gallery(layouts(*programs), buffers, claims, widths, warp_of(snapshot.target))


def accessed(drawn: Picture, witness: Accesses) -> Picture:
    """Mark the element that nothing orders two accesses to, or that must not be accessed."""
    words = witness.words(drawn.buffer)
    cell = _at_index(drawn, witness.index)
    marks = (*drawn.marks, Mark(*cell, "written", words)) if cell is not None else drawn.marks
    return replace(drawn, marks=marks, notes=(*drawn.notes, words))


def _at_index(drawn: Picture, index: Sequence[int]) -> tuple[int, int] | None:
    """The cell of an element; passes make a buffer flat, and then an index is an offset."""
    if len(index) == 1:
        return _at_offset(drawn, index[0])
    if len(index) != len(drawn.window.indices):
        return None
    same = np.logical_and.reduce([one == place for one, place in zip(drawn.window.indices, index, strict=True)])
    found = np.argwhere(same & drawn.window.inside)
    return (int(found[0][0]), int(found[0][1])) if len(found) else None


def marked(drawn: Picture, witness: Addition) -> Picture:
    """Mark the lanes of the instruction that is wrong, where it writes and what it should have written."""
    words = witness.words(drawn.buffer)
    marks, unseen = [], []
    if witness.written is not None:
        first = witness.written - (witness.lane or 0)
        for lane in range(max(drawn.vector, 1)):
            kind = "written" if first + lane == witness.written else "lane"
            cell = _at_offset(drawn, first + lane)
            if cell is not None:
                marks.append(Mark(*cell, kind, words if kind == "written" else f"lane {lane}"))
            elif kind == "written":
                unseen.append(f"offset {witness.written}, where it is added, is no element that is shown")
    cell = _at_offset(drawn, witness.intended) if witness.element is not None else None
    if cell is not None and witness.intended != witness.written:
        marks.append(Mark(*cell, "intended", "where it belongs"))
    return replace(drawn, marks=tuple(marks), notes=(*drawn.notes, words, *unseen))


def _at_offset(drawn: Picture, offset: int | None) -> tuple[int, int] | None:
    """The cell that lies there."""
    if offset is None or offset < 0:
        return None
    found = np.argwhere(drawn.values == offset)
    return (int(found[0][0]), int(found[0][1])) if len(found) else None
