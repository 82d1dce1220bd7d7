"""Kernels with one mistake of their author each, as somebody new to TileLang makes them, and two that are right."""

from __future__ import annotations

import tilelang
import tilelang.language as T
import torch

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


def begins_with_zero():
    @T.prim_func
    def main(A: T.Tensor((4, 128), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            total = T.alloc_var("int32")
            for i in T.serial(4):
                total += A[i, tx]
            B[tx] = total

    return main


def threads_by_default():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4) as bx:
            tx = T.get_thread_binding(0)
            B[bx * 128 + tx] = A[bx * 128 + tx]

    return main


def padded():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            T.annotate_safe_value({A: 7})
            s = T.alloc_shared((128,), "float32")
            for t in T.Parallel(128):
                s[t] = A[bx * 128 + t - 10]
            for t in T.Parallel(128):
                B[bx * 128 + t] = s[t]

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


def partly_cleared():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            total = T.alloc_local((1,), "float32")
            dropped = T.alloc_local((2,), "float32")
            if tx >= 16:
                total[0] = 0.0
            for i in T.serial(2):
                dropped[i] = dropped[i] * 2.0
            total[0] += A[bx * 128 + tx]
            B[bx * 128 + tx] = total[0]

    return main


def replicas_in_turn():
    @T.prim_func
    def main(A: T.Tensor((4, 32), "float32"), B: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            for i in T.serial(4):
                s[i * 32 + tx // 8] = A[i, tx // 8]
                if tx % 8 == 0:
                    B[i, tx // 8] = s[i * 32 + tx // 8] * 2.0
                T.sync_threads()

    return main


def replicas_that_change():
    @T.prim_func
    def main(A: T.Tensor((4, 32), "float32"), B: T.Tensor((4, 256), "float32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            s = T.alloc_shared((32,), "float32")
            for i in T.serial(4):
                s[tx // 8] = A[i, tx // 8]
                B[i, tx] = s[tx // 8] * 2.0

    return main


def assumed():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            T.assume(bx * 128 + tx < 500)
            B[bx * 128 + tx] = A[bx * 128 + tx]

    return main


def assumed_of_keys():
    @T.prim_func
    def main(K: T.Tensor((512,), "int32"), B: T.Tensor((512,), "int32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            T.assume(K[bx * 128 + tx] > 100)
            B[bx * 128 + tx] = K[bx * 128 + tx]

    return main


def assumed_of_squares():
    @T.prim_func
    def main(K: T.Tensor((512,), "int32"), B: T.Tensor((512,), "int32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            T.assume(K[bx * 128 + tx] * K[bx * 128 + tx] > 100)
            B[bx * 128 + tx] = K[bx * 128 + tx]

    return main


def arrivals(threads: int, parity: int):
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            s = T.alloc_shared((64, 64), "float16")
            full = T.alloc_barrier(128)
            T.tma_copy(A, s, barrier=full)
            if tx < threads:
                T.mbarrier_arrive(full)
            T.mbarrier_wait_parity(full, parity)
            for i, j in T.Parallel(64, 64):
                B[i, j] = s[j, i]

    return main


def arrivals_of_keys():
    @T.prim_func
    def main(K: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            full = T.alloc_barrier(128)
            if K[tx] > 5:
                T.mbarrier_arrive(full)
            T.mbarrier_wait_parity(full, 0)
            B[tx] = K[tx]

    return main


def committed(commits: bool):
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            T.ptx_cp_async(T.access_ptr(s[tx * 4], "w", 4), T.access_ptr(A[tx * 4], "r", 4), 4)
            if commits:
                T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            for i in T.Parallel(128):
                B[i] = s[127 - i]

    return main


def shifted():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            B[bx * 128 + tx] = A[bx * 128 + tx + 1]

    return main


def shifted_store():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            s = T.alloc_shared((128,), "float32")
            for t in T.Parallel(128):
                s[t] = A[bx * 128 + t]
            for t in T.Parallel(128):
                B[bx * 128 + t + 1] = s[t]
            if bx == 0:
                B[0] = T.float32(0)

    return main


def halo():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            s = T.alloc_shared((129,), "float32")
            for t in T.Parallel(129):
                s[t] = A[bx * 128 + t - 1]
            for t in T.Parallel(128):
                B[bx * 128 + t] = s[t + 1] - s[t]

    return main


def spread():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            B[(bx * 128 + tx) * 2] = A[bx * 128 + tx]

    return main


def tail():
    @T.prim_func
    def main(A: T.Tensor((500,), "float32"), C: T.Tensor((4,), "float32"), B: T.Tensor((500, 4), "float32")):
        with T.Kernel(4, threads=128) as bx:
            s = T.alloc_shared((128,), "float32")
            for t in T.Parallel(128):
                s[t] = A[bx * 128 + t]
            for t, j in T.Parallel(128, 4):
                B[bx * 128 + t, j] = C[j] + s[t]

    return main


def guarded():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((512,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            tx = T.get_thread_binding()
            i = bx * 128 + tx
            B[i] = T.if_then_else(i + 1 < 512, A[i + 1], 0.0)

    return main


def too_few_blocks(blocks: int):
    @T.prim_func
    def main(A: T.Tensor((200, 64), "float32"), B: T.Tensor((200, 64), "float32")):
        with T.Kernel(blocks, threads=128) as bx:
            s = T.alloc_shared((64, 64), "float32")
            T.copy(A[bx * 64, 0], s)
            T.copy(s, B[bx * 64, 0])

    return main


def through_a_tensor():
    @T.prim_func
    def main(A: T.Tensor((1024,), "float32"), M: T.Tensor((8,), "float32"), B: T.Tensor((1024,), "float32")):
        with T.Kernel(8, threads=128) as bx:
            a = T.alloc_fragment((128,), "float32")
            m = T.alloc_fragment((1,), "float32")
            every = T.alloc_fragment((8,), "float32")
            most = T.alloc_fragment((1,), "float32")
            T.copy(A[bx * 128], a)
            T.reduce_max(a, m, dim=0)
            T.copy(m, M[bx])
            T.copy(M, every)
            T.reduce_max(every, most, dim=0)
            for i in T.Parallel(128):
                B[bx * 128 + i] = a[i] / most[0]

    return main


def idle_wait():
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float32")
            T.copy(A, s)
            T.ptx_wait_group(1)
            T.copy(s, B)

    return main


def row_max():
    @T.prim_func
    def main(A: T.Tensor((64, 512), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(4, threads=128) as bx:
            a = T.alloc_fragment((16, 128), "float32")
            best = T.alloc_fragment((16,), "float32")
            for k in T.serial(4):
                T.copy(A[bx * 16, k * 128], a)
                T.reduce_max(a, best, dim=1, clear=False)
            T.copy(best, B[bx * 16])

    return main


def small_keys(args, generator, device):
    keys = torch.arange(512, dtype=torch.int32, device=device)
    return keys, torch.zeros_like(keys)


uncleared = Case(uncleared)
bins_not_cleared = Case(bins_not_cleared)
past_the_end = Case(past_the_end)
begins_with_zero = Case(begins_with_zero)
threads_by_default = Case(threads_by_default)
padded = Case(padded)
half_a_barrier_synced = Case(half_a_barrier)
half_a_barrier = Case(tilelang.jit(pass_configs=UNSYNCED)(half_a_barrier))
crowded = Case(crowded)
scattered = Case(scattered)
gathered = Case(gathered)
replicas = Case(tilelang.jit(pass_configs=UNSYNCED)(replicas))
replicas_in_turn = Case(tilelang.jit(pass_configs=UNSYNCED)(replicas_in_turn))
replicas_that_change = Case(tilelang.jit(pass_configs=UNSYNCED)(replicas_that_change))
partly_cleared = Case(partly_cleared)
assumed = Case(assumed)
assumed_of_small_keys = Case(assumed_of_keys, inputs=small_keys)
assumed_of_keys = Case(assumed_of_keys)
assumed_of_squares = Case(assumed_of_squares)
few_arrivals = Case(arrivals, args={"threads": 64, "parity": 0})
other_parity = Case(arrivals, args={"threads": 128, "parity": 1})
all_arrivals = Case(arrivals, args={"threads": 128, "parity": 0})
arrivals_of_keys = Case(arrivals_of_keys)
shifted = Case(shifted)
shifted_store = Case(shifted_store)
halo = Case(halo)
spread = Case(spread)
tail = Case(tail)
guarded = Case(guarded)
enough_blocks = Case(too_few_blocks, args={"blocks": 4})
too_few_blocks = Case(too_few_blocks, args={"blocks": 3})
row_max = Case(row_max)
idle_wait = Case(idle_wait)
through_a_tensor = Case(through_a_tensor)
uncommitted = Case(committed, args={"commits": False})
committed = Case(committed, args={"commits": True})
