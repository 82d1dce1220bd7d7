"""The backward of `attention_sink_bwd`, made fast for Hopper; same formulas, inputs and references.

Floor at batch 1, 64 heads, 4096 queries, 128 dimensions, causal: five products over 8.4e6 pairs of each head are 687
GFLOP, 0.860 ms at the 799 TFLOP/s that a dense product reaches on an H200. The bytes (Q, K, V, dO read, dQ, dK, dV
written: 0.31 GB) are 0.07 ms.

Measured on an H100: 1.321 ms, 66 % of the floor there and 0.85 of torch's scaled_dot_product_attention backward
(1.557 ms, without sinks). 2048 queries: 0.374 ms, 0.73 of torch; 1024: 0.131 ms, 0.63 of it. TileLang 0.1.15,
2026-11-27; more, each step timed: results/performance.md.

Why it is fast (ms after each step on an H200, from 2.04; the last step on an H100):

- 64 queries per step instead of 32 (1.51): dS^T K then has the 64 rows that wgmma needs (with 32 it falls back to
  mma.sync).
- dQ lies in memory as the threads of an accumulator hold it: 4 neighbours are (row, row + 8) x (column, column + 1) of
  one thread (`make_dq_layout`). One reduction of 16 bytes adds what took 4 atomics; a warp covers 512 bytes (1.50).
- Blocks that run at the same time belong to the query heads of one key head (1.47), and all walk from the last query to
  their diagonal (1.34, the last of these steps): they read the same tiles of Q and dO, and add to the same tile of dQ,
  at about the same time. So what moves between the multiprocessors and the memory is mostly found in the L2.
- K Q^T and V dO^T are issued together, and the exponentials run under the second (1.46); dS^T K and dS^T Q are issued
  together (1.38); P^T dO runs while dS is computed. Q and dO share one buffer, so that its stage is handed back after
  the last product that reads it: a pipelined buffer is released after the statement that uses it last, running or not.
- dQ is added while the left half of dK is computed (1.44 before, 1.35 after, in turns). The right half is waited for at
  once, and with it the stage is handed back.
- Only tiles at the edge of the mask are masked (without that 1.40).

Why it is here: vector atomics on a permuted layout that are right; `attention_sink_bwd` has those that were not.
"""

from collections.abc import Mapping
from typing import Any

import tilelang
import tilelang.language as T
import torch
from attention_sink_bwd import EXACT, LOG2_E, SHAPE, flops, formulas, inputs, permute_dq, reference, sdpa, terms

from tlcheck.case import Case, Expect

UNREADY = [
    Expect(
        rule=rule,
        releases=">=0.1.6.post2,<=0.1.8",
        buffer=buffer,
        reason="Q and dO share a buffer: the pass that specializes warps has the first product wait for the copy of dO "
        "of the step before, not for that of Q; if the copies come early, for ever (0.1.7 on an H200: all four cases)",
    )
    for rule, buffer in (("TLR001", "q_do"), ("TLL002", ""))
]


def make_dq_layout(dQ: Any) -> Any:
    """Tiles of 16 x 8: (row, column) -> thread 4 * (row % 8) + column // 2, register 2 * (row // 8) + column % 2."""
    return T.Layout(
        dQ.shape,
        lambda b, h, s, d: [b, h, s // 16, d // 8, 4 * (s % 8) + (d % 8) // 2, 2 * (s % 16 // 8) + d % 2],
    )


def issue(*operands: Any, **options: Any) -> Any:
    """A product on the tensor cores that nobody waits for; releases before 0.1.9 spell it differently."""
    return T.wgmma_gemm(*operands, **options) if hasattr(T, "wgmma_gemm") else T.gemm(*operands, wg_wait=-1, **options)


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def flashattn_bwd_fast(batch, heads, seq_len, dim, groups, window_size=None, sm_scale=None, dtype="float16"):
    """``groups`` query heads share a key head; without ``sm_scale`` it is dim**-0.5."""
    accum_dtype = "float32"
    block_keys, block_queries = 128, 64
    sm_scale = sm_scale or dim**-0.5
    scale = sm_scale * LOG2_E
    q_shape = [batch, heads, seq_len, dim]
    kv_shape = [batch, heads // groups, seq_len, dim]
    blocks = seq_len // block_queries
    half = dim // 2
    rows = T.GemmWarpPolicy.FullRow
    assert seq_len % block_keys == 0, "seq_len must be a multiple of the key block"
    assert window_size is None or window_size % block_queries == 0, "window_size must be a multiple of the query block"

    # Plain functions, since 0.1.6.post2 evaluates both branches of `a if c else b` in a kernel's body.
    def first_block(by):
        return T.floordiv(by * block_keys, block_queries)

    def last_block(by):
        if window_size is None:
            return blocks
        return T.min(T.ceildiv((by + 1) * block_keys + window_size, block_queries), blocks)

    def at_edge(by, k):
        return window_size is not None or k * block_queries < (by + 1) * block_keys

    @T.prim_func
    def flash_bwd(
        Q: T.Tensor(q_shape, dtype),
        K: T.Tensor(kv_shape, dtype),
        V: T.Tensor(kv_shape, dtype),
        dO: T.Tensor(q_shape, dtype),
        lse: T.Tensor([batch, heads, seq_len], accum_dtype),
        Delta: T.Tensor([batch, heads, seq_len], accum_dtype),
        dQ: T.Tensor(q_shape, accum_dtype),
        dK: T.Tensor(kv_shape, accum_dtype),
        dV: T.Tensor(kv_shape, accum_dtype),
    ):
        with T.Kernel(groups, seq_len // block_keys, batch * (heads // groups), threads=256) as (bx, by, bz):
            K_shared = T.alloc_shared([block_keys, dim], dtype)
            V_shared = T.alloc_shared([block_keys, dim], dtype)
            q_do = T.alloc_shared([2, block_queries, dim], dtype)
            lse_shared = T.alloc_shared([block_queries], accum_dtype)
            delta = T.alloc_shared([block_queries], accum_dtype)
            dsT_shared = T.alloc_shared([block_keys, block_queries], dtype)
            pT = T.alloc_fragment([block_keys, block_queries], accum_dtype)
            dsT = T.alloc_fragment([block_keys, block_queries], accum_dtype)
            pT_cast = T.alloc_fragment([block_keys, block_queries], dtype)
            dsT_cast = T.alloc_fragment([block_keys, block_queries], dtype)
            dv = T.alloc_fragment([block_keys, dim], accum_dtype)
            dk_left = T.alloc_fragment([block_keys, half], accum_dtype)
            dk_right = T.alloc_fragment([block_keys, half], accum_dtype)
            dq = T.alloc_fragment([block_queries, dim], accum_dtype)
            dv_shared = T.alloc_shared([block_keys, dim], accum_dtype)
            dk_shared = T.alloc_shared([block_keys, half], accum_dtype)
            T.annotate_layout(
                {
                    dQ: make_dq_layout(dQ),
                    dv_shared: tilelang.layout.make_swizzled_layout(dv_shared),
                    dk_shared: tilelang.layout.make_swizzled_layout(dk_shared),
                }
            )
            b = bz // (heads // groups)
            kv = bz % (heads // groups)
            h = kv * groups + bx
            T.copy(K[b, kv, by * block_keys : (by + 1) * block_keys, :], K_shared)
            T.copy(V[b, kv, by * block_keys : (by + 1) * block_keys, :], V_shared)
            T.clear(dv)
            T.clear(dk_left)
            T.clear(dk_right)

            for step in T.Pipelined(last_block(by) - first_block(by), num_stages=2):
                k = last_block(by) - 1 - step

                # P^T = exp2(scale * K Q^T - lse), masked
                T.copy(Q[b, h, k * block_queries : (k + 1) * block_queries, :], q_do[0, :, :])
                issue(K_shared, q_do[0, :, :], pT, transpose_B=True, policy=rows, clear_accum=True)
                T.copy(dO[b, h, k * block_queries : (k + 1) * block_queries, :], q_do[1, :, :])
                issue(V_shared, q_do[1, :, :], dsT, transpose_B=True, policy=rows, clear_accum=True)
                T.copy(lse[b, h, k * block_queries : (k + 1) * block_queries], lse_shared)
                T.copy(Delta[b, h, k * block_queries : (k + 1) * block_queries], delta)
                T.wait_wgmma(1)
                for i, j in T.Parallel(block_keys, block_queries):
                    pT[i, j] = T.exp2(pT[i, j] * scale - lse_shared[j])
                if at_edge(by, k):
                    for i, j in T.Parallel(block_keys, block_queries):
                        if window_size is not None:
                            pT[i, j] = T.if_then_else(
                                by * block_keys + i <= k * block_queries + j
                                and by * block_keys + i > k * block_queries + j - window_size,
                                pT[i, j],
                                0,
                            )
                        else:
                            pT[i, j] = T.if_then_else(by * block_keys + i <= k * block_queries + j, pT[i, j], 0)
                T.copy(pT, pT_cast)

                # dV += P^T dO, while dS = P * (dP - Delta) is computed
                issue(pT_cast, q_do[1, :, :], dv, policy=rows)
                T.wait_wgmma(1)
                for i, j in T.Parallel(block_keys, block_queries):
                    dsT_cast[i, j] = pT[i, j] * (dsT[i, j] - delta[j]) * sm_scale

                # dQ += dS K, added while the left half of dK += dS^T Q is computed
                T.copy(dsT_cast, dsT_shared)
                issue(dsT_shared, K_shared, dq, transpose_A=True, clear_accum=True)
                issue(dsT_cast, q_do[0, :, :half], dk_left, policy=rows)
                T.wait_wgmma(1)
                T.atomic_add(dQ[b, h, k * block_queries : (k + 1) * block_queries, :], dq)
                T.gemm(dsT_cast, q_do[0, :, half:], dk_right, policy=rows)

            T.copy(dv, dv_shared)
            T.atomic_add(dV[b, kv, by * block_keys : (by + 1) * block_keys, :], dv_shared)
            T.copy(dk_left, dk_shared)
            T.atomic_add(dK[b, kv, by * block_keys : (by + 1) * block_keys, :half], dk_shared)
            T.copy(dk_right, dk_shared)
            T.atomic_add(dK[b, kv, by * block_keys : (by + 1) * block_keys, half:], dk_shared)

    return flash_bwd


def in_rows(dq: torch.Tensor) -> torch.Tensor:
    """dQ (batch, heads, seq, dim) as `make_dq_layout` leaves it, row by row."""
    batch, heads, seq_len, dim = dq.shape
    tiles = dq.reshape(batch, heads, seq_len // 16, dim // 8, 8, 4, 2, 2)
    return tiles.permute(0, 1, 2, 6, 4, 3, 5, 7).reshape(dq.shape)


def outcome(args: Mapping[str, Any], *tensors: torch.Tensor) -> dict[str, torch.Tensor]:
    """The gradients as the reference has them: dQ in the order of `attention_sink_bwd`."""
    dq, dk, dv = tensors[6:]
    return {"dQ": permute_dq(in_rows(dq)), "dK": dk, "dV": dv}


def make_case(**args: Any) -> Case:
    """A case that is measured against `formulas` in torch and, where torch has it, its fused attention."""
    fused = {} if args.get("window_size") else {"scaled_dot_product_attention": sdpa}
    return Case(
        flashattn_bwd_fast,
        args={**SHAPE, **args},
        targets=("sm_90",),
        inputs=inputs,
        reference=reference,
        outcome=outcome,
        exact=EXACT,
        terms=terms,
        rounded="float16",
        baselines={"formulas in torch": formulas, **fused},
        flops=flops,
        expect=UNREADY,
    )


causal = make_case()
causal_1024 = make_case(seq_len=1024)
causal_2048 = make_case(seq_len=2048)
windowed = make_case(window_size=512)
