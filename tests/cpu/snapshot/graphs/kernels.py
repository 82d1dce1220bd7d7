# mypy: ignore-errors
# ruff: noqa: N803, N812
"""The kernels whose graphs are recorded here: small, with what differs most between releases."""

import tilelang.language as T


def annotated():
    """Layouts, fragments, merged shared memory, a tile's atomic."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((128, 64), "float32")):
        with T.Kernel(2, threads=128) as bx:
            left = T.alloc_shared((64, 64), "float16")
            right = T.alloc_shared((64, 64), "float16")
            tile = T.alloc_fragment((64, 64), "float32")
            T.annotate_layout({C: T.Layout(C.shape, lambda i, j: [i // 8, j // 8, j % 2, 4 * (i % 8) + (j % 8) // 2])})
            T.copy(A, left)
            T.copy(B, right)
            T.clear(tile)
            T.gemm(left, right, tile)
            T.atomic_add(C[bx * 64 : (bx + 1) * 64, :], tile)

    return main


def histogram():
    """An atomic in an expression, an index from memory, a branch, a loop over elements."""

    @T.prim_func
    def main(values: T.Tensor((512,), "int32"), bins: T.Tensor((256,), "int32"), ranks: T.Tensor((512,), "int32")):
        with T.Kernel(1, threads=128):
            counts = T.alloc_shared((256,), "int32")
            tx = T.get_thread_binding()
            T.fill(counts, 0)
            T.sync_threads()
            for k in T.serial(4):
                if values[k * 128 + tx] >= 0:
                    T.atomic_add(counts[values[k * 128 + tx]], 1)
                else:
                    ranks[k * 128 + tx] = -1
            T.sync_threads()
            for i in T.Parallel(256):
                T.atomic_add(bins[i], counts[i])

    return main


def sequence():
    """Two kernels, one after the other."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32"), C: T.Tensor((512,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(512):
                T.atomic_add(B[i], A[i])
        with T.Kernel(2, threads=128) as bx:
            for i in T.Parallel(256):
                T.atomic_add(C[bx * 256 + i], B[bx * 256 + i])

    return main


def symbolic():
    """A size that is only known at run time."""
    n = getattr(T, "dynamic", T.symbolic)("n")

    @T.prim_func
    def main(A: T.Tensor((n, 64), "float16"), B: T.Tensor((n, 64), "float32")):
        with T.Kernel(T.ceildiv(n, 32), threads=128) as bx:
            tile = T.alloc_fragment((32, 64), "float32")
            for i, j in T.Parallel(32, 64):
                tile[i, j] = A[bx * 32 + i, j]
            T.atomic_add(B[bx * 32 : bx * 32 + 32, :], tile)

    return main
