"""Kernels that work on rows, each with the wrong code of a case of `kernels.py` or `repaired.py` in it."""

# ruff: noqa: C901

import tilelang
import tilelang.language as T

LOG2E = 1.44269504


@T.macro
def load_row(X, row, x, width):
    for i in T.Parallel(width):
        x[i] = X[row, i]


@T.macro
def scale_row(x, factor, width):
    for i in T.Parallel(width):
        x[i] = x[i] * factor


@T.macro
def clamp_row(x, limit, width):
    for i in T.Parallel(width):
        x[i] = T.min(x[i], limit)
    for i in T.Parallel(width):
        x[i] = T.max(x[i], -limit)


@T.macro
def swish_row(x, width):
    for i in T.Parallel(width):
        x[i] = x[i] / (1.0 + T.exp2(-x[i] * LOG2E))


@T.macro
def store_row(x, Y, row, width):
    for i in T.Parallel(width):
        Y[row, i] = x[i]


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


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def special_tokens(
    rows=2,
    width=256,
    special=100,
    threads=128,
    temperature=0.5,
    bonus=5.0,
    cap=30.0,
    smoothing=0.1,
    dtype="float32",
    has_bias=True,
    has_penalty=True,
    has_smoothing=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Logits of which the first hundred get a bonus, with a bias, penalties and gated features (`loop`)."""
    assert width % threads == 0
    assert special < width
    keep = 1.0 - smoothing

    @T.prim_func
    def main(
        logits: T.Tensor((rows, width), dtype),
        features: T.Tensor((rows, width), dtype),
        bias: T.Tensor((width,), dtype),
        frequency: T.Tensor((width,), dtype),
        presence: T.Tensor((width,), dtype),
        lengths: T.Tensor((rows,), "int32"),
        gamma: T.Tensor((width,), dtype),
        beta: T.Tensor((width,), dtype),
        scores: T.Tensor((rows, width), dtype),
        gated: T.Tensor((rows, width), dtype),
        sums: T.Tensor((rows,), dtype),
        quantized: T.Tensor((rows, width), dtype),
    ):
        with T.Kernel(rows, threads=threads) as bx:
            score = T.alloc_fragment((width,), dtype)
            feature = T.alloc_fragment((width,), dtype)
            penalty = T.alloc_fragment((width,), dtype)
            squares = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # features, gated
            load_row(features, bx, feature, width)
            scale_row(feature, temperature, width)
            clamp_row(feature, cap, width)
            swish_row(feature, width)
            if has_smoothing:
                for i in T.Parallel(width):
                    feature[i] = feature[i] * keep
                for i in T.Parallel(width):
                    feature[i] = feature[i] + smoothing
            for i in T.Parallel(width):
                feature[i] = feature[i] * gamma[i]
            for i in T.Parallel(width):
                feature[i] = feature[i] + beta[i]
            store_row(feature, gated, bx, width)

            # how often a token was there
            if has_penalty:
                for i in T.Parallel(width):
                    penalty[i] = frequency[i] * 0.25
                for i in T.Parallel(width):
                    penalty[i] = penalty[i] + presence[i] * 0.5
                for i in T.Parallel(width):
                    penalty[i] = T.if_then_else(i < lengths[bx], penalty[i], 0.0)
                for i in T.Parallel(width):
                    squares[i] = penalty[i] * penalty[i]
                T.reduce_sum(squares, total, dim=0)
                for i in T.Parallel(1):
                    sums[bx] = T.sqrt(total[i])

            # the scores; special tokens come first
            for i in T.Parallel(width):
                score[i] = logits[bx, i]
            for i in T.Parallel(special):
                score[i] = score[i] + bonus
            for i in T.Parallel(width):
                scores[bx, i] = score[i] + 1.0

            # its codes
            if has_codes:
                quantize_row(feature, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[bx, i] = code[i]

    return main


@tilelang.jit(out_idx=[-3, -2, -1])
def gated_sums(
    rows=64,
    columns=8,
    width=256,
    threads=64,
    scale=0.125,
    limit=12.0,
    shift=2.0,
    dtype="float16",
    accum_dtype="float32",
    has_gate=True,
    has_bias=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Sums of short rows, next to a gated and normalized row (`sums`)."""
    assert width % threads == 0
    assert rows == threads

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), dtype),
        X: T.Tensor((2, width), accum_dtype),
        gate: T.Tensor((2, width), accum_dtype),
        bias: T.Tensor((width,), accum_dtype),
        gamma: T.Tensor((width,), accum_dtype),
        mask: T.Tensor((width,), "int32"),
        residual: T.Tensor((2, width), accum_dtype),
        sums: T.Tensor((rows,), dtype),
        Y: T.Tensor((2, width), accum_dtype),
        quantized: T.Tensor((width,), accum_dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            tx = T.get_thread_binding()
            x_local = T.alloc_fragment((width,), accum_dtype)
            gate_local = T.alloc_fragment((width,), accum_dtype)
            other = T.alloc_fragment((width,), accum_dtype)
            code = T.alloc_fragment((width,), accum_dtype)
            code_peak = T.alloc_fragment((1,), accum_dtype)

            # the first row with its gate
            load_row(X, 0, x_local, width)
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            scale_row(x_local, scale, width)
            clamp_row(x_local, limit, width)
            if has_gate:
                load_row(gate, 0, gate_local, width)
                swish_row(gate_local, width)
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gate_local[i]
            for i in T.Parallel(width):
                x_local[i] = x_local[i] + residual[0, i]
            store_row(x_local, Y, 0, width)

            # the sums of short rows
            sums[tx] = T.float16(0)
            for k in T.vectorized(columns):
                sums[tx] = sums[tx] + A[tx, k]

            # the second row, scaled and masked
            load_row(X, 1, other, width)
            for i in T.Parallel(width):
                other[i] = other[i] * gamma[i]
            for i in T.Parallel(width):
                other[i] = other[i] - shift
            clamp_row(other, limit, width)
            for i in T.Parallel(width):
                other[i] = other[i] + residual[1, i] * scale
            if has_mask:
                for i in T.Parallel(width):
                    other[i] = T.if_then_else(mask[i] > 0, other[i], 0.0)
            for i in T.Parallel(width):
                other[i] = other[i] + x_local[i]
            store_row(other, Y, 1, width)

            # its codes
            if has_codes:
                quantize_row(other, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def asked_counts(
    tokens=128,
    width=256,
    threads=128,
    scale=0.5,
    limit=6.0,
    floor=0.25,
    dtype="float32",
    has_weight=True,
    has_noise=True,
    has_clip=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Routing of tokens: flags that are taken back when a token is used, with scores around them (`merged`)."""
    assert tokens == threads
    assert width % threads == 0

    @T.prim_func
    def main(
        pending: T.Tensor((tokens,), "int32"),
        scores: T.Tensor((1, width), dtype),
        noise: T.Tensor((1, width), dtype),
        weight: T.Tensor((width,), dtype),
        bias: T.Tensor((width,), dtype),
        mask: T.Tensor((width,), "int32"),
        again: T.Tensor((tokens,), "int32"),
        routed: T.Tensor((1, width), dtype),
        norms: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            tx = T.get_thread_binding()
            score = T.alloc_fragment((width,), dtype)
            noise_local = T.alloc_fragment((width,), dtype)
            squares = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the scores with their noise
            load_row(scores, 0, score, width)
            if has_noise:
                load_row(noise, 0, noise_local, width)
                scale_row(noise_local, scale, width)
                for i in T.Parallel(width):
                    score[i] = score[i] + noise_local[i]
            if has_weight:
                for i in T.Parallel(width):
                    score[i] = score[i] * weight[i]
                for i in T.Parallel(width):
                    score[i] = score[i] + bias[i]
            if has_clip:
                clamp_row(score, limit, width)
            swish_row(score, width)

            # what is pending is taken, once
            again[tx] = 0
            if pending[tx] > 0:
                pending[tx] = 0
            if pending[tx] > 0:
                again[tx] = 1

            # their norm
            for i in T.Parallel(width):
                squares[i] = score[i] * score[i]
            T.reduce_sum(squares, total, dim=0)
            for i in T.Parallel(1):
                norms[i] = T.sqrt(total[i])
            for i in T.Parallel(width):
                score[i] = score[i] / T.max(T.sqrt(total[0]), floor)
            for i in T.Parallel(width):
                score[i] = T.if_then_else(mask[i] > 0, score[i], 0.0)
            store_row(score, routed, 0, width)

            # its codes
            if has_codes:
                quantize_row(score, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def compacted_rows(
    tokens=256,
    width=512,
    threads=256,
    scale=0.25,
    limit=8.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Chosen tokens get places from a counter, next to a gated row (`claimed`)."""
    assert tokens == threads
    assert width % threads == 0

    @T.prim_func
    def main(
        chosen: T.Tensor((tokens,), "int32"),
        counter: T.Tensor((1,), "int32"),
        X: T.Tensor((2, width), dtype),
        gate: T.Tensor((2, width), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        residual: T.Tensor((2, width), dtype),
        taken: T.Tensor((tokens,), "int32"),
        Y: T.Tensor((2, width), dtype),
        peaks: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            tx = T.get_thread_binding()
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            magnitude = T.alloc_fragment((width,), dtype)
            peak = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # both rows, one after the other
            for row in T.serial(2):
                load_row(X, row, x_local, width)
                if has_bias:
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] + bias[i]
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gamma[i]
                clamp_row(x_local, limit, width)
                if has_gate:
                    load_row(gate, row, gate_local, width)
                    swish_row(gate_local, width)
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] * gate_local[i]
                if has_residual:
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] + residual[row, i]
                scale_row(x_local, scale, width)
                store_row(x_local, Y, row, width)

            # the largest of the second
            for i in T.Parallel(width):
                magnitude[i] = T.abs(x_local[i])
            T.reduce_max(magnitude, peak, dim=0)
            for i in T.Parallel(1):
                peaks[i] = peak[i]

            # a place for each token that was chosen
            if chosen[tx] > 0:
                place = T.atomic_add(counter[0], 1, return_prev=True)
                if place < tokens:
                    taken[place] = 1

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def rotated_features(
    rows=2,
    width=128,
    threads=128,
    scale=0.5,
    limit=5.0,
    decay=0.75,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_momentum=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A row and its neighbour to the right, with a gate, a moving average and a norm (`neighbour`)."""
    assert width == threads
    kept = 1.0 - decay

    @T.prim_func
    def main(
        X: T.Tensor((rows, width), dtype),
        keys: T.Tensor((rows, width), dtype),
        gate: T.Tensor((rows, width), dtype),
        average: T.Tensor((rows, width), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        mask: T.Tensor((width,), "int32"),
        turned: T.Tensor((rows, width), dtype),
        Y: T.Tensor((rows, width), dtype),
        norms: T.Tensor((rows,), dtype),
        quantized: T.Tensor((rows, width), dtype),
    ):
        with T.Kernel(rows, threads=threads) as bx:
            key = T.alloc_fragment((width,), dtype)
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            average_local = T.alloc_fragment((width,), dtype)
            squares = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # keys, each from its neighbour
            T.copy(keys[bx, 0:width], key)
            for i in T.Parallel(width):
                turned[bx, i] = key[(i + 1) % width]

            # the row with its gate
            load_row(X, bx, x_local, width)
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            scale_row(x_local, scale, width)
            clamp_row(x_local, limit, width)
            if has_gate:
                load_row(gate, bx, gate_local, width)
                swish_row(gate_local, width)
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gate_local[i]
            if has_momentum:
                load_row(average, bx, average_local, width)
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * kept + average_local[i] * decay

            # its norm
            for i in T.Parallel(width):
                squares[i] = x_local[i] * x_local[i]
            T.reduce_sum(squares, total, dim=0)
            for i in T.Parallel(1):
                norms[bx] = T.sqrt(total[i])
            for i in T.Parallel(width):
                x_local[i] = x_local[i] * gamma[i]
            for i in T.Parallel(width):
                x_local[i] = T.if_then_else(mask[i] > 0, x_local[i], 0.0)
            store_row(x_local, Y, bx, width)

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[bx, i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def pixel_steps(
    pixels=128,
    width=256,
    threads=128,
    scale=0.0625,
    limit=3.0,
    offset=0.5,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Steps between two images of 8 bits, next to features that are scaled and gated (`widened`)."""
    assert pixels == threads
    assert width % threads == 0

    @T.prim_func
    def main(
        now: T.Tensor((pixels,), "uint8"),
        before: T.Tensor((pixels,), "uint8"),
        X: T.Tensor((2, width), dtype),
        gate: T.Tensor((2, width), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        mask: T.Tensor((width,), "int32"),
        steps: T.Tensor((pixels,), "int32"),
        Y: T.Tensor((2, width), dtype),
        sums: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            tx = T.get_thread_binding()
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            weighted = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # what has changed between the images
            steps[tx] = T.cast(now[tx] - before[tx], "int32")

            # two rows of features
            for row in T.serial(2):
                load_row(X, row, x_local, width)
                scale_row(x_local, scale, width)
                if has_bias:
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] + bias[i]
                if has_gate:
                    load_row(gate, row, gate_local, width)
                    swish_row(gate_local, width)
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] * gate_local[i]
                clamp_row(x_local, limit, width)
                if has_mask:
                    for i in T.Parallel(width):
                        x_local[i] = T.if_then_else(mask[i] > 0, x_local[i], offset)
                store_row(x_local, Y, row, width)

            # a weighted sum of the second
            for i in T.Parallel(width):
                weighted[i] = x_local[i] * gamma[i]
            for i in T.Parallel(width):
                weighted[i] = weighted[i] * weighted[i]
            T.reduce_sum(weighted, total, dim=0)
            for i in T.Parallel(1):
                sums[i] = total[i] * scale

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def best_keys(
    rows=4,
    width=32,
    threads=32,
    scale=0.5,
    limit=4.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """The best key of a row and its place in one number of 64 bits, with the row's values beside it (`halved`)."""
    assert width == threads
    high = 4294967296

    @T.prim_func
    def main(
        keys: T.Tensor((rows, width), "int32"),
        X: T.Tensor((rows, width), dtype),
        gate: T.Tensor((rows, width), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        residual: T.Tensor((rows, width), dtype),
        lengths: T.Tensor((rows,), "int32"),
        best: T.Tensor((rows,), "int64"),
        Y: T.Tensor((rows, width), dtype),
        norms: T.Tensor((rows,), dtype),
        quantized: T.Tensor((rows, width), dtype),
    ):
        with T.Kernel(rows, threads=threads) as row:
            tx = T.get_thread_binding()
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            squares = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            key = T.alloc_local((1,), "int64")
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the values
            load_row(X, row, x_local, width)
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            scale_row(x_local, scale, width)
            clamp_row(x_local, limit, width)
            if has_gate:
                load_row(gate, row, gate_local, width)
                swish_row(gate_local, width)
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gate_local[i]
            if has_residual:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + residual[row, i]
            for i in T.Parallel(width):
                x_local[i] = T.if_then_else(i < lengths[row], x_local[i], 0.0)

            # the best key, with its place below
            key[0] = T.cast(keys[row, tx], "int64") * high + tx
            key[0] = T.warp_reduce_max(key[0])
            if tx == 0:
                best[row] = key[0]

            # the norm
            for i in T.Parallel(width):
                squares[i] = x_local[i] * x_local[i]
            T.reduce_sum(squares, total, dim=0)
            for i in T.Parallel(1):
                norms[row] = T.sqrt(total[i])
            for i in T.Parallel(width):
                x_local[i] = x_local[i] * gamma[i]
            store_row(x_local, Y, row, width)

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[row, i] = code[i]

    return main
