"""Kernels that some releases of TileLang miscompile without a word, and others do not."""

import tilelang.language as T

from tlcheck.case import Case


def gemm_kernel(M=256, N=256, K=128):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=128) as (bx, by):
            a = T.alloc_shared((128, 32), "float16")
            b = T.alloc_shared((32, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=3):
                T.copy(A[by * 128, k * 32], a)
                T.copy(B[k * 32, bx * 128], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 128, bx * 128])

    return main


def truncated_kernel():
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), C: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((256,), "float32")
            for i in T.Parallel(256):
                f[i] = A[i]
            for i in T.Parallel(100):
                f[i] = f[i] + 5
            for i in T.Parallel(256):
                C[i] = f[i] + 1

    return main


def guard_kernel():
    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), C: T.Tensor((4, 64), "float32")):
        with T.Kernel(1, threads=128):
            Ds = T.alloc_shared((4, 64), "float32")
            Sf = T.alloc_fragment((8,), "float32")
            T.copy(A, Sf)
            for k in T.serial(64):
                for i in T.Parallel(4):
                    Ds[i, k] = Sf[i]
            T.copy(Ds, C)

    return main


def invariant_kernel():
    @T.prim_func
    def main(A: T.Tensor((128, 8), "float16"), O: T.Tensor((128,), "float16")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            O[tx] = T.Cast("float16", 0)
            for k in T.vectorized(8):
                O[tx] = O[tx] + A[tx, k]

    return main


def twice_kernel():
    @T.prim_func
    def main(A: T.Tensor((256, 64), "float16"), O: T.Tensor((256, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((64, 64), "float16")
            f = T.alloc_fragment((64, 64), "float32")
            g = T.alloc_fragment((64, 64), "float32")
            T.copy(A[0, 0], s)
            T.copy(s, f)
            T.copy(A[64, 0], s)
            T.copy(s, g)
            T.copy(f, O[0, 0])
            T.copy(g, O[64, 0])

    return main


def softmax_kernel(M=256, N=512):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), O: T.Tensor((M, N), "float32")):
        with T.Kernel(M // 16, threads=128) as bx:
            f = T.alloc_fragment((16, N), "float32")
            m = T.alloc_fragment((16,), "float32")
            s = T.alloc_fragment((16,), "float32")
            T.copy(A[bx * 16, 0], f)
            T.reduce_max(f, m, dim=1)
            for i, j in T.Parallel(16, N):
                f[i, j] = T.exp2(f[i, j] - m[i])
            T.reduce_sum(f, s, dim=1)
            for i, j in T.Parallel(16, N):
                O[bx * 16 + i, j] = f[i, j] / s[i]

    return main


gemm = Case(gemm_kernel, targets=("sm_80",))
truncated = Case(truncated_kernel, targets=("sm_80",))
guard = Case(guard_kernel, targets=("sm_80",))
invariant = Case(invariant_kernel, targets=("sm_80",))
twice = Case(twice_kernel, targets=("sm_80",))
softmax = Case(softmax_kernel, targets=("sm_80",))
