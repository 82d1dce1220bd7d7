"""A kernel of a library."""

import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1])
def scale(n, factor, block=64):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=block) as bx:
            for i in T.Parallel(block):
                B[bx * block + i] = A[bx * block + i] * factor

    return main
