"""A snapshot of every pass, cut into snapshots of one pass each."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property

from tlcheck.program.unheld import UnheldFragment, unheld_fragments
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import UNNAMED, Block, Snapshot
from tlcheck.snapshot.text import render, render_layout
from tlcheck.snapshot.walk import statements

_LAYOUTS, _TILES, _VECTORS = "tl.LayoutInference", "tl.LowerTileOp", "tl.VectorizeLoop"
_INTENT = ("tl.LayoutReducer", _LAYOUTS)  # proofs of atomics start with what the first of these gets
_NUMBERED = re.compile(r"\d{3}-")  # what the keys of a snapshot of every pass begin with


class Pipeline:
    """The saved passes of one kernel, by place. keys: of the snapshot; names: of the passes, the input's is empty.

    tiles: place of LowerTileOp, vectors: of VectorizeLoop; as many as there are passes where they did not run.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.keys = list(snapshot.checkpoints)
        self.names = [snapshot.passes[key] for key in self.keys]
        self.tiles, self.vectors = self.place(_TILES), self.place(_VECTORS)
        self.intent = max(0, min(self.tiles, *map(self.place, _INTENT)) - 1)

    @property
    def last(self) -> int:
        """The number of the last pass."""
        return len(self.keys) - 1

    @property
    def is_numbered(self) -> bool:
        """Whether the snapshot holds passes rather than checkpoints."""
        return all(_NUMBERED.match(key) for key in self.keys)

    @property
    def is_known(self) -> bool:
        """Whether this is the pipeline of a kernel for a GPU, with every pass."""
        return self.is_numbered and self.tiles < len(self.names)

    @property
    def layouts(self) -> int:
        """The place of LayoutInference."""
        return self.place(_LAYOUTS)

    @cached_property
    def unheld(self) -> UnheldFragment | None:
        """The first fragment that LayoutInference gives a layout of fewer elements than it has."""
        place = self.layouts
        if not place < self.tiles < len(self.keys):
            return None
        return next(iter(unheld_fragments(self.snapshot.checkpoints[self.keys[place]])), None)

    def number(self, place: int) -> int:
        """The number of a pass among those that ran: the TIR after some may be what a release cannot save."""
        return int(self.keys[place][:3])

    def called(self, number: int) -> str:
        """A pass by its name, and which of several it is; one written in Python that has none, by its place."""
        name, several = self.names[number], self.names.count(self.names[number])
        if name != UNNAMED:
            return name if several == 1 else f"{name} ({self.names[: number + 1].count(name)} of {several})"
        before = next((n for n in reversed(self.names[:number]) if n not in ("", UNNAMED)), "the input")
        return f"pass {self.number(number)} (unnamed, after {before})"

    def place(self, name: str) -> int:
        """The number of the first pass of a name; that of all passes where there is none."""
        return self.names.index(name) if name in self.names else len(self.names)

    def stage(self, number: int) -> Checkpoint:
        """The checkpoint whose rules hold after a pass."""
        if number < self.tiles:
            return Checkpoint.TILE_OPS
        if number < self.vectors:
            return Checkpoint.LOWER_TILE_OP
        return Checkpoint.VECTORIZE_LOOP if number == self.vectors else Checkpoint.DEVICE_TIR

    def after(self, number: int) -> Snapshot:
        """The source, its layouts, and what it is after a pass."""
        places: dict[str, int] = {
            Checkpoint.SOURCE: 0,
            Checkpoint.INTENT: self.intent,
            Checkpoint.TILE_OPS: self.tiles - 1,
            self.stage(number): number,
        }
        return self._cut(places, self.stage(number), number)

    def executable(self, number: int, checkpoint: str) -> Snapshot:
        """The source, and at a checkpoint what it is after a pass."""
        return self._cut({Checkpoint.SOURCE: 0, checkpoint: number}, checkpoint, number)

    def text(self, number: int) -> tuple[str, ...]:
        """The TIR after a pass."""
        return render(self.snapshot.checkpoints[self.keys[number]]).lines

    def whole(self, number: int) -> tuple[str, ...]:
        """The TIR after a pass, with the layouts of its buffers, each once."""
        function = self.snapshot.checkpoints[self.keys[number]]
        blocks = [stmt for stmt in statements(function.body) if isinstance(stmt, Block)]
        layouts = dict.fromkeys(render_layout(layout, str(data.value)) for b in blocks for data, layout in b.layouts)
        return (*self.text(number), *layouts)

    def _cut(self, places: dict[str, int], checkpoint: str, number: int) -> Snapshot:
        checkpoints = {name: self.snapshot.checkpoints[self.keys[place]] for name, place in places.items()}
        return replace(self.snapshot, checkpoints=checkpoints, passes={checkpoint: self.called(number)})
