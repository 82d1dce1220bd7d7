"""mma.sp.sync: as mma.sync, with a matrix A of which each group of k has its zeros left out (PTX 9.7.14.6).

A thread holds A's elements as for mma of half the k, and B as for mma of the whole k. Where A's elements were is said
by 32 bits of metadata in each thread, 4 bits for each group (see ops/tile/gemm_sp). For elements of 16 and 32 bits two
threads of four have it, those that the selector names: the lower half is of the group's row, the upper half of the one
8 rows down, each of a half of k. For elements of 8 bits all four have it: a half of k of one row, the odd ones 8 rows
down ("Matrix fragments for multiply-accumulate operation with sparse matrix A"; TileLang,
cuda/intrinsics/layout/mma_sp_layout.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import TensorCoreForm
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Kind, Value
from tlcheck.execute.ops.thread.mma import accumulator, adding, kind_named, operands, reading, shape_of, spread
from tlcheck.execute.ops.tile.gemm_sp import expanded
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

WORD = 32  # bits of metadata in a thread


@call("ptx_mma_sp")
def mma_sp(e: Expr, program: KernelProgram) -> Computation:
    """(as ptx_mma, then pointer and offset of the metadata, selector, saturate): C += A * B."""
    m, n, k = shape_of(str(e.args[0].value))
    a_kind, b_kind, c_kind = map(kind_named, e.args[3:6])
    if (m, n, k * a_kind.bits) != (16, 8, 512) or (e.args[1].value, e.args[2].value) != ("row", "col"):
        raise NotModelled(f"ptx_mma_sp {e.args[0].value} {e.args[1].value} {e.args[2].value} of {a_kind.name}")
    if e.args[15].value:
        raise NotModelled("ptx_mma_sp with saturation")
    run = 32 // a_kind.bits
    a_at, b_at, c_at = spread(16, k // 2, run, by_column=False), spread(k, 8, run, by_column=True), accumulator(16)
    a, b, c = operands(e, (len(a_at), len(b_at), len(c_at)), (a_kind, b_kind, c_kind), program)
    words = metadata(e, 12, a_kind, program)
    kept, places = reading(a, a_at, (16, k // 2)), _of_warps(words, a_kind, selector(e.args[14], a_kind))

    def left(frame: Frame) -> Array:
        return expanded(kept(frame), places(frame), a_kind)

    add = adding(left, reading(b, b_at, (k, 8)), c, c_at, (16, 8), c_kind)
    form = TensorCoreForm("mma.sp", m, n, k, a_kind.name, WARP, c.name)

    def counted(frame: Frame) -> Value:
        program.observers.product_issued(form, program.state.at, frame.mask())
        return add(frame)

    return counted


def metadata(e: Expr, at: int, kind: Kind, program: KernelProgram) -> BufferElement:
    """A thread's metadata for elements of a kind: a pointer at argument `at`, then its offset."""
    bits = program.pointer(e.args[at]).kind.bits
    if bits > (WORD if kind.bits == 8 else WORD // 2):
        raise NotModelled(f"{e.value} with metadata of {bits} bits for {kind.name}")
    return program.pointer(e.args[at], WORD // bits, e.args[at + 1])


def selector(e: Expr, kind: Kind) -> int:
    """Return which threads of four have the metadata: 0 for the first two, 1 for the others; 0 where all of them have
    it.
    """
    if e.op != "int" or e.value not in ((0,) if kind.bits == 8 else (0, 1)):
        raise NotModelled("a selector of metadata that varies")
    return int(e.value or 0)


def spots(bits: int, kind: Kind, chosen: int) -> Array:
    """Row and column of each word of metadata of a warp's threads, (words, 32, 2); row 16: of no matrix."""
    word, thread = np.ogrid[: WORD // bits, :WARP]
    group, place = thread // 4, thread % 4
    if kind.bits == 8:
        row, column = group + place % 2 * 8, place // 2 * (WORD // bits) + word
    else:
        half = WORD // bits // 2
        row = np.where(place // 2 == chosen, group + word // half * 8, 16)
        column = place % 2 * half + word % half
    return np.stack(np.broadcast_arrays(row, column), -1)


def _of_warps(words: BufferElement, kind: Kind, chosen: int) -> Callable[[Frame], Array]:
    """Reads the metadata of each warp: (axes of the state, warps, 16, words)."""
    where = spots(words.kind.bits, kind, chosen)
    read = reading(words, where, (17, int(where[..., 1].max()) + 1))
    return lambda frame: read(frame)[..., :16, :].view(words.kind.words)
