# ruff: noqa
"""Fifteen right kernels for gfx942 and gfx950; plants.py puts an error into the device TIR of each. README.md has what came of it.

tlcheck check results/amd/planted.py --toolchain 0.1.15 --save DIR
"""

import tilelang
import tilelang.language as T

from tlcheck.case import Case

nosync = {"tl.disable_thread_storage_sync": True}


@tilelang.jit
def product(M=128, N=128, K=128):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // 64, M // 64, threads=256) as (bx, by):
            a, b = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(K // 32, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])

    return main


@tilelang.jit
def int_product(M=64, N=64, K=128):
    @T.prim_func
    def main(A: T.Tensor((M, K), "int8"), B: T.Tensor((N, K), "int8"), C: T.Tensor((M, N), "int32")):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((M, K), "int8"), T.alloc_shared((N, K), "int8")
            c = T.alloc_fragment((M, N), "int32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_B=True)
            T.copy(c, C)

    return main


@tilelang.jit
def row_sums(M=8, N=1024):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M,), "float32")):
        with T.Kernel(M, threads=256) as bx:
            a, b = T.alloc_fragment((1, N), "float32"), T.alloc_fragment((1,), "float32")
            T.copy(A[bx, 0], a)
            T.reduce_sum(a, b, dim=1)
            B[bx] = b[0]

    return main


@tilelang.jit
def softmax(M=16, N=512):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(M // 4, threads=128) as bx:
            a = T.alloc_fragment((4, N), "float32")
            m, s = T.alloc_fragment((4,), "float32"), T.alloc_fragment((4,), "float32")
            T.copy(A[bx * 4, 0], a)
            T.reduce_max(a, m, dim=1)
            for i, j in T.Parallel(4, N):
                a[i, j] = T.exp(a[i, j] - m[i])
            T.reduce_sum(a, s, dim=1)
            for i, j in T.Parallel(4, N):
                B[bx * 4 + i, j] = a[i, j] / s[i]

    return main


@tilelang.jit
def prefixes(M=8, N=200):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((M, N), "float32")
            T.copy(A, s)
            T.cumsum(s, dim=1)
            T.copy(s, B)

    return main


@tilelang.jit
def counted(N=4096):
    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), H: T.Tensor((64,), "int32")):
        with T.Kernel(4, threads=256) as bx:
            h = T.alloc_shared((64,), "int32")
            tx = T.get_thread_binding()
            for i in T.Parallel(64):
                h[i] = 0
            for k in T.serial(N // 1024):
                T.atomic_add(h[X[bx * (N // 4) + k * 256 + tx] & 63], 1)
            for i in T.Parallel(64):
                T.atomic_add(H[i], h[i])

    return main


@tilelang.jit
def turned(M=96, N=80):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N, M), "float32")):
        with T.Kernel(T.ceildiv(N, 32), T.ceildiv(M, 32), threads=256) as (bx, by):
            s = T.alloc_shared((32, 33), "float32")
            for i, j in T.Parallel(32, 32):
                if by * 32 + i < M and bx * 32 + j < N:
                    s[i, j] = A[by * 32 + i, bx * 32 + j]
            for i, j in T.Parallel(32, 32):
                if bx * 32 + i < N and by * 32 + j < M:
                    B[bx * 32 + i, by * 32 + j] = s[j, i]

    return main


@tilelang.jit
def wave_sums():
    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(2, threads=256) as bx:
            tx = T.get_thread_binding()
            v = T.alloc_local((1,), "float32")
            v[0] = A[bx * 256 + tx]
            for d in T.unroll(6):
                v[0] += T.shfl_down(v[0], 32 >> d, 64)
            if tx % 64 == 0:
                B[bx * 4 + tx // 64] = v[0]

    return main


@tilelang.jit
def packed():
    """Put what is positive side by side, by the number of a lane among those of its wave."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            m = T.alloc_local((1,), "uint64")
            m[0] = T.ballot(A[tx] > 0.0)
            B[tx] = 0.0
            T.sync_threads()
            if A[tx] > 0.0:
                B[tx // 64 * 64 + T.popcount(m[0] & ((T.uint64(1) << T.cast(tx % 64, "uint64")) - T.uint64(1)))] = A[tx]

    return main


@tilelang.jit
def narrow(M=16, N=256, dtype="float8_e4m3fnuz"):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M // 4, threads=128) as bx:
            x, m = T.alloc_fragment((4, N), "float32"), T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], x)
            T.reduce_absmax(x, m, dim=1)
            for i, j in T.Parallel(4, N):
                Y[bx * 4 + i, j] = T.cast(x[i, j] / (T.max(m[i], 1e-4) / 240.0), dtype)

    return main


@tilelang.jit
def tails(N=1000):
    @T.prim_func
    def main(A: T.Tensor((N,), "float16"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 256), threads=128) as bx:
            s = T.alloc_shared((256,), "float16")
            T.copy(A[bx * 256], s)
            for i in T.Parallel(256):
                if bx * 256 + i < N:
                    B[bx * 256 + i] = T.cast(s[255 - (255 - i)], "float32") * 2.0

    return main


@tilelang.jit(pass_configs=nosync)
def direct():
    """Four bytes of each lane go into LDS without registers."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256):
            s = T.alloc_shared((256,), "float32", scope="shared")
            tx = T.get_thread_binding()
            T.ptx_cp_async(T.access_ptr(s[tx], "w", 1), T.access_ptr(A[tx], "r", 1), 1)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            B[tx] = s[tx ^ 128]

    return main


@tilelang.jit
def vectors(N=2048):
    @T.prim_func
    def main(A: T.Tensor((N,), "bfloat16"), B: T.Tensor((N,), "bfloat16")):
        with T.Kernel(2, threads=128) as bx:
            x = T.alloc_fragment((N // 2,), "bfloat16")
            T.copy(A[bx * (N // 2)], x)
            for i in T.Parallel(N // 2):
                x[i] = x[i] * T.bfloat16(2) + T.bfloat16(1)
            T.copy(x, B[bx * (N // 2)])

    return main


@tilelang.jit
def turned_product(M=64, N=64, K=64):
    """A is read by columns."""

    @T.prim_func
    def main(A: T.Tensor((K, M), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(1, threads=256):
            a, b = T.alloc_shared((K, M), "float16"), T.alloc_shared((K, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.clear(c)
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, transpose_A=True)
            T.copy(c, C)

    return main


@tilelang.jit
def two_waves(N=128):
    @T.prim_func
    def main(A: T.Tensor((4, N), "float32"), B: T.Tensor((4, N), "float32")):
        with T.Kernel(1, threads=N):
            s = T.alloc_shared((N,), "float32")
            tx = T.get_thread_binding()
            for k in T.serial(4):
                s[tx] = A[k, tx]
                B[k, tx] = s[N - 1 - tx]

    return main


ARCHS = {"narrow": ("gfx942",), "turned_product": ("gfx950",), "direct": ("gfx950",)}
NAMES = """
product int_product row_sums softmax prefixes counted turned wave_sums packed narrow tails direct vectors turned_product two_waves
"""
globals().update(
    {f"case_{name}": Case(globals()[name], targets=ARCHS.get(name, ("gfx942",))) for name in NAMES.split()}
)
