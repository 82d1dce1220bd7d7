"""Find who wrote an element of an output last."""

from __future__ import annotations

from dataclasses import dataclass

from tlcheck.execute.memory.state import Origin


@dataclass(frozen=True, slots=True)
class Writer:
    """A write: its block, the thread (the iteration's number in T.Parallel), the statement and the loops around it.

    thread: -1 where none writes, but a copy engine or the block as one.
    """

    block: tuple[int, int, int]
    thread: int
    origin: Origin
