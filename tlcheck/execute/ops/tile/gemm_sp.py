"""Products with a 2:4 sparse matrix: T.gemm_sp, T.wgmma_gemm_sp (TileLang, language/experimental/gemm_sp_op.py).

A has the elements of each group that are kept, half of K: two of four, or one of two for 32-bit elements. E says where
they were, 4 bits for each group, the first group lowest: bits 0-1 the place of the first, bits 2-3 of the second (PTX
9.7.14.5, sparse matrices; of a group of two the upper bit of the place is meant). E is a plain row-major matrix of
integers, also where its layout is annotated. Then as T.gemm. Arguments: A, E, B, C, flags that transpose A, E, B, then
M, N, K, policy, clear.

In releases up to 0.1.9 E has the order that CUTLASS's compressor gives it; this is not modelled.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, one_per_world
from tlcheck.execute.memory.values import Array, Kind
from tlcheck.execute.ops.tile.gemm import accumulate, matrices, multiplied
from tlcheck.execute.ops.tile.regions import region_of, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr


@call("gemm_sp", "wgmma_gemm_sp", "gemm_sp_py")
def gemm_sp(e: Expr, program: KernelProgram) -> Computation:
    """The accumulator becomes the product, plus what it was unless it is cleared."""
    if e.value == "gemm_sp_py" or e.args[6].dtype != "bool":
        raise NotModelled("gemm_sp with metadata in the order of CUTLASS")
    a, metadata, b, c = (whole(region_of(e.args[i], program), program) for i in range(4))
    across_a, across_e, across_b = (bool(e.args[i].value) for i in (4, 5, 6))
    clear = program.code(e.args[11])

    def run(frame: Frame) -> int:
        inner = a.frame(frame, metadata, b, c)
        places = matrices(metadata, inner, across_e).view(metadata.kind.words)
        dense = expanded(matrices(a, inner, across_a), places, a.kind)
        product = multiplied(dense, matrices(b, inner, across_b), c.kind)
        accumulate(c, inner, product, one_per_world(clear.run(frame), "clear_accum"), dense.shape[-1])
        return 0

    return run


def expanded(kept: Array, words: Array, kind: Kind) -> Array:
    """The sparse matrix with its zeros, (..., rows, K), from its elements (..., rows, K / 2) and words of places."""
    half = kept.shape[-1]
    number, group = (1, 2) if kind.bits == 32 else (2, 4)
    fields = np.arange(0, 8 * words.dtype.itemsize, 4, dtype=words.dtype)
    chunks = (words[..., None] >> fields).reshape(*words.shape[:-1], half // number).astype(np.uint8)
    dense = np.zeros((*kept.shape[:-1], half // number, group), kept.dtype)
    for which in range(number):
        place = chunks >> (2 * which) & 3 if group == 4 else chunks >> 1 & 1
        term = kept.reshape(*kept.shape[:-1], half // number, number)[..., which, None]
        dense = np.where(place[..., None] == np.arange(group), dense + term, dense)
    return dense.reshape(*dense.shape[:-2], half * 2)
