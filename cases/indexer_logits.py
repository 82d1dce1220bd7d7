"""Logits of a sparse-attention indexer, ``einsum("thd,kd->thk", Q, K).sum(dim=1)``, in three ways.

``naive`` gives each query a block of 16 threads, which walk over all keys and reduce every dot product across threads:
slow, and refused by all releases since 0.1.7. ``gemm`` gives each query one matrix product, with its heads as rows, and
sums the rows. ``factored`` uses that the sum over the heads does not involve the key,

    sum_h (Q_h K^T) = (sum_h Q_h) K^T,

so it adds the heads first and needs 1/16 of the multiplications. For the tensor cores the sums are rounded to 16 bits;
``factored_exact`` multiplies what was rounded away as well, in a second product.

Why it is here: three ways to compute one thing, to be compared with one reference; and a kernel without any atomic.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case, Expect


@tilelang.jit
def indexer_naive(t, h, d, block_size=16, block_d=128, dtype="bfloat16", accum_dtype="float32"):
    """One query per block; every thread multiplies ``block_d / block_size`` elements of each head."""
    per_thread = T.ceildiv(block_d, block_size)

    @T.prim_func
    def main(Q: T.Tensor((t, h, d), dtype), K: T.Tensor((t, d), dtype), S: T.Tensor((t, t), dtype)):
        with T.Kernel(t, threads=block_size) as bx:
            tx = T.get_thread_binding(0)
            K_local = T.alloc_local((per_thread,), dtype)
            Q_local = T.alloc_local((per_thread,), dtype)
            S_accum = T.alloc_local((1,), accum_dtype)
            for by in T.Parallel(t):
                T.clear(S_accum)
                for bh in T.serial(h):
                    for bk in T.serial(T.ceildiv(d, block_d)):
                        for k in T.vectorized(per_thread):
                            K_local[k] = K[by, bk * block_d + tx * per_thread + k]
                            Q_local[k] = Q[bx, bh, bk * block_d + tx * per_thread + k]
                        for k in T.serial(per_thread):
                            S_accum[0] += K_local[k].astype(accum_dtype) * Q_local[k].astype(accum_dtype)
                S_reduced = T.alloc_local((1,), accum_dtype)
                with T.attr(
                    T.comm_reducer(lambda x, y: x + y, [T.Cast(accum_dtype, 0)]),
                    "reduce_scope",
                    T.reinterpret(T.uint64(0), dtype="handle"),
                ):
                    T.evaluate(T.tvm_thread_allreduce(T.uint32(1), S_accum[0], True, S_reduced[0], tx, dtype="handle"))
                S[bx, by] = S_reduced[0]

    return main


@tilelang.jit
def indexer_gemm(t, h, d, block_keys=64, stages=3, threads=64, dtype="bfloat16", accum_dtype="float32"):
    """One query per block: its ``h`` heads times 64 keys at a time, then the sum over the heads."""

    @T.prim_func
    def main(Q: T.Tensor((t, h, d), dtype), K: T.Tensor((t, d), dtype), S: T.Tensor((t, t), accum_dtype)):
        with T.Kernel(t, threads=threads) as bx:
            Q_shared = T.alloc_shared([h, d], dtype)
            K_shared = T.alloc_shared([block_keys, d], dtype)
            per_head = T.alloc_fragment([h, block_keys], accum_dtype)
            summed = T.alloc_fragment([block_keys], accum_dtype)

            T.copy(Q[bx, :, :], Q_shared)
            for n in T.Pipelined(T.ceildiv(t, block_keys), num_stages=stages):
                for i, j in T.Parallel(block_keys, d):
                    K_shared[i, j] = K[n * block_keys + i, j]
                T.gemm(
                    Q_shared,
                    K_shared,
                    per_head,
                    transpose_B=True,
                    policy=T.GemmWarpPolicy.FullRow,
                    clear_accum=True,
                )
                T.reduce_sum(per_head, summed, dim=0)
                T.copy(summed, S[bx, n * block_keys : (n + 1) * block_keys])

    return main


@tilelang.jit
def indexer_factored(
    t,
    h,
    d,
    exact=False,
    block_queries=64,
    block_keys=128,
    stages=3,
    threads=128,
    dtype="bfloat16",
    accum_dtype="float32",
):
    """64 queries per block: their heads are summed once, then multiplied by all keys."""

    @T.prim_func
    def main(Q: T.Tensor((t, h, d), dtype), K: T.Tensor((t, d), dtype), S: T.Tensor((t, t), accum_dtype)):
        with T.Kernel(T.ceildiv(t, block_queries), threads=threads) as bx:
            high = T.alloc_shared([block_queries, d], dtype)
            low = T.alloc_shared([block_queries, d], dtype)
            K_shared = T.alloc_shared([block_keys, d], dtype)
            summed = T.alloc_fragment([block_queries, d], accum_dtype)
            logits = T.alloc_fragment([block_queries, block_keys], accum_dtype)

            T.clear(summed)
            for head in T.serial(h):
                for i, j in T.Parallel(block_queries, d):
                    summed[i, j] += T.cast(Q[bx * block_queries + i, head, j], accum_dtype)
            T.copy(summed, high)
            if exact:
                for i, j in T.Parallel(block_queries, d):
                    summed[i, j] -= T.cast(high[i, j], accum_dtype)
                T.copy(summed, low)

            for n in T.Pipelined(T.ceildiv(t, block_keys), num_stages=stages):
                T.copy(K[n * block_keys : (n + 1) * block_keys, 0:d], K_shared)
                T.clear(logits)
                T.gemm(high, K_shared, logits, transpose_B=True)
                if exact:
                    T.gemm(low, K_shared, logits, transpose_B=True)
                T.copy(
                    logits,
                    S[
                        bx * block_queries : (bx + 1) * block_queries,
                        n * block_keys : (n + 1) * block_keys,
                    ],
                )

    return main


def inputs_into(dtype: torch.dtype) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Inputs for logits of ``dtype``: Q and K normal in bfloat16, S zero."""

    def inputs(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> tuple[torch.Tensor, ...]:
        t, h, d = args["t"], args["h"], args["d"]
        q, k = (
            torch.randn(shape, generator=generator, device=generator.device).to(device, torch.bfloat16)
            for shape in ((t, h, d), (t, d))
        )
        return q, k, torch.zeros((t, t), dtype=dtype, device=device)

    return inputs


def reference(args: Mapping[str, Any], Q: torch.Tensor, K: torch.Tensor, S: torch.Tensor) -> dict[str, torch.Tensor]:
    """The definition in float64, one head at a time: never (t, h, t) at once, and the heads not summed first."""
    logits = torch.zeros(S.shape, dtype=torch.float64, device=S.device)
    keys = K.double().T
    for head in range(Q.shape[1]):
        logits += Q[:, head].double() @ keys
    return {"S": logits}


def as_asked(args: Mapping[str, Any], Q: torch.Tensor, K: torch.Tensor, S: torch.Tensor) -> Callable[[], Any]:
    return lambda: torch.einsum("thd,kd->thk", Q, K).sum(dim=1)


def summed_first(args: Mapping[str, Any], Q: torch.Tensor, K: torch.Tensor, S: torch.Tensor) -> Callable[[], Any]:
    return lambda: Q.sum(dim=1) @ K.T


def terms(args: Mapping[str, Any]) -> int:
    return args["h"] * args["d"]


def flops(args: Mapping[str, Any]) -> int:
    """What has to be done: one product, after the sum over the heads."""
    return 2 * args["t"] ** 2 * args["d"] + args["t"] * args["h"] * args["d"]


SMALL = {"t": 1024, "h": 16, "d": 128}
LARGE = {"t": 8192, "h": 16, "d": 128}
TORCH = {"einsum, then sum": as_asked, "sum, then product": summed_first}


def waits_too_little(*targets: str) -> list[Expect]:
    """What 0.1.9 does with copies that are still under way after a pipelined loop: docs/findings.md, `wait`."""
    reason = "behind its pipelined loop a product reads a tile before the wait for its copy"
    rules = (("TLR001", "K_shared"), ("TLO002", "S"))
    return [Expect(releases="==0.1.9", rule=rule, buffer=b, targets=targets, reason=reason) for rule, b in rules]


naive = Case(
    indexer_naive,
    args=SMALL,
    inputs=inputs_into(torch.bfloat16),
    reference=reference,
    expect=[
        Expect(
            error="Only elementwise operations are allowed inside a parallel loop",
            releases=">=0.1.7",
            reason="T.clear inside T.Parallel is refused",
        ),
    ],
    terms=terms,
)
gemm = Case(
    indexer_gemm,
    args=LARGE,
    inputs=inputs_into(torch.float32),
    reference=reference,
    expect=waits_too_little(),
    terms=terms,
    baselines=TORCH,
    flops=flops,
)
factored = Case(
    indexer_factored,
    args=LARGE,
    inputs=inputs_into(torch.float32),
    reference=reference,
    expect=waits_too_little("sm_80"),
    terms=terms,
    rounded="bfloat16",
    baselines=TORCH,
    flops=flops,
)
factored_exact = Case(
    indexer_factored,
    args={**LARGE, "exact": True},
    inputs=inputs_into(torch.float32),
    reference=reference,
    expect=waits_too_little("sm_80"),
    tolerance=4 * 2.0**-16,  # what is rounded away is rounded itself: twice to the 8 bits of bfloat16
    baselines=TORCH,
    flops=flops,
)
