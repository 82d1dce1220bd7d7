"""Kernels that earlier releases of TileLang lower to wrong code and 0.1.15 does not, each as small as its form allows.

What goes wrong, and in which releases: `expected.toml` beside this file, docs/findings.md.
"""

import tilelang
import tilelang.language as T

from tlcheck.case import Case


@tilelang.jit
def compacted():
    """A place that an atomic gives out is used twice: in a condition, and as an index."""

    @T.prim_func
    def main(X: T.Tensor((256,), "int32"), N: T.Tensor((1,), "int32"), O: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256) as _:
            tx = T.get_thread_binding()
            if X[tx] > 0:
                place = T.atomic_add(N[0], 1, return_prev=True)
                if place < 256:
                    O[place] = 1

    return main


@tilelang.jit
def grouped_sums(rows=2, width=192, groups=6):
    """Groups of 32 of a row of 192, which threads hold in pieces that do not end where groups end."""

    @T.prim_func
    def main(A: T.Tensor((rows, width), "float32"), B: T.Tensor((rows, groups), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((rows, width), "float32")
            b = T.alloc_fragment((rows, groups), "float32")
            T.copy(A, a)
            grouped = T.reshape(a, (rows, groups, width // groups))
            T.reduce_sum(grouped, b, dim=2)
            T.copy(b, B)

    return main


@tilelang.jit
def asked_twice():
    """Two questions about one element, which changes between them."""

    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            B[tx] = 0
            if A[tx] > 0:
                A[tx] = 0
            if A[tx] > 0:
                B[tx] = 1

    return main


@tilelang.jit
def product(m, n, threads, policy, k=64):
    """A product of two tiles in one block."""
    policy = getattr(T.GemmWarpPolicy, policy)

    @T.prim_func
    def main(A: T.Tensor((m, k), "float16"), B: T.Tensor((k, n), "float16"), C: T.Tensor((m, n), "float32")):
        with T.Kernel(1, threads=threads) as _:
            a = T.alloc_shared((m, k), "float16")
            b = T.alloc_shared((k, n), "float16")
            c = T.alloc_fragment((m, n), "float32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, policy=policy)
            T.copy(c, C)

    return main


@tilelang.jit
def reducer():
    """A sum of 8 values, and of 16, in a block of 128 threads: a reducer of which every thread has a copy."""

    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((16,), "float32"), C: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((8,), "float32")
            b = T.alloc_fragment((16,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            c = T.alloc_reducer((1,), "float32", replication="all")
            T.clear(c)
            for i in T.Parallel(8):
                c[0] += a[i]
            for i in T.Parallel(16):
                c[0] += b[i]
            T.finalize_reducer(c)
            if T.get_thread_binding() == 0:
                C[0] = c[0]

    return main


@tilelang.jit
def padded():
    """A tile beyond the tensor's end, whose elements there are said to be -99."""

    @T.prim_func
    def main(A: T.Tensor((40, 50), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            T.annotate_safe_value({A: -99})
            s = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], s)
            T.copy(s, B[by * 32, bx * 32])

    return main


@tilelang.jit
def scan(first, rows, columns):
    """A running sum over a part of a tile."""

    @T.prim_func
    def main(A: T.Tensor((32, 64), "float32"), B: T.Tensor((32, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((32, 64), "float32")
            T.copy(A, s)
            T.cumsum(src=s[first : first + rows, 0:columns], dst=s[first : first + rows, 0:columns], dim=1)
            T.copy(s, B)

    return main


@tilelang.jit
def narrowed():
    """Pairs of float32 added to pairs of float16."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float16")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((512,), "float32")
            T.copy(A, a)
            for i in T.Parallel(512):
                T.atomic_add(B[i], a[i])

    return main


@tilelang.jit
def shared_by_types():
    """A tile of float32 that is over before one of float16 begins: both lie in the same memory."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float16")):
        with T.Kernel(1, threads=128) as _:
            x = T.alloc_shared((512,), "float32")
            y = T.alloc_shared((512,), "float16")
            f = T.alloc_fragment((512,), "float32")
            T.copy(A, x)
            T.copy(x, f)
            for i in T.Parallel(512):
                y[i] = f[i]
            T.copy(y, B)

    return main


@tilelang.jit
def looked_up():
    """A table of 7, by the column of a tile whose rows and columns are one loop."""

    @T.prim_func
    def main(A: T.Tensor((16, 64), "float32"), B: T.Tensor((7,), "float32"), C: T.Tensor((16, 64), "float32")):
        with T.Kernel(1, threads=128) as _:
            for i, j in T.Parallel(16, 64):
                C[i, j] = A[i, j] + B[j % 7]

    return main


@tilelang.jit
def rotated():
    """Registers that are read one place further: another thread has the element."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128) as _:
            a = T.alloc_fragment((128,), "float32")
            T.copy(A, a)
            for i in T.Parallel(128):
                B[i] = a[(i + 1) % 128]

    return main


@tilelang.jit
def columns_summed(rows=64, columns=32):
    """Sums down the columns of a tile that is not square."""

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((rows, columns), "float32")
            T.copy(A, s)
            T.cumsum(s, dim=0)
            T.copy(s, B)

    return main


@tilelang.jit
def greatest_keys(rows=8):
    """The greatest number of a row and its place, as one key of 64 bits."""

    @T.prim_func
    def main(A: T.Tensor((rows, 32), "int32"), B: T.Tensor((rows,), "int64")):
        with T.Kernel(rows, threads=32) as row:
            tx = T.get_thread_binding()
            key = T.alloc_local((1,), "int64")
            key[0] = T.cast(A[row, tx], "int64") * 4294967296 + tx
            key[0] = T.warp_reduce_max(key[0])
            if tx == 0:
                B[row] = key[0]

    return main


@tilelang.jit
def negative_bytes(rows=8, columns=128):
    """A tile of one negative number of 8 bits."""

    @T.prim_func
    def main(B: T.Tensor((rows, columns), "int8")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((rows, columns), "int8")
            T.fill(s, -7)
            T.copy(s, B)

    return main


HERE = ("sm_80",)  # on sm_90 they go wrong in the same way
claimed = Case(compacted, {}, HERE)
grouped = Case(grouped_sums, {}, HERE)
merged = Case(asked_twice, {}, HERE)
uncovered = Case(product, {"m": 16, "n": 104, "threads": 384, "policy": "Square"}, HERE)
rows = Case(product, {"m": 256, "n": 128, "threads": 256, "policy": "FullRow"}, ("sm_90",))
counted = Case(reducer, {}, HERE)
safe = Case(padded, {}, HERE)
lower = Case(scan, {"first": 16, "rows": 16, "columns": 64}, HERE)
narrow = Case(scan, {"first": 0, "rows": 16, "columns": 40}, HERE)
mixed = Case(narrowed, {}, HERE)
aliased = Case(shared_by_types, {}, HERE)
lookup = Case(looked_up, {}, HERE)
neighbour = Case(rotated, {}, HERE)
scanned = Case(columns_summed, {}, HERE)
halved = Case(greatest_keys, {}, HERE)
signed = Case(negative_bytes, {}, HERE)
