"""Accesses of tensor cores that say what the last one said: products that add to the same sums, one after the other.

Such an access changes nothing that is known of the cells, and can find no race that the last one has not found: clocks
only grow. It is the same until another access touches cells between its first and its last one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import is_

from tlcheck.execute.memory.values import Array


@dataclass(frozen=True, eq=False)
class _Known:
    """An access, by the objects that say where and by whom: held, so that no others get their numbers."""

    what: tuple[object, ...]
    about: tuple[object, ...]
    first: int
    last: int

    def is_of(self, what: tuple[object, ...], about: tuple[object, ...]) -> bool:
        return all(map(is_, about, self.about)) and what == self.what


@dataclass(eq=False)
class Repeats:
    """The last accesses of tensor cores to each allocation that nothing has touched since."""

    known: dict[int, list[_Known]] = field(default_factory=dict)

    def has(self, root: int, what: tuple[object, ...], *about: object) -> bool:
        """Whether the access has been recorded, about these very objects, and nothing has touched its cells since."""
        return any(one.is_of(what, about) for one in self.known.get(root, ()))

    def touched(self, root: int, cells: Array) -> None:
        """An access of flat cells is recorded."""
        if self.known.get(root):
            first, last = int(cells.min()), int(cells.max())
            self.known[root] = [one for one in self.known[root] if one.last < first or last < one.first]

    def record(self, root: int, what: tuple[object, ...], cells: Array, *about: object) -> None:
        """Remember an access that was recorded last."""
        made = _Known(what, about, int(cells.min()), int(cells.max()))
        self.known.setdefault(root, []).append(made)

    def forget(self, root: int | None = None) -> None:
        """Forget what is known of an allocation, or of all."""
        if root is None:
            self.known.clear()
        else:
            self.known.pop(root, None)
