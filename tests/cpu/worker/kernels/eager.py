# mypy: ignore-errors
# ruff: noqa: N803, N806, N812
"""Forms that newer releases have: a kernel traced from its own body, and an autotuner around one."""

import tilelang
import tilelang.language as T


@tilelang.jit
def traced(A, B, threads: int = 128):
    rows = T.const("rows")
    A: T.Tensor[[rows], T.float32]
    B: T.Tensor[[rows], T.float32]
    with T.Kernel(1, threads=threads):
        for i in T.Parallel(rows):
            T.atomic_add(B[i], A[i])  # atomic


@tilelang.autotune(configs=[{"threads": 128}, {"threads": 256}])
@tilelang.jit
def tuned(rows, threads=64):
    @T.prim_func
    def main(A: T.Tensor((rows,), "float32"), B: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=threads):
            for i in T.Parallel(rows):
                T.atomic_add(B[i], A[i])  # atomic

    return main
