"""A sum over rows, and the case that the gate checks."""

import tilelang
import tilelang.language as T

from tlcheck.case import Case


@tilelang.jit
def row_sum(rows, columns):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows,), "float32")):
        with T.Kernel(rows, threads=64) as bx:
            a = T.alloc_fragment((columns,), "float32")
            s = T.alloc_fragment((1,), "float32")
            T.copy(A[bx, 0], a)
            T.reduce_sum(a, s, dim=0)
            B[bx] = s[0]

    return main


small = Case(row_sum, args={"rows": 4, "columns": 128}, targets=("sm_90",))
