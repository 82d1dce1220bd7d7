"""mma.sync: a warp multiplies matrices that its threads hold in registers (PTX 9.7.14.5, "Matrix Fragments for mma").

With g = thread / 4 and t = thread % 4: which element of a matrix a thread holds as its i-th is a table for each shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import Cell, Observer, Operands, TensorCoreForm
from tlcheck.execute.field import Field
from tlcheck.execute.field import product as product_of
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.cells import Position
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.matrix_products import for_blas, product
from tlcheck.execute.memory.values import Array, Kind, Value, kind_of, rounding
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

# Types of elements as instructions name them, where that is not as TVM does.
_SHORT = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "tf32": "float32",
    "fp32": "float32",
    "fp64": "float64",
    "s8": "int8",
    "u8": "uint8",
    "s32": "int32",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e2m1": "float4_e2m1fn",
    "float8_e4m3": "float8_e4m3fn",
}
# What sums are kept in, by what is multiplied (PTX 9.7.14.5, "Matrix Shape")
_SUMS = {
    "float64": ("float64",),
    "float32": ("float32",),
    "float16": ("float16", "float32"),
    "bfloat16": ("float32",),
    "float8": ("float16", "float32"),
    "integer": ("int32",),
}
# k that one instruction takes, by the width of the elements of A and B
_SHAPES = {64: (4, 8, 16), 32: (4, 8), 16: (8, 16), 8: (16, 32), 4: (32, 64)}


@call("ptx_mma", formula=True)
def mma(e: Expr, program: KernelProgram) -> Computation:
    """(shape, layout of A, of B, types of A, B, C, then pointer and offset of A, B and C[, saturate]): C += A * B."""
    m, n, k = shape_of(str(e.args[0].value))
    a_kind, b_kind, c_kind = map(kind_named, e.args[3:6])
    if (e.args[1].value, e.args[2].value) != ("row", "col"):
        raise NotModelled(f"ptx_mma {e.args[1].value} {e.args[2].value}")
    _require_kinds(a_kind, b_kind, c_kind)
    if len(e.args) > 12 and e.args[12].value:
        raise NotModelled("ptx_mma with saturation")
    a_at, b_at, c_at = fragments(m, n, k, a_kind)
    a, b, c = operands(e, (len(a_at), len(b_at), len(c_at)), (a_kind, b_kind, c_kind), program)
    left, right = reading(a, a_at, (m, k)), reading(b, b_at, (k, n))
    add = adding(left, right, c, c_at, (m, n), c_kind)

    form = TensorCoreForm("mma", m, n, k, a_kind.name, WARP, c.name)

    def run(frame: Frame) -> Value:
        program.observers.product_issued(form, program.state.at, frame.mask())
        program.observers.product(terms_of(frame, (a, a_at), (b, b_at), c_at))
        return add(frame)

    return run


def _require_kinds(a: Kind, b: Kind, c: Kind) -> None:
    """Raise NotModelled for types that no instruction multiplies: nvcc refuses them."""
    classes = [_class_of(kind) for kind in (a, b)]
    if classes[0] != classes[1] or c.name not in _SUMS.get(classes[0], ()):
        raise NotModelled(f"mma.sync of {a.name} by {b.name} into {c.name} (no such instruction)")


def _class_of(kind: Kind) -> str:
    if kind.name.startswith("float8"):
        return "float8"
    return "integer" if not kind.is_float and kind.bits in (4, 8) else kind.name


def operands(
    e: Expr, counts: Sequence[int], kinds: Sequence[Kind], program: KernelProgram, first: int = 6
) -> Iterator[BufferElement]:
    """The registers of A, B and C, `counts` of each, from an argument on: pointers and offsets. Raises NotModelled."""
    for at, count, kind in zip(range(first, first + 6, 2), counts, kinds, strict=True):
        place = program.pointer(e.args[at], count, e.args[at + 1])
        other = program.options.field is not None and place.kind.memory != kind.memory
        if other or place.kind.bits != kind.bits or place.kind.is_float != kind.is_float:
            raise NotModelled(f"{e.value} on {kind.name} in registers of {place.kind.name}")
        yield place


def adding(
    left: Callable[[Frame], Array],
    right: Callable[[Frame], Array],
    c: BufferElement,
    c_at: Array,
    shape: tuple[int, int],
    kind: Kind,
) -> Computation:
    """Adds the product of two operands to accumulators of a kind, whose elements are at `c_at` of a matrix."""
    state = c.state
    back, add_up = scatter(c_at, shape, len(state.worlds), state.threads), _adding_up(c, c_at, shape)
    finish = finished(kind, state.options)

    def run(frame: Frame) -> Value:
        product = multiplied(left(frame), right(frame), state.options.field)
        product = np.broadcast_to(product, (*state.axes, *product.shape[-3:])).reshape(-1, *product.shape[-3:])
        if c.root in state.sums:
            add_up(frame, product, finish)
        else:
            c.store(frame, finish(c.load(frame) + back(product)))
        return 0

    return run


def reading(place: BufferElement, where: Array, shape: tuple[int, int]) -> Callable[[Frame], Array]:
    """Reads an operand: (axes of the state, warps, rows, columns), 1 along loops that change nothing in it."""
    state, traced = place.state, place.observers.hear(Observer.product)
    axes, whole = state.axes, gather(where, shape, len(state.worlds), state.threads)
    made: list[tuple[Position, Array]] = []  # for the last position

    def run(frame: Frame) -> Array:
        position, outside = place.position(frame)[0], place.located(frame).outside
        if len(axes) == 1 or outside is not None or traced:
            found = whole(place.load(frame))
            return found.reshape(*axes, *found.shape[1:])
        if not made or made[0][0] is not position:
            flat = np.broadcast_to(place.memory.flat_position(position), (len(where), frame.worlds, frame.lanes))
            few = _once(flat.reshape(len(where), *axes, frame.lanes))
            held = gather(where, shape, prod(few.shape[1:-1]), frame.lanes)(few.reshape(len(where), -1, frame.lanes))
            made[:] = [(position, held.reshape(*few.shape[1:-1], *held.shape[1:]))]
        return place.memory.take(made[0][1], place.kind)

    return run


def _once(position: Array) -> Array:
    """A position (elements, loops, worlds, lanes), with 1 for loops on which it does not depend."""
    for axis in range(1, position.ndim - 2):
        first = position.take([0], axis)
        if (position == first).all():
            position = first
    return position


def _adding_up(c: BufferElement, c_at: Array, shape: tuple[int, int]) -> Callable[..., None]:
    """Adds the products of all iterations of a loop to the accumulators that they have in common, see `iterations`."""
    made: list[tuple[Position, Array, Callable[[Array], Array]]] = []  # for the last position

    def run(frame: Frame, product: Array, finish: Callable[[Array], Array]) -> None:
        times, worlds = c.state.sums[c.root]
        position, mask = c.position(frame)
        if not made or made[0][0] is not position:
            flat = np.broadcast_to(c.memory.flat_position(position), (len(c_at), frame.worlds, frame.lanes))
            where = _first_of(flat, times, worlds)
            made[:] = [(position, where, scatter(c_at, shape, where.shape[1], frame.lanes))]
        _, where, back = made[0]
        lanes = (
            None if mask is None else _first_of(np.broadcast_to(mask, (1, frame.worlds, frame.lanes)), times, worlds)[0]
        )
        total = product.reshape(-1, times, worlds, *product.shape[1:]).sum(axis=1)
        total = back(total.reshape(-1, *product.shape[1:]))
        c.memory.put(where, finish(c.memory.take(where, c.kind) + total), lanes, c.kind)

    return run


def _first_of(of_worlds: Array, times: int, worlds: int) -> Array:
    """Return what (elements, worlds, lanes) is in the first iteration of a loop."""
    elements, _, lanes = of_worlds.shape
    return of_worlds.reshape(elements, -1, times, worlds, lanes)[:, :, 0].reshape(elements, -1, lanes)


def terms_of(frame: Frame, a: tuple[BufferElement, Array], b: tuple[BufferElement, Array], c_at: Array) -> Operands:
    """The row of A and the column of B that an element of C is the product of, in the order of k."""

    width = c_at.shape[1]

    def terms(index: tuple[int, ...]) -> list[list[Cell]]:
        element, world, lane = index
        found = []
        for (place, at), axis in ((a, 0), (b, 1)):
            members = np.argwhere(at[..., axis] == c_at[element, lane % width, axis])
            members = members[np.argsort(at[members[:, 0], members[:, 1], 1 - axis], kind="stable")]
            where = np.asarray(place.memory.flat_position(place.located(frame).position))
            where = np.broadcast_to(where, (len(at), frame.worlds, frame.lanes))
            first = lane // width * width
            found.append([(place.memory, int(where[e, world, first + thread])) for e, thread in members])
        return found

    return terms


def multiplied(a: Array, b: Array, field: Field | None = None) -> Array:
    """Products of matrices; those of integers exactly. field: where floats are elements of one."""
    if field is not None and a.dtype.kind == "f":
        return product_of(for_blas(a), for_blas(b))
    found = product(a, b)
    return found if a.dtype.kind == "f" else found.astype(np.int64)


def finished(kind: Kind, options: Options) -> Callable[[Array], Array]:
    """Return what makes sums the accumulator's dtype: integers wrap, floats are rounded unless they are exact."""
    if not kind.is_float:
        return lambda values: values.astype(kind.array)
    return rounding(kind, options.exact) or (lambda values: values)


def kind_named(e: Expr) -> Kind:
    """The kind of a matrix's elements, as an instruction names it."""
    return kind_of(_SHORT.get(str(e.value), str(e.value)))


def shape_of(text: str) -> tuple[int, int, int]:
    """m, n and k of a shape such as `m16n8k16`."""
    try:
        m, rest = text.removeprefix("m").split("n")
        n, k = rest.split("k")
        return int(m), int(n), int(k)
    except ValueError:
        raise NotModelled(f"ptx_mma {text}") from None


def fragments(m: int, n: int, k: int, kind: Kind) -> tuple[Array, Array, Array]:
    """Return where a thread's elements of A, B and C belong: (elements, 32, 2) of row and column."""
    if (m, n, k) == (8, 8, 4) and kind.bits == 64:
        return spread(8, 4, 1, by_column=False), spread(4, 8, 1, by_column=True), accumulator(8)
    if (m, n) != (16, 8) or k not in _SHAPES.get(kind.bits, ()):
        raise NotModelled(f"ptx_mma m{m}n{n}k{k} of {kind.name}")
    run = max(1, 32 // kind.bits)  # neighbouring elements along k in one register
    return spread(16, k, run, by_column=False), spread(k, 8, run, by_column=True), accumulator(16)


def spread(rows: int, columns: int, run: int, by_column: bool) -> Array:
    """A (k along its columns) or B (k along its rows): registers of `run` neighbours along k, 4 threads side by side.

    The registers of A go down 8 rows first and then along k; B has its 8 columns in the groups of threads.
    """
    thread = np.arange(WARP)
    group, place = thread // 4, thread % 4
    found = []
    if by_column:
        for step in range(0, rows, 4 * run):
            found += [np.stack([step + place * run + i, group], -1) for i in range(run)]
    else:
        for step in range(0, columns, 4 * run):
            for down in range(0, rows, 8):
                found += [np.stack([down + group, step + place * run + i], -1) for i in range(run)]
    return np.array(found)


def accumulator(rows: int) -> Array:
    """C and D: two neighbouring columns, then 8 rows down."""
    thread = np.arange(WARP)
    group, place = thread // 4, thread % 4
    return np.array([np.stack([down + group, 2 * place + i], -1) for down in range(0, rows, 8) for i in range(2)])


def gather(where: Array, shape: tuple[int, int], worlds: int, threads: int) -> Callable[[Array], Array]:
    """Registers (elements, worlds, threads) -> matrices (worlds, warps, rows, columns).

    where: (elements, lanes of a warp, 2). Raises NotModelled for a block of incomplete warps.
    """
    width = where.shape[1]
    if threads % width:
        raise NotModelled("warp instruction in a block of incomplete warps")
    source = np.zeros(shape, np.intp)
    element, lane = np.indices(where.shape[:2])
    source[where[..., 0], where[..., 1]] = element * worlds * threads + lane
    warps = (np.arange(worlds)[:, None] * threads + np.arange(0, threads, width)).reshape(worlds, -1, 1, 1)
    index = source + warps
    full = (len(where), worlds, threads)
    return lambda registers: np.ascontiguousarray(np.broadcast_to(registers, full)).reshape(-1).take(index)


def scatter(where: Array, shape: tuple[int, int], worlds: int, threads: int) -> Callable[[Array], Array]:
    """Matrices (worlds, warps, rows, columns) -> registers (elements, worlds, threads)."""
    inner = where[..., 0] * shape[1] + where[..., 1]
    matrices = np.arange(worlds * (threads // where.shape[1])).reshape(1, worlds, -1, 1) * (shape[0] * shape[1])
    index = (matrices + inner[:, None, None, :]).reshape(len(where), worlds, threads)
    return lambda matrix: matrix.reshape(-1).take(index)
