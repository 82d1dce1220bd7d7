"""Kernels with pipelines, each with the wrong code of a case of `kernels.py` or `repaired.py` in it."""

# ruff: noqa: C901

import tilelang
import tilelang.language as T

LOG2E = 1.44269504


@T.macro
def gate_tile(x, gate, rows, columns):
    for i, j in T.Parallel(rows, columns):
        x[i, j] = x[i, j] * gate[i, j] / (1.0 + T.exp2(-gate[i, j] * LOG2E))


@T.macro
def clamp_tile(x, limit, rows, columns):
    for i, j in T.Parallel(rows, columns):
        x[i, j] = T.min(x[i, j], limit)
    for i, j in T.Parallel(rows, columns):
        x[i, j] = T.max(x[i, j], -limit)


@T.macro
def gate_row(x, gate, width):
    for i in T.Parallel(width):
        x[i] = x[i] * gate[i] / (1.0 + T.exp2(-gate[i] * LOG2E))


@T.macro
def clamp_row(x, limit, width):
    for i in T.Parallel(width):
        x[i] = T.min(x[i], limit)
    for i in T.Parallel(width):
        x[i] = T.max(x[i], -limit)


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


@tilelang.jit(out_idx=[-5, -4, -3, -2, -1])
def two_queries(
    block=64,
    steps=4,
    num_stages=2,
    threads=128,
    scale=0.5,
    limit=30.0,
    dtype="float16",
    accum_dtype="float32",
    has_bias=True,
    has_gate=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Two tiles of queries through one buffer, the second one times keys, with a gate and sums (`reused`)."""
    assert block % 16 == 0
    assert threads % 32 == 0
    keys = steps * block

    @T.prim_func
    def main(
        Q: T.Tensor((2 * block, block), dtype),
        K: T.Tensor((keys, block), dtype),
        bias: T.Tensor((block,), accum_dtype),
        gate: T.Tensor((block, block), accum_dtype),
        lengths: T.Tensor((block,), "int32"),
        residual: T.Tensor((block, block), accum_dtype),
        firsts: T.Tensor((block, block), dtype),
        seconds: T.Tensor((block, block), dtype),
        scores: T.Tensor((block, block), accum_dtype),
        sums: T.Tensor((block,), accum_dtype),
        quantized: T.Tensor((block, block), accum_dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            q_shared = T.alloc_shared((block, block), dtype)
            k_shared = T.alloc_shared((block, block), dtype)
            first = T.alloc_fragment((block, block), dtype)
            second = T.alloc_fragment((block, block), dtype)
            score = T.alloc_fragment((block, block), accum_dtype)
            gate_local = T.alloc_fragment((block, block), accum_dtype)
            total = T.alloc_fragment((block,), accum_dtype)
            code = T.alloc_fragment((block, block), accum_dtype)
            code_peak = T.alloc_fragment((block,), accum_dtype)

            # both queries
            T.copy(Q[0, 0], q_shared)
            T.copy(q_shared, first)
            T.copy(Q[block, 0], q_shared)
            T.copy(q_shared, second)

            # the second one times all keys
            T.clear(score)
            for k in T.Pipelined(steps, num_stages=num_stages):
                T.copy(K[k * block, 0], k_shared)
                T.gemm(q_shared, k_shared, score, transpose_B=True)
            T.copy(first, firsts)
            T.copy(second, seconds)

            # bias, gate, clamp, mask
            for i, j in T.Parallel(block, block):
                score[i, j] = score[i, j] * scale
            if has_bias:
                for i, j in T.Parallel(block, block):
                    score[i, j] = score[i, j] + bias[j]
            if has_gate:
                for i, j in T.Parallel(block, block):
                    gate_local[i, j] = gate[i, j]
                gate_tile(score, gate_local, block, block)
            clamp_tile(score, limit, block, block)
            for i, j in T.Parallel(block, block):
                score[i, j] = score[i, j] + residual[i, j]
            if has_mask:
                for i, j in T.Parallel(block, block):
                    score[i, j] = T.if_then_else(j < lengths[i], score[i, j], 0.0)

            # the scores and their sums
            T.reduce_sum(score, total, dim=1)
            for i in T.Parallel(block):
                sums[i] = total[i]
            T.copy(score, scores)

            # its codes
            if has_codes:
                quantize_tile(score, code, code_peak, largest_code, zero_code, eps, block, block)
                for i, j in T.Parallel(block, block):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def causal_blocks(
    block=64,
    blocks=2,
    num_stages=2,
    threads=128,
    scale=0.5,
    limit=30.0,
    dtype="float16",
    accum_dtype="float32",
    has_bias=True,
    has_gate=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A tile of queries times the keys of all earlier blocks; the first block has none (`empty`)."""
    assert block % 16 == 0
    assert threads % 32 == 0
    keys = blocks * block

    @T.prim_func
    def main(
        Q: T.Tensor((block, block), dtype),
        K: T.Tensor((keys, block), dtype),
        bias: T.Tensor((block,), accum_dtype),
        gamma: T.Tensor((block,), accum_dtype),
        gate: T.Tensor((block, block), accum_dtype),
        residual: T.Tensor((block, block), accum_dtype),
        kept: T.Tensor((blocks, block, block), dtype),
        scores: T.Tensor((blocks, block, block), accum_dtype),
        sums: T.Tensor((blocks, block), accum_dtype),
        quantized: T.Tensor((blocks, block, block), accum_dtype),
    ):
        with T.Kernel(blocks, threads=threads) as bx:
            q_shared = T.alloc_shared((block, block), dtype)
            k_shared = T.alloc_shared((block, block), dtype)
            query = T.alloc_fragment((block, block), dtype)
            score = T.alloc_fragment((block, block), accum_dtype)
            gate_local = T.alloc_fragment((block, block), accum_dtype)
            total = T.alloc_fragment((block,), accum_dtype)
            code = T.alloc_fragment((block, block), accum_dtype)
            code_peak = T.alloc_fragment((block,), accum_dtype)

            # the products with earlier keys
            T.copy(Q, q_shared)
            T.clear(score)
            for k in T.Pipelined(bx, num_stages=num_stages):
                T.copy(K[k * block, 0], k_shared)
                T.gemm(q_shared, k_shared, score)

            # the query itself is kept
            T.copy(q_shared, query)
            T.copy(query, kept[bx, 0, 0])

            # bias, gate, clamp
            for i, j in T.Parallel(block, block):
                score[i, j] = score[i, j] * scale
            if has_bias:
                for i, j in T.Parallel(block, block):
                    score[i, j] = score[i, j] + bias[j]
            for i, j in T.Parallel(block, block):
                score[i, j] = score[i, j] * gamma[j]
            if has_gate:
                for i, j in T.Parallel(block, block):
                    gate_local[i, j] = gate[i, j]
                gate_tile(score, gate_local, block, block)
            clamp_tile(score, limit, block, block)
            if has_residual:
                for i, j in T.Parallel(block, block):
                    score[i, j] = score[i, j] + residual[i, j]

            # the scores and their sums
            T.reduce_sum(score, total, dim=1)
            for i in T.Parallel(block):
                sums[bx, i] = total[i]
            T.copy(score, scores[bx, 0, 0])

            # its codes
            if has_codes:
                quantize_tile(score, code, code_peak, largest_code, zero_code, eps, block, block)
                for i, j in T.Parallel(block, block):
                    quantized[bx, i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def scaled_queries(
    block=64,
    steps=2,
    num_stages=2,
    threads=128,
    factor=2,
    scale=0.5,
    limit=30.0,
    dtype="float16",
    accum_dtype="float32",
    has_bias=True,
    has_gate=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Queries scaled in place and multiplied in a pipeline, with a gate, a mask and statistics (`scaled`)."""
    assert block % 16 == 0
    assert threads % 32 == 0
    depth = steps * block

    @T.prim_func
    def main(
        Q: T.Tensor((block, block), dtype),
        K: T.Tensor((depth, block), dtype),
        bias: T.Tensor((block,), accum_dtype),
        gamma: T.Tensor((block,), accum_dtype),
        gate: T.Tensor((block, block), accum_dtype),
        lengths: T.Tensor((block,), "int32"),
        scores: T.Tensor((block, block), accum_dtype),
        sums: T.Tensor((block,), accum_dtype),
        peaks: T.Tensor((block,), accum_dtype),
        quantized: T.Tensor((block, block), accum_dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            q_shared = T.alloc_shared((block, block), dtype)
            k_shared = T.alloc_shared((block, block), dtype)
            score = T.alloc_fragment((block, block), accum_dtype)
            gate_local = T.alloc_fragment((block, block), accum_dtype)
            magnitude = T.alloc_fragment((block, block), accum_dtype)
            total = T.alloc_fragment((block,), accum_dtype)
            peak = T.alloc_fragment((block,), accum_dtype)
            code = T.alloc_fragment((block, block), accum_dtype)
            code_peak = T.alloc_fragment((block,), accum_dtype)

            # scaled queries times keys
            T.copy(Q, q_shared)
            for i, j in T.Parallel(block, block):
                q_shared[i, j] = q_shared[i, j] * factor
            T.clear(score)
            for k in T.Pipelined(steps, num_stages=num_stages):
                T.copy(K[k * block, 0], k_shared)
                T.gemm(q_shared, k_shared, score)

            # bias, gate, clamp, mask
            for i, j in T.Parallel(block, block):
                score[i, j] = score[i, j] * scale
            if has_bias:
                for i, j in T.Parallel(block, block):
                    score[i, j] = score[i, j] + bias[j]
            for i, j in T.Parallel(block, block):
                score[i, j] = score[i, j] * gamma[j]
            if has_gate:
                for i, j in T.Parallel(block, block):
                    gate_local[i, j] = gate[i, j]
                gate_tile(score, gate_local, block, block)
            clamp_tile(score, limit, block, block)
            if has_mask:
                for i, j in T.Parallel(block, block):
                    score[i, j] = T.if_then_else(j < lengths[i], score[i, j], 0.0)

            # the scores and their statistics
            T.reduce_sum(score, total, dim=1)
            for i in T.Parallel(block):
                sums[i] = total[i]
            for i, j in T.Parallel(block, block):
                magnitude[i, j] = T.abs(score[i, j])
            T.reduce_max(magnitude, peak, dim=1)
            for i in T.Parallel(block):
                peaks[i] = peak[i]
            T.copy(score, scores)

            # its codes
            if has_codes:
                quantize_tile(score, code, code_peak, largest_code, zero_code, eps, block, block)
                for i, j in T.Parallel(block, block):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-3, -2, -1])
def optional_experts(
    block=64,
    steps=2,
    experts=2,
    num_stages=2,
    threads=128,
    scale=0.5,
    limit=30.0,
    dtype="float16",
    accum_dtype="float32",
    has_bias=True,
    has_gate=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A product that only some blocks have, and what is done with it in all of them (`skipped`)."""
    assert block % 16 == 0
    assert experts > 1
    depth = steps * block

    @T.prim_func
    def main(
        X: T.Tensor((block, depth), dtype),
        W: T.Tensor((depth, block), dtype),
        bias: T.Tensor((experts, block), accum_dtype),
        gamma: T.Tensor((block,), accum_dtype),
        gate: T.Tensor((block, block), accum_dtype),
        residual: T.Tensor((block, block), accum_dtype),
        lengths: T.Tensor((block,), "int32"),
        Y: T.Tensor((experts, block, block), accum_dtype),
        sums: T.Tensor((experts, block), accum_dtype),
        quantized: T.Tensor((experts, block, block), accum_dtype),
    ):
        with T.Kernel(experts, threads=threads) as bx:
            x_shared = T.alloc_shared((block, block), dtype)
            w_shared = T.alloc_shared((block, block), dtype)
            y_local = T.alloc_fragment((block, block), accum_dtype)
            gate_local = T.alloc_fragment((block, block), accum_dtype)
            total = T.alloc_fragment((block,), accum_dtype)
            code = T.alloc_fragment((block, block), accum_dtype)
            code_peak = T.alloc_fragment((block,), accum_dtype)

            # the product
            T.clear(y_local)
            if bx > 0:
                for k in T.Pipelined(steps, num_stages=num_stages):
                    T.copy(X[0, k * block], x_shared)
                    T.copy(W[k * block, 0], w_shared)
                    T.gemm(x_shared, w_shared, y_local)

            # bias, gate, clamp
            for i, j in T.Parallel(block, block):
                y_local[i, j] = y_local[i, j] * scale
            if has_bias:
                for i, j in T.Parallel(block, block):
                    y_local[i, j] = y_local[i, j] + bias[bx, j]
            for i, j in T.Parallel(block, block):
                y_local[i, j] = y_local[i, j] * gamma[j]
            if has_gate:
                for i, j in T.Parallel(block, block):
                    gate_local[i, j] = gate[i, j]
                gate_tile(y_local, gate_local, block, block)
            clamp_tile(y_local, limit, block, block)

            # the residual and rows beyond the end
            if has_residual:
                for i, j in T.Parallel(block, block):
                    y_local[i, j] = y_local[i, j] + residual[i, j]
            for i, j in T.Parallel(block, block):
                y_local[i, j] = T.if_then_else(j < lengths[i], y_local[i, j], 0.0)

            # what is written
            T.reduce_sum(y_local, total, dim=1)
            for i in T.Parallel(block):
                sums[bx, i] = total[i]
            T.copy(y_local, Y[bx, 0, 0])

            # its codes
            if has_codes:
                quantize_tile(y_local, code, code_peak, largest_code, zero_code, eps, block, block)
                for i, j in T.Parallel(block, block):
                    quantized[bx, i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def sparse_loads(
    steps=4,
    lanes=128,
    width=256,
    num_stages=2,
    threads=128,
    scale=0.5,
    limit=9.0,
    dtype="float32",
    has_bias=True,
    has_gate=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Steps of a pipeline of which every other one loads a tile that both use, and a gated row (`reloaded`)."""
    assert lanes == threads
    assert width % threads == 0

    @T.prim_func
    def main(
        A: T.Tensor((steps, lanes), dtype),
        B: T.Tensor((steps, lanes), dtype),
        X: T.Tensor((width,), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        gate: T.Tensor((width,), dtype),
        mask: T.Tensor((width,), "int32"),
        C: T.Tensor((steps, lanes), dtype),
        Y: T.Tensor((width,), dtype),
        norms: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            a_shared = T.alloc_shared((lanes,), dtype)
            b_shared = T.alloc_shared((lanes,), dtype)
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            squares = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the row with its gate
            for i in T.Parallel(width):
                x_local[i] = X[i]
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            for i in T.Parallel(width):
                x_local[i] = x_local[i] * gamma[i]
            if has_gate:
                for i in T.Parallel(width):
                    gate_local[i] = gate[i]
                gate_row(x_local, gate_local, width)
            clamp_row(x_local, limit, width)
            if has_mask:
                for i in T.Parallel(width):
                    x_local[i] = T.if_then_else(mask[i] > 0, x_local[i], 0.0)

            # the sum of what this step and the last one loaded
            for k in T.Pipelined(steps, num_stages=num_stages):
                if k % 2 == 0:
                    T.copy(A[k, :], a_shared)
                T.copy(B[k, :], b_shared)
                for i in T.Parallel(lanes):
                    C[k, i] = a_shared[i] + b_shared[i]

            # the norm of the row
            for i in T.Parallel(width):
                squares[i] = x_local[i] * x_local[i]
            T.reduce_sum(squares, total, dim=0)
            for i in T.Parallel(1):
                norms[i] = T.sqrt(total[i]) * scale
            for i in T.Parallel(width):
                Y[i] = x_local[i]

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def stepping_rows(
    steps=4,
    stride=2,
    lanes=128,
    width=256,
    num_stages=2,
    threads=128,
    scale=0.5,
    limit=9.0,
    dtype="float32",
    has_bias=True,
    has_gate=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A pipeline whose steps say which row comes next, and a gated row (`moved`)."""
    assert lanes == threads
    assert width % threads == 0

    @T.prim_func
    def main(
        A: T.Tensor((steps * stride, lanes), dtype),
        X: T.Tensor((width,), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        gate: T.Tensor((width,), dtype),
        mask: T.Tensor((width,), "int32"),
        chosen: T.Tensor((steps, lanes), dtype),
        Y: T.Tensor((width,), dtype),
        norms: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            a_shared = T.alloc_shared((lanes,), dtype)
            row = T.alloc_var("int32")
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            squares = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the rows
            row = 0
            for k in T.Pipelined(steps, num_stages=num_stages):
                T.copy(A[row, :], a_shared)
                for i in T.Parallel(lanes):
                    chosen[k, i] = a_shared[i]
                row = row + stride

            # the row with its gate
            for i in T.Parallel(width):
                x_local[i] = X[i]
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            for i in T.Parallel(width):
                x_local[i] = x_local[i] * gamma[i]
            if has_gate:
                for i in T.Parallel(width):
                    gate_local[i] = gate[i]
                gate_row(x_local, gate_local, width)
            clamp_row(x_local, limit, width)
            if has_mask:
                for i in T.Parallel(width):
                    x_local[i] = T.if_then_else(mask[i] > 0, x_local[i], 0.0)

            # the norm of the row
            for i in T.Parallel(width):
                squares[i] = x_local[i] * x_local[i]
            T.reduce_sum(squares, total, dim=0)
            for i in T.Parallel(1):
                norms[i] = T.sqrt(total[i]) * scale
            for i in T.Parallel(width):
                Y[i] = x_local[i]

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def prefetched_rows(
    steps=4,
    lanes=128,
    width=256,
    num_stages=2,
    threads=128,
    scale=0.5,
    limit=9.0,
    dtype="float32",
    has_bias=True,
    has_gate=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Rows that are used, and the next one loaded into their place; and a gated row (`replaced`)."""
    assert lanes == threads
    assert width % threads == 0
    last = steps - 1

    @T.prim_func
    def main(
        A: T.Tensor((steps, lanes), dtype),
        X: T.Tensor((width,), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        gate: T.Tensor((width,), dtype),
        mask: T.Tensor((width,), "int32"),
        mirrored: T.Tensor((steps, lanes), dtype),
        Y: T.Tensor((width,), dtype),
        peaks: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            a_shared = T.alloc_shared((lanes,), dtype)
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            magnitude = T.alloc_fragment((width,), dtype)
            peak = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the row with its gate
            for i in T.Parallel(width):
                x_local[i] = X[i]
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            for i in T.Parallel(width):
                x_local[i] = x_local[i] * gamma[i]
            if has_gate:
                for i in T.Parallel(width):
                    gate_local[i] = gate[i]
                gate_row(x_local, gate_local, width)
            clamp_row(x_local, limit, width)
            if has_mask:
                for i in T.Parallel(width):
                    x_local[i] = T.if_then_else(mask[i] > 0, x_local[i], 0.0)
            for i in T.Parallel(width):
                magnitude[i] = T.abs(x_local[i])
            T.reduce_max(magnitude, peak, dim=0)
            for i in T.Parallel(1):
                peaks[i] = peak[i] * scale
            for i in T.Parallel(width):
                Y[i] = x_local[i]

            # mirrored rows, each loaded where the last one was
            T.copy(A[0, :], a_shared)
            for k in T.Pipelined(last, num_stages=num_stages):
                for i in T.Parallel(lanes):
                    mirrored[k, i] = a_shared[lanes - 1 - i]
                T.copy(A[k + 1, :], a_shared)
            T.copy(a_shared, mirrored[last, :])

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-5, -4, -3, -2, -1])
def kept_operand(
    block=64,
    threads=128,
    scale=0.5,
    limit=30.0,
    eps=1e-5,
    dtype="float16",
    accum_dtype="float32",
    has_bias=True,
    has_gate=True,
    has_mask=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    has_codes=True,
):
    """A product whose left operand lies in registers and is stored too, with a gate and statistics (`operand`)."""
    assert block % 16 == 0
    assert threads % 32 == 0

    @T.prim_func
    def main(
        A: T.Tensor((block, block), dtype),
        B: T.Tensor((block, block), dtype),
        X: T.Tensor((block, block), accum_dtype),
        bias: T.Tensor((block,), accum_dtype),
        gamma: T.Tensor((block,), accum_dtype),
        gate: T.Tensor((block, block), accum_dtype),
        residual: T.Tensor((block, block), accum_dtype),
        lengths: T.Tensor((block,), "int32"),
        C: T.Tensor((block, block), accum_dtype),
        D: T.Tensor((block, block), dtype),
        Y: T.Tensor((block, block), accum_dtype),
        norms: T.Tensor((block,), accum_dtype),
        quantized: T.Tensor((block, block), accum_dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            a_local = T.alloc_fragment((block, block), dtype)
            b_shared = T.alloc_shared((block, block), dtype)
            d_shared = T.alloc_shared((block, block), dtype)
            c_local = T.alloc_fragment((block, block), accum_dtype)
            x_local = T.alloc_fragment((block, block), accum_dtype)
            gate_local = T.alloc_fragment((block, block), accum_dtype)
            squares = T.alloc_fragment((block, block), accum_dtype)
            total = T.alloc_fragment((block,), accum_dtype)
            code = T.alloc_fragment((block, block), accum_dtype)
            code_peak = T.alloc_fragment((block,), accum_dtype)

            # a tile with its gate
            for i, j in T.Parallel(block, block):
                x_local[i, j] = X[i, j]
            if has_bias:
                for i, j in T.Parallel(block, block):
                    x_local[i, j] = x_local[i, j] + bias[j]
            for i, j in T.Parallel(block, block):
                x_local[i, j] = x_local[i, j] * gamma[j]
            if has_gate:
                for i, j in T.Parallel(block, block):
                    gate_local[i, j] = gate[i, j]
                gate_tile(x_local, gate_local, block, block)
            clamp_tile(x_local, limit, block, block)
            if has_residual:
                for i, j in T.Parallel(block, block):
                    x_local[i, j] = x_local[i, j] + residual[i, j] * scale
            if has_mask:
                for i, j in T.Parallel(block, block):
                    x_local[i, j] = T.if_then_else(j < lengths[i], x_local[i, j], 0.0)

            # the product, and its left operand
            T.copy(A, a_local)
            T.copy(B, b_shared)
            T.clear(c_local)
            T.gemm(a_local, b_shared, c_local)
            T.copy(c_local, C)
            T.copy(a_local, d_shared)
            T.copy(d_shared, D)

            # the norms of the tile
            for i, j in T.Parallel(block, block):
                squares[i, j] = x_local[i, j] * x_local[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i in T.Parallel(block):
                norms[i] = T.sqrt(total[i] + eps)
            for i, j in T.Parallel(block, block):
                Y[i, j] = x_local[i, j]

            # its codes
            if has_codes:
                quantize_tile(x_local, code, code_peak, largest_code, zero_code, eps, block, block)
                for i, j in T.Parallel(block, block):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def unaligned_product(
    block=64,
    step=32,
    steps=3,
    num_stages=3,
    threads=128,
    scale=0.5,
    limit=30.0,
    dtype="float16",
    accum_dtype="float32",
    has_bias=True,
    has_gate=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A product of rows that no bulk copy can load, with a gate, a mask and statistics (`drained`)."""
    assert block % 16 == 0
    assert step % 16 == 0
    depth = steps * step

    @T.prim_func
    def main(
        A: T.Tensor((block, depth + 6), dtype),
        B: T.Tensor((depth, block + 2), dtype),
        bias: T.Tensor((block,), accum_dtype),
        gamma: T.Tensor((block,), accum_dtype),
        gate: T.Tensor((block, block), accum_dtype),
        residual: T.Tensor((block, block), accum_dtype),
        lengths: T.Tensor((block,), "int32"),
        C: T.Tensor((block, block), accum_dtype),
        sums: T.Tensor((block,), accum_dtype),
        peaks: T.Tensor((block,), accum_dtype),
        quantized: T.Tensor((block, block), accum_dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            a_shared = T.alloc_shared((block, step), dtype)
            b_shared = T.alloc_shared((step, block), dtype)
            c_local = T.alloc_fragment((block, block), accum_dtype)
            gate_local = T.alloc_fragment((block, block), accum_dtype)
            magnitude = T.alloc_fragment((block, block), accum_dtype)
            total = T.alloc_fragment((block,), accum_dtype)
            peak = T.alloc_fragment((block,), accum_dtype)
            code = T.alloc_fragment((block, block), accum_dtype)
            code_peak = T.alloc_fragment((block,), accum_dtype)

            # the product
            T.clear(c_local)
            for k in T.Pipelined(steps, num_stages=num_stages):
                T.copy(A[0:block, k * step : k * step + step], a_shared)
                T.copy(B[k * step : k * step + step, 0:block], b_shared)
                T.gemm(a_shared, b_shared, c_local)

            # bias, gate, clamp, mask
            for i, j in T.Parallel(block, block):
                c_local[i, j] = c_local[i, j] * scale
            if has_bias:
                for i, j in T.Parallel(block, block):
                    c_local[i, j] = c_local[i, j] + bias[j]
            for i, j in T.Parallel(block, block):
                c_local[i, j] = c_local[i, j] * gamma[j]
            if has_gate:
                for i, j in T.Parallel(block, block):
                    gate_local[i, j] = gate[i, j]
                gate_tile(c_local, gate_local, block, block)
            clamp_tile(c_local, limit, block, block)
            for i, j in T.Parallel(block, block):
                c_local[i, j] = c_local[i, j] + residual[i, j]
            if has_mask:
                for i, j in T.Parallel(block, block):
                    c_local[i, j] = T.if_then_else(j < lengths[i], c_local[i, j], 0.0)

            # statistics, and the product itself
            T.reduce_sum(c_local, total, dim=1)
            for i in T.Parallel(block):
                sums[i] = total[i]
            for i, j in T.Parallel(block, block):
                magnitude[i, j] = T.abs(c_local[i, j])
            T.reduce_max(magnitude, peak, dim=1)
            for i in T.Parallel(block):
                peaks[i] = peak[i]
            T.copy(c_local, C)

            # its codes
            if has_codes:
                quantize_tile(c_local, code, code_peak, largest_code, zero_code, eps, block, block)
                for i, j in T.Parallel(block, block):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def positional_table(
    block=64,
    steps=3,
    num_stages=2,
    threads=128,
    scale=0.5,
    limit=30.0,
    dtype="float16",
    accum_dtype="float32",
    has_bias=True,
    has_gate=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A table that all threads fill and add to a product, with a gate, a mask and statistics (`table`)."""
    assert block % 16 == 0
    assert threads % 32 == 0
    depth = steps * block

    @T.prim_func
    def main(
        A: T.Tensor((depth, block), dtype),
        B: T.Tensor((depth, block), dtype),
        positions: T.Tensor((block, block), dtype),
        bias: T.Tensor((block,), accum_dtype),
        gamma: T.Tensor((block,), accum_dtype),
        gate: T.Tensor((block, block), accum_dtype),
        lengths: T.Tensor((block,), "int32"),
        C: T.Tensor((block, block), accum_dtype),
        sums: T.Tensor((block,), accum_dtype),
        peaks: T.Tensor((block,), accum_dtype),
        quantized: T.Tensor((block, block), accum_dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            table_shared = T.alloc_shared((block, block), dtype)
            a_shared = T.alloc_shared((block, block), dtype)
            b_shared = T.alloc_shared((block, block), dtype)
            table = T.alloc_fragment((block, block), dtype)
            c_local = T.alloc_fragment((block, block), accum_dtype)
            gate_local = T.alloc_fragment((block, block), accum_dtype)
            magnitude = T.alloc_fragment((block, block), accum_dtype)
            total = T.alloc_fragment((block,), accum_dtype)
            peak = T.alloc_fragment((block,), accum_dtype)
            code = T.alloc_fragment((block, block), accum_dtype)
            code_peak = T.alloc_fragment((block,), accum_dtype)

            # the table
            T.clear(c_local)
            for i, j in T.Parallel(block, block):
                table_shared[i, j] = positions[j, i]
            T.copy(table_shared, table)

            # the product of sums
            for k in T.Pipelined(steps, num_stages=num_stages):
                for i, j in T.Parallel(block, block):
                    a_shared[i, j] = A[k * block + i, j] + B[k * block + j, i]
                T.copy(B[k * block, 0], b_shared)
                T.gemm(a_shared, b_shared, c_local)
            for i, j in T.Parallel(block, block):
                c_local[i, j] = c_local[i, j] + table[i, j]

            # bias, gate, clamp, mask
            for i, j in T.Parallel(block, block):
                c_local[i, j] = c_local[i, j] * scale
            if has_bias:
                for i, j in T.Parallel(block, block):
                    c_local[i, j] = c_local[i, j] + bias[j]
            for i, j in T.Parallel(block, block):
                c_local[i, j] = c_local[i, j] * gamma[j]
            if has_gate:
                for i, j in T.Parallel(block, block):
                    gate_local[i, j] = gate[i, j]
                gate_tile(c_local, gate_local, block, block)
            clamp_tile(c_local, limit, block, block)
            if has_mask:
                for i, j in T.Parallel(block, block):
                    c_local[i, j] = T.if_then_else(j < lengths[i], c_local[i, j], 0.0)

            # statistics, and the product itself
            T.reduce_sum(c_local, total, dim=1)
            for i in T.Parallel(block):
                sums[i] = total[i]
            for i, j in T.Parallel(block, block):
                magnitude[i, j] = T.abs(c_local[i, j])
            T.reduce_max(magnitude, peak, dim=1)
            for i in T.Parallel(block):
                peaks[i] = peak[i]
            T.copy(c_local, C)

            # its codes
            if has_codes:
                quantize_tile(c_local, code, code_peak, largest_code, zero_code, eps, block, block)
                for i, j in T.Parallel(block, block):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def wide_product(
    m=256,
    n=128,
    k=64,
    rows=64,
    columns=64,
    threads=256,
    policy="FullRow",
    scale=0.5,
    limit=30.0,
    dtype="float16",
    accum_dtype="float32",
    has_bias=True,
    has_gate=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A product whose rows two warp groups share, and a gated tile with the norms of its rows (`rows`)."""
    assert rows * columns % threads == 0
    assert k % 16 == 0
    policy = getattr(T.GemmWarpPolicy, policy)

    @T.prim_func
    def main(
        A: T.Tensor((m, k), dtype),
        B: T.Tensor((k, n), dtype),
        X: T.Tensor((rows, columns), accum_dtype),
        bias: T.Tensor((columns,), accum_dtype),
        gamma: T.Tensor((columns,), accum_dtype),
        gate: T.Tensor((rows, columns), accum_dtype),
        lengths: T.Tensor((rows,), "int32"),
        C: T.Tensor((m, n), accum_dtype),
        Y: T.Tensor((rows, columns), accum_dtype),
        norms: T.Tensor((rows,), accum_dtype),
        quantized: T.Tensor((rows, columns), accum_dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            a_shared = T.alloc_shared((m, k), dtype)
            b_shared = T.alloc_shared((k, n), dtype)
            c_local = T.alloc_fragment((m, n), accum_dtype)
            x_local = T.alloc_fragment((rows, columns), accum_dtype)
            gate_local = T.alloc_fragment((rows, columns), accum_dtype)
            squares = T.alloc_fragment((rows, columns), accum_dtype)
            total = T.alloc_fragment((rows,), accum_dtype)
            code = T.alloc_fragment((rows, columns), accum_dtype)
            code_peak = T.alloc_fragment((rows,), accum_dtype)

            # the product
            T.clear(c_local)
            T.copy(A, a_shared)
            T.copy(B, b_shared)
            T.gemm(a_shared, b_shared, c_local, policy=policy)
            T.copy(c_local, C)

            # the tile with its gate
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = X[i, j]
            if has_bias:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] + bias[j]
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = x_local[i, j] * gamma[j]
            if has_gate:
                for i, j in T.Parallel(rows, columns):
                    gate_local[i, j] = gate[i, j]
                gate_tile(x_local, gate_local, rows, columns)
            clamp_tile(x_local, limit, rows, columns)
            if has_mask:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = T.if_then_else(j < lengths[i], x_local[i, j], 0.0)

            # the norms of the tile
            for i, j in T.Parallel(rows, columns):
                squares[i, j] = x_local[i, j] * x_local[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i in T.Parallel(rows):
                norms[i] = T.sqrt(total[i]) * scale
            for i, j in T.Parallel(rows, columns):
                Y[i, j] = x_local[i, j]

            # its codes
            if has_codes:
                quantize_tile(x_local, code, code_peak, largest_code, zero_code, eps, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def short_windows(
    tokens=64,
    window=32,
    width=512,
    num_stages=2,
    threads=256,
    scale=0.5,
    limit=9.0,
    dtype="float16",
    accum_dtype="float32",
    has_bias=True,
    has_gate=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Windows of 64 bytes, loaded from a place that a variable has, and a gated row (`misplaced`)."""
    assert tokens % window == 0
    assert width % threads == 0
    steps = tokens // window

    @T.prim_func
    def main(
        A: T.Tensor((tokens,), dtype),
        X: T.Tensor((width,), accum_dtype),
        bias: T.Tensor((width,), accum_dtype),
        gamma: T.Tensor((width,), accum_dtype),
        gate: T.Tensor((width,), accum_dtype),
        mask: T.Tensor((width,), "int32"),
        B: T.Tensor((tokens,), dtype),
        Y: T.Tensor((width,), accum_dtype),
        peaks: T.Tensor((1,), accum_dtype),
        quantized: T.Tensor((width,), accum_dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            first = T.alloc_shared((1,), "int32")
            window_shared = T.alloc_shared((window,), dtype)
            x_local = T.alloc_fragment((width,), accum_dtype)
            gate_local = T.alloc_fragment((width,), accum_dtype)
            magnitude = T.alloc_fragment((width,), accum_dtype)
            peak = T.alloc_fragment((1,), accum_dtype)
            code = T.alloc_fragment((width,), accum_dtype)
            code_peak = T.alloc_fragment((1,), accum_dtype)

            # the windows
            for k in T.Pipelined(steps, num_stages=num_stages):
                first[0] = k * window
                offset = first[0]
                T.copy(A[offset], window_shared)
                for i in T.Parallel(window):
                    B[k * window + i] = window_shared[i]

            # the row with its gate
            for i in T.Parallel(width):
                x_local[i] = X[i]
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            for i in T.Parallel(width):
                x_local[i] = x_local[i] * gamma[i]
            if has_gate:
                for i in T.Parallel(width):
                    gate_local[i] = gate[i]
                gate_row(x_local, gate_local, width)
            clamp_row(x_local, limit, width)
            if has_mask:
                for i in T.Parallel(width):
                    x_local[i] = T.if_then_else(mask[i] > 0, x_local[i], 0.0)

            # its peak
            for i in T.Parallel(width):
                magnitude[i] = T.abs(x_local[i])
            T.reduce_max(magnitude, peak, dim=0)
            for i in T.Parallel(1):
                peaks[i] = peak[i] * scale
            for i in T.Parallel(width):
                Y[i] = x_local[i]

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main
