"""What bulk copies read of a tensor is published to all who listen to reads."""

from __future__ import annotations

from typing import Any

from tests.cpu.execute.ops.thread.test_hardware import FORMS, machine_of
from tlcheck.execute.events import Observer
from tlcheck.execute.memory.cells import Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.state import Origin


class _Reads(Observer):
    """Keeps the tensors that somebody reads for a thread. It does not listen to copies, as who watches a source."""

    def __init__(self) -> None:
        self.tensors: set[str] = set()

    def covers(self, place: Place) -> bool:
        return isinstance(place.memory, Pages)

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        if by is not None:
            self.tensors.add(place.name)


def test_who_listens_to_reads_alone_is_told_of_bulk_copies() -> None:
    reads = _Reads()
    machine_of(FORMS["tma_2d"], "tma_2d", late=True, exact=True).run(reads)
    assert len(reads.tensors) == 1
