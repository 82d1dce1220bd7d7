"""mma.sync with block scaling: rows of A and columns of B have a factor for each part of k (PTX 9.7.14.3).

The factors are bytes of a word in each thread. Of A, two of four neighbouring threads give theirs, which a number
names: the first has those of row thread / 4, the second those of the row 8 further down. Of B one of the four does, for
column thread / 4. A second number says which byte is the first. Each factor is of k / scale_vec elements that follow
one another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import TensorCoreForm
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Value, kind_of
from tlcheck.execute.ops.scale_factors import UE4M3, UE8M0, factors
from tlcheck.execute.ops.thread.mma import adding, fragments, kind_named, operands, reading, shape_of, terms_of
from tlcheck.execute.stops import Illegal, NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

_ROWS, _COLUMNS, _QUAD = 16, 8, 4
# (kind, factors of a row, their type) -> shape, and types of A and B
_FORMS = {
    ("mxf8f6f4", 1, UE8M0): ("m16n8k32", ("e4m3", "e5m2")),
    ("mxf4", 2, UE8M0): ("m16n8k64", ("e2m1",)),
    ("mxf4nvf4", 2, UE8M0): ("m16n8k64", ("e2m1",)),
    ("mxf4nvf4", 4, UE8M0): ("m16n8k64", ("e2m1",)),
    ("mxf4nvf4", 4, UE4M3): ("m16n8k64", ("e2m1",)),
}
_REGISTERS, _SCALES, _SELECTORS = 9, 15, 17  # of the arguments


@call("ptx_mma_block_scale")
def mma(e: Expr, program: KernelProgram) -> Computation:
    """(type of C, shape, layouts of A and B, kind, factors of a row, types of A, B and the factors, then pointer and
    offset of A, B and C, pointers to the factors of A and B[, byte and thread of A, of B]): C += A * B, both scaled.
    """
    words = [str(a.value) for a in e.args[:_REGISTERS]]
    form = words[4], int(words[5]), words[8]
    shape, types = _FORMS.get(form, ("", ()))
    if words[:4] != ["float32", shape, "row", "col"] or not {words[6], words[7]} <= set(types):
        raise NotModelled(f"ptx_mma_block_scale {' '.join(words)}")
    m, n, k = shape_of(shape)
    kinds = [kind_named(e.args[number]) for number in (6, 7, 0)]
    a_at, b_at, c_at = fragments(m, n, k, kinds[0])
    a, b, c = operands(e, (len(a_at), len(b_at), len(c_at)), kinds, program, first=_REGISTERS)
    of_a, of_b = (Factors.of(e, number, form, program) for number in range(2))
    left, right = reading(a, a_at, (m, k)), reading(b, b_at, (k, n))

    def rows(frame: Frame) -> Array:
        return np.asarray(left(frame) * np.repeat(of_a.take(frame), k // form[1], axis=-1))

    def columns(frame: Frame) -> Array:
        return np.asarray(right(frame) * np.repeat(of_b.take(frame), k // form[1], axis=-1).swapaxes(-1, -2))

    add = adding(rows, columns, c, c_at, (m, n), kinds[2])
    counted = TensorCoreForm("mma", m, n, k, kinds[0].name, WARP, c.name)

    def run(frame: Frame) -> Value:
        program.observers.product_issued(counted, program.state.at, frame.mask())
        program.observers.product(terms_of(frame, (a, a_at), (b, b_at), c_at))
        return add(frame)

    return run


@dataclass(frozen=True, eq=False)
class Factors:
    """The factors of an operand. give: the thread that has those of each row of A, or column of B, by the number that
    selects it, of `most`. count: of a row. octet, thread: the numbers; None for 0.
    """

    place: BufferElement
    give: Callable[[Array], Array]
    count: int
    type: str
    octet: Code | None
    thread: Code | None
    most: int

    @classmethod
    def of(cls, e: Expr, number: int, form: tuple[str, int, str], program: KernelProgram) -> Factors:
        """Return the factors of A (number 0) or B (1)."""
        place = program.pointer(e.args[_SCALES + number])
        if place.kind != kind_of("uint32"):
            raise NotModelled(f"ptx_mma_block_scale with factors in {place.kind.name}")
        chosen = e.args[_SELECTORS + 2 * number : _SELECTORS + 2 * number + 2]
        octet, thread = [program.code(a) for a in chosen] if chosen else (None, None)
        give, most = ((_of_rows, 2), (_of_columns, _QUAD))[number]
        return cls(place, give, form[1], form[2], octet, thread, most)

    def take(self, frame: Frame) -> Array:
        """(axes of the state, warps, rows of A or columns of B, factors of each)."""
        state = self.place.state
        octet, thread = (_of_warps(code, frame) for code in (self.octet, self.thread))
        wrong = (octet % self.count != 0) | (octet // _QUAD != 0) | (thread // self.most != 0)
        if wrong.any():
            world, warp = np.argwhere(wrong)[0].tolist()
            what = f"mma with factors from byte {octet[world, warp]} of thread {thread[world, warp]}: there are none"
            raise Illegal(what, state.line, world, warp * WARP, self.place.name)
        words = np.broadcast_to(self.place.load(frame), (1, frame.worlds, frame.lanes))
        words = words.reshape(*octet.shape, WARP)
        words = np.take_along_axis(words, self.give(thread[..., None]), axis=-1)
        found = np.stack([factors(words, octet[..., None] + i, self.type) for i in range(self.count)], axis=-1)
        return found.reshape(*state.axes, *found.shape[1:])


def _of_warps(code: Code | None, frame: Frame) -> Array:
    """A number that all threads of a warp have, (worlds, warps). Raises NotModelled where they do not."""
    value = np.broadcast_to(0 if code is None else np.asarray(code.run(frame)), (frame.worlds, frame.lanes))
    whole = value.reshape(frame.worlds, -1, WARP)
    if (whole != whole[..., :1]).any():
        raise NotModelled("ptx_mma_block_scale with numbers that differ within a warp")
    return whole[..., 0].astype(np.int64)


def _of_rows(thread: Array) -> Array:
    row = np.arange(_ROWS)
    return np.asarray(row % 8 * _QUAD + 2 * thread + row // 8)


def _of_columns(thread: Array) -> Array:
    return np.asarray(np.arange(_COLUMNS) * _QUAD + thread)
