# mypy: ignore-errors
# ruff: noqa: N803, N812
"""One kernel and what a person may change of it, one thing at a time."""

import tilelang.language as T

from tlcheck import Case


def products(rows=64, stages=2, dtype="float16", swizzled=True, columns=64, threads=128):
    @T.prim_func
    def main(
        A: T.Tensor((1024, 64), dtype), W: T.Tensor((64, columns), dtype), B: T.Tensor((rows, columns), "float32")
    ):
        with T.Kernel(1, threads=threads) as _:
            a = T.alloc_shared((rows, 64), dtype)
            w = T.alloc_shared((64, columns), dtype)
            c = T.alloc_fragment((rows, columns), "float32")
            if not swizzled:
                T.annotate_layout({w: T.Layout((64, columns), lambda i, j: (i, j))})
            T.copy(W, w)
            T.clear(c)
            for k in T.Pipelined(1024 // rows, num_stages=stages):
                T.copy(A[k * rows : (k + 1) * rows, 0:64], a)
                T.gemm(a, w, c)
            T.atomic_add(B, c)

    return main


original = Case(products, targets=("sm_80",))
tile = Case(products, {"rows": 128}, targets=("sm_80",))
stages = Case(products, {"stages": 3}, targets=("sm_80",))
dtype = Case(products, {"dtype": "bfloat16"}, targets=("sm_80",))
layout = Case(products, {"swizzled": False}, targets=("sm_80",))
threads = Case(products, {"threads": 256}, targets=("sm_80",))
