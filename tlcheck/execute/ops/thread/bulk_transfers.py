"""One copy of the tensor memory accelerator: which elements go where, and who issues it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.places import refuse_outside
from tlcheck.execute.memory.values import Array, Kind, Value, nothing_in
from tlcheck.execute.ops.thread.descriptors import Box
from tlcheck.execute.stops import NotModelled


def issuers(frame: Frame) -> Iterator[tuple[Mask, Callable[[Value], Value]]]:
    """The active threads, one of each world at a time: (worlds, threads), and how to pick their values, (worlds, 1).

    A world without one has the values of another world: its own mean nothing, and may be out of bounds.
    """
    mask = np.array(frame.mask())
    while mask.any():
        worlds: Mask = np.asarray(mask.any(axis=-1, keepdims=True))
        lanes = mask.argmax(axis=-1)
        of = np.where(worlds[:, 0], np.arange(len(lanes)), worlds[:, 0].argmax())

        def pick(value: Value, lanes: Array = lanes, of: Array = of, some: bool = not worlds.all()) -> Value:
            if not isinstance(value, np.ndarray) or (value.shape[-1] == 1 and not some):
                return value
            wide = np.broadcast_to(value, (*value.shape[:-2], len(lanes), value.shape[-1]))
            return np.asarray(wide[..., of, lanes[of] if value.shape[-1] > 1 else 0][..., None])

        chosen = worlds & (np.arange(frame.lanes) == lanes[:, None])
        yield chosen, pick
        mask &= ~chosen


def where_in(cells: Cells, bits: Array) -> Array:
    """Flat positions of the elements that begin at these bits of an allocation, (elements, worlds, 1)."""
    worlds = np.arange(bits.shape[1]).reshape(1, -1, 1)
    return np.asarray(cells.at(bits) + worlds)


@dataclass(frozen=True, eq=False)
class Transfer:
    """One copy between a tensor and shared memory, by the threads of `issuer` (worlds, threads), one of a world."""

    pages: Pages
    cells: Cells
    kind: Kind
    box: Box
    issuer: Mask

    @property
    def held(self) -> Kind:
        """The kind of the elements in shared memory."""
        return self.box.held or self.kind

    @cached_property
    def mask(self) -> Mask:
        """The worlds in which it takes place, (worlds, 1)."""
        return np.asarray(self.issuer.any(axis=-1, keepdims=True))

    @cached_property
    def some(self) -> Mask | None:
        """Return the transfer in these worlds; None for all of them."""
        return None if self.mask.all() else self.mask

    @property
    def by(self) -> Array:
        """The issuing thread of each world, (worlds, 1)."""
        return np.asarray(self.issuer.argmax(axis=-1)[:, None])

    @property
    def positions(self) -> Array:
        """Return where the elements of the tensor are."""
        return self.pages.locate_runs(self.box.elements, self.box.run)

    @cached_property
    def where(self) -> Array:
        """Flat positions in shared memory: one array, by which a tracer knows that a copy arrives that was issued."""
        return where_in(self.cells, self.box.bits) if self.box.where is None else self.box.where

    @property
    def coming(self) -> Array:
        """Return what the tensor holds, and zeros outside of it."""
        found = self.pages.take(self.positions, self.kind)
        return found if self.box.inside is None else np.where(self.box.inside, found, self.kind.array.type(0))

    @cached_property
    def chosen(self) -> Mask:
        """The elements that are stored: (1 or elements, worlds, 1)."""
        return self.mask[None] if self.box.inside is None else self.box.inside & self.mask

    def moved(self, further: Array) -> Transfer:
        """The same copy with its elements in shared memory that many flat positions further on, (1, worlds, 1)."""
        return replace(self, box=replace(self.box, where=self.where + further))

    def load(self) -> None:
        """Tensor to shared memory."""
        self.cells.put(self.where, self.coming, self.some, self.held)

    @property
    def values(self) -> Array:
        """Return what shared memory holds."""
        where = where_in(self.cells, self.box.bits) if self.box.where is None else self.box.where
        return self.cells.take(where, self.held)

    def store(self) -> None:
        """Shared memory to tensor."""
        self.pages.put(self.positions, self.values, self.chosen, self.kind)

    def add(self) -> None:
        """Shared memory added to the tensor."""
        values = self.values
        chosen = np.broadcast_to(self.chosen, values.shape)
        self.pages.accumulate(self.positions[chosen], values[chosen], np.add, self.kind)

    def hide(self, program: KernelProgram, reason: int) -> None:
        """Make what is to come poison."""
        self.cells.put(self.where, nothing_in(self.held, program.state.chances, reason), self.some, self.held)

    @property
    def octets(self) -> int:
        """The bytes that the copy moves, those outside the tensor included."""
        return len(self.box.bits) * self.kind.bits // 8


def transfer_of(shared: BufferElement, tensor: BufferElement, box: Box, issuer: Mask, frame: Frame) -> Transfer:
    """A copy, which has to stay within the allocation of shared memory."""
    cells, pages = shared.memory, tensor.memory
    if not isinstance(cells, Cells) or not isinstance(pages, Pages):
        raise NotModelled("bulk copy that is not between a tensor and shared memory")
    if box.where is not None:  # looked at when it was kept
        return Transfer(pages, cells, tensor.kind, box, issuer)
    world, lane = (int(i) for i in np.argwhere(np.broadcast_to(issuer, (frame.worlds, frame.lanes)))[0])
    refuse_outside(
        shared, box.bits[:, issuer.any(axis=-1)] // 8, box.held or tensor.kind, "bulk copy of", (world, lane)
    )
    return Transfer(pages, cells, tensor.kind, box, issuer)
