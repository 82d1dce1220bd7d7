"""Which pass breaks a kernel: the kernel is judged after each pass from LowerTileOp on.

Before it the atomics are still tile operators, for which there is nothing to compare.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tlcheck.errors import UsageError
from tlcheck.gate.bisect import FAILS, RIGHT, UNDECIDED, WRONG, BisectRow, Point
from tlcheck.lower.runs import Run
from tlcheck.program.atomics import Site
from tlcheck.prove.subject import subject
from tlcheck.snapshot.ir import Snapshot
from tlcheck.snapshot.text import render
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.judging import judged
from tlcheck.verdicts.results import Result

_INTENT = ("tl.LayoutReducer", "tl.LayoutInference")  # the kernel as written is what the first of these gets
_TILES, _VECTORS = "tl.LowerTileOp", "tl.VectorizeLoop"
_NUMBERED = re.compile(r"\d{3}-")  # what the keys of a snapshot of every pass begin with
_ABOVE, _BELOW = 4, 1  # lines of TIR around an atomic
_SHOWN = 4  # places of one atomic


@dataclass(frozen=True)
class Guilty:
    """The first pass after which an atomic is wrong. number: its place in the pipeline.

    difference: lines of TIR around the atomic, before and after the pass, as a diff.
    """

    pass_name: str
    number: int
    claim: Claim
    difference: tuple[str, ...]


@dataclass(frozen=True)
class Passes:
    """The passes of one kernel, each judged."""

    row: BisectRow
    guilty: tuple[Guilty, ...]


class _Pipeline:
    """A snapshot of every pass, cut into snapshots of one pass each."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.keys = list(snapshot.checkpoints)
        self.names = [snapshot.passes[key] for key in self.keys]
        self._intent = min(self._place(name) for name in _INTENT) - 1
        self.first, self._vectors = self._place(_TILES), self._place(_VECTORS)

    def _place(self, name: str) -> int:
        return self.names.index(name) if name in self.names else len(self.names)

    @property
    def is_known(self) -> bool:
        """Whether this is the pipeline of a kernel for a GPU, with every pass."""
        numbered = all(_NUMBERED.match(key) for key in self.keys)
        return numbered and max(self._intent + 1, self.first) < len(self.names)

    def stage(self, number: int) -> str:
        """The checkpoint whose rules hold after a pass."""
        if number < self.first:
            return "tile-ops"
        if number < self._vectors:
            return "lower-tile-op"
        return "vectorize-loop" if number == self._vectors else "device-tir"

    def after(self, number: int) -> Snapshot:
        """The kernel as written, its layouts, and what it is after a pass."""
        places = {"source": 0, "intent": self._intent, "tile-ops": self.first - 1, self.stage(number): number}
        checkpoints = {name: self.snapshot.checkpoints[self.keys[place]] for name, place in places.items()}
        return replace(self.snapshot, checkpoints=checkpoints, passes={self.stage(number): self.names[number]})


def judge_passes(run: Run, snapshot: Snapshot) -> Passes:
    """Judge a kernel after each of its passes. Raises UsageError for a snapshot that does not hold every pass."""
    pipeline = _Pipeline(snapshot)
    if not pipeline.is_known:
        raise UsageError(f"{run.case}: no pass {_INTENT[-1]} and {_TILES}: nothing to judge passes by")
    numbers = range(pipeline.first, len(pipeline.keys))
    results = {number: judged(run, pipeline.after(number)) for number in numbers}
    points = tuple(Point(pipeline.names[n], _state(result), result) for n, result in results.items())
    guilty = tuple(_guilty(pipeline, number, claim) for number, claim in _firsts(results.items()))
    return Passes(BisectRow(run.case, run.target, points, run.tilelang), guilty)


def _state(result: Result) -> str:
    """As of the last checkpoint: that the snapshot ends there says nothing against it."""
    if result.failure is not None:
        return FAILS
    if any(claim.finding is not None for claim in result.claims):
        return WRONG
    last = [claim.stages[-1].status if claim.stages else "undecided" for claim in result.claims]
    return RIGHT if all(status == "same" for status in last) else UNDECIDED


def _firsts(results: Iterable[tuple[int, Result]]) -> Iterator[tuple[int, Claim]]:
    """Each atomic that is wrong after some pass, with the first such pass."""
    seen: set[tuple[str, int, str]] = set()
    for number, result in results:
        for claim in result.claims:
            identity = (claim.buffer, claim.source.line, claim.call)
            if claim.finding is not None and identity not in seen:
                seen.add(identity)
                yield number, claim


def _guilty(pipeline: _Pipeline, number: int, claim: Claim) -> Guilty:
    before, after = (_around(pipeline, n, claim) for n in (number - 1, number))
    lines = difflib.unified_diff(before, after, n=_ABOVE, lineterm="")
    return Guilty(pipeline.names[number], number, claim, tuple(lines)[2:])  # without the names of two files


def _around(pipeline: _Pipeline, number: int, claim: Claim) -> list[str]:
    """The lines around the places of an atomic after a pass."""
    stage = pipeline.stage(number)
    snapshot = pipeline.after(number)
    text = render(snapshot.checkpoints[stage])
    sites = [s for s in subject(snapshot).found[stage].sites if s.target.root == claim.buffer]
    marked = [line for site in _own(sites, claim)[:_SHOWN] if (line := text.line_of(site.placed.stmt))]
    shown = {n for line in marked for n in range(line - _ABOVE, line + _BELOW + 1)}
    return [line for n, line in enumerate(text.lines, 1) if n in shown]


def _own(sites: Sequence[Site], claim: Claim) -> Sequence[Site]:
    """Those on the atomic's line, where lines are known; else all on its buffer."""
    own = [s for s in sites if claim.source.exact and s.placed.stmt.line == claim.source.line]
    return own or sites
