"""What a glance suspects: where accesses may not be ordered. A watch looks at these alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.values import Array
from tlcheck.execute.reasons import Stopped

UNIT = 16  # bytes


class Suspects:
    """By the number of their allocation: pieces of shared memory, of 16 bytes each, in any block; tensors; and stores,
    memory in which threads may have stored different values to one element in one statement.
    """

    def __init__(self) -> None:
        self.tensors: set[int] = set()
        self.stores: set[int] = set()
        self._pieces: dict[int, Mask] = {}
        self._cells: dict[tuple[int, int], Mask] = {}  # of an allocation, by flat cell

    def __bool__(self) -> bool:
        return bool(self.tensors or self.stores) or any(pieces.any() for pieces in self._pieces.values())

    def pieces_of(self, root: int, cells: Cells) -> Mask:
        """The pieces of an allocation, to be marked."""
        count = -(-cells.data.shape[0] * cells.grain // UNIT)
        known = self._pieces.get(root, np.zeros(0, np.bool_))
        if len(known) < count:
            known = self._pieces[root] = np.concatenate([known, np.zeros(count - len(known), np.bool_)])
        return known

    @classmethod
    def of_all(cls, some: Iterable[Suspects]) -> Suspects:
        """What any of them suspects."""
        found = cls()
        for each in some:
            found.tensors |= each.tensors
            found.stores |= each.stores
            for root, pieces in each._pieces.items():
                known = found._pieces.get(root, pieces)
                longer, shorter = (known, pieces) if len(known) > len(pieces) else (pieces, known)
                found._pieces[root] = longer.copy()
                found._pieces[root][: len(shorter)] |= shorter
        return found

    def has(self, place: Place) -> bool:
        """Whether a part of an allocation is suspected."""
        if not isinstance(place.memory, Cells):
            return place.root in self.tensors
        pieces = self._pieces.get(place.root)
        return pieces is not None and bool(pieces.any())

    def among(self, place: Place, cell: Array) -> Mask:
        """Which flat cells of it are."""
        if not isinstance(place.memory, Cells):
            return np.ones(len(cell), np.bool_)
        return np.asarray(self._by_cell(place.root, place.memory).take(cell))

    def _by_cell(self, root: int, cells: Cells) -> Mask:
        """The suspected cells of an allocation, of all worlds."""
        key = root, cells.flat.size
        if key not in self._cells:
            piece = np.arange(cells.data.shape[0]) * cells.grain // UNIT
            self._cells[key] = np.repeat(self._pieces[root][piece], cells.stride)
        return self._cells[key]


class Suspected(Stopped):
    """Accesses that may not be ordered."""
