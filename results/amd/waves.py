# ruff: noqa
"""Kernels for gfx942 that use waves, LDS and atomics in unusual ways; README.md has what each should come to.

tlcheck check results/amd/waves.py --toolchain 0.1.15
"""

import tilelang
import tilelang.language as T

from tlcheck.case import Case

TARGETS = ("gfx942",)
F, H, I = "float32", "float16", "int32"


def nosync(build):
    """Without TileLang's own barriers, so that a missing one is missed."""
    return tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True})(build)


def k01():  # wave sum by xor 32..1 with width 64: right
    @T.prim_func
    def f(A: T.Tensor((256,), F), B: T.Tensor((4,), F)):
        with T.Kernel(1, threads=256) as bx:
            t = T.get_thread_binding()
            v = T.alloc_local((1,), F)
            v[0] = A[t]
            for s in T.unroll(6):
                v[0] += T.shfl_xor(v[0], 32 >> s, 64)
            if t % 64 == 0:
                B[t // 64] = v[0]

    return f


def k02():  # author takes 32 for the wave: shfl_xor with the default width, result written at t % 32
    @T.prim_func
    def f(A: T.Tensor((64,), F), B: T.Tensor((2,), F)):
        with T.Kernel(1, threads=64) as bx:
            t = T.get_thread_binding()
            v = T.alloc_local((1,), F)
            v[0] = A[t]
            for s in T.unroll(5):
                v[0] += T.shfl_xor(v[0], 16 >> s)
            if t % 32 == 0:
                B[t // 32] = v[0]

    return f


def k03():  # ballot of 64 bits
    @T.prim_func
    def f(A: T.Tensor((64,), F), B: T.Tensor((64,), "uint64")):
        with T.Kernel(1, threads=64) as bx:
            t = T.get_thread_binding()
            B[t] = T.ballot(A[t] > 0.0)

    return f


def k04():  # ballot in a divergent branch
    @T.prim_func
    def f(A: T.Tensor((64,), F), B: T.Tensor((64,), "uint64")):
        with T.Kernel(1, threads=64) as bx:
            t = T.get_thread_binding()
            B[t] = T.uint64(0)
            if t < 40:
                B[t] = T.ballot(A[t] > 0.0)

    return f


def k05():  # LDS race between waves: no barrier, neighbour across the wave
    @T.prim_func
    def f(A: T.Tensor((128,), F), B: T.Tensor((128,), F)):
        with T.Kernel(1, threads=128) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), F)
            s[t] = A[t]
            T.sync_warp()
            B[t] = s[t ^ 64]

    return f


def k06():  # neighbour in the wave with sync_warp: fine on new
    @T.prim_func
    def f(A: T.Tensor((128,), F), B: T.Tensor((128,), F)):
        with T.Kernel(1, threads=128) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), F)
            s[t] = A[t]
            T.sync_warp()
            B[t] = s[t ^ 32]

    return f


def k07():  # reduce in T over 32 threads of rows
    @T.prim_func
    def f(A: T.Tensor((64, 64), F), B: T.Tensor((64,), F)):
        with T.Kernel(1, threads=32) as bx:
            a = T.alloc_fragment((64, 64), F)
            b = T.alloc_fragment((64,), F)
            T.copy(A, a)
            T.reduce_sum(a, b, dim=1)
            T.copy(b, B)

    return f


def k08():  # reduce over 256 threads: workspace
    @T.prim_func
    def f(A: T.Tensor((4096,), F), B: T.Tensor((1,), F)):
        with T.Kernel(1, threads=256) as bx:
            a = T.alloc_fragment((1, 4096), F)
            b = T.alloc_fragment((1,), F)
            for i in T.Parallel(4096):
                a[0, i] = A[i]
            T.reduce_max(a, b, dim=1)
            B[0] = b[0]

    return f


def k09():  # cumsum with 32 threads: run_auto does nothing
    @T.prim_func
    def f(A: T.Tensor((128,), F), B: T.Tensor((128,), F)):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((128,), F)
            T.copy(A, s)
            T.cumsum(s)
            T.copy(s, B)

    return f


def k10():  # cumsum with 64 threads
    @T.prim_func
    def f(A: T.Tensor((130,), F), B: T.Tensor((130,), F)):
        with T.Kernel(1, threads=64) as bx:
            s = T.alloc_shared((130,), F)
            T.copy(A, s)
            T.cumsum(s)
            T.copy(s, B)

    return f


def k11():  # cumsum 2d along dim 0, reversed
    @T.prim_func
    def f(A: T.Tensor((70, 5), F), B: T.Tensor((70, 5), F)):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((70, 5), F)
            for i, j in T.Parallel(70, 5):
                s[i, j] = A[i, j]
            T.cumsum(s, dim=0, reverse=True)
            for i, j in T.Parallel(70, 5):
                B[i, j] = s[i, j]

    return f


def k12():  # histogram in LDS by atomics, int32
    @T.prim_func
    def f(A: T.Tensor((256,), I), B: T.Tensor((64,), I)):
        with T.Kernel(1, threads=256) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((64,), I)
            if t < 64:
                s[t] = 0
            T.sync_threads()
            T.atomic_add(s[A[t] & 63], 1)
            T.sync_threads()
            if t < 64:
                B[t] = s[t]

    return f


def k13():  # fp16 atomics
    @T.prim_func
    def f(A: T.Tensor((256,), "float16"), B: T.Tensor((64,), "float16")):
        with T.Kernel(1, threads=256) as bx:
            t = T.get_thread_binding()
            T.atomic_add(B[t % 64], A[t])

    return f


def k14():  # bf16 atomic in copy form (x2)
    @T.prim_func
    def f(A: T.Tensor((256,), "bfloat16"), B: T.Tensor((256,), "bfloat16")):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_fragment((256,), "bfloat16")
            T.copy(A, a)
            T.atomic_add(B, a)

    return f


def k15():  # atomic max returns previous
    @T.prim_func
    def f(A: T.Tensor((64,), I), B: T.Tensor((1,), I), D: T.Tensor((64,), I)):
        with T.Kernel(1, threads=64) as bx:
            t = T.get_thread_binding()
            D[t] = T.atomic_max(B[0], A[t], return_prev=True)

    return f


def k16():  # warp_reduce_sum of a whole wave: 32 lanes only
    @T.prim_func
    def f(A: T.Tensor((64,), F), B: T.Tensor((64,), F)):
        with T.Kernel(1, threads=64) as bx:
            t = T.get_thread_binding()
            B[t] = T.warp_reduce_sum(A[t])

    return f


def k17():  # reduce in half of the block (T.ws?) by sync_threads of 128 named
    @T.prim_func
    def f(A: T.Tensor((256,), F), B: T.Tensor((256,), F)):
        with T.Kernel(1, threads=256) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((256,), F)
            s[t] = A[t]
            if t < 128:
                T.sync_threads(1, 128)
                B[t] = s[127 - t]
            else:
                T.sync_threads(2, 128)
                B[t] = s[383 - t]

    return f


def k18():  # __syncthreads_count
    @T.prim_func
    def f(A: T.Tensor((256,), F), B: T.Tensor((256,), I)):
        with T.Kernel(1, threads=256) as bx:
            t = T.get_thread_binding()
            B[t] = T.syncthreads_count(A[t] > 0.0)

    return f


@nosync
def k19():  # race across waves, no automatic barriers
    @T.prim_func
    def f(A: T.Tensor((128,), F), B: T.Tensor((128,), F)):
        with T.Kernel(1, threads=128) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), F)
            s[t] = A[t]
            T.sync_warp()
            B[t] = s[t ^ 64]

    return f


@nosync
def k20():  # within 64 lanes, not 32: fine on a wave of 64 (a race on NVIDIA)
    @T.prim_func
    def f(A: T.Tensor((128,), F), B: T.Tensor((128,), F)):
        with T.Kernel(1, threads=128) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), F)
            s[t] = A[t]
            T.sync_warp()
            B[t] = s[t ^ 32]

    return f


@nosync
def k21():  # WAR across waves
    @T.prim_func
    def f(A: T.Tensor((128,), F), B: T.Tensor((128,), F)):
        with T.Kernel(1, threads=128) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), F)
            s[t] = A[t]
            T.sync_threads()
            B[t] = s[127 - t]
            s[t] = A[t] * 2.0
            T.sync_threads()
            B[t] = B[t] + s[127 - t]

    return f


@nosync
def k22():  # tree in LDS, barriers down to 64, sync_warp below: the right one for waves
    @T.prim_func
    def f(A: T.Tensor((256,), F), B: T.Tensor((1,), F)):
        with T.Kernel(1, threads=256) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((256,), F)
            s[t] = A[t]
            T.sync_threads()
            if t < 128:
                s[t] = s[t] + s[t + 128]
            T.sync_threads()
            if t < 64:
                s[t] = s[t] + s[t + 64]
                T.sync_warp()
                for k in T.unroll(6):
                    v = T.alloc_local((1,), F)
                    v[0] = s[t] + s[t + (32 >> k)]
                    T.sync_warp()
                    s[t] = v[0]
                    T.sync_warp()
            if t == 0:
                B[0] = s[0]

    return f


@nosync
def k23():  # tree that forgets the barrier at 64
    @T.prim_func
    def f(A: T.Tensor((128,), F), B: T.Tensor((1,), F)):
        with T.Kernel(1, threads=128) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), F)
            s[t] = A[t]
            if t < 64:
                s[t] = s[t] + s[t + 64]
            if t == 0:
                B[0] = s[0]

    return f


def k24():  # reduce shared to shared: SharedReduceWarp
    @T.prim_func
    def f(A: T.Tensor((8, 100), F), B: T.Tensor((8,), F)):
        with T.Kernel(1, threads=128) as bx:
            s = T.alloc_shared((8, 100), F)
            r = T.alloc_shared((8,), F)
            T.copy(A, s)
            T.reduce_sum(s, r, dim=1)
            T.copy(r, B)

    return f


def k25():  # the same with 32 threads: less than a wave
    @T.prim_func
    def f(A: T.Tensor((8, 128), F), B: T.Tensor((8,), F)):
        with T.Kernel(1, threads=32) as bx:
            s = T.alloc_shared((8, 128), F)
            r = T.alloc_shared((8,), F)
            T.copy(A, s)
            T.reduce_sum(s, r, dim=1)
            T.copy(r, B)

    return f


def k26():  # half-precision maxima over 128 threads
    @T.prim_func
    def f(A: T.Tensor((1, 1024), H), B: T.Tensor((1,), H)):
        with T.Kernel(1, threads=128) as bx:
            a = T.alloc_fragment((1, 1024), H)
            b = T.alloc_fragment((1,), H)
            T.copy(A, a)
            T.reduce_max(a, b, dim=1)
            T.copy(b, B)

    return f


def k27():  # int64 reduction by shuffles
    @T.prim_func
    def f(A: T.Tensor((1, 256), "int64"), B: T.Tensor((1,), "int64")):
        with T.Kernel(1, threads=64) as bx:
            a = T.alloc_fragment((1, 256), "int64")
            b = T.alloc_fragment((1,), "int64")
            T.copy(A, a)
            T.reduce_sum(a, b, dim=1)
            T.copy(b, B)

    return f


def k28():  # all_sync in part of a wave
    @T.prim_func
    def f(A: T.Tensor((64,), F), B: T.Tensor((64,), I)):
        with T.Kernel(1, threads=64) as bx:
            t = T.get_thread_binding()
            B[t] = 7
            if t < 10:
                B[t] = T.all_sync(A[t] < 100.0)

    return f


def k29():  # a shuffle from a lane that does not take part
    @T.prim_func
    def f(A: T.Tensor((64,), F), B: T.Tensor((64,), F)):
        with T.Kernel(1, threads=64) as bx:
            t = T.get_thread_binding()
            B[t] = 0.0
            if t < 10:
                B[t] = T.shfl_sync(A[t], 20, 64)

    return f


def k30():  # lane index of a wave: width of 64
    @T.prim_func
    def f(B: T.Tensor((256,), I)):
        with T.Kernel(1, threads=256) as bx:
            t = T.get_thread_binding()
            B[t] = T.get_lane_idx() + 1000 * T.get_warp_idx()

    return f


def k31():  # barrier that half of the block reaches
    @T.prim_func
    def f(A: T.Tensor((128,), F), B: T.Tensor((128,), F)):
        with T.Kernel(1, threads=128) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((128,), F)
            s[t] = A[t]
            if t < 64:
                T.sync_threads()
                B[t] = s[63 - t]

    return f


def k32():  # barrier in part of a wave
    @T.prim_func
    def f(A: T.Tensor((64,), F), B: T.Tensor((64,), F)):
        with T.Kernel(1, threads=64) as bx:
            t = T.get_thread_binding()
            s = T.alloc_shared((64,), F)
            s[t] = A[t]
            if t < 16:
                T.sync_threads()
            B[t] = s[t]

    return f


def k33():  # global atomics as a flag between blocks, relaxed store of the data
    @T.prim_func
    def f(A: T.Tensor((64,), F), B: T.Tensor((64,), F), L: T.Tensor((1,), I)):
        with T.Kernel(1, threads=64) as bx:
            t = T.get_thread_binding()
            B[t] = A[t] + 1.0
            if t == 0:
                T.atomic_store(L[0], 1, memory_order="release")

    return f


def k34():  # fp64 atomics
    @T.prim_func
    def f(A: T.Tensor((256,), "float64"), B: T.Tensor((2,), "float64")):
        with T.Kernel(1, threads=256) as bx:
            t = T.get_thread_binding()
            T.atomic_add(B[t % 2], A[t])

    return f


def k35():  # match_any: HIP has none
    @T.prim_func
    def f(A: T.Tensor((64,), I), B: T.Tensor((64,), "uint32")):
        with T.Kernel(1, threads=64) as bx:
            t = T.get_thread_binding()
            B[t] = T.match_any_sync(A[t])

    return f


def k36():  # 65 threads: last wave partial, xor over 64
    @T.prim_func
    def f(A: T.Tensor((96,), F), B: T.Tensor((96,), F)):
        with T.Kernel(1, threads=96) as bx:
            t = T.get_thread_binding()
            B[t] = A[t] + T.shfl_xor(A[t], 32, 64)

    return f


globals().update(
    {f"c{name[1:]}": Case(build, targets=TARGETS) for name, build in list(globals().items()) if name[:1] == "k"}
)
