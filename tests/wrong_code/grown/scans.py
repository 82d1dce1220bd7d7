"""Kernels with scans and selections, written from the pages of the findings and in the style of TileLang's examples, by
somebody who had not read how `tlcheck reduce` works.
"""

# ruff: noqa: C901

import tilelang
import tilelang.language as T


@T.macro
def normalize_rows(x, square, total, rows, columns, eps):
    """Divide the rows of a tile by their root mean square."""
    for i, j in T.Parallel(rows, columns):
        square[i, j] = x[i, j] * x[i, j]
    T.reduce_sum(square, total, dim=1)
    for i in T.Parallel(rows):
        total[i] = T.rsqrt(total[i] / columns + eps)
    for i, j in T.Parallel(rows, columns):
        x[i, j] = x[i, j] * total[i]


@T.macro
def silu_gate(x, gate, bias, rows, columns, limit):
    """Multiply a tile by its gate, of which the bias is added first."""
    for i, j in T.Parallel(rows, columns):
        gate[i, j] = T.max(T.min(gate[i, j] + bias[j], limit), -limit)
    for i, j in T.Parallel(rows, columns):
        gate[i, j] = gate[i, j] / (1.0 + T.exp(-gate[i, j]))
    for i, j in T.Parallel(rows, columns):
        x[i, j] = x[i, j] * gate[i, j]


@tilelang.jit(out_idx=[-5, -4, -3, -2, -1])
def chunk_gates(
    seqlen=128,
    dim=128,
    heads=64,
    chunk=64,
    block_k=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
    dt_min=0.0,
    dt_max=8.0,
    dt_softplus=True,
    has_bias=True,
    eps=1e-5,
):
    """Projection to the step sizes of a state space model and the running sum of its gates (`unscanned`)."""
    assert seqlen % chunk == 0
    num_chunks = seqlen // chunk

    @T.prim_func
    def main(
        X: T.Tensor((seqlen, dim), dtype),
        W_dt: T.Tensor((dim, heads), dtype),
        dt_bias: T.Tensor((heads,), accum_dtype),
        A_log: T.Tensor((heads,), accum_dtype),
        D: T.Tensor((heads,), accum_dtype),
        seq_idx: T.Tensor((seqlen,), "int32"),
        Z: T.Tensor((seqlen, heads), accum_dtype),
        dt_out: T.Tensor((seqlen, heads), accum_dtype),
        dA_cumsum: T.Tensor((seqlen, heads), accum_dtype),
        chunk_decay: T.Tensor((num_chunks, chunk), accum_dtype),
        dt_max_out: T.Tensor((num_chunks, chunk), accum_dtype),
        gated: T.Tensor((seqlen, heads), accum_dtype),
    ):
        with T.Kernel(num_chunks, threads=threads) as bx:
            X_shared = T.alloc_shared((chunk, block_k), dtype)
            W_shared = T.alloc_shared((block_k, heads), dtype)
            dt_local = T.alloc_fragment((chunk, heads), accum_dtype)
            dA_local = T.alloc_fragment((chunk, heads), accum_dtype)
            dA_shared = T.alloc_shared((chunk, heads), accum_dtype)
            dA_total = T.alloc_fragment((chunk, heads), accum_dtype)
            row_max = T.alloc_fragment((chunk,), accum_dtype)
            row_sum = T.alloc_fragment((chunk,), accum_dtype)
            decay = T.alloc_fragment((chunk,), accum_dtype)
            head_scale = T.alloc_fragment((heads,), accum_dtype)
            seq_local = T.alloc_fragment((chunk,), "int32")

            for j in T.Parallel(heads):
                head_scale[j] = -A_log[j]
            T.clear(dt_local)
            for k in T.Pipelined(T.ceildiv(dim, block_k), num_stages=num_stages):
                T.copy(X[bx * chunk, k * block_k], X_shared)
                T.copy(W_dt[k * block_k, 0], W_shared)
                T.gemm(X_shared, W_shared, dt_local)

            # dt = clamp(softplus(x W + b))
            if has_bias:
                for i, j in T.Parallel(chunk, heads):
                    dt_local[i, j] += dt_bias[j]
            if dt_softplus:
                for i, j in T.Parallel(chunk, heads):
                    if dt_local[i, j] <= 20.0:
                        dt_local[i, j] = T.log(1.0 + T.exp(dt_local[i, j]))
            for i, j in T.Parallel(chunk, heads):
                dt_local[i, j] = T.max(T.min(dt_local[i, j], dt_max), dt_min)
            T.copy(dt_local, dt_out[bx * chunk, 0])
            T.reduce_max(dt_local, row_max, dim=1)
            for i in T.Parallel(chunk):
                dt_max_out[bx, i] = row_max[i]

            # tokens of other sequences do not decay
            for i in T.Parallel(chunk):
                seq_local[i] = seq_idx[bx * chunk + i]
            for i, j in T.Parallel(chunk, heads):
                dA_local[i, j] = dt_local[i, j] * head_scale[j]
            for i, j in T.Parallel(chunk, heads):
                if seq_local[i] < 0:
                    dA_local[i, j] = 0

            # sums over the heads so far
            T.copy(dA_local, dA_shared)
            T.cumsum(dA_shared, dim=1)
            T.copy(dA_shared, dA_total)
            T.reduce_sum(dA_local, row_sum, dim=1)
            for i in T.Parallel(chunk):
                decay[i] = T.exp2(T.min(row_sum[i], 0.0) * 1.44269504)
            for i in T.Parallel(chunk):
                chunk_decay[bx, i] = decay[i]
            for i, j in T.Parallel(chunk, heads):
                dA_total[i, j] = dA_total[i, j] + D[j]
            T.copy(dA_total, dA_cumsum[bx * chunk, 0])

            # the gate of the block's output, normalized
            for i, j in T.Parallel(chunk, heads):
                dA_local[i, j] = Z[bx * chunk + i, j]
            silu_gate(dt_local, dA_local, D, chunk, heads, dt_max)
            normalize_rows(dt_local, dA_local, row_sum, chunk, heads, eps)
            T.copy(dt_local, gated[bx * chunk, 0])

    return main


@tilelang.jit(out_idx=[-5, -4, -3, -2, -1])
def chunk_state(
    batch=2,
    nheads=2,
    chunk=64,
    headdim=64,
    dstate=64,
    gate_rows=8,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
    scale=0.125,
    softcap=15.0,
    use_softcap=True,
    causal=True,
    gate_limit=6.0,
    eps=1e-5,
):
    """Scores of a chunk with itself and the running sums of its gates (`overwritten`)."""

    @T.prim_func
    def main(
        K: T.Tensor((batch, nheads, chunk, dstate), dtype),
        V: T.Tensor((batch, nheads, chunk, headdim), dtype),
        gates: T.Tensor((batch, nheads, gate_rows, chunk), accum_dtype),
        beta: T.Tensor((batch, nheads, chunk), accum_dtype),
        init: T.Tensor((batch, nheads, headdim), accum_dtype),
        Z: T.Tensor((batch, nheads, chunk, headdim), accum_dtype),
        z_bias: T.Tensor((headdim,), accum_dtype),
        scores: T.Tensor((batch, nheads, chunk, chunk), accum_dtype),
        gate_sums: T.Tensor((batch, nheads, gate_rows, chunk), accum_dtype),
        score_max: T.Tensor((batch, nheads, chunk), accum_dtype),
        score_ties: T.Tensor((batch, nheads, chunk), accum_dtype),
        O: T.Tensor((batch, nheads, chunk, headdim), accum_dtype),
    ):
        with T.Kernel(nheads, batch, threads=threads) as (bh, bb):
            K_shared = T.alloc_shared((chunk, dstate), dtype)
            g_shared = T.alloc_shared((gate_rows, chunk), accum_dtype)
            g_sum = T.alloc_shared((gate_rows, chunk), accum_dtype)
            S_local = T.alloc_fragment((chunk, chunk), accum_dtype)
            beta_local = T.alloc_fragment((chunk,), accum_dtype)
            row_sum = T.alloc_fragment((chunk,), accum_dtype)
            row_abs = T.alloc_fragment((chunk, chunk), accum_dtype)
            v_local = T.alloc_fragment((chunk, headdim), accum_dtype)
            z_local = T.alloc_fragment((chunk, headdim), accum_dtype)

            T.copy(gates[bb, bh, :, :], g_shared)
            T.copy(K[bb, bh, :, :], K_shared)
            for i in T.Parallel(chunk):
                beta_local[i] = beta[bb, bh, i]

            # K K^T and the sums of the gates
            T.clear(S_local)
            T.gemm(K_shared, K_shared, S_local, transpose_B=True)
            T.cumsum(g_shared, g_sum, dim=1)

            # scale, cap, mask
            for i, j in T.Parallel(chunk, chunk):
                S_local[i, j] = S_local[i, j] * scale
            if use_softcap:
                for i, j in T.Parallel(chunk, chunk):
                    S_local[i, j] = softcap * T.tanh(S_local[i, j] / softcap)
            if causal:
                for i, j in T.Parallel(chunk, chunk):
                    if i < j:
                        S_local[i, j] = 0
            for i, j in T.Parallel(chunk, chunk):
                S_local[i, j] = S_local[i, j] * beta_local[i]
            for i, j in T.Parallel(chunk, chunk):
                row_abs[i, j] = T.abs(S_local[i, j])
            T.reduce_sum(row_abs, row_sum, dim=1)
            for i in T.Parallel(chunk):
                row_sum[i] = T.max(row_sum[i], 1.0)
            for i, j in T.Parallel(chunk, chunk):
                S_local[i, j] = S_local[i, j] / row_sum[i]
            T.copy(S_local, scores[bb, bh, :, :])
            T.reduce_max(S_local, row_sum, dim=1)
            for i in T.Parallel(chunk):
                score_max[bb, bh, i] = row_sum[i]
            for i, j in T.Parallel(chunk, chunk):
                row_abs[i, j] = T.if_then_else(S_local[i, j] == row_sum[i], 1.0, 0.0)
            T.reduce_sum(row_abs, row_sum, dim=1)
            for i in T.Parallel(chunk):
                score_ties[bb, bh, i] = row_sum[i]

            # the values, gated
            for i, j in T.Parallel(chunk, headdim):
                v_local[i, j] = V[bb, bh, i, j]
            for i, j in T.Parallel(chunk, headdim):
                v_local[i, j] = v_local[i, j] * beta_local[i] + init[bb, bh, j]
            for i, j in T.Parallel(chunk, headdim):
                z_local[i, j] = Z[bb, bh, i, j]
            silu_gate(v_local, z_local, z_bias, chunk, headdim, gate_limit)
            normalize_rows(v_local, z_local, row_sum, chunk, headdim, eps)
            T.copy(v_local, O[bb, bh, :, :])
            T.copy(g_sum, gate_sums[bb, bh, :, :])

    return main


@tilelang.jit(out_idx=[-5, -4, -3, -2, -1])
def radix_select(
    batch=4,
    seq_len=256,
    num_bins=64,
    topk=32,
    threads=128,
    dtype="float32",
    out_dtype="int32",
    scale=0.125,
    clamp_value=31.0,
    relu_logits=True,
    weight_heads=4,
    block_rows=16,
    dim=64,
    eps=1e-5,
):
    """Logits of an indexer, their histogram and which of them are above a threshold (`begun`)."""

    @T.prim_func
    def main(
        logits: T.Tensor((batch, weight_heads, seq_len), dtype),
        weights: T.Tensor((batch, weight_heads), dtype),
        starts: T.Tensor((batch,), out_dtype),
        ends: T.Tensor((batch,), out_dtype),
        previous: T.Tensor((batch, seq_len), dtype),
        keys: T.Tensor((batch * block_rows, dim), dtype),
        key_gate: T.Tensor((batch * block_rows, dim), dtype),
        key_bias: T.Tensor((dim,), dtype),
        keys_out: T.Tensor((batch * block_rows, dim), dtype),
        scores: T.Tensor((batch, seq_len), dtype),
        selected: T.Tensor((batch, seq_len), out_dtype),
        row_max: T.Tensor((batch,), dtype),
        count: T.Tensor((batch,), out_dtype),
    ):
        with T.Kernel(batch, threads=threads) as bx:
            tx = T.get_thread_binding()
            score = T.alloc_fragment((seq_len,), dtype)
            head = T.alloc_fragment((seq_len,), dtype)
            peak = T.alloc_fragment((1,), dtype)
            low = T.alloc_fragment((1,), dtype)
            chosen = T.alloc_fragment((seq_len,), out_dtype)
            total = T.alloc_fragment((1,), out_dtype)
            s_score = T.alloc_shared((seq_len,), dtype)
            s_low = T.alloc_shared((1,), dtype)
            key_local = T.alloc_fragment((block_rows, dim), dtype)
            key_square = T.alloc_fragment((block_rows, dim), dtype)
            key_norm = T.alloc_fragment((block_rows,), dtype)

            # weighted sum over the heads
            T.clear(score)
            for h in T.serial(weight_heads):
                for i in T.Parallel(seq_len):
                    head[i] = logits[bx, h, i] * scale
                if relu_logits:
                    for i in T.Parallel(seq_len):
                        head[i] = T.max(head[i], 0.0)
                for i in T.Parallel(seq_len):
                    score[i] += head[i] * weights[bx, h]
            for i in T.Parallel(seq_len):
                score[i] = T.max(T.min(score[i], clamp_value), -clamp_value)
            for i in T.Parallel(seq_len):
                score[i] = score[i] + previous[bx, i]
            for i in T.Parallel(seq_len):
                if i < starts[bx] or i >= ends[bx] + seq_len // 2:
                    score[i] = -clamp_value
            T.copy(score, s_score)

            # the sink tokens at the start are always kept: they do not take part
            for i in T.serial(tx, num_bins, threads):
                s_score[i] = clamp_value

            # the middle between the smallest and the largest
            T.copy(s_score, score)
            T.reduce_max(score, peak, dim=0)
            T.reduce_min(score, low, dim=0)
            if tx == 0:
                row_max[bx] = peak[0]
                s_low[0] = (peak[0] + low[0]) * 0.5
            T.sync_threads()

            # what is above it
            for i in T.Parallel(seq_len):
                chosen[i] = 0
            for i in T.Parallel(seq_len):
                if score[i] > s_low[0]:
                    chosen[i] = 1
            T.reduce_sum(chosen, total, dim=0)
            if tx == 0:
                count[bx] = T.min(total[0], topk)
            for i in T.Parallel(seq_len):
                selected[bx, i] = chosen[i]
            T.copy(s_score, scores[bx, :])

            # the rows of keys, normalized and gated
            T.copy(keys[bx * block_rows, 0], key_local)
            normalize_rows(key_local, key_square, key_norm, block_rows, dim, eps)
            T.copy(key_gate[bx * block_rows, 0], key_square)
            silu_gate(key_local, key_square, key_bias, block_rows, dim, clamp_value)
            T.copy(key_local, keys_out[bx * block_rows, 0])

    return main


@tilelang.jit(out_idx=[-6, -5, -4, -3, -2, -1])
def packed_row_sums(
    rows=256,
    columns=128,
    lanes=8,
    threads=64,
    in_dtype="float32",
    out_dtype="float16",
    accum_dtype="float32",
    eps=1e-3,
    upper=6.0,
    shift=1.0,
    center=True,
    second_norm=True,
    temperature=0.5,
):
    """Layer norm of rows and partial sums of eight logits for each of them (`converted`)."""

    @T.prim_func
    def main(
        X: T.Tensor((rows, columns), in_dtype),
        gamma: T.Tensor((columns,), accum_dtype),
        beta: T.Tensor((columns,), accum_dtype),
        logits: T.Tensor((rows, lanes), in_dtype),
        Z: T.Tensor((rows, columns), in_dtype),
        lengths: T.Tensor((rows,), "int32"),
        Y: T.Tensor((rows, columns), accum_dtype),
        inverse_std: T.Tensor((rows,), accum_dtype),
        row_peak: T.Tensor((rows,), accum_dtype),
        saturated: T.Tensor((rows,), accum_dtype),
        row_lse: T.Tensor((rows,), accum_dtype),
        logit_sums: T.Tensor((rows,), out_dtype),
    ):
        with T.Kernel(T.ceildiv(rows, threads), threads=threads) as bx:
            x_local = T.alloc_fragment((threads, columns), accum_dtype)
            square = T.alloc_fragment((threads, columns), accum_dtype)
            mean = T.alloc_fragment((threads,), accum_dtype)
            variance = T.alloc_fragment((threads,), accum_dtype)
            inverse = T.alloc_fragment((threads,), accum_dtype)
            row_gate = T.alloc_fragment((threads,), accum_dtype)
            tx = T.get_thread_binding()
            row = bx * threads + tx

            # mean and variance
            T.copy(X[bx * threads, 0], x_local)
            T.reduce_sum(x_local, mean, dim=1)
            for i in T.Parallel(threads):
                mean[i] = mean[i] / columns
            if center:
                for i, j in T.Parallel(threads, columns):
                    x_local[i, j] = x_local[i, j] - mean[i]
            for i, j in T.Parallel(threads, columns):
                square[i, j] = x_local[i, j] * x_local[i, j]
            T.reduce_sum(square, variance, dim=1)
            for i in T.Parallel(threads):
                inverse[i] = T.rsqrt(variance[i] / columns + eps)
            for i in T.Parallel(threads):
                inverse_std[bx * threads + i] = inverse[i]

            # scale and shift
            for i, j in T.Parallel(threads, columns):
                x_local[i, j] = x_local[i, j] * inverse[i] * (gamma[j] + shift) + beta[j]
            for i, j in T.Parallel(threads, columns):
                x_local[i, j] = T.min(T.max(x_local[i, j], 0.0), upper)

            # the gate, and a second norm
            T.copy(Z[bx * threads, 0], square)
            silu_gate(x_local, square, beta, threads, columns, upper)
            if second_norm:
                normalize_rows(x_local, square, variance, threads, columns, eps)

            # rows without tokens are zero
            for i in T.Parallel(threads):
                row_gate[i] = T.if_then_else(lengths[bx * threads + i] > 0, 1.0, 0.0)
            for i, j in T.Parallel(threads, columns):
                x_local[i, j] = x_local[i, j] * row_gate[i]
            for i, j in T.Parallel(threads, columns):
                Y[bx * threads + i, j] = x_local[i, j]
            T.reduce_absmax(x_local, mean, dim=1)
            for i in T.Parallel(threads):
                row_peak[bx * threads + i] = mean[i]
            for i, j in T.Parallel(threads, columns):
                square[i, j] = T.exp((x_local[i, j] - mean[i]) * temperature)
            T.reduce_sum(square, variance, dim=1)
            for i in T.Parallel(threads):
                row_lse[bx * threads + i] = T.log(variance[i]) / temperature + mean[i]

            # how often the clamp of the first row was reached
            for i, j in T.Parallel(threads, columns):
                square[i, j] = T.if_then_else(x_local[i, j] >= upper, 1.0, 0.0)
            T.reduce_sum(square, variance, dim=1)
            for i in T.Parallel(threads):
                saturated[bx * threads + i] = variance[i] / columns

            # each thread adds up the logits of its row
            logit_sums[row] = 0
            for k in T.vectorized(lanes):
                logit_sums[row] = logit_sums[row] + logits[row, k]

    return main
