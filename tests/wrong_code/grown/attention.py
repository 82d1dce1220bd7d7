"""Kernels of attention, written from the pages of the findings and in the style of TileLang's examples, by somebody who
had not read how `tlcheck reduce` works.
"""

# ruff: noqa: C901

import tilelang
import tilelang.language as T


@T.macro
def softmax_rows(x, peak, total, rows, columns):
    """Weights that sum to one in each row of a tile."""
    T.reduce_max(x, peak, dim=1, clear=True)
    for i, j in T.Parallel(rows, columns):
        x[i, j] = T.exp2((x[i, j] - peak[i]) * 1.44269504)
    T.reduce_sum(x, total, dim=1, clear=True)
    for i, j in T.Parallel(rows, columns):
        x[i, j] = x[i, j] / total[i]


@T.macro
def rotate_rows(x, turned, cosine, sine, row, rows, columns):
    """Rotary embedding of a tile in shared memory: the halves of a row are turned against each other."""
    for i, j in T.Parallel(rows, columns):
        turned[i, j] = T.if_then_else(
            j < columns // 2,
            x[i, j] * cosine[row + i, j] - x[i, (j + columns // 2) % columns] * sine[row + i, j],
            x[i, j] * cosine[row + i, j] + x[i, (j + columns // 2) % columns] * sine[row + i, j],
        )


@tilelang.jit(out_idx=[-5, -4, -3, -2, -1])
def biased_attention(
    batch=1,
    heads=2,
    seq_len=128,
    dim=64,
    block_m=64,
    block_n=64,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
    softcap=20.0,
    has_softcap=True,
    window=96,
):
    """Flash attention with two tables of biases, one element of each from each thread (`overrun`)."""
    scale = (1.0 / dim) ** 0.5 * 1.44269504
    shape = (batch, heads, seq_len, dim)

    @T.prim_func
    def main(
        Q: T.Tensor(shape, dtype),
        K: T.Tensor(shape, dtype),
        V: T.Tensor(shape, dtype),
        position_bias: T.Tensor((2 * threads,), accum_dtype),
        slopes: T.Tensor((heads,), accum_dtype),
        cosine: T.Tensor((seq_len, dim), accum_dtype),
        sine: T.Tensor((seq_len, dim), accum_dtype),
        rotated: T.Tensor(shape, accum_dtype),
        weights: T.Tensor(shape, accum_dtype),
        bias_out: T.Tensor((batch, heads, 2, threads), accum_dtype),
        lse: T.Tensor((batch, heads, seq_len), accum_dtype),
        Output: T.Tensor(shape, dtype),
    ):
        with T.Kernel(T.ceildiv(seq_len, block_m), heads, batch, threads=threads) as (bx, by, bz):
            Q_shared = T.alloc_shared((block_m, dim), dtype)
            K_shared = T.alloc_shared((block_n, dim), dtype)
            V_shared = T.alloc_shared((block_n, dim), dtype)
            O_shared = T.alloc_shared((block_m, dim), dtype)
            bias_shared = T.alloc_shared((2, threads), accum_dtype)
            acc_s = T.alloc_fragment((block_m, block_n), accum_dtype)
            acc_s_cast = T.alloc_fragment((block_m, block_n), dtype)
            acc_o = T.alloc_fragment((block_m, dim), accum_dtype)
            scores_max = T.alloc_fragment((block_m,), accum_dtype)
            scores_max_prev = T.alloc_fragment((block_m,), accum_dtype)
            scores_scale = T.alloc_fragment((block_m,), accum_dtype)
            scores_sum = T.alloc_fragment((block_m,), accum_dtype)
            logsum = T.alloc_fragment((block_m,), accum_dtype)
            tx = T.get_thread_binding()

            # the far half as it is, the near half with the head's slope
            bias_shared[1, tx] = position_bias[threads + tx]
            bias_shared[0, tx] = position_bias[tx] * slopes[by]

            T.copy(Q[bz, by, bx * block_m : (bx + 1) * block_m, :], Q_shared)
            T.fill(acc_o, 0)
            T.fill(logsum, 0)
            T.fill(scores_max, -T.infinity(accum_dtype))
            for k in T.Pipelined(T.ceildiv(seq_len, block_n), num_stages=num_stages):
                T.copy(K[bz, by, k * block_n : (k + 1) * block_n, :], K_shared)
                for i, j in T.Parallel(block_m, block_n):
                    acc_s[i, j] = T.if_then_else(
                        bx * block_m + i - k * block_n - j < window, 0, -T.infinity(acc_s.dtype)
                    )
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True)
                if has_softcap:
                    for i, j in T.Parallel(block_m, block_n):
                        acc_s[i, j] = T.min(acc_s[i, j], softcap)
                T.copy(scores_max, scores_max_prev)
                T.fill(scores_max, -T.infinity(accum_dtype))
                T.reduce_max(acc_s, scores_max, dim=1, clear=False)
                for i in T.Parallel(block_m):
                    scores_max[i] = T.max(scores_max[i], scores_max_prev[i])
                for i in T.Parallel(block_m):
                    scores_scale[i] = T.exp2(scores_max_prev[i] * scale - scores_max[i] * scale)
                for i, j in T.Parallel(block_m, block_n):
                    acc_s[i, j] = T.exp2(acc_s[i, j] * scale - scores_max[i] * scale)
                T.reduce_sum(acc_s, scores_sum, dim=1)
                for i in T.Parallel(block_m):
                    logsum[i] = logsum[i] * scores_scale[i] + scores_sum[i]
                T.copy(acc_s, acc_s_cast)
                for i, j in T.Parallel(block_m, dim):
                    acc_o[i, j] *= scores_scale[i]
                T.copy(V[bz, by, k * block_n : (k + 1) * block_n, :], V_shared)
                T.gemm(acc_s_cast, V_shared, acc_o)

            for i, j in T.Parallel(block_m, dim):
                acc_o[i, j] /= logsum[i]
            T.copy(acc_o, O_shared)
            T.copy(O_shared, Output[bz, by, bx * block_m : (bx + 1) * block_m, :])
            for i in T.Parallel(block_m):
                logsum[i] = T.log2(logsum[i]) + scores_max[i] * scale
            for i in T.Parallel(block_m):
                lse[bz, by, bx * block_m + i] = logsum[i]
            if bx == 0:
                T.copy(bias_shared, bias_out[bz, by, :, :])

            # the rotated result and its weights, for the next layer
            rotate_rows(O_shared, acc_o, cosine, sine, bx * block_m, block_m, dim)
            T.copy(acc_o, rotated[bz, by, bx * block_m : (bx + 1) * block_m, :])
            softmax_rows(acc_o, scores_max, scores_sum, block_m, dim)
            T.copy(acc_o, weights[bz, by, bx * block_m : (bx + 1) * block_m, :])

    return main


@tilelang.jit(out_idx=[-6, -5, -4, -3, -2, -1])
def sink_scores(
    seq_len=64,
    kv_len=128,
    dim=64,
    block_n=64,
    num_stages=2,
    threads=128,
    num_sinks=256,
    dtype="float16",
    accum_dtype="float32",
    sink_value=1.0,
    scale=0.25,
    use_alibi=True,
    slope=0.5,
):
    """Sums of scores over blocks of keys, and the sinks' running weights (`parted`)."""

    @T.prim_func
    def main(
        Q: T.Tensor((seq_len, dim), dtype),
        K: T.Tensor((kv_len, dim), dtype),
        lengths: T.Tensor((1,), "int32"),
        row_bias: T.Tensor((seq_len,), accum_dtype),
        sink_mask: T.Tensor((num_sinks,), accum_dtype),
        cosine: T.Tensor((seq_len, block_n), accum_dtype),
        sine: T.Tensor((seq_len, block_n), accum_dtype),
        rotated: T.Tensor((seq_len, block_n), accum_dtype),
        row_lse: T.Tensor((seq_len,), accum_dtype),
        S: T.Tensor((seq_len, block_n), accum_dtype),
        sinks: T.Tensor((2, num_sinks), accum_dtype),
        row_peak: T.Tensor((seq_len,), accum_dtype),
        column_sum: T.Tensor((block_n,), accum_dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            Q_shared = T.alloc_shared((seq_len, dim), dtype)
            K_shared = T.alloc_shared((block_n, dim), dtype)
            acc_s = T.alloc_fragment((seq_len, block_n), accum_dtype)
            bias_local = T.alloc_fragment((seq_len,), accum_dtype)
            peak = T.alloc_fragment((seq_len,), accum_dtype)
            columns = T.alloc_fragment((block_n,), accum_dtype)
            probs = T.alloc_fragment((seq_len, block_n), accum_dtype)
            total = T.alloc_fragment((seq_len,), accum_dtype)
            turned = T.alloc_fragment((seq_len, block_n), accum_dtype)
            P_shared = T.alloc_shared((seq_len, block_n), accum_dtype)
            sink_local = T.alloc_fragment((num_sinks,), accum_dtype)
            sink_shared = T.alloc_shared((num_sinks,), accum_dtype)

            # all sinks begin with the same weight
            T.fill(sink_local, sink_value)
            for i in T.Parallel(num_sinks):
                sink_shared[i] = sink_local[i]

            # scores of all blocks of keys
            T.clear(acc_s)
            for k in T.Pipelined(T.ceildiv(kv_len, block_n), num_stages=num_stages):
                T.copy(Q, Q_shared)
                T.copy(K[k * block_n, 0], K_shared)
                T.gemm(Q_shared, K_shared, acc_s, transpose_B=True)

            # scale, bias and mask
            for i in T.Parallel(seq_len):
                bias_local[i] = row_bias[i]
            for i, j in T.Parallel(seq_len, block_n):
                acc_s[i, j] = acc_s[i, j] * scale
            if use_alibi:
                for i, j in T.Parallel(seq_len, block_n):
                    acc_s[i, j] = acc_s[i, j] - slope * T.abs(T.cast(i - j, accum_dtype))
            for i, j in T.Parallel(seq_len, block_n):
                acc_s[i, j] += bias_local[i]
            for i, j in T.Parallel(seq_len, block_n):
                if j > lengths[0] + block_n // 2:
                    acc_s[i, j] = -1000.0

            # statistics
            T.reduce_max(acc_s, peak, dim=1)
            for i in T.Parallel(seq_len):
                row_peak[i] = peak[i]
            T.copy(acc_s, probs)
            softmax_rows(probs, peak, total, seq_len, block_n)
            for i in T.Parallel(seq_len):
                row_lse[i] = T.log2(total[i]) + peak[i] * 1.44269504
            T.copy(probs, P_shared)
            rotate_rows(P_shared, turned, cosine, sine, 0, seq_len, block_n)
            T.copy(turned, rotated)
            T.reduce_sum(probs, columns, dim=0)
            for j in T.Parallel(block_n):
                column_sum[j] = columns[j]
            T.copy(acc_s, S)

            # the sinks, with and without mask
            for i in T.Parallel(num_sinks):
                sinks[0, i] = sink_shared[i] * sink_mask[i]
            for i in T.Parallel(num_sinks):
                sinks[1, i] = sink_local[i]

    return main


@tilelang.jit(out_idx=[-6, -5, -4, -3, -2, -1])
def decode_merge(
    batch=2,
    heads=2,
    splits=4,
    dim=128,
    threads=128,
    dtype="float32",
    out_dtype="float16",
    threshold=1.0,
    limit=8.0,
    eps=1e-6,
    normalize=True,
    residual_scale=0.5,
    rows=4,
):
    """Merge of the splits of a decode step, with a reset of heads whose first weight is too large (`asked`)."""

    @T.prim_func
    def main(
        partial_o: T.Tensor((batch, heads, splits, dim), dtype),
        partial_lse: T.Tensor((batch, heads, splits), dtype),
        head_gate: T.Tensor((batch, heads, dim), dtype),
        residual: T.Tensor((batch, heads, dim), dtype),
        gamma: T.Tensor((dim,), dtype),
        next_q: T.Tensor((batch, heads, rows, dim), dtype),
        cosine: T.Tensor((rows, dim), dtype),
        sine: T.Tensor((rows, dim), dtype),
        rotated: T.Tensor((batch, heads, rows, dim), dtype),
        q_weights: T.Tensor((batch, heads, rows, dim), dtype),
        O: T.Tensor((batch, heads, dim), out_dtype),
        lse: T.Tensor((batch, heads), dtype),
        peak_out: T.Tensor((batch, heads), dtype),
        gate_out: T.Tensor((batch, heads, dim), dtype),
    ):
        with T.Kernel(heads, batch, threads=threads) as (by, bz):
            gate_shared = T.alloc_shared((dim,), dtype)
            acc = T.alloc_fragment((dim,), dtype)
            part = T.alloc_fragment((dim,), dtype)
            square = T.alloc_fragment((dim,), dtype)
            norm = T.alloc_fragment((1,), dtype)
            peak = T.alloc_fragment((1,), dtype)
            lse_local = T.alloc_fragment((splits,), dtype)
            lse_max = T.alloc_fragment((1,), dtype)
            lse_sum = T.alloc_fragment((1,), dtype)
            weight = T.alloc_fragment((splits,), dtype)
            weight_shared = T.alloc_shared((splits,), dtype)
            out_shared = T.alloc_shared((dim,), out_dtype)
            q_shared = T.alloc_shared((rows, dim), dtype)
            q_local = T.alloc_fragment((rows, dim), dtype)
            q_peak = T.alloc_fragment((rows,), dtype)
            q_sum = T.alloc_fragment((rows,), dtype)

            # weights of the splits
            for s in T.Parallel(splits):
                lse_local[s] = partial_lse[bz, by, s]
            T.reduce_max(lse_local, lse_max, dim=0)
            for s in T.Parallel(splits):
                weight[s] = T.exp2(lse_local[s] - lse_max[0])
            T.reduce_sum(weight, lse_sum, dim=0)
            for s in T.Parallel(splits):
                weight[s] = weight[s] / lse_sum[0]
            T.copy(weight, weight_shared)

            # a gate whose first channel is too large is reset
            T.copy(head_gate[bz, by, :], gate_shared)
            if gate_shared[0] > threshold:
                for i in T.Parallel(dim):
                    gate_shared[i] = threshold

            # the weighted sum
            T.clear(acc)
            for s in T.serial(splits):
                for i in T.Parallel(dim):
                    part[i] = partial_o[bz, by, s, i]
                for i in T.Parallel(dim):
                    part[i] = T.max(T.min(part[i], limit), -limit)
                for i in T.Parallel(dim):
                    acc[i] += part[i] * weight_shared[s]
            for i in T.Parallel(dim):
                acc[i] = acc[i] * gate_shared[i]
            for i in T.Parallel(dim):
                acc[i] = acc[i] + residual[bz, by, i] * residual_scale

            # its norm and its largest element
            for i in T.Parallel(dim):
                square[i] = acc[i] * acc[i]
            T.reduce_sum(square, norm, dim=0)
            T.reduce_absmax(acc, peak, dim=0)
            if normalize:
                for i in T.Parallel(dim):
                    acc[i] = acc[i] * T.rsqrt(norm[0] / dim + eps) * gamma[i]
            T.copy(acc, out_shared)
            T.copy(out_shared, O[bz, by, :])
            for i in T.Parallel(1):
                peak_out[bz, by] = peak[i]
            for i in T.Parallel(1):
                lse[bz, by] = T.log2(lse_sum[i]) + lse_max[i]
            T.copy(gate_shared, gate_out[bz, by, :])

            # queries of the next step: rotated, then weights
            T.copy(next_q[bz, by, :, :], q_shared)
            rotate_rows(q_shared, q_local, cosine, sine, 0, rows, dim)
            for i, j in T.Parallel(rows, dim):
                rotated[bz, by, i, j] = q_local[i, j]
            softmax_rows(q_local, q_peak, q_sum, rows, dim)
            for i, j in T.Parallel(rows, dim):
                q_weights[bz, by, i, j] = q_local[i, j]

    return main


@tilelang.jit(out_idx=[-7, -6, -5, -4, -3, -2, -1])
def projected_rope(
    seq_len=128,
    hidden=64,
    head_dim=64,
    rope_rows=16,
    rope_dim=96,
    block_m=64,
    block_k=32,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
    qk_scale=0.25,
    eps=1e-5,
    normalize=True,
    keep_largest=True,
):
    """Projection of queries with a norm, and a table for rotary embeddings that is scaled beside it (`negative`)."""

    @T.prim_func
    def main(
        X: T.Tensor((seq_len, hidden), dtype),
        W_q: T.Tensor((hidden, head_dim), dtype),
        q_bias: T.Tensor((head_dim,), accum_dtype),
        q_gamma: T.Tensor((head_dim,), accum_dtype),
        table: T.Tensor((rope_rows, rope_dim), accum_dtype),
        positions: T.Tensor((seq_len,), "int32"),
        cosine: T.Tensor((seq_len, head_dim), accum_dtype),
        sine: T.Tensor((seq_len, head_dim), accum_dtype),
        rotated: T.Tensor((seq_len, head_dim), accum_dtype),
        channel_weights: T.Tensor((seq_len, head_dim), accum_dtype),
        largest_weight: T.Tensor((seq_len,), accum_dtype),
        Q: T.Tensor((seq_len, head_dim), dtype),
        norms: T.Tensor((seq_len,), accum_dtype),
        peaks: T.Tensor((seq_len,), accum_dtype),
        table_out: T.Tensor((seq_len // block_m, rope_rows, rope_dim), accum_dtype),
    ):
        with T.Kernel(seq_len // block_m, threads=threads) as bx:
            X_shared = T.alloc_shared((block_m, block_k), dtype)
            W_shared = T.alloc_shared((block_k, head_dim), dtype)
            Q_shared = T.alloc_shared((block_m, head_dim), dtype)
            R_shared = T.alloc_shared((block_m, head_dim), accum_dtype)
            q_local = T.alloc_fragment((block_m, head_dim), accum_dtype)
            square = T.alloc_fragment((block_m, head_dim), accum_dtype)
            norm = T.alloc_fragment((block_m,), accum_dtype)
            peak = T.alloc_fragment((block_m,), accum_dtype)
            keep = T.alloc_fragment((block_m,), accum_dtype)
            table_local = T.alloc_fragment((rope_rows, rope_dim), accum_dtype)

            T.copy(table, table_local)

            # x W
            T.clear(q_local)
            for k in T.Pipelined(T.ceildiv(hidden, block_k), num_stages=num_stages):
                T.copy(X[bx * block_m, k * block_k], X_shared)
                T.copy(W_q[k * block_k, 0], W_shared)
                T.gemm(X_shared, W_shared, q_local)

            # bias and norm of each head
            for i, j in T.Parallel(block_m, head_dim):
                q_local[i, j] += q_bias[j]
            for i, j in T.Parallel(block_m, head_dim):
                square[i, j] = q_local[i, j] * q_local[i, j]
            T.reduce_sum(square, norm, dim=1)
            for i in T.Parallel(block_m):
                norm[i] = T.rsqrt(norm[i] / head_dim + eps)
            if normalize:
                for i, j in T.Parallel(block_m, head_dim):
                    q_local[i, j] = q_local[i, j] * norm[i] * q_gamma[j]
            for i in T.Parallel(block_m):
                norms[bx * block_m + i] = norm[i]

            # tokens without a position are padding
            for i in T.Parallel(block_m):
                keep[i] = T.if_then_else(positions[bx * block_m + i] >= 0, 1.0, 0.0)
            for i, j in T.Parallel(block_m, head_dim):
                q_local[i, j] = q_local[i, j] * keep[i] * qk_scale
            T.reduce_absmax(q_local, peak, dim=1)
            for i in T.Parallel(block_m):
                peaks[bx * block_m + i] = peak[i]
            T.copy(q_local, Q_shared)
            T.copy(Q_shared, Q[bx * block_m, 0])

            # rotate, and weights of the channels
            T.copy(q_local, R_shared)
            rotate_rows(R_shared, square, cosine, sine, bx * block_m, block_m, head_dim)
            T.copy(square, rotated[bx * block_m, 0])
            softmax_rows(square, peak, norm, block_m, head_dim)
            T.copy(square, channel_weights[bx * block_m, 0])
            if keep_largest:
                for i in T.Parallel(block_m):
                    largest_weight[bx * block_m + i] = 1.0 / norm[i]

            # this block's copy of the table
            T.copy(table_local, table_out[bx, :, :])

    return main
