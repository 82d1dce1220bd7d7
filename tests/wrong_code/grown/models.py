"""Kernels of a hundred lines and more, each with the wrong code of a case of `kernels.py` or `repaired.py` in it.

They are written as kernels of models are: prologues, several tensors, loops, epilogues. `benchmarks/reductions.py` has
`tlcheck reduce` make them small again.
"""

# ruff: noqa: C901

import tilelang
import tilelang.language as T


@T.macro
def quantize_row(x, code, peak, largest, zero, eps, width):
    for i in T.Parallel(width):
        code[i] = T.abs(x[i])
    T.reduce_max(code, peak, dim=0)
    for i in T.Parallel(width):
        code[i] = x[i] / T.max(peak[0], eps)
    for i in T.Parallel(width):
        code[i] = code[i] * largest
    for i in T.Parallel(width):
        code[i] = T.floor(code[i] + 0.5)
    for i in T.Parallel(width):
        code[i] = code[i] + zero
    for i in T.Parallel(width):
        code[i] = T.min(code[i], largest)
    for i in T.Parallel(width):
        code[i] = T.max(code[i], -largest)


@T.macro
def quantize_tile(x, code, peak, largest, zero, eps, rows, columns):
    for i, j in T.Parallel(rows, columns):
        code[i, j] = T.abs(x[i, j])
    T.reduce_max(code, peak, dim=1)
    for i, j in T.Parallel(rows, columns):
        code[i, j] = x[i, j] / T.max(peak[i], eps)
    for i, j in T.Parallel(rows, columns):
        code[i, j] = code[i, j] * largest
    for i, j in T.Parallel(rows, columns):
        code[i, j] = T.floor(code[i, j] + 0.5)
    for i, j in T.Parallel(rows, columns):
        code[i, j] = code[i, j] + zero
    for i, j in T.Parallel(rows, columns):
        code[i, j] = T.min(code[i, j], largest)
    for i, j in T.Parallel(rows, columns):
        code[i, j] = T.max(code[i, j], -largest)


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def gated_mlp(
    tokens=128,
    hidden=256,
    inner=128,
    block_m=64,
    block_n=64,
    block_k=32,
    num_stages=3,
    threads=128,
    eps=1e-5,
    limit=7.0,
    dtype="float16",
    accum_dtype="float32",
    largest_code=127.0,
    zero_code=0.5,
    has_codes=True,
):
    """A projection of a normalized row that gates another one, with a residual (`wait`)."""
    assert tokens % block_m == 0
    assert inner % block_n == 0
    assert hidden % block_k == 0
    steps = hidden // block_k
    log2e = 1.44269504

    @T.prim_func
    def main(
        X: T.Tensor((tokens, hidden), dtype),
        norm_weight: T.Tensor((hidden,), dtype),
        W_gate: T.Tensor((hidden, inner), dtype),
        U: T.Tensor((tokens, inner), dtype),
        bias_gate: T.Tensor((inner,), dtype),
        bias_up: T.Tensor((inner,), dtype),
        residual: T.Tensor((tokens, inner), dtype),
        lengths: T.Tensor((1,), "int32"),
        Y: T.Tensor((tokens, inner), dtype),
        inverse_rms: T.Tensor((tokens,), accum_dtype),
        largest: T.Tensor((tokens, inner // block_n), accum_dtype),
        quantized: T.Tensor((tokens, inner), accum_dtype),
    ):
        with T.Kernel(inner // block_n, tokens // block_m, threads=threads) as (bx, by):
            x_shared = T.alloc_shared((block_m, block_k), dtype)
            gate_shared = T.alloc_shared((block_k, block_n), dtype)
            y_shared = T.alloc_shared((block_m, block_n), dtype)
            x_local = T.alloc_fragment((block_m, block_k), accum_dtype)
            squares = T.alloc_fragment((block_m,), accum_dtype)
            partial = T.alloc_fragment((block_m,), accum_dtype)
            scale = T.alloc_fragment((block_m,), accum_dtype)
            scale_shared = T.alloc_shared((block_m,), accum_dtype)
            row_largest = T.alloc_fragment((block_m,), accum_dtype)
            gate = T.alloc_fragment((block_m, block_n), accum_dtype)
            up = T.alloc_fragment((block_m, block_n), accum_dtype)
            magnitude = T.alloc_fragment((block_m, block_n), accum_dtype)
            code = T.alloc_fragment((block_m, block_n), accum_dtype)
            code_peak = T.alloc_fragment((block_m,), accum_dtype)

            # the root mean square of each row
            T.fill(squares, 0)
            for k in T.serial(steps):
                for i, j in T.Parallel(block_m, block_k):
                    x_local[i, j] = X[by * block_m + i, k * block_k + j]
                for i, j in T.Parallel(block_m, block_k):
                    x_local[i, j] = x_local[i, j] * x_local[i, j]
                T.reduce_sum(x_local, partial, dim=1)
                for i in T.Parallel(block_m):
                    squares[i] += partial[i]
            for i in T.Parallel(block_m):
                scale[i] = T.rsqrt(squares[i] / hidden + eps)
            T.copy(scale, scale_shared)
            if bx == 0:
                for i in T.Parallel(block_m):
                    inverse_rms[by * block_m + i] = scale[i]

            # the projection
            T.clear(gate)
            for k in T.Pipelined(steps, num_stages=num_stages):
                T.copy(X[by * block_m, k * block_k], x_shared)
                T.copy(W_gate[k * block_k, bx * block_n], gate_shared)
                T.gemm(x_shared, gate_shared, gate)

            # scale, bias, clamp, gate
            for i, j in T.Parallel(block_m, block_n):
                up[i, j] = U[by * block_m + i, bx * block_n + j]
            for i, j in T.Parallel(block_m, block_n):
                gate[i, j] = gate[i, j] * scale_shared[i] + bias_gate[bx * block_n + j]
            for i, j in T.Parallel(block_m, block_n):
                up[i, j] = up[i, j] * scale_shared[i] + bias_up[bx * block_n + j]
            for i, j in T.Parallel(block_m, block_n):
                gate[i, j] = T.min(gate[i, j], limit)
                up[i, j] = T.max(T.min(up[i, j], limit), -limit)
            for i, j in T.Parallel(block_m, block_n):
                gate[i, j] = gate[i, j] / (1.0 + T.exp2(-gate[i, j] * log2e))
            for i, j in T.Parallel(block_m, block_n):
                up[i, j] = gate[i, j] * (up[i, j] + 1.0)

            # the residual, rows beyond the end, statistics
            for i, j in T.Parallel(block_m, block_n):
                up[i, j] = up[i, j] + residual[by * block_m + i, bx * block_n + j]
            for i, j in T.Parallel(block_m, block_n):
                up[i, j] = T.if_then_else(by * block_m + i < lengths[0], up[i, j], 0)
            for i, j in T.Parallel(block_m, block_n):
                magnitude[i, j] = T.abs(up[i, j])
            T.reduce_max(magnitude, row_largest, dim=1)
            for i in T.Parallel(block_m):
                largest[by * block_m + i, bx] = row_largest[i]
            T.copy(up, y_shared)
            T.copy(y_shared, Y[by * block_m, bx * block_n])

            # its codes
            if has_codes:
                quantize_tile(up, code, code_peak, largest_code, zero_code, eps, block_m, block_n)
                for i, j in T.Parallel(block_m, block_n):
                    quantized[by * block_m + i, bx * block_n + j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-3, -2, -1])
def chunk_scan(
    chunks=2,
    chunk_len=128,
    d_state=64,
    d_head=64,
    heads=2,
    block_l=64,
    block_s=64,
    num_stages=2,
    threads=128,
    dtype="float16",
    accum_dtype="float32",
    has_d=True,
    has_z=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """The states of a scan over chunks, added up, with a skip connection and a gate (`nested`)."""
    assert chunk_len % block_s == 0
    assert d_state == block_l
    seqlen = chunks * chunk_len
    steps = chunk_len // block_s
    log2e = 1.44269504

    @T.prim_func
    def main(
        B: T.Tensor((heads, d_state, seqlen), dtype),
        x: T.Tensor((heads, seqlen, d_head), dtype),
        dt: T.Tensor((heads, seqlen), accum_dtype),
        initial: T.Tensor((heads, d_state, d_head), accum_dtype),
        D: T.Tensor((heads,), accum_dtype),
        z: T.Tensor((heads, d_state, d_head), dtype),
        norm: T.Tensor((d_head,), accum_dtype),
        states: T.Tensor((heads, d_state, d_head), accum_dtype),
        totals: T.Tensor((heads, d_state), accum_dtype),
        quantized: T.Tensor((heads, d_state, d_head), accum_dtype),
    ):
        with T.Kernel(heads, threads=threads) as bh:
            B_shared = T.alloc_shared((block_l, block_s), dtype)
            x_shared = T.alloc_shared((block_s, d_head), dtype)
            out_shared = T.alloc_shared((block_l, d_head), accum_dtype)
            state = T.alloc_fragment((block_l, d_head), accum_dtype)
            skip = T.alloc_fragment((block_l, d_head), accum_dtype)
            gate = T.alloc_fragment((block_l, d_head), accum_dtype)
            weight = T.alloc_fragment((d_head,), accum_dtype)
            dt_local = T.alloc_fragment((block_s,), accum_dtype)
            decay = T.alloc_fragment((1,), accum_dtype)
            total = T.alloc_fragment((block_l,), accum_dtype)
            code = T.alloc_fragment((block_l, d_head), accum_dtype)
            code_peak = T.alloc_fragment((block_l,), accum_dtype)

            # how much of the initial state is left
            T.clear(decay)
            for c in T.serial(chunks):
                for s in T.serial(steps):
                    T.copy(dt[bh, c * chunk_len + s * block_s], dt_local)
                    for i in T.Parallel(block_s):
                        dt_local[i] = T.min(dt_local[i], 1.0)
                    T.reduce_sum(dt_local, decay, dim=0, clear=False)
            for i in T.Parallel(d_head):
                weight[i] = norm[i] + 1.0
            for i, j in T.Parallel(block_l, d_head):
                skip[i, j] = initial[bh, i, j]
            for i, j in T.Parallel(block_l, d_head):
                skip[i, j] = skip[i, j] * 0.5

            # the states of all chunks
            T.clear(state)
            for c in T.serial(chunks):
                for s in T.Pipelined(steps, num_stages=num_stages):
                    T.copy(B[bh, 0:d_state, c * chunk_len + s * block_s : c * chunk_len + (s + 1) * block_s], B_shared)
                    T.copy(x[bh, c * chunk_len + s * block_s : c * chunk_len + (s + 1) * block_s, 0:d_head], x_shared)
                    T.gemm(B_shared, x_shared, state)

            # the skip connection and the gate
            for i, j in T.Parallel(block_l, d_head):
                state[i, j] = state[i, j] + skip[i, j]
            if has_d:
                for i, j in T.Parallel(block_l, d_head):
                    state[i, j] = state[i, j] + D[bh] * skip[i, j]
            if has_z:
                for i, j in T.Parallel(block_l, d_head):
                    gate[i, j] = z[bh, i, j]
                for i, j in T.Parallel(block_l, d_head):
                    gate[i, j] = gate[i, j] / (1.0 + T.exp2(-gate[i, j] * log2e))
                for i, j in T.Parallel(block_l, d_head):
                    state[i, j] = state[i, j] * gate[i, j]
            for i, j in T.Parallel(block_l, d_head):
                state[i, j] = state[i, j] * weight[j]

            # what is written
            T.reduce_sum(state, total, dim=1)
            for i in T.Parallel(block_l):
                totals[bh, i] = total[i]
            T.copy(state, out_shared)
            for i, j in T.Parallel(block_l, d_head):
                states[bh, i, j] = out_shared[i, j] + decay[0]

            # its codes
            if has_codes:
                quantize_tile(state, code, code_peak, largest_code, zero_code, eps, block_l, d_head)
                for i, j in T.Parallel(block_l, d_head):
                    quantized[bh, i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def codebook_norm(
    tokens=64,
    width=64,
    entries=7,
    groups=4,
    block=16,
    threads=128,
    eps=1e-6,
    momentum=0.25,
    bits=4,
    dtype="float32",
    accum_dtype="float32",
    largest_code=127.0,
    zero_code=0.5,
    has_codes=True,
):
    """A row with offsets of a small codebook, normalized, scaled by groups and clamped (`lookup`)."""
    assert tokens % block == 0
    assert width % groups == 0
    group = width // groups
    largest_code = float(2 ** (bits - 1) - 1)
    smallest_code = -largest_code - 1.0

    @T.prim_func
    def main(
        X: T.Tensor((tokens, width), dtype),
        previous: T.Tensor((tokens, width), dtype),
        codebook: T.Tensor((entries,), dtype),
        gamma: T.Tensor((width,), dtype),
        beta: T.Tensor((width,), dtype),
        scales: T.Tensor((groups,), dtype),
        zeros: T.Tensor((groups,), dtype),
        mask: T.Tensor((tokens,), "int32"),
        shifted: T.Tensor((tokens, width), dtype),
        codes: T.Tensor((tokens, width), dtype),
        row_scale: T.Tensor((tokens,), accum_dtype),
        quantized: T.Tensor((tokens, width), accum_dtype),
    ):
        with T.Kernel(tokens // block, threads=threads) as bx:
            x_local = T.alloc_fragment((block, width), accum_dtype)
            squares = T.alloc_fragment((block, width), accum_dtype)
            total = T.alloc_fragment((block,), accum_dtype)
            mean = T.alloc_fragment((block,), accum_dtype)
            variance = T.alloc_fragment((block,), accum_dtype)
            inverse = T.alloc_fragment((block,), accum_dtype)
            largest = T.alloc_fragment((block,), accum_dtype)
            out_local = T.alloc_fragment((block, width), accum_dtype)
            code = T.alloc_fragment((block, width), accum_dtype)
            code_peak = T.alloc_fragment((block,), accum_dtype)

            # the row with its offset
            for i, j in T.Parallel(block, width):
                shifted[bx * block + i, j] = X[bx * block + i, j] + codebook[j % entries]
            for i, j in T.Parallel(block, width):
                x_local[i, j] = X[bx * block + i, j]
            for i, j in T.Parallel(block, width):
                x_local[i, j] = x_local[i, j] * (1.0 - momentum)
            for i, j in T.Parallel(block, width):
                x_local[i, j] = x_local[i, j] + previous[bx * block + i, j] * momentum

            # mean and variance
            T.reduce_sum(x_local, total, dim=1)
            for i in T.Parallel(block):
                mean[i] = total[i] / width
            for i, j in T.Parallel(block, width):
                x_local[i, j] = x_local[i, j] - mean[i]
            for i, j in T.Parallel(block, width):
                squares[i, j] = x_local[i, j] * x_local[i, j]
            T.reduce_sum(squares, variance, dim=1)
            for i in T.Parallel(block):
                inverse[i] = T.rsqrt(variance[i] / width + eps)

            # normalized, with its affine part
            for i, j in T.Parallel(block, width):
                out_local[i, j] = x_local[i, j] * inverse[i]
            for i, j in T.Parallel(block, width):
                out_local[i, j] = out_local[i, j] * gamma[j] + beta[j]

            # the largest of a row
            for i, j in T.Parallel(block, width):
                squares[i, j] = T.abs(out_local[i, j])
            T.reduce_max(squares, largest, dim=1)
            for i in T.Parallel(block):
                row_scale[bx * block + i] = T.max(largest[i], eps) / largest_code

            # codes of each group
            for i, j in T.Parallel(block, width):
                out_local[i, j] = out_local[i, j] * scales[j // group]
            for i, j in T.Parallel(block, width):
                out_local[i, j] = out_local[i, j] + zeros[j // group]
            for i, j in T.Parallel(block, width):
                out_local[i, j] = T.min(out_local[i, j], largest_code)
            for i, j in T.Parallel(block, width):
                out_local[i, j] = T.max(out_local[i, j], smallest_code)
            for i, j in T.Parallel(block, width):
                out_local[i, j] = T.if_then_else(mask[bx * block + i] > 0, out_local[i, j], 0.0)
            for i, j in T.Parallel(block, width):
                codes[bx * block + i, j] = out_local[i, j]

            # its codes
            if has_codes:
                quantize_tile(out_local, code, code_peak, largest_code, zero_code, eps, block, width)
                for i, j in T.Parallel(block, width):
                    quantized[bx * block + i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def staged_norm(
    rows=4,
    width=512,
    threads=128,
    eps=1e-5,
    scale=0.5,
    limit=448.0,
    heads=4,
    in_dtype="float32",
    out_dtype="float16",
    accum_dtype="float32",
    has_bias=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    has_codes=True,
):
    """A row normalized through shared memory, in float32 and then in float16 (`aliased`)."""
    assert width % threads == 0
    assert width % heads == 0
    log2e = 1.44269504

    @T.prim_func
    def main(
        X: T.Tensor((rows, width), in_dtype),
        residual: T.Tensor((rows, width), in_dtype),
        bias: T.Tensor((width,), in_dtype),
        gamma: T.Tensor((width,), in_dtype),
        beta: T.Tensor((width,), in_dtype),
        gate: T.Tensor((rows, width), in_dtype),
        lengths: T.Tensor((rows,), "int32"),
        Y: T.Tensor((rows, width), out_dtype),
        means: T.Tensor((rows,), accum_dtype),
        rstd: T.Tensor((rows,), accum_dtype),
        quantized: T.Tensor((rows, width), accum_dtype),
    ):
        with T.Kernel(rows, threads=threads) as bx:
            residual_shared = T.alloc_shared((width,), in_dtype)
            y_shared = T.alloc_shared((width,), out_dtype)
            residual_local = T.alloc_fragment((width,), accum_dtype)
            x_local = T.alloc_fragment((width,), accum_dtype)
            gate_local = T.alloc_fragment((width,), accum_dtype)
            centred = T.alloc_fragment((width,), accum_dtype)
            squares = T.alloc_fragment((width,), accum_dtype)
            total = T.alloc_fragment((1,), accum_dtype)
            variance = T.alloc_fragment((1,), accum_dtype)
            code = T.alloc_fragment((width,), accum_dtype)
            code_peak = T.alloc_fragment((1,), accum_dtype)

            # the row with its bias
            for i in T.Parallel(width):
                x_local[i] = X[bx, i]
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]

            # mean and variance
            T.reduce_sum(x_local, total, dim=0)
            for i in T.Parallel(width):
                centred[i] = x_local[i] - total[0] / width
            for i in T.Parallel(width):
                squares[i] = centred[i] * centred[i]
            T.reduce_sum(squares, variance, dim=0)
            for i in T.Parallel(width):
                x_local[i] = centred[i] * T.rsqrt(variance[0] / width + eps)
            for i in T.Parallel(1):
                means[bx] = total[i] / width
            for i in T.Parallel(1):
                rstd[bx] = T.rsqrt(variance[i] / width + eps)

            # its affine part, and the gate
            for i in T.Parallel(width):
                x_local[i] = x_local[i] * gamma[i]
            for i in T.Parallel(width):
                x_local[i] = x_local[i] + beta[i]
            for i in T.Parallel(width):
                gate_local[i] = gate[bx, i]
            for i in T.Parallel(width):
                gate_local[i] = gate_local[i] / (1.0 + T.exp2(-gate_local[i] * log2e))
            for i in T.Parallel(width):
                x_local[i] = x_local[i] * gate_local[i]

            # the residual, and what is stored
            if has_residual:
                T.copy(residual[bx, 0], residual_shared)
                T.copy(residual_shared, residual_local)
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + residual_local[i] * scale
            for i in T.Parallel(width):
                x_local[i] = T.min(x_local[i], limit)
            for i in T.Parallel(width):
                x_local[i] = T.max(x_local[i], -limit)
            for i in T.Parallel(width):
                x_local[i] = T.if_then_else(i < lengths[bx], x_local[i], 0.0)
            for i in T.Parallel(width):
                y_shared[i] = x_local[i]
            T.copy(y_shared, Y[bx, 0])

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[bx, i] = code[i]

    return main


@tilelang.jit
def embedding_grad(
    tokens=8,
    width=512,
    vocabulary=16,
    threads=128,
    scale=0.125,
    clip=4.0,
    decay=0.5,
    padding=0,
    dtype="float16",
    accum_dtype="float32",
    has_mask=True,
    has_decay=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Gradients of rows added to a table of float16, where tokens say, with norms of rows (`mixed`)."""
    assert width % threads == 0
    assert vocabulary > padding

    @T.prim_func
    def main(
        dY: T.Tensor((tokens, width), accum_dtype),
        X: T.Tensor((tokens, width), accum_dtype),
        gamma: T.Tensor((width,), accum_dtype),
        indices: T.Tensor((tokens,), "int32"),
        mask: T.Tensor((tokens,), "int32"),
        counts: T.Tensor((vocabulary,), "int32"),
        dTable: T.Tensor((vocabulary, width), dtype),
        dGamma: T.Tensor((width,), accum_dtype),
        norms: T.Tensor((tokens,), accum_dtype),
        quantized: T.Tensor((tokens, width), accum_dtype),
    ):
        with T.Kernel(tokens, threads=threads) as bx:
            grad = T.alloc_fragment((width,), accum_dtype)
            x_local = T.alloc_fragment((width,), accum_dtype)
            product = T.alloc_fragment((width,), accum_dtype)
            squares = T.alloc_fragment((width,), accum_dtype)
            norm = T.alloc_fragment((1,), accum_dtype)
            token = T.alloc_local((1,), "int32")
            token[0] = T.max(0, T.min(indices[bx], vocabulary - 1))
            code = T.alloc_fragment((width,), accum_dtype)
            code_peak = T.alloc_fragment((1,), accum_dtype)

            # the gradient of a row
            T.copy(dY[bx, 0], grad)
            T.copy(X[bx, 0], x_local)
            for i in T.Parallel(width):
                product[i] = grad[i] * x_local[i]
            for i in T.Parallel(width):
                grad[i] = grad[i] * gamma[i]
            for i in T.Parallel(width):
                grad[i] = grad[i] * scale

            # its norm, and the gradient that is cut
            for i in T.Parallel(width):
                squares[i] = grad[i] * grad[i]
            T.reduce_sum(squares, norm, dim=0)
            for i in T.Parallel(1):
                norms[bx] = T.sqrt(norm[i])
            for i in T.Parallel(width):
                grad[i] = T.min(grad[i], clip)
            for i in T.Parallel(width):
                grad[i] = T.max(grad[i], -clip)

            # rows that take no part
            if has_mask:
                for i in T.Parallel(width):
                    grad[i] = T.if_then_else(mask[bx] > 0, grad[i], 0.0)
                for i in T.Parallel(width):
                    product[i] = T.if_then_else(mask[bx] > 0, product[i], 0.0)
            for i in T.Parallel(width):
                grad[i] = T.if_then_else(indices[bx] == padding, 0.0, grad[i])
            if has_decay:
                for i in T.Parallel(width):
                    grad[i] = grad[i] + x_local[i] * decay

            # a word that is frequent counts less
            for i in T.Parallel(width):
                grad[i] = grad[i] / T.cast(T.max(counts[token[0]], 1), accum_dtype)

            # the sums
            for i in T.Parallel(width):
                T.atomic_add(dGamma[i], product[i])
            for i in T.Parallel(width):
                T.atomic_add(dTable[token[0], i], grad[i])

            # its codes
            if has_codes:
                quantize_row(grad, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[bx, i] = code[i]

    return main
