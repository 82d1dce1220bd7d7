"""The logits of `indexer_logits`, ``einsum("thd,kd->tk", Q, K)``, near what the memory of a Hopper GPU allows.

Floor at 8192 queries, 16 heads, 128 dimensions on an H100 (3.02 TB/s copied, 794 TFLOP/s dense): Q and K are 36 MB to
read, the logits 134 MB (bfloat16) or 268 MB (float32) to write: 0.0562 or 0.1007 ms. The product is 17 GFLOP for each
part, 0.022 ms; up to two parts are hidden behind the bytes.

| parts, logits | measured ms | of the floor | relative error | in torch |
|---|---|---|---|---|
| 1, bfloat16 | 0.0662 | 85 % | 2.3e-3 | sum, then product: 0.0790, the same error |
| 2, float32 | 0.1177 | 86 % | 9.5e-7 | sum, then product in tf32: 0.1544, error 2.1e-4 |
| 3, float32 | 0.1313 | 77 % | 4.5e-7 | |

Medians of ten rounds of `tlcheck run --bench`; errors against float64, on normal values; TileLang 0.1.15, one H100,
2026-11-27. Other sizes, and what each choice brings: results/performance.md.

Why it is fast:

- The heads are summed once, by a kernel of its own that reads each element of Q once, with 16 loads of 16 bytes in
  flight per thread. In one kernel with the product every block would do it again for each range of keys.
- A block of the product keeps 256 keys (128 for float32) and takes a range of queries through them, 64 in a step. All
  blocks together write whole rows of logits side by side, which memory takes faster than pieces of rows far apart.
- Two blocks share a multiprocessor: one multiplies while the other stores.
- Logits go through swizzled shared memory and leave as tiles by TMA: whole lines, and no thread holds an address.
- Blocks of the product are launched while the sums are still computed. They load their keys, then wait for the sums.

How exact it is: the sums are in float32; what the tensor cores multiply has 8 bits. With one part each sum is rounded
to that (as torch does where it sums first); with two or three parts what was rounded away is multiplied too, and 16 or
all 24 bits count.

Why it is here: one function with two kernels, the second launched early; a pipeline without warp specialization;
asynchronous stores with barriers written as such; no atomics.
"""

from collections.abc import Callable, Mapping
from typing import Any

import tilelang
import tilelang.language as T
import torch
from indexer_logits import as_asked, inputs_into, summed_first, terms
from indexer_logits import reference as logits_of

from tlcheck.case import Case

MULTIPROCESSORS = 132


def ranges_of_queries(t: int, block_queries: int, block_keys: int) -> int:
    """A power of two: into how many ranges the queries are cut, to have up to two blocks for each multiprocessor."""
    ranges = 1
    while 2 * ranges * (t // block_keys) <= 2 * MULTIPROCESSORS and t % (2 * ranges * block_queries) == 0:
        ranges *= 2
    return ranges


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def indexer_fast(t, h, d, parts, out_dtype, block_keys, block_queries=64):
    """parts: 1 to 3 numbers of 16 bits that the sums P over the heads consist of."""
    dtype, accum_dtype = "bfloat16", "float32"
    rows = 8  # of queries in a block of the first kernel: each thread has 8 neighbours of one query
    threads = 2 * block_queries
    ranges = ranges_of_queries(t, block_queries, block_keys)
    full_row = T.GemmWarpPolicy.FullRow
    # In releases that have it: the first since 0.1.7.post3, the others since 0.1.9.
    early = hasattr(T, "pdl_sync")
    by_tma = hasattr(T, "tma_copy")
    bounded = hasattr(T, "annotate_min_blocks_per_sm")

    @T.prim_func
    def main(
        Q: T.Tensor((t, h, d), dtype),
        K: T.Tensor((t, d), dtype),
        P: T.Tensor((parts, t, d), dtype),
        S: T.Tensor((t, t), out_dtype),
    ):
        with T.Kernel(T.ceildiv(t, rows), threads=rows * d // 8) as bx:
            summed = T.alloc_fragment([rows, d], accum_dtype)
            part = T.alloc_fragment([rows, d], dtype)
            if early:
                T.pdl_trigger()
            T.clear(summed)
            for head in T.unroll(h):
                for i, j in T.Parallel(rows, d):
                    summed[i, j] += T.cast(Q[bx * rows + i, head, j], accum_dtype)
            for p in T.unroll(parts):
                T.copy(summed, part)
                T.copy(part, P[p, bx * rows : (bx + 1) * rows, 0:d])
                for i, j in T.Parallel(rows, d):
                    summed[i, j] -= T.cast(part[i, j], accum_dtype)

        with T.Kernel(T.ceildiv(t, block_keys), ranges, threads=threads) as (bx, by):
            if bounded:
                T.annotate_min_blocks_per_sm(2)
            K_shared = T.alloc_shared([block_keys, d], dtype)
            P_shared = T.alloc_shared([parts, block_queries, d], dtype)
            logits = T.alloc_fragment([block_queries, block_keys], accum_dtype)
            S_shared = T.alloc_shared([block_queries, block_keys], out_dtype)

            T.copy(K[bx * block_keys : (bx + 1) * block_keys, 0:d], K_shared)
            if early:
                T.pdl_sync()
            for n in T.Pipelined(t // ranges // block_queries, num_stages=1):
                first = (n * ranges + by) * block_queries  # at any time all blocks write neighbouring rows
                # All parts at once: 0.1.15 has no fence before a second product whose operand comes later (TLR002).
                T.copy(P[0:parts, first : first + block_queries, 0:d], P_shared)
                T.gemm(P_shared[0, :, :], K_shared, logits, transpose_B=True, clear_accum=True, policy=full_row)
                for p in T.unroll(parts - 1):
                    T.gemm(P_shared[p + 1, :, :], K_shared, logits, transpose_B=True, policy=full_row)
                if by_tma:
                    T.tma_store_wait(0)  # the tile of the step before has been read
                    T.sync_threads()
                    T.copy(logits, S_shared)
                    T.tma_copy(
                        S_shared,
                        S[first : first + block_queries, bx * block_keys : (bx + 1) * block_keys],
                        eviction_policy="evict_first",  # nobody reads them again
                    )
                else:
                    T.copy(logits, S_shared)
                    T.copy(S_shared, S[first : first + block_queries, bx * block_keys : (bx + 1) * block_keys])
            if by_tma:
                T.tma_store_wait(0)

    return main


def inputs(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> tuple[torch.Tensor, ...]:
    """Those of `indexer_logits`, with room for the sums P."""
    q, k, s = inputs_into(getattr(torch, args["out_dtype"]))(args, generator, device)
    return q, k, torch.zeros((args["parts"], *k.shape), dtype=k.dtype, device=device), s


def reference(args: Mapping[str, Any], *tensors: torch.Tensor) -> dict[str, torch.Tensor]:
    q, k, _, s = tensors
    return {"P": q.double().sum(dim=1), **logits_of(args, q, k, s)}


def outcome(args: Mapping[str, Any], *tensors: torch.Tensor) -> dict[str, torch.Tensor]:
    """The logits, and the sums that the parts make together."""
    _, _, p, s = tensors
    return {"P": p.float().sum(dim=0), "S": s}


def without_sums(baseline: Callable[..., Any]) -> Callable[..., Any]:
    return lambda args, q, k, p, s: baseline(args, q, k, s)


def contracted(args: Mapping[str, Any], q: torch.Tensor, k: torch.Tensor, s: torch.Tensor) -> Callable[[], Any]:
    return lambda: torch.einsum("thd,kd->tk", q, k)


def contracted_tf32(args: Mapping[str, Any], q: torch.Tensor, k: torch.Tensor, s: torch.Tensor) -> Callable[[], Any]:
    """What torch has for float32 logits at the speed of the tensor cores; its error is 2e-4."""

    def product() -> Any:
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            return q.sum(dim=1, dtype=torch.float32) @ k.float().T
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False

    return product


def flops(args: Mapping[str, Any]) -> int:
    """One product for each part, and the sums."""
    return 2 * args["parts"] * args["t"] ** 2 * args["d"] + args["t"] * args["h"] * args["d"]


def traffic(args: Mapping[str, Any]) -> int:
    """Q and K are read, the logits written; that the sums are written and read again is not needed."""
    width = torch.finfo(getattr(torch, args["out_dtype"])).bits // 8
    return 2 * args["t"] * (args["h"] + 1) * args["d"] + width * args["t"] ** 2


TORCH = {
    "einsum, then sum": without_sums(as_asked),
    "einsum of both": without_sums(contracted),
    "sum, then product": without_sums(summed_first),
}
SINGLE = {"einsum, then sum": without_sums(as_asked), "sum, then product in tf32": without_sums(contracted_tf32)}


def make_case(t: int, parts: int) -> Case:
    """One part into bfloat16; two or three into float32, with tiles half as wide: as many bytes."""
    out_dtype, block_keys = ("bfloat16", 256) if parts == 1 else ("float32", 128)
    return Case(
        indexer_fast,
        args={"t": t, "h": 16, "d": 128, "parts": parts, "out_dtype": out_dtype, "block_keys": block_keys},
        targets=("sm_90",),
        inputs=inputs,
        reference=reference,
        outcome=outcome,
        updates=(),  # P is read, but only what was written before
        terms=terms,
        rounded="bfloat16" if parts == 1 else "",
        tolerance=4 * 2.0**-16 if parts == 2 else None,  # the lower part is rounded itself: 16 bits together
        baselines=TORCH if parts == 1 else SINGLE,
        traffic=traffic,
        flops=flops,
    )


to_bfloat16_1024 = make_case(1024, parts=1)
to_bfloat16_4096 = make_case(4096, parts=1)
to_bfloat16 = make_case(8192, parts=1)
to_bfloat16_16384 = make_case(16384, parts=1)
to_float32_1024 = make_case(1024, parts=2)
to_float32 = make_case(8192, parts=2)
to_float32_24_bits = make_case(8192, parts=3)
