"""A tile operator's region of a buffer: `region(first element, mode, extents...)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tlcheck.execute.codes import Code
from tlcheck.execute.frame import Frame
from tlcheck.execute.pointers import joined
from tlcheck.execute.reasons import NotModelled, WrittenUnclear
from tlcheck.execute.values import Array, Value, kind_of
from tlcheck.snapshot.ir import Buffer, Expr

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine


class Region:
    """A box of a buffer's elements in each world; buffer, kind and extents (one for each dimension of the buffer).

    Elements out of the bounds of a global buffer read as 0 and are not written.
    """

    def __init__(self, e: Expr, machine: Machine) -> None:
        """e: the call of `region`, or a load that stands for one element or whole buffer's start."""
        first, sizes = (e.args[0], e.args[2:]) if e.op == "call" and e.value == "region" else (e, ())
        if first.op != "load" or first.buffer is None:
            raise NotModelled(f"region of {e.value or e.op}")
        self.buffer: Buffer = first.buffer
        self.kind = kind_of(first.buffer.dtype)
        self.machine = machine
        self.extents = self._constants([machine.code(s) for s in sizes], len(first.args))
        self._place = machine.pointers.place(
            machine, first.buffer, self._indices([machine.code(a) for a in first.args])
        )

    @property
    def squeezed(self) -> tuple[int, ...]:
        """The extents that are not 1."""
        return tuple(n for n in self.extents if n != 1)

    def read(self, frame: Frame) -> Array:
        """The elements, (*extents, worlds)."""
        found = self._place.load(frame)
        whole = np.broadcast_to(found, (found.shape[0], frame.worlds, found.shape[2]))
        return self._of_block(whole).reshape(*self.extents, frame.worlds)

    def write(self, frame: Frame, values: Value) -> None:
        """Write elements, (*extents, worlds) or a scalar, in the active worlds."""
        saved = frame.active
        frame.active = frame.of_worlds()
        if isinstance(values, np.ndarray):
            values = values.reshape(-1, values.shape[-1], 1)
        self._place.store(frame, values)
        frame.active = saved

    def _of_block(self, found: Array) -> Array:
        if found.shape[-1] == 1:
            return found
        first = found[..., :1]
        same = (found == first) | ((found != found) & (first != first))
        if not same.all():
            raise WrittenUnclear(f"{self.buffer.name} differs between threads")
        return first

    def _constants(self, sizes: list[Code], rank: int) -> tuple[int, ...]:
        """The extents, which have to be constant; leading ones that are not given are 1."""
        if not all(s.uniform and s.steady and not s.needs for s in sizes):
            raise NotModelled("region of varying size")
        values = [int(s.run(Frame({}, 1, 1))) for s in sizes]
        return (*[1] * (rank - len(values)), *values)

    def _indices(self, firsts: list[Code]) -> list[Code]:
        found = []
        grids = np.indices(self.extents).reshape(len(self.extents), -1, 1, 1)
        for first, grid in zip(firsts, grids, strict=True):
            found.append(joined(lambda start, steps=grid: self._shifted(start, steps), first))
        return found

    def _shifted(self, start: Value, steps: Array) -> Array:
        return self.machine.per_world(start, "the place of a tile") + steps
