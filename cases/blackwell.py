"""Three kernels for sm_100 that are right: a product, a product of two blocks, and an attention forward.

No Blackwell GPU has run them here: they are what tlcheck executes to the end, and what a change of TileLang is compared
with (docs/blackwell.md).
"""

from collections.abc import Mapping
from typing import Any

import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case

ARCH = ("sm_100",)
ROWS, COLUMNS, STEP = 128, 128, 64
LOG2_E = 1.44269504


@tilelang.jit
def gemm(M: int, N: int, K: int, dtype: str = "float16") -> Any:
    """C = A @ B.T, a tile of C for each block: one warp copies, one multiplies, all of them store."""
    steps, stages = K // STEP, 3

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((N, K), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(M // ROWS, N // COLUMNS, threads=128) as (row, column):
            a = T.alloc_shared((stages, ROWS, STEP), dtype)
            b = T.alloc_shared((stages, COLUMNS, STEP), dtype)
            sums = T.alloc_tmem((ROWS, COLUMNS), "float32")
            c = T.alloc_fragment((ROWS, COLUMNS), "float32")
            out = T.alloc_shared((ROWS, COLUMNS), dtype)
            full = T.alloc_barrier([32] * stages)
            free = T.alloc_barrier([1] * stages)
            done = T.alloc_barrier([1])
            thread = T.get_thread_binding()
            if thread < 32:
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(free[k % stages], (k // stages + 1) % 2)
                    T.tma_copy(
                        A[row * ROWS : (row + 1) * ROWS, k * STEP : (k + 1) * STEP],
                        a[k % stages, :, :],
                        barrier=full[k % stages],
                    )
                    T.tma_copy(
                        B[column * COLUMNS : (column + 1) * COLUMNS, k * STEP : (k + 1) * STEP],
                        b[k % stages, :, :],
                        barrier=full[k % stages],
                    )
                    T.mbarrier_arrive(full[k % stages])
            elif thread < 64:
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(full[k % stages], k // stages % 2)
                    T.tcgen05_gemm(
                        a[k % stages, :, :],
                        b[k % stages, :, :],
                        sums,
                        transpose_B=True,
                        mbar=free[k % stages],
                        clear_accum=k == 0,
                    )
                T.tcgen05_mma_arrive(done)
            T.mbarrier_wait_parity(done, 0)
            T.copy(sums, c)
            T.copy(c, out)
            T.copy(out, C[row * ROWS, column * COLUMNS])

    return main


@tilelang.jit
def gemm_of_pairs(M: int, N: int, K: int, dtype: str = "bfloat16") -> Any:
    """C = A @ B, two tiles of C for each pair of blocks, of which each copies its rows of A and half of B's columns."""
    steps, stages, width = K // STEP, 2, 2 * COLUMNS

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.ClusterKernel(M // ROWS, N // width, threads=128, cluster_dims=2) as (row, column):
            a = T.alloc_shared((stages, ROWS, STEP), dtype)
            b = T.alloc_shared((stages, STEP, COLUMNS), dtype)
            sums = T.alloc_tmem((ROWS, width), "float32")
            c = T.alloc_fragment((ROWS, width), "float32")
            out = T.alloc_shared((ROWS, width), dtype)
            full = T.alloc_cluster_barrier([64] * stages)
            free = T.alloc_cluster_barrier([1] * stages)
            done = T.alloc_cluster_barrier([1])
            thread, rank = T.get_thread_binding(), T.block_rank_in_cluster()
            T.assume(rank < 2)
            if thread < 32:
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(free[k % stages], (k // stages + 1) % 2)
                    T.tma_copy(
                        A[row * ROWS : (row + 1) * ROWS, k * STEP : (k + 1) * STEP],
                        a[k % stages, :, :],
                        barrier=full[k % stages],
                    )
                    T.tma_copy(
                        B[
                            k * STEP : (k + 1) * STEP,
                            (2 * column + rank) * COLUMNS : (2 * column + rank + 1) * COLUMNS,
                        ],
                        b[k % stages, :, :],
                        barrier=full[k % stages],
                    )
                    T.mbarrier_arrive(full[k % stages], 0)
            elif rank == 0 and thread < 64:
                for k in T.serial(steps):
                    T.mbarrier_wait_parity(full[k % stages], k // stages % 2)
                    T.tcgen05_gemm(
                        a[k % stages, :, :],
                        b[k % stages, :, :],
                        sums,
                        mbar=free[k % stages],
                        clear_accum=k == 0,
                        use_2cta=True,
                    )
                T.tcgen05_mma_arrive(done, arrive_2cta=True)
            T.mbarrier_wait_parity(done, 0)
            T.copy(sums, c)
            T.copy(c, out)
            T.copy(out, C[row * ROWS, column * width])

    return main


@tilelang.jit
def attention(length: int, keys: int, width: int = 128, dtype: str = "bfloat16") -> Any:
    """O = softmax(Q @ K.T / sqrt(width)) @ V, tile by tile of the keys, both products into tensor memory."""
    tile, scale = ROWS, LOG2_E * width**-0.5

    @T.prim_func
    def main(
        Q: T.Tensor((length, width), dtype),
        K: T.Tensor((keys, width), dtype),
        V: T.Tensor((keys, width), dtype),
        O: T.Tensor((length, width), dtype),
    ):
        with T.Kernel(length // ROWS, threads=128) as row:
            q = T.alloc_shared((ROWS, width), dtype)
            k = T.alloc_shared((tile, width), dtype)
            v = T.alloc_shared((tile, width), dtype)
            p = T.alloc_shared((ROWS, tile), dtype)
            scores_there = T.alloc_tmem((ROWS, tile), "float32")
            part_there = T.alloc_tmem((ROWS, width), "float32")
            scores = T.alloc_fragment((ROWS, tile), "float32")
            part = T.alloc_fragment((ROWS, width), "float32")
            out = T.alloc_fragment((ROWS, width), "float32")
            most = T.alloc_fragment((ROWS,), "float32")
            before = T.alloc_fragment((ROWS,), "float32")
            total = T.alloc_fragment((ROWS,), "float32")
            added = T.alloc_fragment((ROWS,), "float32")
            scored = T.alloc_barrier([1])
            summed = T.alloc_barrier([1])
            T.copy(Q[row * ROWS, 0], q)
            T.clear(out)
            T.clear(total)
            T.fill(most, -1e30)
            for step in T.serial(keys // tile):
                T.copy(K[step * tile, 0], k)
                T.copy(V[step * tile, 0], v)
                T.tcgen05_gemm(q, k, scores_there, transpose_B=True, mbar=scored, clear_accum=True)
                T.mbarrier_wait_parity(scored, step % 2)
                T.copy(scores_there, scores)
                T.copy(most, before)
                T.reduce_max(scores, most, dim=1, clear=False)
                for i, j in T.Parallel(ROWS, tile):
                    scores[i, j] = T.exp2((scores[i, j] - most[i]) * scale)
                T.reduce_sum(scores, added, dim=1)
                for i in T.Parallel(ROWS):
                    total[i] = total[i] * T.exp2((before[i] - most[i]) * scale) + added[i]
                T.copy(scores, p)
                T.tcgen05_gemm(p, v, part_there, mbar=summed, clear_accum=True)
                T.mbarrier_wait_parity(summed, step % 2)
                T.copy(part_there, part)
                for i, j in T.Parallel(ROWS, width):
                    out[i, j] = out[i, j] * T.exp2((before[i] - most[i]) * scale) + part[i, j]
            for i, j in T.Parallel(ROWS, width):
                out[i, j] = out[i, j] / total[i]
            T.copy(out, O[row * ROWS, 0])

    return main


def matrices(*shapes: tuple[str, str]) -> Any:
    """Inputs: matrices with sides that are named by arguments, the last one for the result."""

    def inputs(args: Mapping[str, Any], generator: torch.Generator, device: str) -> tuple[torch.Tensor, ...]:
        dtype = getattr(torch, args["dtype"])
        made = [torch.randn([args[s] for s in shape], generator=generator, device=device) for shape in shapes]
        return (*(m.to(dtype) for m in made[:-1]), torch.zeros_like(made[-1], dtype=dtype))

    return inputs


def of_rows(args: Mapping[str, Any], A: torch.Tensor, B: torch.Tensor, C: torch.Tensor) -> dict[str, torch.Tensor]:
    """A @ B.T in float64."""
    return {"C": A.double() @ B.double().T}


def of_columns(args: Mapping[str, Any], A: torch.Tensor, B: torch.Tensor, C: torch.Tensor) -> dict[str, torch.Tensor]:
    """A @ B in float64."""
    return {"C": A.double() @ B.double()}


def softmaxed(args: Mapping[str, Any], Q: Any, K: Any, V: Any, O: Any) -> dict[str, torch.Tensor]:
    """Attention in float64."""
    scores = Q.double() @ K.double().T * args["width"] ** -0.5
    return {"O": torch.softmax(scores, dim=-1) @ V.double()}


SIDES = {"M": 256, "N": 256, "K": 256}
one_block = Case(
    gemm,
    args={**SIDES, "dtype": "float16"},
    targets=ARCH,
    inputs=matrices(("M", "K"), ("N", "K"), ("M", "N")),
    reference=of_rows,
    terms=256,
)
two_blocks = Case(
    gemm_of_pairs,
    args={**SIDES, "dtype": "bfloat16"},
    targets=ARCH,
    inputs=matrices(("M", "K"), ("K", "N"), ("M", "N")),
    reference=of_columns,
    terms=256,
)
forward = Case(
    attention,
    args={"length": 256, "keys": 512, "width": 128, "dtype": "bfloat16"},
    targets=ARCH,
    inputs=matrices(("length", "width"), ("keys", "width"), ("keys", "width"), ("length", "width")),
    reference=softmaxed,
    terms=512,
    rounded="bfloat16",
)
