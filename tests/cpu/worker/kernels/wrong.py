# mypy: ignore-errors
# ruff: noqa: N803, N812
"""Kernels that TileLang refuses: while they are built, at the line that ends in `# wrong`, and in the compiler."""

import tilelang
import tilelang.language as T


def three_indices():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            held = T.alloc_fragment((64, 64), "float32")
            T.copy(A[0:2, 0:64, 0:64], held)  # wrong

    return main


def indivisible():
    @T.prim_func
    def main(A: T.Tensor((24, 24), "float16"), C: T.Tensor((24, 24), "float32")):
        with T.Kernel(1, threads=128):
            factor = T.alloc_shared((24, 24), "float16")
            product = T.alloc_fragment((24, 24), "float32")
            T.copy(A, factor)
            T.clear(product)
            T.gemm(factor, factor, product)
            T.copy(product, C)

    return main


@tilelang.jit(pass_configs={"tl.no_such_option": True})
def configured():
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                B[i] = A[i]

    return main


def varying():
    """A pipeline whose last steps wait for a number of copies that is another one in each block."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), C: T.Tensor((128, 128), "float32")):
        with T.Kernel(4, threads=64) as bx:
            factor = T.alloc_shared((32, 64), "float16")
            product = T.alloc_fragment((32, 32), "float32")
            first = T.max(0, bx - 1)
            for step in T.Pipelined(bx - first + 1, num_stages=2):
                T.copy(A[(first + step) * 32, 0], factor)
                T.clear(product)
                T.gemm(factor, factor, product, transpose_B=True)
                T.copy(product, C[bx * 32, (first + step) * 32])

    return main
