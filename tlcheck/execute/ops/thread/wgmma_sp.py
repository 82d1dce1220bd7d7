"""wgmma with a matrix A of which each group of k has its zeros left out (PTX 9.7.15.6, wgmma.mma_async.sp).

As wgmma, with half the columns of A; each warp of the warpgroup has the metadata of its 16 rows as for mma.sp. Metadata
is read from registers as late as A is ("Accessing the registers ... before the wait is undefined").
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array
from tlcheck.execute.ops.thread.mma_sp import metadata, selector, spots
from tlcheck.execute.ops.thread.wgmma import Form, form_of, held, issue, matrices
from tlcheck.execute.ops.thread.wgmma_operands import MatrixOperand, Operand, in_shared
from tlcheck.execute.ops.tile.gemm_sp import expanded
from tlcheck.snapshot.ir import Expr

ROW = 512  # bits of a row of A with its zeros


@call("ptx_wgmma_sp_ss")
def from_shared(e: Expr, program: KernelProgram) -> Computation:
    """(as ptx_wgmma_ss; after A and its offset come the metadata, its offset and the selector)."""
    form = form_of(e, 3, ROW)
    kept = in_shared(e, 6, (form.m, form.k // 2), form.left, bool(e.args[1].value), program)
    right = in_shared(e, 11, (form.n, form.k), form.right, bool(e.args[2].value), program)
    return issue(e, 13, form, _sparse(e, 8, form, kept, program), right, program)


@call("ptx_wgmma_sp_rs")
def from_registers(e: Expr, program: KernelProgram) -> Computation:
    """(as ptx_wgmma_rs; after A and its offset come the metadata, its offset and the selector)."""
    form = form_of(e, 2, ROW)
    kept = held(e, 5, form.k // 2, form.left, program)
    right = in_shared(e, 10, (form.n, form.k), form.right, bool(e.args[1].value), program)
    return issue(e, 12, form, _sparse(e, 7, form, kept, program), right, program)


def _sparse(e: Expr, at: int, form: Form, kept: Operand, program: KernelProgram) -> Operand:
    """A with its zeros; the arguments from `at` on are the metadata, its offset and the selector."""
    words = metadata(e, at, form.left, program)
    # row and column of each word of the threads of a warpgroup, (words, 128); row 64: of no matrix
    of_warp = spots(words.kind.bits, form.left, selector(e.args[at + 2], form.left))
    rows = [np.where(of_warp[..., 0] < 16, of_warp[..., 0] + 16 * warp, 64) for warp in range(4)]
    index = np.concatenate(rows, axis=1), np.tile(of_warp[..., 1], 4)
    columns = int(index[1].max()) + 1

    def operand(frame: Frame) -> MatrixOperand:
        elements, (position, _) = kept(frame), words.position(frame)
        shape = (len(index[0]), frame.worlds, frame.lanes)

        def read() -> Array:
            values = np.broadcast_to(words.memory.take(position, words.kind), shape)
            places = matrices(values, index, (form.m + 1, columns))[..., : form.m, :].view(words.kind.words)
            return expanded(elements.read(), places, form.left)

        return MatrixOperand(read)

    return operand
