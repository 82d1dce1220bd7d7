"""Backward of grouped-query attention with sinks; dQ, dK and dV are accumulated with atomics.

Each block owns one tile of keys and walks over the tiles of queries, so a dQ element receives one
contribution per key block, and a dK or dV element one per query head of its group: three atomic adds of
tiles in one kernel. dQ lies in a permuted physical layout (``make_dq_layout``), in which the two
neighbours that a thread holds in an 8x8 MMA fragment are 32 elements apart: no vector atomic fits.

Why it is here: TileLang 0.1.6.post2 and 0.1.7 look at the layout of the source only and emit
``AtomicAddx2`` for dQ all the same (https://github.com/tile-ai/tilelang/issues/1366). ``full`` shows that
bug; in ``causal`` and ``windowed`` a tail predicate keeps those releases from vectorizing dQ. The vector
atomics on dK and dV, in the same kernel, are right.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case, Expect, Variant

LOG2_E = 1.44269504
PAIRS = 256  # of a key and its value, for each key head


def block_sizes() -> tuple[int, int, int, int]:
    """Keys per block, queries per step, pipeline stages and threads for the present device."""
    major, minor = torch.cuda.get_device_capability()
    sizes = {80: (64, 32, 1, 128), 90: (128, 32, 2, 256), 94: (64, 32, 1, 128), 95: (64, 32, 1, 128)}
    if major * 10 + minor not in sizes:
        raise ValueError(f"no block sizes for a device {major}.{minor}; known: sm_80, sm_90, gfx942, gfx950")
    return sizes[major * 10 + minor]


def make_dq_layout(dQ: Any) -> Any:
    """The layout of an 8x8 MMA accumulator tile: (row, column) -> (column % 2, 4 * row + column // 2)."""
    return T.Layout(dQ.shape, lambda b, h, s, d: [b, h, s // 8, d // 8, d % 2, 4 * (s % 8) + (d % 8) // 2])


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def flashattn_bwd(
    batch,
    heads,
    seq_len,
    dim,
    groups,
    window_size=None,
    sm_scale=None,
    dtype="float16",
    every_block=False,
):
    """groups: query heads per key head. every_block: start at query block 0 instead of at the diagonal."""
    sm_scale = sm_scale or dim**-0.5
    scale = sm_scale * LOG2_E
    q_shape = [batch, heads, seq_len, dim]
    kv_shape = [batch, heads // groups, seq_len, dim]
    accum_dtype = "float32"
    block_M, block_N, num_stages, threads = block_sizes()
    assert window_size is None or window_size % block_N == 0, "window_size must be a multiple of the query block"

    # Plain functions, since 0.1.6.post2 evaluates both branches of `a if c else b` in a kernel's body.
    def first_query_block(by):
        return 0 if every_block else T.floordiv(by * block_M, block_N)

    def last_query_block(by):
        end = T.ceildiv(seq_len, block_N)
        if window_size is None:
            return end
        return T.min(T.ceildiv((by + 1) * block_M + window_size, block_N), end)

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
        with T.Kernel(heads, T.ceildiv(seq_len, block_M), batch, threads=threads) as (bx, by, bz):
            K_shared = T.alloc_shared([block_M, dim], dtype)
            V_shared = T.alloc_shared([block_M, dim], dtype)
            q = T.alloc_shared([block_N, dim], dtype)
            do = T.alloc_shared([block_N, dim], dtype)
            lse_shared = T.alloc_shared([block_N], accum_dtype)
            delta = T.alloc_shared([block_N], accum_dtype)
            dsT_shared = T.alloc_shared([block_M, block_N], dtype)
            qkT = T.alloc_fragment([block_M, block_N], accum_dtype)
            dsT = T.alloc_fragment([block_M, block_N], accum_dtype)
            qkT_cast = T.alloc_fragment([block_M, block_N], dtype)
            dsT_cast = T.alloc_fragment([block_M, block_N], dtype)
            dv = T.alloc_fragment([block_M, dim], accum_dtype)
            dk = T.alloc_fragment([block_M, dim], accum_dtype)
            dq = T.alloc_fragment([block_N, dim], accum_dtype)
            dv_shared = T.alloc_shared([block_M, dim], accum_dtype)
            dk_shared = T.alloc_shared([block_M, dim], accum_dtype)

            T.annotate_layout(
                {
                    dQ: make_dq_layout(dQ),
                    K_shared: tilelang.layout.make_swizzled_layout(K_shared),
                    dv_shared: tilelang.layout.make_swizzled_layout(dv_shared),
                    dk_shared: tilelang.layout.make_swizzled_layout(dk_shared),
                }
            )
            T.copy(K[bz, bx // groups, by * block_M : (by + 1) * block_M, :], K_shared)
            T.copy(V[bz, bx // groups, by * block_M : (by + 1) * block_M, :], V_shared)
            T.clear(dv)
            T.clear(dk)

            for k in T.Pipelined(first_query_block(by), last_query_block(by), num_stages=num_stages):
                # P^T = exp2(scale * K Q^T - lse), masked
                T.copy(Q[bz, bx, k * block_N : (k + 1) * block_N, :], q)
                T.clear(qkT)
                T.gemm(K_shared, q, qkT, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(lse[bz, bx, k * block_N : (k + 1) * block_N], lse_shared)
                for i, j in T.Parallel(block_M, block_N):
                    qkT[i, j] = T.exp2(qkT[i, j] * scale - lse_shared[j])
                for i, j in T.Parallel(block_M, block_N):
                    if window_size is not None:
                        qkT[i, j] = T.if_then_else(
                            by * block_M + i <= k * block_N + j and by * block_M + i > k * block_N + j - window_size,
                            qkT[i, j],
                            0,
                        )
                    else:
                        qkT[i, j] = T.if_then_else(by * block_M + i <= k * block_N + j, qkT[i, j], 0)

                # dV += P^T dO
                T.copy(dO[bz, bx, k * block_N : (k + 1) * block_N, :], do)
                T.clear(dsT)
                T.gemm(V_shared, do, dsT, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(qkT, qkT_cast)
                T.gemm(qkT_cast, do, dv, policy=T.GemmWarpPolicy.FullRow)

                # dK += dS^T Q, with dS = P * (dP - Delta)
                T.copy(Delta[bz, bx, k * block_N : (k + 1) * block_N], delta)
                for i, j in T.Parallel(block_M, block_N):
                    dsT_cast[i, j] = qkT[i, j] * (dsT[i, j] - delta[j]) * sm_scale
                T.gemm(dsT_cast, q, dk, policy=T.GemmWarpPolicy.FullRow)

                # dQ += dS K
                T.copy(dsT_cast, dsT_shared)
                T.clear(dq)
                T.gemm(dsT_shared, K_shared, dq, transpose_A=True)
                T.atomic_add(dQ[bz, bx, k * block_N : (k + 1) * block_N, :], dq)

            T.copy(dv, dv_shared)
            T.atomic_add(dV[bz, bx // groups, by * block_M : (by + 1) * block_M, :], dv_shared)
            T.copy(dk, dk_shared)
            T.atomic_add(dK[bz, bx // groups, by * block_M : (by + 1) * block_M, :], dk_shared)

    return flash_bwd


def sink_logits(heads: int, device: Any) -> torch.Tensor:
    """One attention sink per query head, (heads,) float64; the kernel meets it in lse and Delta only."""
    return torch.linspace(-2.0, 2.0, heads, dtype=torch.float64, device=device)


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, sink: torch.Tensor, args: Mapping[str, Any]
) -> tuple[torch.Tensor, torch.Tensor]:
    """One head of causal attention with a sink, float64: the output (seq, dim) and its log-sum-exp (seq,).

    The sink is one more column of logits in the softmax, whose weight is then dropped.
    """
    window, scale = args.get("window_size"), args.get("sm_scale") or q.shape[-1] ** -0.5
    rows = torch.arange(q.shape[0], device=q.device)[:, None]
    columns = rows.T
    seen = columns <= rows
    if window is not None:
        seen &= columns > rows - window
    logits = (q @ k.T * scale).masked_fill(~seen, -math.inf)
    logits = torch.cat([logits, sink.expand(len(rows), 1)], dim=1)
    return torch.softmax(logits, dim=1)[:, :-1] @ v, torch.logsumexp(logits, dim=1)


def statistics(
    q: torch.Tensor,
    pairs: tuple[torch.Tensor, torch.Tensor],
    codes: torch.Tensor,
    do: torch.Tensor,
    sinks: torch.Tensor,
    args: Mapping[str, Any],
) -> tuple[torch.Tensor, torch.Tensor]:
    """lse (base 2) and Delta of the heads that share a key head, (heads, seq): what `attend` says, to float32.

    pairs: the keys and the values that there are; codes: which of them each position has. A query has one logit for
    each of them, and a weight as often as it sees it: many times as fast as one for each position.
    """
    scale, window = args.get("sm_scale") or args["dim"] ** -0.5, args.get("window_size") or len(codes)
    keys, values = (part.float() for part in pairs)
    times = torch.nn.functional.one_hot(codes, len(keys)).cumsum(dim=0).float()
    times[window:] -= times[:-window].clone()
    logits = (q.float() @ keys.T).mul_(scale).masked_fill_(times == 0, -math.inf)
    top = logits.amax(dim=2, keepdim=True)
    weights = logits.sub_(top).exp_().mul_(times)
    lse = torch.logaddexp(weights.sum(dim=2).log() + top[..., 0], sinks.float()[:, None])
    out = (weights @ values).mul_(torch.exp(top - lse[..., None]))
    return lse / math.log(2.0), (out * do.float()).sum(dim=2)


def inputs(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> tuple[torch.Tensor, ...]:
    """Q, K, V, dO normal; lse (base 2) and Delta = sum(dO * O) of the forward pass; dQ, dK, dV zero.

    A key and its value are one of `PAIRS`, in no order: that makes the forward pass cheap.
    """
    batch, heads, seq_len, dim, groups = (args[name] for name in ("batch", "heads", "seq_len", "dim", "groups"))
    dtype = getattr(torch, args.get("dtype", "float16"))
    q_shape, kv_shape = (batch, heads, seq_len, dim), (batch, heads // groups, seq_len, dim)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, device=generator.device).to(device, dtype)

    q, do = normal(*q_shape), normal(*q_shape)
    k, v = (torch.empty(kv_shape, dtype=dtype, device=device) for _ in range(2))
    lse, delta = (torch.empty(q_shape[:3], device=device) for _ in range(2))
    sinks = sink_logits(heads, device)
    for b in range(batch):
        for g in range(heads // groups):
            group = slice(g * groups, (g + 1) * groups)
            pairs = normal(PAIRS, dim), normal(PAIRS, dim)
            codes = torch.randint(PAIRS, (seq_len,), generator=generator, device=generator.device).to(device)
            k[b, g], v[b, g] = (part[codes] for part in pairs)
            lse[b, group], delta[b, group] = statistics(q[b, group], pairs, codes, do[b, group], sinks[group], args)
    dq, dk, dv = (torch.zeros(shape, device=device) for shape in (q_shape, kv_shape, kv_shape))
    return q, k, v, do, lse, delta, dq, dk, dv


def permute_dq(dq: torch.Tensor) -> torch.Tensor:
    """dQ (batch, heads, seq, dim) in the physical order of ``make_dq_layout``, same shape."""
    batch, heads, seq_len, dim = dq.shape
    tiles = dq.reshape(batch, heads, seq_len // 8, 8, dim // 8, 4, 2)
    return tiles.permute(0, 1, 2, 4, 6, 3, 5).reshape(dq.shape)


def reference(args: Mapping[str, Any], *tensors: torch.Tensor) -> dict[str, torch.Tensor]:
    """dQ (physical order), dK and dV by autograd in float64; one head at a time, to save memory."""
    q, k, v, do = tensors[:4]
    dq = torch.zeros(q.shape, dtype=torch.float64, device=q.device)
    dk, dv = (torch.zeros(k.shape, dtype=torch.float64, device=q.device) for _ in range(2))
    sinks = sink_logits(q.shape[1], q.device)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            g = h // args["groups"]
            head = [x.double().requires_grad_() for x in (q[b, h], k[b, g], v[b, g])]
            out, _ = attend(*head, sinks[h], args)
            grads = torch.autograd.grad(out, head, do[b, h].double())
            dq[b, h] = grads[0]
            dk[b, g] += grads[1]
            dv[b, g] += grads[2]
    return {"dQ": permute_dq(dq), "dK": dk, "dV": dv}


def exact_inputs(args: Mapping[str, Any], generator: torch.Generator, device: Any) -> tuple[torch.Tensor, ...]:
    """Inputs on which nothing is rounded but dS: small integers, of which most are zero.

    Q is zero where K is not, so that all logits are zero and P = 2^-lse, with lse 0 or 1.
    """
    batch, heads, seq_len, dim = (args[name] for name in ("batch", "heads", "seq_len", "dim"))
    dtype = getattr(torch, args.get("dtype", "float16"))
    q_shape, kv_shape = (batch, heads, seq_len, dim), (batch, heads // args["groups"], seq_len, dim)

    def few(shape: tuple[int, ...]) -> torch.Tensor:
        values = torch.randint(-8, 9, shape, generator=generator, device=generator.device)
        return ((values == 8).int() - (values == -8).int()).to(device, dtype)

    q, k, v, do = few(q_shape), few(kv_shape), few(kv_shape), few(q_shape)
    q[..., dim // 2 :] = 0
    k[..., : dim // 2] = 0
    lse, delta = (
        torch.randint(low, 2, q_shape[:3], generator=generator, device=generator.device).to(device, torch.float32)
        for low in (0, -1)
    )
    dq, dk, dv = (torch.zeros(shape, device=device) for shape in (q_shape, kv_shape, kv_shape))
    return q, k, v, do, lse, delta, dq, dk, dv


def exact_reference(args: Mapping[str, Any], *tensors: torch.Tensor) -> dict[str, torch.Tensor]:
    """The kernel's own formulas on `exact_inputs`, with its one rounding: dS, scaled in float32, to 16 bits."""
    q, k, v, do, lse, delta, _, dk, dv = (tensor.double() for tensor in tensors)
    dq = torch.zeros_like(q)
    scale = args.get("sm_scale") or args["dim"] ** -0.5
    seen = mask(q.shape[2], args.get("window_size"), q.device)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            g = h // args["groups"]
            p = torch.exp2(-lse[b, h])[:, None] * seen
            ds = p * (do[b, h] @ v[b, g].T - delta[b, h][:, None])
            ds = (ds.float() * scale).to(tensors[0].dtype).double()
            dq[b, h] = ds @ k[b, g]
            dk[b, g] += ds.T @ q[b, h]
            dv[b, g] += p.T @ do[b, h]
    return {"dQ": permute_dq(dq), "dK": dk, "dV": dv}


def mask(seq_len: int, window: int | None, device: Any) -> torch.Tensor:
    """Which key (column) each query (row) sees."""
    rows = torch.arange(seq_len, device=device)[:, None]
    seen = rows >= rows.T
    return seen if window is None else seen & (rows - window < rows.T)


def formulas(args: Mapping[str, Any], *tensors: torch.Tensor) -> Callable[[], Any]:
    """The same formulas with torch's products, all heads at once, P and dS in memory."""
    q, k, v, do, lse, delta = tensors[:6]
    shape = (q.shape[0] * k.shape[1], args["groups"], *q.shape[2:])
    q, do = q.reshape(shape), do.reshape(shape)
    k, v = (x.reshape(-1, 1, *x.shape[2:]).expand(shape) for x in (k, v))
    lse, delta = (x.reshape(*shape[:3], 1) for x in (lse, delta))
    scale = args.get("sm_scale") or args["dim"] ** -0.5
    hidden = ~mask(q.shape[2], args.get("window_size"), q.device)

    def backward() -> Any:
        p = torch.exp2((q @ k.mT) * (scale * LOG2_E) - lse).masked_fill_(hidden, 0).to(q.dtype)
        ds = (p * (do @ v.mT - delta) * scale).to(q.dtype)
        return ds @ k, (ds.mT @ q).sum(dim=1), (p.mT @ do).sum(dim=1)

    return backward


def sdpa(args: Mapping[str, Any], *tensors: torch.Tensor) -> Callable[[], Any]:
    """Backward of torch's own attention, which has no sinks: the work is the same."""
    q, k, v, do = (x.detach().requires_grad_() for x in tensors[:4])
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    return lambda: torch.autograd.grad(out, (q, k, v), do, retain_graph=True)


def terms(args: Mapping[str, Any]) -> int:
    """Those of dK and dV: all queries of all heads in a group."""
    return args["seq_len"] * args["groups"]


def flops(args: Mapping[str, Any]) -> int:
    """Five products over the pairs of a query and a key that it sees."""
    seq_len, window = args["seq_len"], args.get("window_size") or args["seq_len"]
    pairs = window * seq_len - window * (window - 1) // 2
    return 5 * 2 * pairs * args["dim"] * args["heads"] * args["batch"]


SHAPE = {"batch": 1, "heads": 64, "seq_len": 4096, "dim": 128, "groups": 8, "dtype": "float16"}
EXACT = Variant(exact_inputs, exact_reference)

causal = Case(
    flashattn_bwd,
    args=SHAPE,
    inputs=inputs,
    reference=reference,
    exact=EXACT,
    terms=terms,
    rounded="float16",
    baselines={"formulas in torch": formulas, "scaled_dot_product_attention": sdpa},
    flops=flops,
)

windowed = Case(
    flashattn_bwd,
    args={**SHAPE, "window_size": 512},
    inputs=inputs,
    reference=reference,
    exact=EXACT,
    terms=terms,
    rounded="float16",
    baselines={"formulas in torch": formulas},
    flops=flops,
)

full = Case(
    flashattn_bwd,
    args={**SHAPE, "every_block": True},
    inputs=inputs,
    reference=reference,
    expect=[
        Expect(
            rule="TLA001",
            releases=">=0.1.6.post2,<=0.1.7",
            buffer="dQ",
            targets=("sm_90",),
            reason="the annotated layout of dQ is ignored when the atomic is vectorized: "
            "https://github.com/tile-ai/tilelang/issues/1366",
        )
    ],
    exact=EXACT,
    terms=terms,
    rounded="float16",
    flops=flops,
)
