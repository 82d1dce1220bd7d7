"""Find which blocks of a function's earlier kernels its last one depends on: those that write what later blocks read.

For each block, every access to a tensor is put into a box: the first and the last index that it may have along each
axis (`extents`); what is not understood is the whole axis, or the whole tensor. So nothing that a later block reads
comes from a block that is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tlcheck.execute.compile.extents import Intervals, bind, interval, is_negative, where
from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.memory.values import Array, lanes_of
from tlcheck.execute.schedule.launches import grid, kernels, threads_of
from tlcheck.execute.stops import NotModelled
from tlcheck.execute.worlds.blocks import Block, chosen, coordinates
from tlcheck.execute.worlds.effort import statements_needed
from tlcheck.program.roles import READ, WRITE, accesses, is_address
from tlcheck.signatures.control import thread_axis
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Bind, Buffer, Expr, Function, If, Stmt, Store, Thread
from tlcheck.snapshot.walk import children, expressions, postorder

_FEW = 1 << 14  # threads of all blocks of a kernel: with fewer, all run
_LITTLE = 1 << 20  # statements of all these threads: with more, only what is needed
_MOST_BLOCKS = 1 << 16
_MOST_PAIRS = 1 << 24  # of boxes that are compared
_ANYHOW = 4  # blocks of each kernel that run in any case
_EXACT = ("copy", "async_copy", "tma_copy", "fill", "gemm")  # operators that access what their regions say


@dataclass(frozen=True, slots=True, eq=False)
class AccessBox:
    """A record of what blocks access of a tensor. first, last: (axes, blocks), None where it may be all of it.

    shape: of the view that the axes are of; bits: of its elements.
    """

    tensor: int
    mode: int
    shape: tuple[int, ...] = ()
    bits: int = 0
    first: Array | None = None
    last: Array | None = None

    def of(self, some: Array) -> AccessBox:
        """The boxes of some of the blocks."""
        if self.first is None or self.last is None:
            return self
        return replace(self, first=self.first[:, some], last=self.last[:, some])

    def meets(self, other: AccessBox) -> Array:
        """Return which of this one's blocks may access what a block of the other one does: (blocks,); (1,) for all."""
        if self.first is None or self.last is None or other.first is None or other.last is None:
            return np.ones(1, np.bool_)
        if (self.shape, self.bits) != (other.shape, other.bits) or self.first.size * other.first.shape[1] > _MOST_PAIRS:
            return np.ones(1, np.bool_)
        apart = (self.first[:, :, None] > other.last[:, None]) | (self.last[:, :, None] < other.first[:, None])
        return np.asarray((~np.asarray(apart.any(axis=0))).any(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class _Earlier:
    """A kernel before the last one, with all of its blocks, (3, blocks). anyhow: those that run in any case."""

    boxes: Sequence[AccessBox]
    every: Array
    anyhow: Array


class Demand:
    """A record of what the last kernel of a function wants of those before it."""

    def __init__(self, function: Function, sizes: Mapping[str, int]) -> None:
        """function: the source."""
        *earlier, self._last = kernels(function)
        self._sizes, self._count = sizes, len(earlier)
        small = all(prod(grid(kernel, sizes)) <= _MOST_BLOCKS for kernel in earlier)
        self._earlier = [_looked_at(kernel, sizes) for kernel in earlier] if small else []

    def of(self, blocks: Sequence[Block]) -> list[list[Block] | None]:
        """Return the blocks to run of each kernel before the last, where the last runs in some; None for all."""
        found: list[list[Block] | None] = []
        read = boxes(self._last, self._sizes, np.array(blocks).T) if self._earlier else []
        for kernel in reversed(self._earlier):
            wanted = kernel.anyhow.copy()
            for box in kernel.boxes:
                for other in read:
                    if box.tensor == other.tensor and box.mode & WRITE and other.mode & READ:
                        wanted |= box.meets(other)
            read += [box.of(wanted) for box in kernel.boxes]
            found.insert(0, None if wanted.all() else [(x, y, z) for x, y, z in kernel.every[:, wanted].T.tolist()])
        return found or [None] * self._count


def _looked_at(kernel: Function, sizes: Mapping[str, int]) -> _Earlier:
    extents = grid(kernel, sizes)
    every = np.array(coordinates(np.arange(prod(extents)), extents))
    # where all of its blocks take little, none is left out
    threads = prod(extents) * prod(threads_of(kernel))
    anyhow = np.full(prod(extents), threads <= _FEW and threads * statements_needed(kernel, sizes) <= _LITTLE)
    for x, y, z in chosen((kernel,), sizes, _ANYHOW):
        anyhow[(z * extents[1] + y) * extents[0] + x] = True
    return _Earlier(boxes(kernel, sizes, every), every, anyhow)


def boxes(kernel: Function, sizes: Mapping[str, int], blocks: Array) -> list[AccessBox]:
    """Return what blocks, (3, blocks), access of tensors."""
    known: Intervals = {}
    found = []
    threads = threads_of(kernel)
    for stmt in _in_order(kernel.body, sizes, blocks, threads, known):
        for access in _accesses(stmt):
            if access.buffer is None or access.buffer.scope == "global":
                found.append(access.box(sizes, known, blocks.shape[1]))
    return found


def _in_order(
    stmt: Stmt, sizes: Mapping[str, int], blocks: Array, threads: Sequence[int], known: Intervals
) -> Iterator[Stmt]:
    """A statement and those in it, while `known` is what holds there of variables. threads: of a block, x first."""
    _bind(stmt, sizes, blocks, threads, known)
    yield stmt
    before = dict(known) if isinstance(stmt, If) else {}
    holds = where(stmt.condition, sizes, known) if isinstance(stmt, If) else {}
    for part in children(stmt):
        known.update(holds)
        yield from _in_order(part, sizes, blocks, threads, known)
        known.update(before)
        holds = {}  # in the first branch alone


def _bind(stmt: Stmt, sizes: Mapping[str, int], blocks: Array, threads: Sequence[int], known: Intervals) -> None:
    """Note what a statement says of a variable."""
    if isinstance(stmt, Thread) and stmt.tag.startswith("blockIdx."):
        at = blocks["xyz".index(stmt.tag[-1])]
        known[stmt.var.uid] = at, at
    elif isinstance(stmt, Bind) and (axis := thread_axis(stmt.value)) is not None:
        known[stmt.var.uid] = 0, threads[axis] - 1
    else:
        bind(stmt, sizes, known)


@dataclass(frozen=True, slots=True, eq=False)
class _Use:
    """An access, from `starts` on along each axis. lengths: None where it may be to all of the buffer."""

    mode: int
    data: Expr
    buffer: Buffer | None = None
    starts: tuple[Expr, ...] = ()
    lengths: tuple[Expr | int, ...] | None = None

    def box(self, sizes: Mapping[str, int], known: Intervals, blocks: int) -> AccessBox:
        """The box in each block."""
        whole = AccessBox(self.data.uid, self.mode)
        if self.buffer is None or self.lengths is None or len(self.lengths) != len(self.buffer.shape):
            return whole
        try:
            shape = tuple([int(evaluated(e, sizes)) for e in self.buffer.shape])
        except NotModelled:
            return whole
        if not _is_compact(self.buffer, shape, sizes):
            return whole
        first, last = np.empty((2, len(shape), blocks), np.int64)
        for axis, (start, length) in enumerate(zip(self.starts, self.lengths, strict=True)):
            at = interval(start, sizes, known)
            more = (length, length) if isinstance(length, int) else interval(length, sizes, known)
            if at is None or more is None:
                first[axis], last[axis] = 0, shape[axis] - 1
            else:
                begin = shape[axis] if is_negative(at) else 0
                first[axis], last[axis] = begin + at[0], begin + at[1] + more[1] - 1
        return AccessBox(self.data.uid, self.mode, shape, dtype_of(self.buffer.dtype).bits, first, last)


def _is_compact(buffer: Buffer, shape: Sequence[int], sizes: Mapping[str, int]) -> bool:
    """Whether different indices are different elements, row by row from the tensor's first one."""
    if buffer.elem_offset is not None and buffer.elem_offset.value != 0:
        return False
    with suppress(NotModelled):
        steps = [int(evaluated(e, sizes)) for e in buffer.strides]
        return not steps or steps == [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return False


def _accesses(stmt: Stmt) -> Iterator[_Use]:
    """Yield what a statement itself accesses."""
    if isinstance(stmt, Store):
        yield _element(WRITE, stmt.buffer, stmt.indices)
    for root in expressions(stmt):
        modes: dict[int, int] = {}
        pointers = {}
        for data, mode in accesses(root):
            modes[data.uid] = modes.get(data.uid, 0) | mode
            pointers[data.uid] = data
        nodes = list(postorder([root]))
        regions = {id(e.args[0]): e for e in nodes if is_address(e)}
        for e in nodes:
            if e.op == "load" and e.buffer is not None:
                uid = e.buffer.data.uid
                pointers.pop(uid, None)
                yield _named(root, e, regions.get(id(e)), modes.get(uid, READ | WRITE))
        yield from (_Use(modes[uid], data) for uid, data in pointers.items())


def _named(root: Expr, element: Expr, region: Expr | None, mode: int) -> _Use:
    """The access to an element, or to the region that begins there, in an expression."""
    assert element.buffer is not None
    if region is None:
        return _element(mode, element.buffer, element.args)
    alone = root.op == "call" and root.value in _EXACT and region.value == "region"
    if not alone or not _is_alike(root) or any(e.op == "ramp" for e in element.args):
        return _Use(mode, element.buffer.data, element.buffer)
    return _Use(mode, element.buffer.data, element.buffer, element.args, region.args[2:])


def _is_alike(call: Expr) -> bool:
    """Whether all regions of an operator that copies have the same sizes."""
    sizes = [[e.value or e for e in a.args[2:] if e.value != 1] for a in call.args if a.value == "region"]
    return call.value == "gemm" or all(one == sizes[0] for one in sizes)


def _element(mode: int, buffer: Buffer, indices: Iterable[Expr]) -> _Use:
    """The access to one element, or to neighbours of it."""
    starts = tuple([e.args[0] if e.op == "ramp" else e for e in indices])
    steps = [e.args[1].value if e.op == "ramp" else 0 for e in indices]
    if any(not isinstance(step, int) or step < 0 for step in steps):
        return _Use(mode, buffer.data, buffer)
    lengths = tuple([1 + int(s or 0) * (lanes_of(e.dtype) - 1) for s, e in zip(steps, indices, strict=True)])
    return _Use(mode, buffer.data, buffer, starts, lengths)
