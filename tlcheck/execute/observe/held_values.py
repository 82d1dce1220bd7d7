"""Find which values each buffer held in the source.

A drawn number occurs once, usually: a value that a buffer never held in the source came from somewhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlcheck.execute.events import Observer
from tlcheck.execute.machine import Machine
from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.values import Array, Value, is_poison
from tlcheck.snapshot.ir import Alloc, Stmt
from tlcheck.snapshot.walk import statements

_RELATIVE, _ABSOLUTE = 1e-6, 1e-9  # of a value, and of the largest one of its buffer: sums in another order
_MOST = 1 << 23  # elements that are kept


@dataclass(frozen=True, eq=False)
class HeldValues:
    """The values that a buffer held, in ascending order, and the element that each was written to.

    writers: the number of the statement that wrote it, in `stmts`. copied: by tensor and element, the only element of
    the buffer that it was copied to.
    """

    values: Array
    elements: Array
    writers: Array
    stmts: Sequence[Stmt | None]
    copied: Mapping[tuple[str, int], int]
    has_nan: bool
    has_poison: bool

    def lacks(self, values: Array) -> Mask:
        """Return which values the buffer never held. Poison is one unless it held poison."""
        found = np.zeros(values.shape, np.bool_)
        if values.dtype.kind == "f":
            poisoned = is_poison(values)
            found |= poisoned & (not self.has_poison)
            if not self.has_nan:
                found |= np.isnan(values) & ~poisoned
        known = values == values
        found[known] = ~self._near(values[known].astype(np.float64))
        return found

    def _near(self, values: Array) -> Mask:
        if not len(self.values):
            return np.zeros(values.shape, np.bool_)
        after = np.searchsorted(self.values, values)
        near = np.zeros(values.shape, np.bool_)
        for step in (-1, 0):
            other = self.values[np.clip(after + step, 0, len(self.values) - 1)]
            with np.errstate(all="ignore"):
                near |= (other == values) | (np.abs(other - values) <= self._tolerance(values))
        return near

    def _tolerance(self, value: Any) -> Any:
        return np.maximum(_RELATIVE * np.abs(value), _ABSOLUTE * self.size)

    @property
    def size(self) -> float:
        """The largest finite value, without its sign."""
        finite = self.values[np.isfinite(self.values)]
        return float(np.abs(finite).max()) if len(finite) else 0.0

    def where(self, value: float) -> tuple[int | None, Stmt | None]:
        """The only element that held a value and the only statement that stored it; None for several or none."""
        if value != value:
            return None, None
        with np.errstate(all="ignore"):
            near = (self.values == value) | (np.abs(self.values - value) <= _RELATIVE * abs(value))
        places, numbers = np.unique(self.elements[near]), np.unique(self.writers[near])
        element = int(places[0]) if len(places) == 1 else None
        return element, self.stmts[int(numbers[0])] if len(numbers) == 1 else None


class ValueRecorder(Observer):
    """Records what all buffers of the source hold. combined_names: buffers that atomics change."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._names = {machine.pointers.root(uid): name for uid, name in machine.pointers.free}
        self._repeated: set[str] = set()
        for stmt in statements(machine.function.body):
            if isinstance(stmt, Alloc):
                root = machine.pointers.root(stmt.buffer.data.uid)
                if stmt.buffer.name in self._names.values():
                    self._repeated.add(stmt.buffer.name)
                self._names[root] = stmt.buffer.name
        self._roots: dict[int, str] = {}
        self._memories: dict[str, Pages] = {}
        self._kept: dict[str, list[tuple[Array, Array, Stmt | None]]] = {}
        self._copied: dict[str, dict[tuple[str, int], int]] = {}
        self._brought: tuple[str, Array] | None = None
        self._count = 0
        self._combines = False
        self.combined_names: set[str] = set()

    def allocated(self, root: int, memory: Cells | Pages) -> None:
        """Watch an allocation."""
        memory.hook = self
        name = self._names.get(root, "")
        self._roots[id(memory)] = name
        if isinstance(memory, Pages):
            self._memories[name] = memory

    def combined(self, frame: Frame, position: Position, mask: Mask | None) -> None:
        """The next write adds to what is there."""
        self._combines = True

    def taken(self, memory: Cells | Pages, position: Position) -> None:
        """Note which elements of a tensor are read."""
        self._brought = None
        if isinstance(memory, Pages):
            self._brought = self._roots.get(id(memory), ""), memory.elements_at(np.asarray(position)).reshape(-1)

    def put(self, memory: Cells | Pages, position: Position, value: Value, mask: Mask | None) -> None:
        """Keep the values of a write."""
        name = self._roots.get(id(memory), "")
        if self._combines:
            self._combines = False
            self.combined_names.add(name)
        if not name or name in self.combined_names:
            return
        where = np.asarray(memory.flat_position(position))
        shape = np.broadcast_shapes(where.shape, np.shape(value), () if mask is None else mask.shape)
        self._count += int(np.prod(shape))
        if self._count > _MOST:
            self.combined_names.add(name)
            return
        chosen: Any = ... if mask is None else np.broadcast_to(mask, shape)
        elements = np.broadcast_to(where, shape)[chosen].reshape(-1)
        values = np.array(np.broadcast_to(value, shape)[chosen]).reshape(-1)
        elements = elements // memory.stride if isinstance(memory, Cells) else np.array(elements)
        if self._brought is not None and self._brought[1].size == elements.size and isinstance(memory, Cells):
            tensor, brought = self._brought
            copied = self._copied.setdefault(name, {})
            for one, other in zip(brought.tolist(), elements.tolist(), strict=True):
                copied[tensor, one] = other if copied.get((tensor, one), other) == other else -1
        self._brought = None
        self._kept.setdefault(name, []).append((values, elements, self._machine.state.at))

    @property
    def held(self) -> Mapping[str, HeldValues]:
        """The values of each buffer that was written, but of those that atomics change."""
        found = {}
        for name, kept in self._kept.items():
            if name in self.combined_names | self._repeated:
                continue
            values = np.concatenate([values for values, _, _ in kept])
            elements = np.concatenate([elements for _, elements, _ in kept])
            stmts = {id(stmt): stmt for *_, stmt in kept}
            numbers = {key: number for number, key in enumerate(stmts)}
            writers = np.repeat([numbers[id(stmt)] for *_, stmt in kept], [len(values) for values, *_ in kept])
            if (memory := self._memories.get(name)) is not None:
                distinct, places = np.unique(elements, return_inverse=True)
                elements = np.array([memory.element_at(int(e)) for e in distinct], np.int64)[places]
            floats = values.astype(np.float64)
            is_float = values.dtype.kind == "f"
            poisoned = is_poison(values) if is_float else np.zeros(len(values), np.bool_)
            known = floats == floats
            order = np.argsort(floats[known], kind="stable")
            has_nan = bool((~known & ~poisoned).any())
            found[name] = HeldValues(
                floats[known][order],
                elements[known][order],
                writers[known][order],
                list(stmts.values()),
                {key: element for key, element in self._copied.get(name, {}).items() if element >= 0},
                has_nan,
                bool(poisoned.any()),
            )
        return found
