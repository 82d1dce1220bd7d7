"""Find what a glance suspects: where accesses may not be ordered. A watch looks at these alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.values import Array, lengthened
from tlcheck.execute.stops import Stopped
from tlcheck.reasons import NOT_EXECUTED

UNIT = 16  # bytes


class Suspects:
    """A record of where accesses may not be ordered: units of 16 bytes of shared memory, in any block, and tensors.

    tensors: by the number of their allocation. stores: the same of memory in which threads may have stored different
    values to one element in one statement.
    """

    def __init__(self) -> None:
        self.tensors: set[int] = set()
        self.stores: set[int] = set()
        self._units: dict[int, Mask] = {}
        self._cells: dict[tuple[int, int], Mask] = {}  # of an allocation, by flat cell

    def __bool__(self) -> bool:
        return bool(self.tensors or self.stores) or any(units.any() for units in self._units.values())

    def units_of(self, root: int, cells: Cells) -> Mask:
        """The units of an allocation, to be marked."""
        count = -(-cells.size // UNIT)
        known = self._units.get(root, np.zeros(0, np.bool_))
        if len(known) < count:
            known = self._units[root] = lengthened(known, count)
        return known

    @classmethod
    def of_all(cls, some: Iterable[Suspects]) -> Suspects:
        """Return what any of them suspects."""
        found = cls()
        for each in some:
            found.tensors |= each.tensors
            found.stores |= each.stores
            for root, units in each._units.items():
                known = found._units.get(root, units)
                longer, shorter = (known, units) if len(known) > len(units) else (units, known)
                found._units[root] = longer.copy()
                found._units[root][: len(shorter)] |= shorter
        return found

    def has(self, place: Place) -> bool:
        """Whether a part of an allocation is suspected."""
        if not isinstance(place.memory, Cells):
            return place.root in self.tensors
        units = self._units.get(place.root)
        return units is not None and bool(units.any())

    def among(self, place: Place, cell: Array) -> Mask:
        """Return which flat cells of it are."""
        if not isinstance(place.memory, Cells):
            return np.ones(len(cell), np.bool_)
        # the suspected cells of an allocation, of all worlds
        key = place.root, place.memory.flat.size
        if key not in self._cells:
            unit = np.arange(place.memory.data.shape[0]) * place.memory.grain // (8 * UNIT)
            self._cells[key] = np.repeat(self._units[place.root][unit], place.memory.stride)
        return np.asarray(self._cells[key].take(cell))


class Suspected(Stopped):
    """Accesses that may not be ordered: a quick run is not enough to judge them."""

    def __init__(self) -> None:
        super().__init__("order", NOT_EXECUTED)
