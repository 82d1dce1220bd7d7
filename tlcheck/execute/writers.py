"""Who wrote an element of an output last: asked of a run of its own, in the world that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlcheck.execute.frame import Frame, Mask
from tlcheck.execute.memory import Pages, Position
from tlcheck.execute.races import Origin

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.places import Place


@dataclass(frozen=True, slots=True)
class Writer:
    """A write: its block, the thread (the iteration's number in T.Parallel), the statement and the loops around it."""

    block: tuple[int, int, int]
    thread: int
    origin: Origin


class Seeker:
    """Looks out for writes of one element. last: the latest one, None as long as there is none."""

    def __init__(self, machine: Machine, name: str, seed: int, element: int) -> None:
        self._machine, self._pages = machine, machine.pages(name)
        self._position = self._pages.position_of(seed, element)
        self.last: Writer | None = None

    def look(self, place: Place, frame: Frame, position: Position, mask: Mask | None) -> None:
        """Note a write if it is of that element."""
        if not isinstance(place.memory, Pages) or place.memory is not self._pages:
            return
        hit = np.asarray(position) == self._position
        hit = np.broadcast_to(hit, np.broadcast_shapes(hit.shape, (1, frame.worlds, frame.lanes)))
        hit = hit.any(axis=0) & (True if mask is None else mask)
        if hit.any():
            world, lane = (int(i) for i in np.argwhere(hit)[-1])
            self.last = Writer(self._machine.worlds[world].block, lane, self._machine.origin(frame))
