"""The first access of the lowered kernel to a value that its buffer never held in the source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tlcheck.execute.events import Observer
from tlcheck.execute.machine import Machine
from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.observe.accesses import AccessedElements
from tlcheck.execute.observe.held_values import HeldValues


@dataclass(frozen=True, eq=False)
class WriteRecord:
    """A statement that wrote cells under a buffer's name. begin: the buffer's first byte in its allocation."""

    name: str
    origin: Origin
    begin: int
    octets: int
    copy: bool


@dataclass(frozen=True, eq=False)
class StrayAccess:
    """The first access that differs. kind: read or write. value: of the element.

    octet: in the allocation; begin: where the buffer begins there. writer: the last write of the cell before a read.
    own: the value that the buffer's own last write left there; None if none did. copied: its tensor and element,
    if it is a copy; others: the same of the last write. element: of a tensor. untouched: nothing wrote the cell under
    the buffer's name.
    """

    kind: str
    name: str
    origin: Origin
    lane: int
    value: float
    octet: int
    begin: int
    octets: int
    writer: WriteRecord | None = None
    own: float | None = None
    copied: tuple[str, int] | None = None
    others: tuple[str, int] | None = None
    element: int | None = None
    untouched: bool = False


@dataclass(eq=False)
class _Shadow:
    """The numbers, for each cell of an allocation, of the record that wrote it last and of its buffer's name.

    own: by buffer, the values that it wrote. touched: by buffer, the cells.
    """

    last: Array
    names: Array
    own: dict[str, Array] = field(default_factory=dict)
    touched: dict[str, Mask] = field(default_factory=dict)
    copied: dict[str, tuple[str, Array]] = field(default_factory=dict)

    def source(self, name: str, cell: int) -> tuple[str, int] | None:
        """The tensor and the element that a buffer's cell was copied from last; None if it was not."""
        tensor, elements = self.copied.get(name, ("", None))
        return None if elements is None or elements[cell] < 0 else (tensor, int(elements[cell]))


class StrayObserver(Observer):
    """Finds the first access of the lowered kernel to a value that its buffer never held in the source, or that another
    buffer left there.
    """

    def __init__(self, machine: Machine, held: Mapping[str, HeldValues], shared: frozenset[str]) -> None:
        """shared: the names of shared buffers in the source."""
        self.machine, self._held, self._shared = machine, held, shared
        self._records: list[WriteRecord] = []
        self._numbers: dict[str, int] = {}
        self._shadows: dict[int, _Shadow] = {}
        self._unsettled: set[str] = set()
        self._brought: tuple[str, Array, Array] | None = None  # a tensor, elements of it, their values
        self.found: StrayAccess | None = None

    def covers(self, place: Place) -> bool:
        """Shared memory and tensors."""
        memory = place.memory
        return isinstance(memory, Pages) or memory.shared

    def atomic(self, place: Place, position: Position, mask: Mask, origin: Origin) -> None:
        """The order of atomics decides what they leave."""
        self._unsettled.add(place.name)

    def read(
        self, place: Place, position: Position, mask: Mask, origin: Origin, proxy: str = "generic", by: Any = None
    ) -> None:
        """Look for a value that is not the buffer's."""
        memory = place.memory
        self._brought = None
        if isinstance(memory, Pages):
            cells = AccessedElements(place, position, mask).cell
            self._brought = place.name, memory.elements_at(cells), memory.flat.take(cells)
            return
        name = place.name
        held = self._held.get(name)
        if self.found is not None or held is None or name not in self._shared or name in self._unsettled:
            return
        accessed = AccessedElements(place, position, mask)
        values = np.asarray(memory.take(accessed.cell, place.kind))
        shadow = self._shadow(memory)
        wrong = np.flatnonzero(held.lacks(values) | self._overwritten(shadow, name, accessed.cell, values))
        if not len(wrong):
            return
        at = int(wrong[0])
        cell = int(accessed.cell[at])
        number = int(shadow.last[cell])
        own = shadow.own.get(name)
        writer = self._records[number] if number >= 0 else None
        self.found = StrayAccess(
            "read",
            name,
            origin,
            int(accessed.lane()[at]) if proxy == "generic" and by is None else -1,
            float(values[at]),
            memory.octet(cell),
            place.begin,
            place.kind.octets,
            writer,
            None if own is None or own[cell] != own[cell] else float(own[cell]),
            shadow.source(name, cell),
            None if writer is None else shadow.source(writer.name, cell),
            untouched=name not in shadow.touched or not shadow.touched[name][cell],
        )

    def _overwritten(self, shadow: _Shadow, name: str, cells: Array, values: Array) -> Mask:
        """Return which cells another buffer wrote last, and not with the value that this buffer left there.

        Small drawn numbers occur in several buffers: the value alone does not tell.
        """
        own = shadow.own.get(name)
        if own is None:
            return np.zeros(cells.shape, np.bool_)
        left = own[cells]
        found: Mask = (shadow.names[cells] != self._numbers[name]) & (left == left) & (left != values)
        return found

    def written(self, place: Place, position: Position, mask: Mask, origin: Origin, value: Value) -> None:
        """Look for a value that the buffer never held, and remember who wrote."""
        accessed = AccessedElements(place, position, mask)
        values = accessed.of(value)
        self._look(place, accessed, values, origin)
        self._note(place, accessed, values, origin, copy=False)

    def copy_issued(self, place: Place, position: Position, mask: Mask, origin: Origin, coming: Array) -> None:
        """Remember who writes."""
        accessed = AccessedElements(place, position, mask)
        self._note(place, accessed, accessed.of(coming), origin, copy=True)

    def bulk_load_issued(
        self,
        place: Place,
        position: Position,
        mask: Mask,
        lane: Mask,
        origin: Origin,
        key: object,
        coming: Array | None,
        later: Mask | None = None,
        at: Array | None = None,
    ) -> None:
        """Remember who writes."""
        accessed = AccessedElements(place, position, mask)
        values = np.full(accessed.cell.size, np.nan)
        if self._brought is not None and self._brought[2].size == accessed.cell.size:
            values = self._brought[2].astype(np.float64)
        self._note(place, accessed, values, origin, copy=True)

    def _look(self, place: Place, accessed: AccessedElements, values: Array, origin: Origin) -> None:
        name, memory = place.name, place.memory
        held = self._held.get(name)
        if self.found is not None or held is None or name in self._unsettled:
            return
        wrong = np.flatnonzero(held.lacks(values.astype(place.kind.array)))
        if not len(wrong):
            return
        at = int(wrong[0])
        cell = int(accessed.cell[at])
        in_tensor = isinstance(memory, Pages)
        octet = 0 if isinstance(memory, Pages) else memory.octet(cell)
        element = memory.element_at(cell) if isinstance(memory, Pages) else None
        self.found = StrayAccess(
            "write",
            name,
            origin,
            int(accessed.lane()[at]),
            float(values[at]),
            octet,
            0 if in_tensor else place.begin,
            place.kind.octets,
            element=element,
        )

    def _note(self, place: Place, accessed: AccessedElements, values: Array, origin: Origin, copy: bool) -> None:
        memory, name = place.memory, place.name
        if isinstance(memory, Pages):
            return
        shadow = self._shadow(memory)
        parts = memory.parts(place.kind)
        for part in range(parts):
            shadow.last[accessed.cell + part * memory.stride] = len(self._records)
            shadow.names[accessed.cell + part * memory.stride] = self._numbers.setdefault(name, len(self._numbers))
        self._records.append(WriteRecord(name, origin, place.begin, place.kind.octets, copy))
        if name not in shadow.own:
            shadow.own[name] = np.full(memory.flat.size, np.nan)
            shadow.touched[name] = np.zeros(memory.flat.size, np.bool_)
            shadow.copied[name] = "", np.full(memory.flat.size, -1, np.int64)
        shadow.own[name][accessed.cell] = values
        shadow.touched[name][accessed.cell] = True
        shadow.copied[name][1][accessed.cell] = -1
        if self._brought is not None and self._brought[1].size == accessed.cell.size:
            tensor, elements, _ = self._brought
            shadow.copied[name] = tensor, shadow.copied[name][1]
            shadow.copied[name][1][accessed.cell] = elements
        self._brought = None

    def _shadow(self, memory: Cells) -> _Shadow:
        if id(memory) not in self._shadows:
            self._shadows[id(memory)] = _Shadow(
                np.full(memory.flat.size, -1, np.int64), np.full(memory.flat.size, -1, np.int64)
            )
        return self._shadows[id(memory)]
