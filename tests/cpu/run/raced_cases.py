"""Kernels whose authors leave an order open, and one that does not."""

from __future__ import annotations

import tilelang
import tilelang.language as T

from tlcheck.case import Case

UNSYNCED = {tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True}


def neighbours():
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            s[tx] = A[tx]
            T.sync_threads()
            s[tx] = s[(tx + 1) % 128] + s[tx]
            T.sync_threads()
            C[tx] = s[tx]

    return main


def reversed_in_place():
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), C: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((256,), "float32")
            T.copy(A, s)
            for i in T.Parallel(256):
                s[i] = s[255 - i]
            T.copy(s, C)

    return main


def across_shared():
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            s[tx] = A[tx]
            C[tx] = s[127 - tx]

    return main


def blocks_disagree():
    @T.prim_func
    def main(A: T.Tensor((4, 64), "float32"), C: T.Tensor((64,), "float32")):
        with T.Kernel(4, threads=64) as b:
            for i in T.Parallel(64):
                C[i] = A[b, i]

    return main


neighbours = Case(neighbours)
reversed_in_place = Case(reversed_in_place)
without_barriers = Case(tilelang.jit(pass_configs=UNSYNCED)(across_shared))
with_tilelangs_barrier = Case(across_shared)
blocks_disagree = Case(blocks_disagree)
