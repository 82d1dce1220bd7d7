"""wgmma: a warpgroup multiplies matrices from shared memory, or registers and shared memory (PTX 9.7.15).

What it multiplies is read by `wgmma_operands`, and when that happens is `wgmma_queue`'s to say; here is what an
instruction's arguments mean, and which thread has which elements in registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call, loop
from tlcheck.execute.events import Cell, TensorCoreForm
from tlcheck.execute.memory.codes import Computation, Step, counter
from tlcheck.execute.memory.frame import Frame, one_value
from tlcheck.execute.memory.values import Array, Kind, Value, nothing_in, stretched
from tlcheck.execute.ops.thread.mma import finished, kind_named, shape_of
from tlcheck.execute.ops.thread.wgmma_operands import (
    GROUP,
    MatrixOperand,
    Operand,
    OperandOfSteps,
    SharedOperand,
    in_shared,
)
from tlcheck.execute.ops.thread.wgmma_queue import Product, ProductQueue
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Evaluate, Expr, For
from tlcheck.snapshot.walk import postorder
from tlcheck.targets.nvidia import WARP


@dataclass(frozen=True, eq=False)
class Form:
    """An instruction: shape, kinds, and which operands are K-major."""

    m: int
    n: int
    k: int
    left: Kind
    right: Kind
    sum: Kind


def form_of(e: Expr, first: int, bits: int = 256) -> Form:
    """Shape and kinds; the kinds begin at argument `first`. bits: of a row of A."""
    m, n, k = shape_of(str(e.args[0].value))
    kinds = [kind_named(a) for a in e.args[first : first + 3]]
    if m != 64 or k * kinds[0].bits != bits:
        raise NotModelled(f"{e.value} {e.args[0].value} of {e.args[first].value}")
    return Form(m, n, k, *kinds)


@call("ptx_wgmma_ss", formula=True)
def from_shared(e: Expr, program: KernelProgram) -> Computation:
    """(shape, is A K-major, is B, types of A, B, C, A, its offset, B, its offset, C, its offset, scales of C, A and B).

    A and B are descriptors, and their offsets in 16 bytes.
    """
    form = form_of(e, 3)
    left = in_shared(e, 6, (form.m, form.k), form.left, bool(e.args[1].value), program)
    right = in_shared(e, 8, (form.n, form.k), form.right, bool(e.args[2].value), program)
    return issue(e, 10, form, left, right, program)


@loop
def in_a_loop(stmt: For, program: KernelProgram) -> Step | None:
    """A loop of wgmma on shared memory that add to the same accumulators, as one instruction of more columns.

    The sum is another one where each instruction rounds it. Plainly, each reads for itself.
    """
    options, body = program.options, stmt.body
    if options.plain or options.source or not options.exact or not isinstance(body, Evaluate):
        return None
    e, var = body.value, stmt.var
    if e.value != "ptx_wgmma_ss" or any(bound.op != "int" for bound in (stmt.start, stmt.extent, e.args[12])):
        return None
    varying = [number for number, a in enumerate(e.args) if any(x.uid == var.uid for x in postorder([a]))]
    steps = range(int(stmt.start.value or 0), int(stmt.start.value or 0) + int(stmt.extent.value or 0))
    if not steps or not e.args[12].value or not {7, 9}.issuperset(varying):
        return None
    program.variables[var.uid] = counter(var.uid)
    form = form_of(e, 3)
    left = in_shared(e, 6, (form.m, form.k), form.left, bool(e.args[1].value), program)
    right = in_shared(e, 8, (form.n, form.k), form.right, bool(e.args[2].value), program)
    if any(not side.further.steady or side.further.needs - {var.uid} for side in (left, right)):
        return None
    start = issue(e, 10, form, OperandOfSteps(left, var.uid, steps), OperandOfSteps(right, var.uid, steps), program)

    def run(frame: Frame) -> None:
        program.state.at = body
        program.state.spend(len(steps))
        start(frame)
        frame.variables.pop(var.uid, None)

    return Step(run)


@call("ptx_wgmma_rs", formula=True)
def from_registers(e: Expr, program: KernelProgram) -> Computation:
    """(shape, is B K-major, types of A, B, C, A, its offset, B, its offset, C, its offset, scales of C, A and B).

    A lies in registers, as for mma.
    """
    form = form_of(e, 2)
    left = held(e, 5, form.k, form.left, program)
    right = in_shared(e, 7, (form.n, form.k), form.right, bool(e.args[1].value), program)
    return issue(e, 9, form, left, right, program)


def held(e: Expr, at: int, k: int, kind: Kind, program: KernelProgram) -> Operand:
    """A matrix of 64 rows and k columns in registers: a pointer at argument `at`, then its offset."""
    index, fences = _spread(k, max(1, 32 // kind.bits)), ProductQueue.of(program).fences
    registers = program.pointer(e.args[at], len(index[0]), e.args[at + 1])

    def left(frame: Frame) -> MatrixOperand:
        position, _ = registers.position(frame)
        shape = (len(index[0]), frame.worlds, frame.lanes)
        before = np.array(stretched(registers.memory.take(position, registers.kind), shape))
        fences.used(registers, position, before, np.array(frame.mask()))
        fences.left(registers, position, before)

        def read() -> Array:
            values = stretched(registers.memory.take(position, registers.kind), shape)
            return matrices(values, index, (64, k))

        def row(world: int, group: int, number: int) -> list[Cell]:
            row_of, column_of = np.broadcast_arrays(*index)
            found = np.argwhere(row_of == number)
            found = found[np.argsort(column_of[found[:, 0], found[:, 1]], kind="stable")]
            where = np.broadcast_to(np.asarray(registers.memory.flat_position(position)), shape)
            return [(registers.memory, int(where[e, world, group * GROUP + t])) for e, t in found]

        return MatrixOperand(read, row)

    return left


def issue(e: Expr, at: int, form: Form, left: Operand, right: Operand, program: KernelProgram) -> Computation:
    """Start C = scale * C + A * B; arguments from `at` on: C, its offset, the three scales."""
    scale = program.code(e.args[at + 2])
    if any(a.op != "int" or a.value not in (1, True) for a in e.args[at + 3 : at + 5]):
        raise NotModelled("wgmma that negates an operand")
    place = program.pointer(e.args[at], form.n // 2, e.args[at + 1])
    index, queue = _accumulator(form.n), ProductQueue.of(program)
    finish = finished(form.sum, program.options)
    product = _product(e, form, left, right, place.name)
    steps = len(left.values) if isinstance(left, OperandOfSteps) else 1
    reason = program.state.reason(f"element of {place.name} read before its wgmma was waited for")

    def run(frame: Frame) -> Value:
        lanes = np.array(frame.mask())
        if lanes[:, lanes.shape[1] // GROUP * GROUP :].any():
            raise NotModelled("wgmma by a warpgroup of fewer threads")
        position, _ = place.position(frame)
        program.observers.product_issued(product, program.state.at, lanes, steps)
        a, b = left(frame), right(frame)

        def registers(matrices: Array) -> Array:
            # accumulated matrices (worlds, groups, rows, columns) -> registers (elements, worlds, threads)
            found: Array = matrices.reshape(-1).take(_in_matrices(matrices.shape))
            return _of_threads(found, frame.lanes)

        def terms(at: tuple[int, ...]) -> list[list[Cell]]:
            element, world, (group, thread) = at[0], at[1], divmod(at[2], GROUP)
            row, column = (int(np.broadcast_arrays(*index)[axis][element, thread]) for axis in (0, 1))
            assert a.row is not None
            assert b.row is not None
            return [a.row(world, group, row), b.row(world, group, column)]

        keeps = one_value(scale.run(frame), "the scale of C") != 0
        poison = nothing_in(place.kind, program.state.chances, reason)
        hidden = np.broadcast_to(poison, (form.n // 2, frame.worlds, frame.lanes))
        total = queue.sum_at(place, position, frame, lanes, hidden)
        total.left += 1
        explained = None if a.row is None or b.row is None else terms
        queue.open.append(Product(total, lanes, a, b, registers, finish, keeps, explained))
        return 0

    return run


def _product(e: Expr, form: Form, left: Operand, right: Operand, buffer: str) -> TensorCoreForm:
    """The instruction, for who counts them."""
    shared = form.n * form.k * form.right.bits // 8
    if isinstance(left, (SharedOperand, OperandOfSteps)):
        shared += form.m * form.k * form.left.bits // 8
    name = "wgmma.sp" if "_sp_" in str(e.value) else "wgmma"
    return TensorCoreForm(name, form.m, form.n, form.k, form.left.name, GROUP, buffer, shared)


def _accumulator(n: int) -> tuple[Array, Array]:
    """Row and column of each accumulator of each thread, (elements, 128): rows of 16 for a warp, columns by eight."""
    element, thread = np.ogrid[: n // 2, :GROUP]
    row = thread // WARP * 16 + thread % WARP // 4 + element // 2 % 2 * 8
    column = element // 4 * 8 + thread % 4 * 2 + element % 2
    return row, column


def _spread(k: int, run: int) -> tuple[Array, Array]:
    """Row and column of each element of A in registers, (elements, 128): `run` neighbours along K in a register."""
    element, thread = np.ogrid[: 64 * k // GROUP, :GROUP]
    row = thread // WARP * 16 + thread % WARP // 4 + element // run % 2 * 8
    column = element // (2 * run) * (4 * run) + thread % 4 * run + element % run
    return row, column


def matrices(registers: Array, index: tuple[Array, Array], shape: tuple[int, int]) -> Array:
    """Registers (elements, worlds, threads) -> (worlds, groups, rows, columns); the last group may be a part."""
    elements, worlds, threads = registers.shape
    groups = -(-threads // GROUP)
    whole = _of_threads(registers, groups * GROUP)
    grouped = whole.reshape(elements, worlds, groups, GROUP).transpose(1, 2, 0, 3)
    found = np.zeros((worlds, groups, *shape), registers.dtype)
    row, column = np.broadcast_arrays(*index)
    found[:, :, row, column] = grouped
    return found


@lru_cache(maxsize=16)
def _in_matrices(shape: tuple[int, int, int, int]) -> Array:
    """Return where the accumulators of each thread are in matrices (worlds, groups, rows, columns), read-only."""
    worlds, groups, rows, columns = shape
    row, column = _accumulator(columns)
    inner = (row * columns + column)[:, None, None, :]
    which = np.arange(worlds * groups).reshape(1, worlds, groups, 1) * (rows * columns)
    found = (inner + which).reshape(len(inner), worlds, groups * GROUP)
    found.flags.writeable = False
    return found


def _of_threads(registers: Array, threads: int) -> Array:
    """Registers (elements, worlds, threads) of so many threads: zeros in those that are more, none of those beyond."""
    more = threads - registers.shape[-1]
    return np.pad(registers, ((0, 0), (0, 0), (0, more))) if more > 0 else registers[..., :threads]
