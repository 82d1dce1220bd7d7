"""mfma: a wave multiplies matrices that its lanes hold in registers (CDNA3 ISA and CDNA4 ISA, "Matrix Arithmetic
Instructions"; the tables of AMD's matrix instruction calculator).

Lane l has row l % M of A, and column l % N of B: the neighbours along k from n * (l / M) on, n of them. Of C and D it
has column l % N. Their rows lie by fours: those of 16x16 from 4 * (l / 16) on, those of 32x32 from 4 * (l / 32) on in
each eight.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from tlcheck.execute.compile.addresses import constant, joined
from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.expressions import formatted
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import TensorCoreForm
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Kind, Value, kind_of, lanes_of, reinterpreted
from tlcheck.execute.ops.thread.mma import adding, reading, terms_of
from tlcheck.execute.stops import NotModelled
from tlcheck.program.layouts import fragment_table
from tlcheck.snapshot.ir import Block, Expr
from tlcheck.snapshot.walk import statements
from tlcheck.targets.amd import WARP as WAVE
from tlcheck.targets.target import Target

_NAME = re.compile(r"(?P<sum>f32|i32)_(?P<m>16|32)x(?P=m)x(?P<k>\d+)_?(?P<types>[a-z]+\d+(?:_[a-z]+\d+)?)(?:_1k)?")
_TYPES = {
    "f32": ("float32",),
    "f16": ("float16",),
    "bf16": ("bfloat16",),
    "i8": ("int8",),
    "fp8": ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3"),
    "bf8": ("float8_e5m2", "float8_e5m2fnuz"),
}
_SUMS = {"f32": "float32", "i32": "int32"}
# k of an instruction, by m and the type of A: what CDNA3 has, and what only CDNA4 has.
_CDNA3 = {
    16: {"f32": (4,), "f16": (16,), "bf16": (16,), "i8": (32,), "fp8": (32,), "bf8": (32,)},
    32: {"f32": (2,), "f16": (8,), "bf16": (8,), "i8": (16,), "fp8": (16,), "bf8": (16,)},
}
_CDNA4 = {16: {"f16": (32,), "bf16": (32,), "i8": (64,)}, 32: {"f16": (16,), "bf16": (16,), "i8": (32,)}}


@call("tvm_mfma")
def mfma(e: Expr, program: KernelProgram) -> Computation:
    """(name, layouts of A and B, types of A, B and C as vectors, then pointer and index of each vector): C += A * B."""
    m, k, kinds = _instruction(str(e.args[0].value), program.options.target)
    a_kind, b_kind, c_kind = (_kind_of(e.args[at], kind) for at, kind in zip((3, 4, 5), kinds, strict=True))
    a_at, b_at, c_at = fragments(m, k)
    a, b, c = (_registers(e, at, kind, program) for at, kind in zip((6, 8, 10), (a_kind, b_kind, c_kind), strict=True))
    for at, place in zip((a_at, b_at, c_at), (a, b, c), strict=True):
        if len(at) != place[1]:
            raise NotModelled(f"{e.args[0].value} of vectors of {place[1]}")
    left = _seen(reading(a[0], a_at, (m, k)), a_kind, program)
    right = _seen(reading(b[0], b_at, (k, m)), b_kind, program)
    add = adding(left, right, c[0], c_at, (m, m), c_kind)
    form = TensorCoreForm("mfma", m, m, k, a_kind.name, WAVE, c[0].name)

    def run(frame: Frame) -> Value:
        program.observers.product_issued(form, program.state.at, frame.mask())
        program.observers.product(terms_of(frame, (a[0], a_at), (b[0], b_at), c_at))
        return add(frame)

    return run


def _instruction(name: str, target: Target) -> tuple[int, int, tuple[tuple[str, ...], ...]]:
    """m, k and the types that A, B and C may have. Raises NotModelled for one that the target does not have."""
    found = _NAME.fullmatch(name)
    types = found["types"].split("_") if found else []
    if found is None or any(t not in _TYPES for t in types):
        raise NotModelled(f"mfma {name}")
    m, k, (left, *_), right = int(found["m"]), int(found["k"]), types, types[-1]
    known = {*_CDNA3[m].get(left, ()), *(_CDNA4[m].get(left, ()) if "mfma.cdna4" in target.instructions else ())}
    if k not in known or (left == "i8") != (found["sum"] == "i32"):
        raise NotModelled(f"mfma {name} on {target.arch}")
    return m, k, (_TYPES[left], _TYPES[right], (_SUMS[found["sum"]],))


def _kind_of(e: Expr, allowed: tuple[str, ...]) -> Kind:
    """The kind of a vector's elements. Raises NotModelled for one that the instruction's name does not mean."""
    kind = kind_of(_vector(e))
    if kind.name not in allowed:
        raise NotModelled(f"mfma of {kind.name} where it multiplies {allowed[0]}")
    return kind


def _vector(e: Expr) -> str:
    """A vector's type in TVM's spelling."""
    return str(e.value)


def _registers(e: Expr, at: int, kind: Kind, program: KernelProgram) -> tuple[BufferElement, int]:
    """The registers that an argument and the index after it name, and how many elements they are."""
    count = lanes_of(_vector(e.args[at // 2]))
    offset = joined(lambda index, size: index * size, program.code(e.args[at + 1]), constant(count))
    table = _fragment(e.args[at], program)
    if table is None:
        place = program.pointer(e.args[at], count, offset)
    else:
        place = program.pointer(e.args[at], 1, _logical(table, offset, count))
    if place.kind.bits != kind.bits or place.kind.is_float != kind.is_float:
        raise NotModelled(f"tvm_mfma on {kind.name} in registers of {place.kind.name}")
    return place, count


def _fragment(pointer: Expr, program: KernelProgram) -> Array | None:
    """The element of a fragment of the source that is each register of a lane, (threads, registers); None for what is
    each lane's own.

    Raises NotModelled for a fragment whose layout the author does not say.
    """
    buffer = program.pointers.declared(pointer) if program.options.source and pointer.op == "var" else None
    if buffer is None or buffer.scope != "local.fragment":
        return None
    for stmt in statements(program.function.body):
        for data, layout in stmt.layouts if isinstance(stmt, Block) else ():
            table = fragment_table(layout) if data.uid == buffer.data.uid else None
            if table is not None and table.threads == program.state.threads:
                return table.elements.reshape(table.threads, table.registers)
    raise NotModelled(f"tvm_mfma on {buffer.name}, a fragment without a layout")


def _logical(table: Array, offset: Code, count: int) -> Code:
    """The numbers of the elements, in the fragment's shape, that are a lane's registers from `offset` on."""
    thread, step = np.arange(len(table)), np.arange(count).reshape(-1, 1, 1)
    return joined(lambda first: table[thread, np.asarray(first) + step], offset)


def _seen(read: Callable[[Frame], Array], kind: Kind, program: KernelProgram) -> Callable[[Frame], Array]:
    """An operand as the target's instruction takes it: some take eight bits for another format."""
    other, exact = formatted(kind, program), program.options.exact
    if other == kind:
        return read
    return lambda frame: np.asarray(reinterpreted(read(frame), kind, other, exact))


def fragments(m: int, k: int) -> tuple[Array, Array, Array]:
    """Return where a lane's elements of A, B and C belong: (elements, 64, 2) of row and column."""
    lane = np.arange(WAVE)
    each = m * k // WAVE
    along = [lane // m * each + i for i in range(each)]
    a = np.array([np.stack([lane % m, depth], -1) for depth in along])
    rows = [r // 4 * (4 * WAVE // m) + lane // m * 4 + r % 4 for r in range(m * m // WAVE)]
    return a, a[..., ::-1], np.array([np.stack([row, lane % m], -1) for row in rows])
