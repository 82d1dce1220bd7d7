"""Kernels with one mistake of their author each, as somebody new to TileLang makes them, and two that are right."""

from __future__ import annotations

import tilelang
import tilelang.language as T

from tlcheck.case import Case

UNSYNCED = {tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True}


def uncleared():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c)
            T.copy(c, C)

    return main


def bins_not_cleared():
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), H: T.Tensor((64,), "int32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            counts = T.alloc_shared((64,), "int32")
            for k in T.serial(2):
                v = T.cast(A[bx * 256 + k * 128 + tx] * 64, "int32")
                T.atomic_add(counts[T.max(T.min(v, 63), 0)], 1)
            T.sync_threads()
            if tx < 64:
                T.atomic_add(H[tx], counts[tx])

    return main


def past_the_end():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            s[tx] = A[bx * 128 + tx]
            T.sync_threads()
            B[bx * 128 + tx] = s[tx + 1] - s[tx]

    return main


def half_a_barrier():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((4,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            s[tx] = A[bx * 128 + tx]
            T.sync_threads()
            if tx < 64:
                s[tx] = s[tx] + s[tx + 64]
                T.sync_threads()
            if tx < 32:
                s[tx] = s[tx] + s[tx + 32]
            T.sync_threads()
            if tx == 0:
                B[bx] = s[0] + s[1]

    return main


def crowded():
    @T.prim_func
    def main(K: T.Tensor((1024,), "int32"), H: T.Tensor((64,), "int32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            counts = T.alloc_shared((64,), "int32")
            if tx < 64:
                counts[tx] = 0
            T.sync_threads()
            counts[K[bx * 128 + tx] % 64] += 1
            T.sync_threads()
            if tx < 64:
                T.atomic_add(H[tx], counts[tx])

    return main


def scattered():
    @T.prim_func
    def main(K: T.Tensor((512,), "int32"), A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            B[K[bx * 128 + tx]] = A[bx * 128 + tx]

    return main


def gathered():
    @T.prim_func
    def main(K: T.Tensor((512,), "int32"), A: T.Tensor((8,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((8,), "float32")
            if tx < 8:
                s[tx] = A[tx]
            T.sync_threads()
            B[bx * 128 + tx] = s[K[bx * 128 + tx] + 8]

    return main


def replicas():
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            s = T.alloc_shared((16,), "float32")
            s[tx // 8] = A[tx // 8]
            B[tx] = s[tx // 8]

    return main


uncleared = Case(uncleared)
bins_not_cleared = Case(bins_not_cleared)
past_the_end = Case(past_the_end)
half_a_barrier_synced = Case(half_a_barrier)
half_a_barrier = Case(tilelang.jit(pass_configs=UNSYNCED)(half_a_barrier))
crowded = Case(crowded)
scattered = Case(scattered)
gathered = Case(gathered)
replicas = Case(tilelang.jit(pass_configs=UNSYNCED)(replicas))
