"""Kernels with tiles in shared memory, each with the wrong code of a case of `kernels.py` or `repaired.py` in it."""

# ruff: noqa: C901

import tilelang
import tilelang.language as T

LOG2E = 1.44269504


@T.macro
def load_row(X, row, x, width):
    for i in T.Parallel(width):
        x[i] = X[row, i]


@T.macro
def sigmoid_row(x, width):
    for i in T.Parallel(width):
        x[i] = 1.0 / (1.0 + T.exp2(-x[i] * LOG2E))


@T.macro
def bounded_row(x, low, high, width):
    for i in T.Parallel(width):
        x[i] = T.max(x[i], low)
    for i in T.Parallel(width):
        x[i] = T.min(x[i], high)


@T.macro
def load_tile(X, x, rows, columns):
    for i, j in T.Parallel(rows, columns):
        x[i, j] = X[i, j]


@T.macro
def sigmoid_tile(x, rows, columns):
    for i, j in T.Parallel(rows, columns):
        x[i, j] = 1.0 / (1.0 + T.exp2(-x[i, j] * LOG2E))


@T.macro
def store_tile(x, Y, rows, columns):
    for i, j in T.Parallel(rows, columns):
        Y[i, j] = x[i, j]


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
def broadcast_state(
    heads=4,
    steps=64,
    width=256,
    threads=128,
    decay=0.5,
    low=-4.0,
    high=4.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_skip=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """The state of each head as a table of steps, next to a gated row (`store`)."""
    assert width % threads == 0
    states = 2 * heads

    @T.prim_func
    def main(
        state: T.Tensor((states,), dtype),
        X: T.Tensor((2, width), dtype),
        gate: T.Tensor((2, width), dtype),
        bias: T.Tensor((width,), dtype),
        skip: T.Tensor((2, width), dtype),
        mask: T.Tensor((width,), "int32"),
        table: T.Tensor((heads, steps), dtype),
        Y: T.Tensor((2, width), dtype),
        peaks: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            table_shared = T.alloc_shared((heads, steps), dtype)
            state_local = T.alloc_fragment((states,), dtype)
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            other = T.alloc_fragment((width,), dtype)
            peak = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the first row
            load_row(X, 0, x_local, width)
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            if has_gate:
                load_row(gate, 0, gate_local, width)
                sigmoid_row(gate_local, width)
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gate_local[i]
            bounded_row(x_local, low, high, width)
            for i in T.Parallel(width):
                Y[0, i] = x_local[i]

            # each head's state, for all steps
            T.copy(state, state_local)
            for k in T.serial(steps):
                for i in T.Parallel(heads):
                    table_shared[i, k] = state_local[i]
            T.copy(table_shared, table)

            # the second row
            load_row(X, 1, other, width)
            for i in T.Parallel(width):
                other[i] = other[i] * decay
            if has_skip:
                for i in T.Parallel(width):
                    other[i] = other[i] + skip[1, i]
            bounded_row(other, low, high, width)
            for i in T.Parallel(width):
                other[i] = T.if_then_else(mask[i] > 0, other[i], 0.0)
            for i in T.Parallel(width):
                Y[1, i] = other[i]
            for i in T.Parallel(width):
                other[i] = T.abs(other[i])
            T.reduce_max(other, peak, dim=0)
            for i in T.Parallel(1):
                peaks[i] = peak[i]

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def paired_lanes(
    lanes=64,
    width=256,
    threads=64,
    scale=0.5,
    low=-2.0,
    high=2.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Counters that neighbouring threads clear and read for each other, with rows around them (`pairs`)."""
    assert lanes == threads
    assert width % threads == 0

    @T.prim_func
    def main(
        X: T.Tensor((2, width), dtype),
        gate: T.Tensor((2, width), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        mask: T.Tensor((width,), "int32"),
        counts: T.Tensor((lanes,), "int32"),
        Y: T.Tensor((2, width), dtype),
        sums: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            tx = T.get_thread_binding()
            counters = T.alloc_shared((lanes,), "int32")
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            product = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # two rows with their gates
            for row in T.serial(2):
                load_row(X, row, x_local, width)
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * scale
                if has_bias:
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] + bias[i]
                bounded_row(x_local, low, high, width)
                if has_gate:
                    load_row(gate, row, gate_local, width)
                    sigmoid_row(gate_local, width)
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] * gate_local[i]
                if has_mask:
                    for i in T.Parallel(width):
                        x_local[i] = T.if_then_else(mask[i] > 0, x_local[i], 0.0)
                for i in T.Parallel(width):
                    Y[row, i] = x_local[i]

            # each thread's counter
            counters[tx ^ 1] = 0
            T.atomic_add(counters[tx], 1)
            counts[tx] = counters[tx ^ 1]

            # the weighted second row
            for i in T.Parallel(width):
                product[i] = x_local[i] * gamma[i]
            for i in T.Parallel(width):
                product[i] = product[i] * product[i]
            T.reduce_sum(product, total, dim=0)
            for i in T.Parallel(1):
                sums[i] = T.sqrt(total[i])

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-3, -2, -1])
def expert_counts(
    tokens=512,
    experts=128,
    width=256,
    threads=128,
    scale=0.25,
    low=-8.0,
    high=8.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """How many tokens each expert gets, and a gated row (`counts`)."""
    assert experts == threads
    assert tokens % threads == 0

    @T.prim_func
    def main(
        chosen: T.Tensor((tokens,), "int32"),
        counts: T.Tensor((experts,), dtype),
        X: T.Tensor((2, width), dtype),
        gate: T.Tensor((2, width), dtype),
        bias: T.Tensor((width,), dtype),
        residual: T.Tensor((2, width), dtype),
        mask: T.Tensor((width,), "int32"),
        Y: T.Tensor((2, width), dtype),
        peaks: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            counts_shared = T.alloc_shared((experts,), dtype)
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            other = T.alloc_fragment((width,), dtype)
            peak = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the first row
            load_row(X, 0, x_local, width)
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            if has_gate:
                load_row(gate, 0, gate_local, width)
                sigmoid_row(gate_local, width)
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gate_local[i]
            bounded_row(x_local, low, high, width)
            for i in T.Parallel(width):
                Y[0, i] = x_local[i]

            # the second row
            load_row(X, 1, other, width)
            for i in T.Parallel(width):
                other[i] = other[i] * scale
            if has_residual:
                for i in T.Parallel(width):
                    other[i] = other[i] + residual[1, i]
            for i in T.Parallel(width):
                other[i] = T.if_then_else(mask[i] > 0, other[i], 0.0)
            bounded_row(other, low, high, width)
            for i in T.Parallel(width):
                Y[1, i] = other[i]
            for i in T.Parallel(width):
                other[i] = T.abs(other[i])
            T.reduce_max(other, peak, dim=0)
            for i in T.Parallel(1):
                peaks[i] = peak[i]

            # counted in shared memory, then added
            T.clear(counts_shared)
            for i in T.Parallel(tokens):
                T.atomic_add(counts_shared[chosen[i] % experts], 1.0)
            T.atomic_add(counts, counts_shared)

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def taking_turns(
    steps=8,
    lanes=128,
    width=256,
    threads=128,
    scale=0.5,
    low=-3.0,
    high=3.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Steps that write a row and steps that read it mirrored, after a gated row (`turns`)."""
    assert lanes == threads
    assert width % threads == 0

    @T.prim_func
    def main(
        A: T.Tensor((steps, lanes), dtype),
        X: T.Tensor((2, width), dtype),
        gate: T.Tensor((2, width), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        mask: T.Tensor((width,), "int32"),
        mirrored: T.Tensor((lanes,), dtype),
        Y: T.Tensor((2, width), dtype),
        sums: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            tx = T.get_thread_binding()
            row_shared = T.alloc_shared((lanes,), dtype)
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            squares = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            sum_local = T.alloc_local((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the rows with their gates
            for row in T.serial(2):
                load_row(X, row, x_local, width)
                if has_bias:
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] + bias[i]
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gamma[i]
                bounded_row(x_local, low, high, width)
                if has_gate:
                    load_row(gate, row, gate_local, width)
                    sigmoid_row(gate_local, width)
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] * gate_local[i]
                if has_mask:
                    for i in T.Parallel(width):
                        x_local[i] = T.if_then_else(mask[i] > 0, x_local[i], 0.0)
                for i in T.Parallel(width):
                    Y[row, i] = x_local[i] * scale

            # every other step reads what the last one wrote
            sum_local[0] = 0
            row_shared[tx] = A[0, tx]
            for k in T.serial(steps):
                if k % 2 == 0:
                    sum_local[0] = sum_local[0] + row_shared[lanes - 1 - tx]
                else:
                    row_shared[tx] = A[k, tx]
            mirrored[tx] = sum_local[0]

            # the sum of squares of the last row
            for i in T.Parallel(width):
                squares[i] = x_local[i] * x_local[i]
            T.reduce_sum(squares, total, dim=0)
            for i in T.Parallel(1):
                sums[i] = total[i]

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def padded_window(
    width=256,
    first=100,
    last=150,
    threads=128,
    scale=0.5,
    low=-5.0,
    high=5.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A row with a window of a constant in it, read backwards, and gated rows (`filled`)."""
    assert width % threads == 0
    assert first < last < width

    @T.prim_func
    def main(
        A: T.Tensor((width,), dtype),
        X: T.Tensor((2, width), dtype),
        gate: T.Tensor((2, width), dtype),
        bias: T.Tensor((width,), dtype),
        residual: T.Tensor((2, width), dtype),
        mask: T.Tensor((width,), "int32"),
        backwards: T.Tensor((width,), dtype),
        Y: T.Tensor((2, width), dtype),
        peaks: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            window = T.alloc_shared((width,), dtype)
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            other = T.alloc_fragment((width,), dtype)
            peak = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the first row
            load_row(X, 0, x_local, width)
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            if has_gate:
                load_row(gate, 0, gate_local, width)
                sigmoid_row(gate_local, width)
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gate_local[i]
            bounded_row(x_local, low, high, width)
            for i in T.Parallel(width):
                Y[0, i] = x_local[i]

            # the window
            T.copy(A, window)
            T.fill(window[first:last], 7)
            for i in T.Parallel(width):
                backwards[i] = window[width - 1 - i]

            # the second row
            load_row(X, 1, other, width)
            for i in T.Parallel(width):
                other[i] = other[i] * scale
            if has_residual:
                for i in T.Parallel(width):
                    other[i] = other[i] + residual[1, i]
            for i in T.Parallel(width):
                other[i] = T.if_then_else(mask[i] > 0, other[i], 0.0)
            bounded_row(other, low, high, width)
            for i in T.Parallel(width):
                Y[1, i] = other[i]
            for i in T.Parallel(width):
                other[i] = T.abs(other[i])
            T.reduce_max(other, peak, dim=0)
            for i in T.Parallel(1):
                peaks[i] = peak[i]

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def while_rotated(
    steps=4,
    lanes=128,
    width=256,
    threads=128,
    scale=0.5,
    low=-6.0,
    high=6.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Rows added up mirrored in a while loop, and gated rows (`repeated`)."""
    assert lanes == threads
    assert width % threads == 0

    @T.prim_func
    def main(
        A: T.Tensor((steps, lanes), dtype),
        X: T.Tensor((2, width), dtype),
        gate: T.Tensor((2, width), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        mask: T.Tensor((width,), "int32"),
        mirrored: T.Tensor((lanes,), dtype),
        Y: T.Tensor((2, width), dtype),
        sums: T.Tensor((1,), dtype),
        quantized: T.Tensor((width,), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            row_shared = T.alloc_shared((lanes,), dtype)
            sum_local = T.alloc_fragment((lanes,), dtype)
            step = T.alloc_var("int32")
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            squares = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the rows with their gates
            for row in T.serial(2):
                load_row(X, row, x_local, width)
                if has_bias:
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] + bias[i]
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gamma[i]
                bounded_row(x_local, low, high, width)
                if has_gate:
                    load_row(gate, row, gate_local, width)
                    sigmoid_row(gate_local, width)
                    for i in T.Parallel(width):
                        x_local[i] = x_local[i] * gate_local[i]
                if has_mask:
                    for i in T.Parallel(width):
                        x_local[i] = T.if_then_else(mask[i] > 0, x_local[i], 0.0)
                for i in T.Parallel(width):
                    Y[row, i] = x_local[i] * scale

            # mirrored rows
            T.clear(sum_local)
            step = 0
            while step < steps:
                for i in T.Parallel(lanes):
                    row_shared[i] = A[step, i]
                for i in T.Parallel(lanes):
                    sum_local[i] = sum_local[i] + row_shared[lanes - 1 - i]
                step = step + 1
            T.copy(sum_local, mirrored)

            # the sum of squares of the last row
            for i in T.Parallel(width):
                squares[i] = x_local[i] * x_local[i]
            T.reduce_sum(squares, total, dim=0)
            for i in T.Parallel(1):
                sums[i] = total[i]

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[i] = code[i]

    return main


@tilelang.jit(out_idx=[-5, -4, -3, -2, -1])
def optional_steps(
    blocks=2,
    lanes=128,
    width=256,
    threads=128,
    scale=0.5,
    low=-6.0,
    high=6.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A row that is stored before steps which only some blocks have, and is read after them (`sometimes`)."""
    assert lanes == threads
    assert width % threads == 0

    @T.prim_func
    def main(
        A: T.Tensor((lanes,), dtype),
        X: T.Tensor((blocks, width), dtype),
        gate: T.Tensor((blocks, width), dtype),
        bias: T.Tensor((width,), dtype),
        gamma: T.Tensor((width,), dtype),
        mask: T.Tensor((width,), "int32"),
        mirrored: T.Tensor((blocks, lanes), dtype),
        extra: T.Tensor((blocks, 1, lanes), dtype),
        Y: T.Tensor((blocks, width), dtype),
        sums: T.Tensor((blocks,), dtype),
        quantized: T.Tensor((blocks, width), dtype),
    ):
        with T.Kernel(blocks, threads=threads) as bx:
            kept = T.alloc_shared((lanes,), dtype)
            more = T.alloc_shared((lanes,), dtype)
            x_local = T.alloc_fragment((width,), dtype)
            gate_local = T.alloc_fragment((width,), dtype)
            squares = T.alloc_fragment((width,), dtype)
            total = T.alloc_fragment((1,), dtype)
            code = T.alloc_fragment((width,), dtype)
            code_peak = T.alloc_fragment((1,), dtype)

            # the row with its gate
            load_row(X, bx, x_local, width)
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            for i in T.Parallel(width):
                x_local[i] = x_local[i] * gamma[i]
            bounded_row(x_local, low, high, width)
            if has_gate:
                load_row(gate, bx, gate_local, width)
                sigmoid_row(gate_local, width)
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gate_local[i]
            if has_mask:
                for i in T.Parallel(width):
                    x_local[i] = T.if_then_else(mask[i] > 0, x_local[i], 0.0)
            for i in T.Parallel(width):
                Y[bx, i] = x_local[i] * scale
            for i in T.Parallel(width):
                squares[i] = x_local[i] * x_local[i]
            T.reduce_sum(squares, total, dim=0)
            for i in T.Parallel(1):
                sums[bx] = total[i]

            # odd blocks have a step more
            for i in T.Parallel(lanes):
                kept[i] = A[i]
            for k in T.serial(bx % 2):
                for i in T.Parallel(lanes):
                    more[i] = A[i] + 1.0
                for i in T.Parallel(lanes):
                    extra[bx, k, i] = more[lanes - 1 - i]
            for i in T.Parallel(lanes):
                mirrored[bx, i] = kept[lanes - 1 - i]

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[bx, i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def padding_codes(
    rows=8,
    columns=128,
    threads=128,
    padding=-7,
    scale=0.5,
    low=-3.0,
    high=3.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A tile of codes of 8 bits that stand for padding, and a gated tile (`signed`)."""
    assert rows * columns % threads == 0
    assert padding < 0

    @T.prim_func
    def main(
        X: T.Tensor((rows, columns), dtype),
        gate: T.Tensor((rows, columns), dtype),
        bias: T.Tensor((columns,), dtype),
        gamma: T.Tensor((columns,), dtype),
        residual: T.Tensor((rows, columns), dtype),
        lengths: T.Tensor((rows,), "int32"),
        codes: T.Tensor((rows, columns), "int8"),
        Y: T.Tensor((rows, columns), dtype),
        norms: T.Tensor((rows,), dtype),
        quantized: T.Tensor((rows, columns), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            codes_shared = T.alloc_shared((rows, columns), "int8")
            x_local = T.alloc_fragment((rows, columns), dtype)
            gate_local = T.alloc_fragment((rows, columns), dtype)
            squares = T.alloc_fragment((rows, columns), dtype)
            total = T.alloc_fragment((rows,), dtype)
            code = T.alloc_fragment((rows, columns), dtype)
            code_peak = T.alloc_fragment((rows,), dtype)

            # the tile with its gate
            load_tile(X, x_local, rows, columns)
            if has_bias:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] + bias[j]
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = x_local[i, j] * gamma[j]
            if has_gate:
                load_tile(gate, gate_local, rows, columns)
                sigmoid_tile(gate_local, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] * gate_local[i, j]
            if has_residual:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] + residual[i, j] * scale
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = T.min(x_local[i, j], high)
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = T.max(x_local[i, j], low)
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = T.if_then_else(j < lengths[i], x_local[i, j], 0.0)

            # the norms of its rows
            for i, j in T.Parallel(rows, columns):
                squares[i, j] = x_local[i, j] * x_local[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i in T.Parallel(rows):
                norms[i] = T.sqrt(total[i])
            store_tile(x_local, Y, rows, columns)

            # the codes
            T.fill(codes_shared, padding)
            T.copy(codes_shared, codes)

            # its codes
            if has_codes:
                quantize_tile(x_local, code, code_peak, largest_code, zero_code, eps, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def running_columns(
    rows=64,
    columns=32,
    threads=128,
    scale=0.5,
    low=-3.0,
    high=3.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Running sums down the columns of a tile, and a gated tile (`scanned`)."""
    assert rows * columns % threads == 0
    assert rows != columns

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), dtype),
        X: T.Tensor((rows, columns), dtype),
        gate: T.Tensor((rows, columns), dtype),
        bias: T.Tensor((columns,), dtype),
        gamma: T.Tensor((columns,), dtype),
        residual: T.Tensor((rows, columns), dtype),
        lengths: T.Tensor((rows,), "int32"),
        running: T.Tensor((rows, columns), dtype),
        Y: T.Tensor((rows, columns), dtype),
        norms: T.Tensor((rows,), dtype),
        quantized: T.Tensor((rows, columns), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            sums = T.alloc_shared((rows, columns), dtype)
            x_local = T.alloc_fragment((rows, columns), dtype)
            gate_local = T.alloc_fragment((rows, columns), dtype)
            squares = T.alloc_fragment((rows, columns), dtype)
            total = T.alloc_fragment((rows,), dtype)
            code = T.alloc_fragment((rows, columns), dtype)
            code_peak = T.alloc_fragment((rows,), dtype)

            # the running sums
            T.copy(A, sums)
            T.cumsum(sums, dim=0)
            T.copy(sums, running)

            # the tile with its gate
            load_tile(X, x_local, rows, columns)
            if has_bias:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] + bias[j]
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = x_local[i, j] * gamma[j]
            if has_gate:
                load_tile(gate, gate_local, rows, columns)
                sigmoid_tile(gate_local, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] * gate_local[i, j]
            if has_residual:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] + residual[i, j] * scale
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = T.min(x_local[i, j], high)
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = T.max(x_local[i, j], low)
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = T.if_then_else(j < lengths[i], x_local[i, j], 0.0)

            # the norms of its rows
            for i, j in T.Parallel(rows, columns):
                squares[i, j] = x_local[i, j] * x_local[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i in T.Parallel(rows):
                norms[i] = T.sqrt(total[i])
            store_tile(x_local, Y, rows, columns)

            # its codes
            if has_codes:
                quantize_tile(x_local, code, code_peak, largest_code, zero_code, eps, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def running_rows(
    rows=32,
    columns=64,
    first=16,
    summed_rows=16,
    summed_columns=64,
    threads=128,
    scale=0.5,
    low=-3.0,
    high=3.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Running sums of some rows of a tile, and a gated tile (`lower`; `narrow` with other arguments)."""
    assert rows * columns % threads == 0
    assert first + summed_rows <= rows
    assert summed_columns <= columns
    last = first + summed_rows

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), dtype),
        X: T.Tensor((rows, columns), dtype),
        gate: T.Tensor((rows, columns), dtype),
        bias: T.Tensor((columns,), dtype),
        gamma: T.Tensor((columns,), dtype),
        residual: T.Tensor((rows, columns), dtype),
        lengths: T.Tensor((rows,), "int32"),
        running: T.Tensor((rows, columns), dtype),
        Y: T.Tensor((rows, columns), dtype),
        peaks: T.Tensor((rows,), dtype),
        quantized: T.Tensor((rows, columns), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            sums = T.alloc_shared((rows, columns), dtype)
            x_local = T.alloc_fragment((rows, columns), dtype)
            gate_local = T.alloc_fragment((rows, columns), dtype)
            magnitude = T.alloc_fragment((rows, columns), dtype)
            peak = T.alloc_fragment((rows,), dtype)
            code = T.alloc_fragment((rows, columns), dtype)
            code_peak = T.alloc_fragment((rows,), dtype)

            # the tile with its gate
            load_tile(X, x_local, rows, columns)
            if has_bias:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] + bias[j]
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = x_local[i, j] * gamma[j]
            if has_gate:
                load_tile(gate, gate_local, rows, columns)
                sigmoid_tile(gate_local, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] * gate_local[i, j]
            if has_residual:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] + residual[i, j] * scale
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = T.min(x_local[i, j], high)
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = T.max(x_local[i, j], low)
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = T.if_then_else(j < lengths[i], x_local[i, j], 0.0)
            store_tile(x_local, Y, rows, columns)

            # the running sums
            T.copy(A, sums)
            T.cumsum(src=sums[first:last, 0:summed_columns], dst=sums[first:last, 0:summed_columns], dim=1)
            T.copy(sums, running)

            # the largest of each row
            for i, j in T.Parallel(rows, columns):
                magnitude[i, j] = T.abs(x_local[i, j])
            T.reduce_max(magnitude, peak, dim=1)
            for i in T.Parallel(rows):
                peaks[i] = peak[i]

            # its codes
            if has_codes:
                quantize_tile(x_local, code, code_peak, largest_code, zero_code, eps, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def padded_tiles(
    height=40,
    length=50,
    tile=32,
    blocks=2,
    threads=128,
    padding=-99,
    scale=0.5,
    low=-3.0,
    high=3.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_residual=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Tiles of a matrix that ends within the last ones, padded with a number, and gated tiles (`safe`)."""
    assert tile * tile % threads == 0
    assert height <= blocks * tile

    @T.prim_func
    def main(
        A: T.Tensor((height, length), dtype),
        X: T.Tensor((blocks * tile, blocks * tile), dtype),
        gate: T.Tensor((blocks * tile, blocks * tile), dtype),
        bias: T.Tensor((blocks * tile,), dtype),
        gamma: T.Tensor((blocks * tile,), dtype),
        residual: T.Tensor((blocks * tile, blocks * tile), dtype),
        padded: T.Tensor((blocks * tile, blocks * tile), dtype),
        Y: T.Tensor((blocks * tile, blocks * tile), dtype),
        norms: T.Tensor((blocks, blocks * tile), dtype),
        quantized: T.Tensor((blocks * tile, blocks * tile), dtype),
    ):
        with T.Kernel(blocks, blocks, threads=threads) as (bx, by):
            T.annotate_safe_value({A: padding})
            a_shared = T.alloc_shared((tile, tile), dtype)
            x_local = T.alloc_fragment((tile, tile), dtype)
            gate_local = T.alloc_fragment((tile, tile), dtype)
            squares = T.alloc_fragment((tile, tile), dtype)
            total = T.alloc_fragment((tile,), dtype)
            code = T.alloc_fragment((tile, tile), dtype)
            code_peak = T.alloc_fragment((tile,), dtype)

            # the tile with its gate
            for i, j in T.Parallel(tile, tile):
                x_local[i, j] = X[by * tile + i, bx * tile + j]
            if has_bias:
                for i, j in T.Parallel(tile, tile):
                    x_local[i, j] = x_local[i, j] + bias[bx * tile + j]
            for i, j in T.Parallel(tile, tile):
                x_local[i, j] = x_local[i, j] * gamma[bx * tile + j]
            if has_gate:
                for i, j in T.Parallel(tile, tile):
                    gate_local[i, j] = gate[by * tile + i, bx * tile + j]
                sigmoid_tile(gate_local, tile, tile)
                for i, j in T.Parallel(tile, tile):
                    x_local[i, j] = x_local[i, j] * gate_local[i, j]
            if has_residual:
                for i, j in T.Parallel(tile, tile):
                    x_local[i, j] = x_local[i, j] + residual[by * tile + i, bx * tile + j] * scale
            for i, j in T.Parallel(tile, tile):
                x_local[i, j] = T.min(x_local[i, j], high)
            for i, j in T.Parallel(tile, tile):
                x_local[i, j] = T.max(x_local[i, j], low)
            for i, j in T.Parallel(tile, tile):
                Y[by * tile + i, bx * tile + j] = x_local[i, j]

            # what lies beyond the end is padding
            T.copy(A[by * tile, bx * tile], a_shared)
            T.copy(a_shared, padded[by * tile, bx * tile])

            # the norms of rows of this tile
            for i, j in T.Parallel(tile, tile):
                squares[i, j] = x_local[i, j] * x_local[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i in T.Parallel(tile):
                norms[bx, by * tile + i] = T.sqrt(total[i])

            # its codes
            if has_codes:
                quantize_tile(x_local, code, code_peak, largest_code, zero_code, eps, tile, tile)
                for i, j in T.Parallel(tile, tile):
                    quantized[by * tile + i, bx * tile + j] = code[i, j]

    return main
