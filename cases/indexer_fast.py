"""The logits of `indexer_logits`, ``einsum("thd,kd->tk", Q, K)``, near what the memory of a Hopper GPU allows.

Floor at 8192 queries, 16 heads, 128 dimensions on an H200 (4.28 TB/s copied, 798 TFLOP/s dense): Q and K are 36 MB to
read, the logits 134 MB (bfloat16) or 268 MB (float32) to write: 0.0397 or 0.0711 ms. The product is 17 GFLOP for each
part, 0.022 ms; up to two parts are hidden behind the bytes.

| parts, logits | measured ms | of the floor | relative error | in torch |
|---|---|---|---|---|
| 1, bfloat16 | 0.0578 | 69 % | 2.3e-3 | sum, then product: 0.0667, the same error |
| 2, float32 | 0.1022 | 70 % | 9.5e-7 | sum, then product in tf32: 0.1265, error 2.1e-4 |
| 3, float32 | 0.1220 | 58 % | 4.5e-7 | |

Medians of ten rounds of `tlcheck run --bench`; errors against float64, on normal values; TileLang 0.1.15, one H200,
2026-11-21. Other sizes, and what each choice brings: results/performance.md.

Why it is fast:

- The heads are summed once, by a kernel of its own that reads each element of Q once, with 16 loads of 16 bytes in
  flight per thread. In one kernel with the product every block would do it again for each range of keys.
- A block of the product takes 128 queries through a range of keys; with more than one part their sums stay in
  registers, as left operand of wgmma, so that only keys come from shared memory.
- Two blocks (three of half the size) share a multiprocessor: one multiplies while the other stores.
- Logits go through swizzled shared memory and leave as tiles by TMA: whole lines, and no thread holds an address. For
  float32 two tiles take turns, so that the next logits do not wait for the last store.
- Blocks of the product are launched while the sums are still computed, and wait for them where they need them.

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


def ranges_of_keys(t: int, block_queries: int, block_keys: int) -> int:
    """A power of two: into how many ranges the keys are cut, to have up to two blocks for each multiprocessor."""
    ranges = 1
    while 2 * ranges * (t // block_queries) <= 2 * MULTIPROCESSORS and t % (2 * ranges * block_keys) == 0:
        ranges *= 2
    return ranges


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
def indexer_fast(t, h, d, parts, out_dtype, block_queries=128, block_keys=128):  # noqa: C901
    """parts: 1 to 3 numbers of 16 bits that the sums P over the heads consist of."""
    dtype, accum_dtype = "bfloat16", "float32"
    rows = 16  # of queries in a block of the first kernel: each thread has 8 neighbours of one query
    threads = 2 * block_queries
    ranges = ranges_of_keys(t, block_queries, block_keys)
    keys = t // ranges
    full_row = T.GemmWarpPolicy.FullRow
    in_registers = parts > 1  # the left operand
    # Where each was measured to be faster, and in releases that have it: the first since 0.1.7.post3, the others 0.1.9.
    early = parts < 3 and hasattr(T, "pdl_sync")
    two_tiles = parts > 1 and hasattr(T, "tma_copy")
    bounded = hasattr(T, "annotate_min_blocks_per_sm")
    tile = [2, block_queries, block_keys] if two_tiles else [block_queries, block_keys]

    @T.prim_func
    def main(  # noqa: C901
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

        with T.Kernel(T.ceildiv(t, block_queries), ranges, threads=threads) as (bx, by):
            if bounded:
                T.annotate_min_blocks_per_sm(3 if block_queries == 64 else 2)
            P_shared = T.alloc_shared([block_queries, d], dtype)
            high = T.alloc_fragment([block_queries, d], dtype)
            low = T.alloc_fragment([block_queries, d], dtype)
            lowest = T.alloc_fragment([block_queries, d], dtype)
            K_shared = T.alloc_shared([block_keys, d], dtype)
            logits = T.alloc_fragment([block_queries, block_keys], accum_dtype)
            S_shared = T.alloc_shared(tile, out_dtype)

            if early:
                T.pdl_sync()
            T.copy(P[0, bx * block_queries : (bx + 1) * block_queries, 0:d], P_shared)
            if in_registers:
                T.copy(P_shared, high)
            if parts > 1:
                T.copy(P[1, bx * block_queries : (bx + 1) * block_queries, 0:d], P_shared)
                T.copy(P_shared, low)
            if parts > 2:
                T.copy(P[2, bx * block_queries : (bx + 1) * block_queries, 0:d], P_shared)
                T.copy(P_shared, lowest)

            for n in T.Pipelined(keys // block_keys, num_stages=2 if in_registers else 1):
                first = by * keys + n * block_keys
                T.copy(K[first : first + block_keys, 0:d], K_shared)
                if in_registers:
                    T.gemm(high, K_shared, logits, transpose_B=True, clear_accum=True, policy=full_row)
                else:
                    T.gemm(P_shared, K_shared, logits, transpose_B=True, clear_accum=True, policy=full_row)
                if parts > 1:
                    T.gemm(low, K_shared, logits, transpose_B=True, policy=full_row)
                if parts > 2:
                    T.gemm(lowest, K_shared, logits, transpose_B=True, policy=full_row)
                if two_tiles:
                    T.tma_store_wait(1)  # the tile of two steps before has been read
                    T.sync_threads()
                    T.copy(logits, S_shared[n % 2, :, :])
                    T.tma_copy(
                        S_shared[n % 2, :, :],
                        S[bx * block_queries : (bx + 1) * block_queries, first : first + block_keys],
                        eviction_policy="evict_first",  # nobody reads them again
                    )
                else:
                    T.copy(logits, S_shared)
                    T.copy(S_shared, S[bx * block_queries : (bx + 1) * block_queries, first : first + block_keys])
            if two_tiles:
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
    tiles: dict[str, int] = {}
    if parts > 1:
        tiles["block_keys"] = 64
    if parts > 2:
        tiles["block_queries"] = 64  # three such blocks leave a thread more registers than two whole ones
    return Case(
        indexer_fast,
        args={"t": t, "h": 16, "d": 128, "parts": parts, "out_dtype": "bfloat16" if parts == 1 else "float32", **tiles},
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
