"""Matrix products of tiles: T.gemm in all its forms (TileLang, language/gemm_op.py).

C becomes op(A) @ op(B), plus C unless it is cleared; op transposes where its flag says so. After op, A is M x K and B
is K x N. Policies, wait counts and packing change how, not what. The arguments begin with A, B, C, both flags, M, N, K,
policy, clear; in 0.1.6 the matrices are pointers and the places of their first columns follow as offsets.

Products of floats are exact in float64, sums are those of float64; integers wrap at the accumulator's width. In real
mode a sum is rounded to the accumulator's dtype: once, but where that is narrower than float32, after each step that
the tensor cores add by themselves, 32 bytes of a row: what such an accumulator loses, it loses there. In the source a
product is complete when the next statement runs, also T.wgmma_gemm and T.tcgen05_gemm; whether the author waits for
such a one is watched where something differs (`authors`). One into tensor memory arrives at the mbarrier that it names.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import CALLS, call
from tlcheck.execute.events import PRODUCTS, TENSOR_PRODUCTS, Cell, Operands, Operation
from tlcheck.execute.field import Field
from tlcheck.execute.field import product as product_of
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, one_per_world
from tlcheck.execute.memory.matrix_products import product
from tlcheck.execute.memory.values import Array, Kind, Value
from tlcheck.execute.ops.scale_factors import has_factors
from tlcheck.execute.ops.thread.mbarrier import Barrier, barrier, release
from tlcheck.execute.ops.tile.gemm_pairs import of_pairs
from tlcheck.execute.ops.tile.regions import ONE, ZERO, Region, Tile, region_of, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Buffer, Expr

_OFFSET_A, _OFFSET_B = 12, 13  # of the arguments, where matrices are pointers
_AT_ONCE = 32  # bytes of a row that one instruction multiplies: 16 numbers of 16 bits
_COMPLETED = 10  # the argument from which on the mbarrier stands, if there is one
_WAIT = 15  # how many products may go on


@call("gemm", "gemm_py", "gemm_v1", "gemm_v2", "wgmma_gemm", "tcgen05_gemm", formula=True)
def gemm(e: Expr, program: KernelProgram) -> Computation | Code:
    """The accumulator becomes the product, plus what it was unless it is cleared."""
    if has_factors(e):
        return CALLS["gemm_blockscaled"](e, program)
    in_pairs = dict(e.annotations).get("use_2cta", "0") not in ("0", "False")
    a, b, c = (whole(_matrix(e, number, program), program) for number in range(3))
    across_a, across_b = (bool(e.args[i].value) for i in (3, 4))
    clear, later, observers = program.code(e.args[9]), _is_left_to_the_author(e), program.observers
    done, in_tensor_memory = _completed_by(e, program), c.buffer.scope == "shared.tmem"
    if in_pairs:
        if not in_tensor_memory:
            raise NotModelled(f"gemm of two blocks into {c.kind.name} of {c.buffer.scope}")
        return of_pairs((a, b, c), (across_a, across_b), clear, done, program)

    def run(frame: Frame) -> int:
        inner = a.frame(frame, b, c)
        observers.tensor_product(begins=in_tensor_memory)
        left, right = matrices(a, inner, across_a), matrices(b, inner, across_b)
        cleared = one_per_world(clear.run(frame), "clear_accum")
        observers.product(_terms(inner, (a, across_a), (b, not across_b), c), keeps=not np.any(cleared))
        if later and not in_tensor_memory:
            observers.async_product(c.place, begins=True)
        for step in _steps(left.shape[-1], a.kind, c.kind, program.options.exact):
            found = multiplied(left[..., step], right[..., step, :], c.kind, program.options.field)
            accumulate(c, inner, found, False if step.start else cleared, step.stop - step.start)
        observers.tensor_product(begins=False)
        if in_tensor_memory:
            read = [tile.elements(inner) for tile in (a, b) if tile.buffer.scope.startswith("shared")]
            observers.operation_begun(Operation(TENSOR_PRODUCTS, read, [c.elements(inner)]))
        elif later:
            observers.async_product(c.place, begins=False)
            observers.operation_begun(Operation(PRODUCTS, [tile.elements(inner) for tile in (a, b) if tile.shared]))
        if done is not None:
            _complete(done, frame, program)
        return 0

    return run


def _completed_by(e: Expr, program: KernelProgram) -> Barrier | None:
    """The mbarrier that an argument names, at which the product arrives."""
    for a in e.args[_COMPLETED:]:
        if a.op == "load" and a.buffer is not None and a.buffer.scope.endswith("barrier"):
            return barrier(a, program)
    return None


def _complete(done: Barrier, frame: Frame, program: KernelProgram) -> None:
    """The product is complete: once in each block."""
    named = done.of_blocks(frame)
    for number, mask in done(frame).by_number:
        program.observers.products_committed((done.barriers.name, number), mask)
    release(program, done.barriers, done(frame))
    for world, number in named:
        done.barriers.arrive(world, number, 1)


def _steps(terms: int, of: Kind, total: Kind, exact: bool | Field) -> list[slice]:
    """The parts of a row of A after each of which the sum is rounded."""
    narrow = not exact and total.is_float and total.bits < 32
    width = _AT_ONCE // of.octets if narrow else terms
    return [slice(start, start + width) for start in range(0, terms, width)]


def _is_left_to_the_author(e: Expr) -> bool:
    """Whether nothing waits for the product: T.wgmma_gemm, and T.gemm(wg_wait=-1) of releases up to 0.1.8."""
    return e.value == "wgmma_gemm" or (len(e.args) > _WAIT and e.args[_WAIT].value == -1)


def _terms(frame: Frame, a: tuple[Tile, bool], b: tuple[Tile, bool], c: Tile) -> Operands:
    """The row of A and the column of B that make an element of C. With each, whether k is its first axis."""

    def terms(index: tuple[int, ...]) -> list[list[Cell]]:
        columns = c.lattice.shape(frame)[-1]
        found = []
        for (tile, across), line in zip((a, b), divmod(index[0], columns), strict=True):
            where = tile.flat(frame).reshape(*tile.lattice.shape(frame)[-2:], frame.worlds, -1)
            own = where[:, line] if across else where[line]
            world, lane = (index[1], index[2] if own.shape[-1] > 1 else 0)
            found.append([(tile.place.memory, int(position)) for position in own[:, world, lane]])
        return found

    return terms


def _matrix(e: Expr, number: int, program: KernelProgram) -> Region:
    region = region_of(e.args[number], program)
    if len(region.sizes) < 2:
        raise NotModelled("gemm of a tile with one axis")
    if e.args[number].value == "tvm_access_ptr":
        return _last_axes(region) if number == 2 else _from_pointer(e, number, region)
    if any(axis < len(region.sizes) - 2 for axis in region.long):
        raise NotModelled("gemm of a tile with more than two axes")
    return region


def _last_axes(region: Region) -> Region:
    """The matrix of the last two axes at which a pointer points."""
    return replace(region, sizes=(*[ONE] * (len(region.sizes) - 2), *region.sizes[-2:]))


def _from_pointer(e: Expr, number: int, region: Region) -> Region:
    """The matrix in a buffer: its form is that of the product, its first column is an offset in the arguments."""
    m, n, k = e.args[5:8]
    across = bool(e.args[3 + number].value)
    rows, columns = (m, k) if number == 0 else (k, n)
    if across:
        rows, columns = columns, rows
    first = e.args[_OFFSET_A if number == 0 else _OFFSET_B]
    buffer = _with_rows(region.buffer, rows)
    ahead = len(buffer.shape) - 2
    return Region(buffer, (*region.starts[:ahead], ZERO, first), (*[ONE] * ahead, rows, columns))


def _with_rows(buffer: Buffer, rows: Expr) -> Buffer:
    """The buffer, as one matrix where so many rows go over more than its last two axes: a reshaped one is."""
    *outer, inner, last = buffer.shape
    sizes = [e.value for e in (*outer, inner, rows) if e.op == "int"]
    if buffer.strides or len(sizes) < len(outer) + 2 or int(rows.value or 0) <= int(inner.value or 0):
        return buffer
    return replace(buffer, shape=(replace(inner, value=prod(int(n or 0) for n in sizes[:-1])), last))


def matrices(tile: Tile, frame: Frame, across: bool = False) -> Array:
    """A tile as one matrix for each world and lane: (worlds, lanes or 1, rows, columns)."""
    found = tile.array(frame)
    found = np.ascontiguousarray(found.reshape(*found.shape[-4:]).transpose(2, 3, 0, 1))  # as BLAS wants it
    return found.swapaxes(2, 3) if across else found


def multiplied(a: Array, b: Array, kind: Kind, field: Field | None = None) -> Array:
    """The products of matrices, in the arithmetic of the accumulator. field: where floats are elements of one."""
    if kind.is_float and field is not None:
        if a.dtype.kind != "f" or b.dtype.kind != "f":
            raise NotModelled("a product of integers as floats")
        return product_of(a, b)
    if kind.is_float:
        return product(a, b)
    if a.dtype.itemsize == b.dtype.itemsize == 1:  # exact in float64, and fast there
        return product(a, b).astype(np.int64)
    return np.asarray(np.matmul(a.astype(np.int64), b.astype(np.int64)))


def accumulate(c: Tile, frame: Frame, product: Array, clear: Value, terms: int) -> None:
    """Write a product of matrices (worlds, lanes, rows, columns), sums of so many terms, into an accumulator."""
    cleared = np.asarray(clear)
    if not cleared.all():
        before = matrices(c, frame).astype(product.dtype, copy=False)
        product = product + (np.where(cleared.reshape(*cleared.shape, 1, 1), 0, before) if cleared.any() else before)
    settle = c.place.state.summed(c.kind, terms)
    total = np.asarray(product if settle is None else settle(product)).astype(c.kind.array, copy=False)
    c.write(frame, total.transpose(2, 3, 0, 1).reshape(-1, *total.shape[:2]))
