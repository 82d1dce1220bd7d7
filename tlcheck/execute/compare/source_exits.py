"""How the source leaves its tensors: one run of it, on one draw, for all who ask."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from tlcheck.execute.observe.tensor_exits import TensorExit, TensorExitsOfRun
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.levels import BothLevels


@dataclass(frozen=True)
class SourceExits:
    """The exits of the source, which runs if somebody asks."""

    levels: BothLevels
    draw: inputs.Draw

    @property
    def of_accesses(self) -> Sequence[TensorExit]:
        """Those of plain indices, the first of each statement and tensor."""
        return self._run.found

    @property
    def of_regions(self) -> Sequence[TensorExit]:
        """Those of tile operators, the first of each statement and tensor."""
        return self._run.regions

    @property
    def of_all(self) -> Sequence[TensorExit]:
        """Those of plain indices, of tile operators, and of the elements that atomics would change."""
        return [*self._run.found, *self._run.regions, *self._run.atomics]

    @cached_property
    def of_guarded(self) -> Sequence[TensorExit]:
        """All of them where no negative index but a constant counts from the end."""
        run = _exits(self.levels.guarding_negatives(), self.draw)
        return [*run.found, *run.regions, *run.atomics]

    @cached_property
    def _run(self) -> TensorExitsOfRun:
        return _exits(self.levels, self.draw)


def _exits(levels: BothLevels, draw: inputs.Draw) -> TensorExitsOfRun:
    leaving = TensorExitsOfRun()
    with suppress(Stopped):
        levels.plainly().source_invocation(draw).run(leaving)
    return leaving
