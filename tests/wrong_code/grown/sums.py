"""Kernels that reduce, each with the wrong code of a case of `kernels.py` or `repaired.py` in it."""

# ruff: noqa: C901

import tilelang
import tilelang.language as T

LOG2E = 1.44269504


@T.macro
def load_tile(X, x, rows, columns):
    for i, j in T.Parallel(rows, columns):
        x[i, j] = X[i, j]


@T.macro
def softplus_tile(x, rows, columns):
    for i, j in T.Parallel(rows, columns):
        x[i, j] = T.log2(1.0 + T.exp2(x[i, j] * LOG2E)) / LOG2E


@T.macro
def clamp_tile(x, limit, rows, columns):
    for i, j in T.Parallel(rows, columns):
        x[i, j] = T.min(x[i, j], limit)
    for i, j in T.Parallel(rows, columns):
        x[i, j] = T.max(x[i, j], -limit)


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
def group_statistics(
    rows=2,
    width=192,
    groups=6,
    tile_rows=16,
    tile_columns=64,
    threads=128,
    scale=0.5,
    limit=3.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Sums of groups of a row, and a gated tile with the norms of its rows (`grouped`)."""
    assert width % groups == 0
    assert tile_rows * tile_columns % threads == 0
    group = width // groups

    @T.prim_func
    def main(
        A: T.Tensor((rows, width), dtype),
        X: T.Tensor((tile_rows, tile_columns), dtype),
        gate: T.Tensor((tile_rows, tile_columns), dtype),
        bias: T.Tensor((tile_columns,), dtype),
        gamma: T.Tensor((tile_columns,), dtype),
        lengths: T.Tensor((tile_rows,), "int32"),
        sums: T.Tensor((rows, groups), dtype),
        Y: T.Tensor((tile_rows, tile_columns), dtype),
        norms: T.Tensor((tile_rows,), dtype),
        quantized: T.Tensor((tile_rows, tile_columns), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            row_local = T.alloc_fragment((rows, width), dtype)
            group_sums = T.alloc_fragment((rows, groups), dtype)
            x_local = T.alloc_fragment((tile_rows, tile_columns), dtype)
            gate_local = T.alloc_fragment((tile_rows, tile_columns), dtype)
            squares = T.alloc_fragment((tile_rows, tile_columns), dtype)
            total = T.alloc_fragment((tile_rows,), dtype)
            code = T.alloc_fragment((tile_rows, tile_columns), dtype)
            code_peak = T.alloc_fragment((tile_rows,), dtype)

            # the tile with its gate
            load_tile(X, x_local, tile_rows, tile_columns)
            if has_bias:
                for i, j in T.Parallel(tile_rows, tile_columns):
                    x_local[i, j] = x_local[i, j] + bias[j]
            for i, j in T.Parallel(tile_rows, tile_columns):
                x_local[i, j] = x_local[i, j] * gamma[j]
            if has_gate:
                load_tile(gate, gate_local, tile_rows, tile_columns)
                softplus_tile(gate_local, tile_rows, tile_columns)
                for i, j in T.Parallel(tile_rows, tile_columns):
                    x_local[i, j] = x_local[i, j] * gate_local[i, j]
            clamp_tile(x_local, limit, tile_rows, tile_columns)

            # the groups
            T.copy(A, row_local)
            grouped = T.reshape(row_local, (rows, groups, group))
            T.reduce_sum(grouped, group_sums, dim=2)
            T.copy(group_sums, sums)

            # what is masked, and the norms
            if has_mask:
                for i, j in T.Parallel(tile_rows, tile_columns):
                    x_local[i, j] = T.if_then_else(j < lengths[i], x_local[i, j], 0.0)
            for i, j in T.Parallel(tile_rows, tile_columns):
                squares[i, j] = x_local[i, j] * x_local[i, j]
            T.reduce_sum(squares, total, dim=1)
            for i in T.Parallel(tile_rows):
                norms[i] = T.sqrt(total[i]) * scale
            store_tile(x_local, Y, tile_rows, tile_columns)

            # its codes
            if has_codes:
                quantize_tile(x_local, code, code_peak, largest_code, zero_code, eps, tile_rows, tile_columns)
                for i, j in T.Parallel(tile_rows, tile_columns):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def weighted_total(
    few=8,
    some=16,
    rows=16,
    columns=64,
    threads=128,
    scale=0.5,
    limit=3.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """A sum of few weights that a reducer has, and a gated tile with the peaks of its rows (`counted`)."""
    assert rows * columns % threads == 0
    assert few < threads

    @T.prim_func
    def main(
        A: T.Tensor((few,), dtype),
        B: T.Tensor((some,), dtype),
        X: T.Tensor((rows, columns), dtype),
        gate: T.Tensor((rows, columns), dtype),
        bias: T.Tensor((columns,), dtype),
        gamma: T.Tensor((columns,), dtype),
        lengths: T.Tensor((rows,), "int32"),
        C: T.Tensor((1,), dtype),
        Y: T.Tensor((rows, columns), dtype),
        peaks: T.Tensor((rows,), dtype),
        quantized: T.Tensor((rows, columns), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            a_local = T.alloc_fragment((few,), dtype)
            b_local = T.alloc_fragment((some,), dtype)
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
                softplus_tile(gate_local, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] * gate_local[i, j]
            clamp_tile(x_local, limit, rows, columns)
            if has_mask:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = T.if_then_else(j < lengths[i], x_local[i, j], 0.0)

            # the peaks of its rows
            for i, j in T.Parallel(rows, columns):
                magnitude[i, j] = T.abs(x_local[i, j])
            T.reduce_max(magnitude, peak, dim=1)
            for i in T.Parallel(rows):
                peaks[i] = peak[i] * scale
            store_tile(x_local, Y, rows, columns)

            # the sum of all weights
            T.copy(A, a_local)
            T.copy(B, b_local)
            weights = T.alloc_reducer((1,), dtype, replication="all")
            T.clear(weights)
            for i in T.Parallel(few):
                weights[0] += a_local[i]
            for i in T.Parallel(some):
                weights[0] += b_local[i]
            T.finalize_reducer(weights)
            if T.get_thread_binding() == 0:
                C[0] = weights[0]

            # its codes
            if has_codes:
                quantize_tile(x_local, code, code_peak, largest_code, zero_code, eps, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1], pass_configs={"tl.reducer_force_baseline": True})
def row_sums(
    rows=128,
    columns=64,
    tile_rows=16,
    threads=256,
    scale=0.5,
    limit=3.0,
    dtype="float32",
    has_gate=True,
    has_bias=True,
    has_residual=True,
    has_mask=True,
    largest_code=127.0,
    zero_code=0.5,
    eps=1e-6,
    has_codes=True,
):
    """Sums of rows that a reducer has, four at a time, and a gated tile with the peaks of its rows (`batched`)."""
    assert tile_rows * columns % threads == 0
    assert rows % 4 == 0

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), dtype),
        X: T.Tensor((tile_rows, columns), dtype),
        gate: T.Tensor((tile_rows, columns), dtype),
        bias: T.Tensor((columns,), dtype),
        gamma: T.Tensor((columns,), dtype),
        residual: T.Tensor((tile_rows, columns), dtype),
        lengths: T.Tensor((tile_rows,), "int32"),
        sums: T.Tensor((rows,), dtype),
        Y: T.Tensor((tile_rows, columns), dtype),
        peaks: T.Tensor((tile_rows,), dtype),
        quantized: T.Tensor((tile_rows, columns), dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            a_shared = T.alloc_shared((rows, columns), dtype)
            a_local = T.alloc_fragment((rows, columns), dtype)
            x_local = T.alloc_fragment((tile_rows, columns), dtype)
            gate_local = T.alloc_fragment((tile_rows, columns), dtype)
            magnitude = T.alloc_fragment((tile_rows, columns), dtype)
            peak = T.alloc_fragment((tile_rows,), dtype)
            code = T.alloc_fragment((tile_rows, columns), dtype)
            code_peak = T.alloc_fragment((tile_rows,), dtype)

            # the sums
            totals = T.alloc_reducer((rows,), dtype, op="sum", replication="all")
            T.fill(totals, 0)
            T.copy(A, a_shared)
            T.copy(a_shared, a_local)
            for i, j in T.Parallel(rows, columns):
                totals[i] += a_local[i, j]
            T.finalize_reducer(totals, batch=4)
            T.copy(totals, sums)

            # the tile with its gate
            load_tile(X, x_local, tile_rows, columns)
            if has_bias:
                for i, j in T.Parallel(tile_rows, columns):
                    x_local[i, j] = x_local[i, j] + bias[j]
            for i, j in T.Parallel(tile_rows, columns):
                x_local[i, j] = x_local[i, j] * gamma[j]
            if has_gate:
                load_tile(gate, gate_local, tile_rows, columns)
                softplus_tile(gate_local, tile_rows, columns)
                for i, j in T.Parallel(tile_rows, columns):
                    x_local[i, j] = x_local[i, j] * gate_local[i, j]
            clamp_tile(x_local, limit, tile_rows, columns)
            if has_residual:
                for i, j in T.Parallel(tile_rows, columns):
                    x_local[i, j] = x_local[i, j] + residual[i, j] * scale
            if has_mask:
                for i, j in T.Parallel(tile_rows, columns):
                    x_local[i, j] = T.if_then_else(j < lengths[i], x_local[i, j], 0.0)

            # the peaks of its rows
            for i, j in T.Parallel(tile_rows, columns):
                magnitude[i, j] = T.abs(x_local[i, j])
            T.reduce_max(magnitude, peak, dim=1)
            for i in T.Parallel(tile_rows):
                peaks[i] = peak[i] * scale
            store_tile(x_local, Y, tile_rows, columns)

            # its codes
            if has_codes:
                quantize_tile(x_local, code, code_peak, largest_code, zero_code, eps, tile_rows, columns)
                for i, j in T.Parallel(tile_rows, columns):
                    quantized[i, j] = code[i, j]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def small_matrix(
    rows=4,
    columns=8,
    tile=2,
    width=64,
    threads=32,
    scale=0.5,
    limit=3.0,
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
    """A matrix times a vector in tiles of 2 x 2, and a gated tile with the peaks of its rows (`unreduced`)."""
    assert rows % tile == 0
    assert columns % tile == 0

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), dtype),
        V: T.Tensor((columns,), dtype),
        X: T.Tensor((rows // tile, width), accum_dtype),
        gate: T.Tensor((rows // tile, width), accum_dtype),
        bias: T.Tensor((width,), accum_dtype),
        gamma: T.Tensor((width,), accum_dtype),
        lengths: T.Tensor((rows // tile,), "int32"),
        product: T.Tensor((rows,), accum_dtype),
        Y: T.Tensor((rows // tile, width), accum_dtype),
        peaks: T.Tensor((rows // tile,), accum_dtype),
        quantized: T.Tensor((rows // tile, width), accum_dtype),
    ):
        with T.Kernel(rows // tile, threads=threads) as bx:
            a_shared = T.alloc_shared((tile, tile), dtype)
            a_local = T.alloc_fragment((tile, tile), dtype)
            v_local = T.alloc_fragment((tile,), dtype)
            x_local = T.alloc_fragment((width,), accum_dtype)
            gate_local = T.alloc_fragment((width,), accum_dtype)
            magnitude = T.alloc_fragment((width,), accum_dtype)
            peak = T.alloc_fragment((1,), accum_dtype)
            code = T.alloc_fragment((width,), accum_dtype)
            code_peak = T.alloc_fragment((1,), accum_dtype)

            # the row with its gate
            for i in T.Parallel(width):
                x_local[i] = X[bx, i]
            if has_bias:
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] + bias[i]
            for i in T.Parallel(width):
                x_local[i] = x_local[i] * gamma[i]
            if has_gate:
                for i in T.Parallel(width):
                    gate_local[i] = gate[bx, i]
                for i in T.Parallel(width):
                    gate_local[i] = T.log2(1.0 + T.exp2(gate_local[i] * LOG2E)) / LOG2E
                for i in T.Parallel(width):
                    x_local[i] = x_local[i] * gate_local[i]
            for i in T.Parallel(width):
                x_local[i] = T.min(x_local[i], limit)
            for i in T.Parallel(width):
                x_local[i] = T.max(x_local[i], -limit)
            if has_mask:
                for i in T.Parallel(width):
                    x_local[i] = T.if_then_else(i < lengths[bx], x_local[i], 0.0)
            for i in T.Parallel(width):
                Y[bx, i] = x_local[i]

            # its peak
            for i in T.Parallel(width):
                magnitude[i] = T.abs(x_local[i])
            T.reduce_max(magnitude, peak, dim=0)
            for i in T.Parallel(1):
                peaks[bx] = peak[i] * scale

            # the matrix times the vector
            totals = T.alloc_reducer(tile, accum_dtype, replication="all")
            T.clear(totals)
            for k in T.serial(columns // tile):
                T.copy(A[bx * tile, k * tile], a_shared)
                T.copy(a_shared, a_local)
                T.copy(V[k * tile], v_local)
                for i, j in T.Parallel(tile, tile):
                    totals[i] += a_local[i, j] * v_local[j]
            T.finalize_reducer(totals)
            T.copy(totals, product[bx * tile])

            # its codes
            if has_codes:
                quantize_row(x_local, code, code_peak, largest_code, zero_code, eps, width)
                for i in T.Parallel(width):
                    quantized[bx, i] = code[i]

    return main


@tilelang.jit(out_idx=[-4, -3, -2, -1])
def head_scores(
    m=16,
    n=104,
    k=64,
    rows=16,
    columns=96,
    threads=384,
    policy="Square",
    scale=0.5,
    limit=3.0,
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
    """A product of two tiles in one block, and a gated tile with the peaks of its rows (`uncovered`)."""
    assert rows * columns % threads == 0
    assert k % 16 == 0
    policy = getattr(T.GemmWarpPolicy, policy)

    @T.prim_func
    def main(
        A: T.Tensor((m, k), dtype),
        B: T.Tensor((k, n), dtype),
        X: T.Tensor((rows, columns), accum_dtype),
        gate: T.Tensor((rows, columns), accum_dtype),
        bias: T.Tensor((columns,), accum_dtype),
        gamma: T.Tensor((columns,), accum_dtype),
        lengths: T.Tensor((rows,), "int32"),
        C: T.Tensor((m, n), accum_dtype),
        Y: T.Tensor((rows, columns), accum_dtype),
        scaled: T.Tensor((rows, columns), accum_dtype),
        quantized: T.Tensor((rows, columns), accum_dtype),
    ):
        with T.Kernel(1, threads=threads) as _:
            a_shared = T.alloc_shared((m, k), dtype)
            b_shared = T.alloc_shared((k, n), dtype)
            c_local = T.alloc_fragment((m, n), accum_dtype)
            x_local = T.alloc_fragment((rows, columns), accum_dtype)
            gate_local = T.alloc_fragment((rows, columns), accum_dtype)
            weighted = T.alloc_fragment((rows, columns), accum_dtype)
            code = T.alloc_fragment((rows, columns), accum_dtype)
            code_peak = T.alloc_fragment((rows,), accum_dtype)

            # the tile with its gate
            load_tile(X, x_local, rows, columns)
            if has_bias:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] + bias[j]
            for i, j in T.Parallel(rows, columns):
                x_local[i, j] = x_local[i, j] * gamma[j]
            if has_gate:
                load_tile(gate, gate_local, rows, columns)
                softplus_tile(gate_local, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = x_local[i, j] * gate_local[i, j]
            clamp_tile(x_local, limit, rows, columns)
            if has_mask:
                for i, j in T.Parallel(rows, columns):
                    x_local[i, j] = T.if_then_else(j < lengths[i], x_local[i, j], 0.0)
            store_tile(x_local, Y, rows, columns)

            # the product
            T.clear(c_local)
            T.copy(A, a_shared)
            T.copy(B, b_shared)
            T.gemm(a_shared, b_shared, c_local, policy=policy)
            T.copy(c_local, C)

            # the tile again, weighted
            for i, j in T.Parallel(rows, columns):
                weighted[i, j] = x_local[i, j] * scale
            for i, j in T.Parallel(rows, columns):
                weighted[i, j] = weighted[i, j] + gamma[j]
            store_tile(weighted, scaled, rows, columns)

            # its codes
            if has_codes:
                quantize_tile(x_local, code, code_peak, largest_code, zero_code, eps, rows, columns)
                for i, j in T.Parallel(rows, columns):
                    quantized[i, j] = code[i, j]

    return main
