# ruff: noqa
"""Kernels as users write them for gfx942 and gfx950, half of them with a mistake; README.md has what each should come to.

tlcheck check results/amd/users.py --toolchain 0.1.15
"""

import tilelang
import tilelang.language as T

from tlcheck.case import Case


@tilelang.jit
def softmax_unset():
    """bad: the maximum is never set to -inf before it is taken further."""
    M, N = 64, 512

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((M, N), "float16")):
        with T.Kernel(M // 16, threads=128) as bx:
            a = T.alloc_fragment((16, 128), "float32")
            m = T.alloc_fragment((16,), "float32")
            s = T.alloc_fragment((16,), "float32")
            T.clear(s)
            for k in T.serial(N // 128):
                T.copy(A[bx * 16, k * 128], a)
                T.reduce_max(a, m, dim=1, clear=False)
            for k in T.serial(N // 128):
                T.copy(A[bx * 16, k * 128], a)
                for i, j in T.Parallel(16, 128):
                    a[i, j] = T.exp(a[i, j] - m[i])
                T.reduce_sum(a, s, dim=1, clear=False)
            for k in T.serial(N // 128):
                T.copy(A[bx * 16, k * 128], a)
                for i, j in T.Parallel(16, 128):
                    B[bx * 16 + i, k * 128 + j] = T.exp(a[i, j] - m[i]) / s[i]

    return main


@tilelang.jit
def gemm_bias():
    """ok: bfloat16 product with a bias and tails in all directions."""
    M, N, K = 200, 168, 96

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "bfloat16"),
        W: T.Tensor((N, K), "bfloat16"),
        bias: T.Tensor((N,), "float32"),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 128), threads=256) as (bx, by):
            a = T.alloc_shared((128, 32), "bfloat16")
            w = T.alloc_shared((64, 32), "bfloat16")
            c = T.alloc_fragment((128, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(K // 32, num_stages=2):
                T.copy(A[by * 128, k * 32], a)
                T.copy(W[bx * 64, k * 32], w)
                T.gemm(a, w, c, transpose_B=True)
            for i, j in T.Parallel(128, 64):
                if bx * 64 + j < N:
                    c[i, j] = c[i, j] + bias[bx * 64 + j]
            T.copy(c, C[by * 128, bx * 64])

    return main


@tilelang.jit
def gemm_uncleared():
    """bad: the accumulator is never cleared."""
    M, N, K = 128, 128, 128

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), W: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // 128, M // 128, threads=256) as (bx, by):
            a = T.alloc_shared((128, 64), "float16")
            w = T.alloc_shared((64, 128), "float16")
            c = T.alloc_fragment((128, 128), "float32")
            for k in T.Pipelined(K // 64, num_stages=1):
                T.copy(A[by * 128, k * 64], a)
                T.copy(W[k * 64, bx * 128], w)
                T.gemm(a, w, c)
            T.copy(c, C[by * 128, bx * 128])

    return main


@tilelang.jit
def flash():
    """ok: attention of one head, causal, a sequence that no tile divides."""
    S, D, BM, BN = 200, 64, 64, 64
    scale = 1.44269504 / D**0.5

    @T.prim_func
    def main(
        Q: T.Tensor((S, D), "float16"),
        K: T.Tensor((S, D), "float16"),
        V: T.Tensor((S, D), "float16"),
        O: T.Tensor((S, D), "float16"),
    ):
        with T.Kernel(T.ceildiv(S, BM), threads=128) as bx:
            q = T.alloc_shared((BM, D), "float16")
            k = T.alloc_shared((BN, D), "float16")
            v = T.alloc_shared((BN, D), "float16")
            s = T.alloc_fragment((BM, BN), "float32")
            p = T.alloc_fragment((BM, BN), "float16")
            o = T.alloc_fragment((BM, D), "float32")
            m = T.alloc_fragment((BM,), "float32")
            m0 = T.alloc_fragment((BM,), "float32")
            f = T.alloc_fragment((BM,), "float32")
            r = T.alloc_fragment((BM,), "float32")
            l = T.alloc_fragment((BM,), "float32")
            T.copy(Q[bx * BM, 0], q)
            T.clear(o)
            T.clear(l)
            T.fill(m, -T.infinity("float32"))
            for n in T.Pipelined(T.ceildiv(T.min((bx + 1) * BM, S), BN), num_stages=1):
                T.copy(K[n * BN, 0], k)
                for i, j in T.Parallel(BM, BN):
                    s[i, j] = T.if_then_else(bx * BM + i >= n * BN + j, 0, -T.infinity("float32"))
                T.gemm(q, k, s, transpose_B=True)
                T.copy(m, m0)
                T.reduce_max(s, m, dim=1, clear=False)
                for i in T.Parallel(BM):
                    f[i] = T.exp2(m0[i] * scale - m[i] * scale)
                for i, j in T.Parallel(BM, BN):
                    s[i, j] = T.exp2(s[i, j] * scale - m[i] * scale)
                T.reduce_sum(s, r, dim=1)
                for i in T.Parallel(BM):
                    l[i] = l[i] * f[i] + r[i]
                for i, j in T.Parallel(BM, D):
                    o[i, j] *= f[i]
                T.copy(s, p)
                T.copy(V[n * BN, 0], v)
                T.gemm(p, v, o)
            for i, j in T.Parallel(BM, D):
                o[i, j] /= l[i]
            T.copy(o, O[bx * BM, 0])

    return main


@tilelang.jit
def lse_off():
    """bad: the last row's number goes one element too far."""
    S, BM = 256, 64

    @T.prim_func
    def main(X: T.Tensor((S, 128), "float32"), L: T.Tensor((S,), "float32")):
        with T.Kernel(S // BM, threads=128) as bx:
            x = T.alloc_fragment((BM, 128), "float32")
            l = T.alloc_fragment((BM,), "float32")
            T.copy(X[bx * BM, 0], x)
            for i, j in T.Parallel(BM, 128):
                x[i, j] = T.exp(x[i, j])
            T.reduce_sum(x, l, dim=1)
            for i in T.Parallel(BM):
                L[bx * BM + i + 1] = T.log(l[i])

    return main


@tilelang.jit
def histogram():
    """ok: counts in LDS, then to memory by atomics."""
    N, BINS = 1000, 64

    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), H: T.Tensor((BINS,), "int32")):
        with T.Kernel(4, threads=256) as bx:
            h = T.alloc_shared((BINS,), "int32")
            tx = T.get_thread_binding()
            T.clear(h)
            if bx * 256 + tx < N:
                T.atomic_add(h[X[bx * 256 + tx] & 63], 1)
            T.sync_threads()
            if tx < BINS:
                T.atomic_add(H[tx], h[tx])

    return main


@tilelang.jit
def histogram_plain():
    """bad: += instead of an atomic."""
    N, BINS = 1024, 64

    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), H: T.Tensor((BINS,), "int32")):
        with T.Kernel(1, threads=256) as bx:
            h = T.alloc_shared((BINS,), "int32")
            tx = T.get_thread_binding()
            T.clear(h)
            for k in T.serial(4):
                h[X[k * 256 + tx] & 63] += 1
            T.sync_threads()
            if tx < BINS:
                H[tx] = h[tx]

    return main


@tilelang.jit
def wave_sums():
    """ok: each wave adds by shuffles, and one wave adds what the waves have."""
    N = 1024

    @T.prim_func
    def main(X: T.Tensor((4, N), "float32"), Y: T.Tensor((4,), "float32")):
        with T.Kernel(4, threads=256) as bx:
            s = T.alloc_shared((4,), "float32")
            tx = T.get_thread_binding()
            v = T.alloc_local((1,), "float32")
            v[0] = 0
            for k in T.serial(N // 256):
                v[0] += X[bx, k * 256 + tx]
            for d in T.unroll(6):
                v[0] += T.shfl_xor(v[0], 32 >> d, width=64)
            if tx % 64 == 0:
                s[tx // 64] = v[0]
            T.sync_threads()
            if tx == 0:
                Y[bx] = s[0] + s[1] + s[2] + s[3]

    return main


@tilelang.jit(pass_configs={"tl.disable_thread_storage_sync": True})
def tree():
    """bad: a tree of 128 threads in LDS whose last steps have no barrier, as if a warp had no other."""

    @T.prim_func
    def main(X: T.Tensor((8, 256), "float32"), Y: T.Tensor((8,), "float32")):
        with T.Kernel(8, threads=256) as bx:
            s = T.alloc_shared((256,), "float32")
            tx = T.get_thread_binding()
            s[tx] = X[bx, tx]
            T.sync_threads()
            if tx < 128:
                s[tx] += s[tx + 128]
            if tx < 64:
                s[tx] += s[tx + 64]
            T.sync_threads()
            for d in T.unroll(6):
                if tx < (32 >> d):
                    s[tx] += s[tx + (32 >> d)]
                T.sync_threads()
            if tx == 0:
                Y[bx] = s[0]

    return main


@tilelang.jit
def transposed():
    """ok: a padded tile in LDS."""
    M, N = 96, 160

    @T.prim_func
    def main(A: T.Tensor((M, N), "float16"), B: T.Tensor((N, M), "float16")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 64), threads=256) as (bx, by):
            s = T.alloc_shared((64, 66), "float16")
            for i, j in T.Parallel(64, 64):
                if by * 64 + i < M and bx * 64 + j < N:
                    s[i, j] = A[by * 64 + i, bx * 64 + j]
            for i, j in T.Parallel(64, 64):
                if bx * 64 + i < N and by * 64 + j < M:
                    B[bx * 64 + i, by * 64 + j] = s[j, i]

    return main


@tilelang.jit
def deep():
    """bad on gfx942: 96 KiB of tiles."""
    M, N, K = 256, 256, 256

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), W: T.Tensor((N, K), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(N // 128, M // 256, threads=256) as (bx, by):
            a = T.alloc_shared((256, 128), "float16")
            w = T.alloc_shared((128, 128), "float16")
            c = T.alloc_fragment((256, 128), "float32")
            T.clear(c)
            for k in T.serial(K // 128):
                T.copy(A[by * 256, k * 128], a)
                T.copy(W[bx * 128, k * 128], w)
                T.gemm(a, w, c, transpose_B=True)
            T.copy(c, C[by * 256, bx * 128])

    return main


@tilelang.jit
def rms_norm():
    """ok: bfloat16, a row of each wave."""
    M, N = 24, 1024

    @T.prim_func
    def main(X: T.Tensor((M, N), "bfloat16"), W: T.Tensor((N,), "bfloat16"), Y: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(M // 4, threads=256) as bx:
            x = T.alloc_fragment((4, N), "float32")
            q = T.alloc_fragment((4, N), "float32")
            s = T.alloc_fragment((4,), "float32")
            T.copy(X[bx * 4, 0], x)
            for i, j in T.Parallel(4, N):
                q[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(q, s, dim=1)
            for i in T.Parallel(4):
                s[i] = T.rsqrt(s[i] / N + 1e-6)
            for i, j in T.Parallel(4, N):
                Y[bx * 4 + i, j] = x[i, j] * s[i] * T.cast(W[j], "float32")

    return main


@tilelang.jit
def fp8_rows(dtype: str = "float8_e4m3fnuz"):
    """ok on gfx942, bad on gfx950: numbers of 8 bits with a scale for each row."""
    M, N = 64, 256
    top = 240.0

    @T.prim_func
    def main(X: T.Tensor((M, N), "bfloat16"), Y: T.Tensor((M, N), dtype), S: T.Tensor((M,), "float32")):
        with T.Kernel(M // 16, threads=128) as bx:
            x = T.alloc_fragment((16, N), "float32")
            m = T.alloc_fragment((16,), "float32")
            y = T.alloc_fragment((16, N), dtype)
            T.copy(X[bx * 16, 0], x)
            T.reduce_absmax(x, m, dim=1)
            for i in T.Parallel(16):
                m[i] = T.max(m[i], 1e-4) / top
                S[bx * 16 + i] = m[i]
            for i, j in T.Parallel(16, N):
                y[i, j] = T.clamp(x[i, j] / m[i], -top, top)
            T.copy(y, Y[bx * 16, 0])

    return main


@tilelang.jit
def fp8_product(dtype: str = "float8_e4m3fnuz"):
    """ok on gfx942: a product of numbers of 8 bits, with a scale."""
    M, N, K = 128, 128, 128

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((N, K), dtype),
        S: T.Tensor((M,), "float32"),
        C: T.Tensor((M, N), "bfloat16"),
    ):
        with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
            a = T.alloc_shared((64, 64), dtype)
            b = T.alloc_shared((64, 64), dtype)
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(K // 64, num_stages=2):
                T.copy(A[by * 64, k * 64], a)
                T.copy(B[bx * 64, k * 64], b)
                T.gemm(a, b, c, transpose_B=True)
            for i, j in T.Parallel(64, 64):
                c[i, j] = c[i, j] * S[by * 64 + i]
            T.copy(c, C[by * 64, bx * 64])

    return main


@tilelang.jit
def split_k():
    """ok: parts of a product are added by atomics."""
    M, N, K, P = 64, 64, 256, 4

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(P, threads=128) as bz:
            a = T.alloc_shared((M, K // P), "float16")
            b = T.alloc_shared((K // P, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.clear(c)
            T.copy(A[0, bz * (K // P)], a)
            T.copy(B[bz * (K // P), 0], b)
            T.gemm(a, b, c)
            for i, j in T.Parallel(M, N):
                T.atomic_add(C[i, j], c[i, j])

    return main


@tilelang.jit
def split_k_half():
    """bad or undecided: the same with sums of bfloat16 by pairs."""
    M, N, K, P = 64, 64, 256, 4

    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(P, threads=128) as bz:
            a = T.alloc_shared((M, K // P), "float16")
            b = T.alloc_shared((K // P, N), "float16")
            c = T.alloc_fragment((M, N), "float32")
            T.clear(c)
            T.copy(A[0, bz * (K // P)], a)
            T.copy(B[bz * (K // P), 0], b)
            T.gemm(a, b, c)
            for i, j in T.Parallel(M, N):
                T.atomic_add(C[i, j], c[i, j])

    return main


@tilelang.jit
def branch_barrier():
    """bad: a barrier that half of the block reaches."""

    @T.prim_func
    def main(X: T.Tensor((256,), "float32"), Y: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=256) as bx:
            s = T.alloc_shared((256,), "float32")
            tx = T.get_thread_binding()
            s[tx] = X[tx]
            T.sync_threads()
            if tx < 128:
                s[tx] += s[tx + 128]
                T.sync_threads()
                Y[tx] = s[127 - tx]
            else:
                Y[tx] = 0

    return main


@tilelang.jit
def half_prefix():
    """bad against its reference only: 32 lanes' prefix sums where 64 are meant."""

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64) as bx:
            tx = T.get_thread_binding()
            v = T.alloc_local((1,), "int32")
            o = T.alloc_local((1,), "int32")
            v[0] = A[tx]
            for d in T.unroll(5):
                o[0] = T.shfl_up(v[0], 1 << d, width=32)
                if tx % 32 >= (1 << d):
                    v[0] += o[0]
            B[tx] = v[0]

    return main


@tilelang.jit
def counted():
    """bad: int64 atomics."""

    @T.prim_func
    def main(A: T.Tensor((256,), "int64"), B: T.Tensor((1,), "int64")):
        with T.Kernel(1, threads=256) as bx:
            tx = T.get_thread_binding()
            T.atomic_add(B[0], A[tx])

    return main


@tilelang.jit
def voted():
    """ok: how many of a wave are positive."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=256) as bx:
            tx = T.get_thread_binding()
            n = T.alloc_local((1,), "int32")
            n[0] = T.popcount(T.ballot(A[tx] > 0.0))
            if tx % 64 == 0:
                B[tx // 64] = n[0]

    return main


@tilelang.jit(pass_configs={"tl.disable_thread_storage_sync": True})
def one_wave_tree():
    """ok from 0.1.14 on: a tree within a wave with T.sync_warp."""

    @T.prim_func
    def main(X: T.Tensor((8, 64), "float32"), Y: T.Tensor((8,), "float32")):
        with T.Kernel(8, threads=64) as bx:
            s = T.alloc_shared((64,), "float32", scope="shared")
            tx = T.get_thread_binding()
            s[tx] = X[bx, tx]
            T.sync_warp()
            for d in T.unroll(6):
                if tx < (32 >> d):
                    s[tx] += s[tx + (32 >> d)]
                T.sync_warp()
            if tx == 0:
                Y[bx] = s[0]

    return main


@tilelang.jit(pass_configs={"tl.disable_thread_storage_sync": True})
def two_wave_tree():
    """bad: the same with two waves."""

    @T.prim_func
    def main(X: T.Tensor((8, 128), "float32"), Y: T.Tensor((8,), "float32")):
        with T.Kernel(8, threads=128) as bx:
            s = T.alloc_shared((128,), "float32", scope="shared")
            tx = T.get_thread_binding()
            s[tx] = X[bx, tx]
            T.sync_warp()
            for d in T.unroll(7):
                if tx < (64 >> d):
                    s[tx] += s[tx + (64 >> d)]
                T.sync_warp()
            if tx == 0:
                Y[bx] = s[0]

    return main


def integers(args, generator, device):
    import torch

    return torch.randint(0, 9, (64,), generator=generator, device=device, dtype=torch.int32), torch.zeros(
        64, device=device, dtype=torch.int32
    )


TARGETS = ("gfx942", "gfx950")
MEANT = {"half_prefix": {"inputs": integers, "reference": lambda args, A, B: {"B": A.cumsum(0)}}}
NAMES = """
softmax_unset gemm_bias gemm_uncleared flash lse_off histogram histogram_plain wave_sums
tree transposed deep rms_norm fp8_rows fp8_product split_k split_k_half
branch_barrier half_prefix counted voted one_wave_tree two_wave_tree
"""
globals().update(
    {f"case_{name}": Case(globals()[name], targets=TARGETS, **MEANT.get(name, {})) for name in NAMES.split()}
)
