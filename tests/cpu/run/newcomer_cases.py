"""Kernels as somebody new to TileLang writes them: right ones, and ones with one mistake each."""

import tilelang
import tilelang.language as T

from tlcheck.case import Case

NO_SYNC = {tilelang.PassConfigKey.TL_DISABLE_THREAD_STORAGE_SYNC: True}


@tilelang.jit(out_idx=[-1])
def gemm_relu(M=256, N=256, K=128, block_M=64, block_N=64, block_K=32):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            for i, j in T.Parallel(block_M, block_N):
                C_local[i, j] = T.max(C_local[i, j], 0)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit(out_idx=[-1])
def saxpy(N=1000, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32"), Z: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, threads), threads=threads) as bx:
            tx = T.get_thread_binding()
            i = bx * threads + tx
            if i < N:
                Z[i] = 2.0 * X[i] + Y[i]

    return main


@tilelang.jit
def block_sum(N=4096, threads=256):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), S: T.Tensor((1,), "float32")):
        with T.Kernel(N // threads, threads=threads) as bx:
            tx = T.get_thread_binding()
            buf = T.alloc_shared((threads,), "float32")
            buf[tx] = X[bx * threads + tx]
            T.sync_threads()
            for s in T.unroll(8):
                if tx < (threads >> (s + 1)):
                    buf[tx] = buf[tx] + buf[tx + (threads >> (s + 1))]
                T.sync_threads()
            if tx == 0:
                T.atomic_add(S[0], buf[0])

    return main


@tilelang.jit
def histogram(N=4096, bins=64, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), H: T.Tensor((bins,), "int32")):
        with T.Kernel(N // 512, threads=threads) as bx:
            tx = T.get_thread_binding()
            counts = T.alloc_shared((bins,), "int32")
            if tx < bins:
                counts[tx] = 0
            T.sync_threads()
            for k in T.serial(4):
                T.atomic_add(counts[X[bx * 512 + k * threads + tx] % bins], 1)
            T.sync_threads()
            if tx < bins:
                T.atomic_add(H[tx], counts[tx])

    return main


@tilelang.jit(out_idx=[-1])
def transpose(M=256, N=384, tile=32):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N, M), "float32")):
        with T.Kernel(N // tile, M // tile, threads=128) as (bx, by):
            s = T.alloc_shared((tile, tile), "float32")
            T.copy(A[by * tile, bx * tile], s)
            for i, j in T.Parallel(tile, tile):
                B[bx * tile + i, by * tile + j] = s[j, i]

    return main


@tilelang.jit(out_idx=[-1])
def gemm_uncleared(M=256, N=256, K=128, block_M=64, block_N=64, block_K=32):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, ko * block_K], A_shared)
                T.copy(B[ko * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


@tilelang.jit(out_idx=[-1])
def transpose_swapped(M=256, N=384, tile=32):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((N, M), "float32")):
        with T.Kernel(N // tile, M // tile, threads=128) as (bx, by):
            s = T.alloc_shared((tile, tile), "float32")
            T.copy(A[by * tile, bx * tile], s)
            for i, j in T.Parallel(tile, tile):
                B[bx * tile + i, by * tile + j] = s[i, j]

    return main


@tilelang.jit
def gemm_split_k(M=128, N=128, K=512, block=64, split=4):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // block, M // block, split, threads=128) as (bx, by, bz):
            A_shared = T.alloc_shared((block, 32), "float16")
            B_shared = T.alloc_shared((32, block), "float16")
            acc = T.alloc_fragment((block, block), "float32")
            T.clear(acc)
            for k in T.Pipelined(K // split // 32, num_stages=2):
                T.copy(A[by * block, bz * (K // split) + k * 32], A_shared)
                T.copy(B[bz * (K // split) + k * 32, bx * block], B_shared)
                T.gemm(A_shared, B_shared, acc)
            for i, j in T.Parallel(block, block):
                C[by * block + i, bx * block + j] += acc[i, j]

    return main


@tilelang.jit
def shift_left(N=4096, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32")):
        with T.Kernel(N // threads, threads=threads) as bx:
            for t in T.Parallel(threads):
                if bx * threads + t + 1 < N:
                    X[bx * threads + t] = X[bx * threads + t + 1]

    return main


@tilelang.jit(out_idx=[-1])
def diff_read(N=1024, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(N // threads, threads=threads) as bx:
            tx = T.get_thread_binding()
            tile = T.alloc_shared((threads,), "float32")
            tile[tx] = X[bx * threads + tx]
            T.sync_threads()
            Y[bx * threads + tx] = tile[tx + 1] - tile[tx]

    return main


@tilelang.jit(out_idx=[-1])
def pad_store(N=1024, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(N // threads, threads=threads) as bx:
            tx = T.get_thread_binding()
            tile = T.alloc_shared((threads,), "float32")
            tile[tx + 1] = X[bx * threads + tx]
            if tx == 0:
                tile[0] = 0.0
            T.sync_threads()
            Y[bx * threads + tx] = tile[tx]

    return main


@tilelang.jit(out_idx=[-1], pass_configs=NO_SYNC)
def reverse_tile(N=1024, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(N // threads, threads=threads) as bx:
            tx = T.get_thread_binding()
            tile = T.alloc_shared((threads,), "float32")
            tile[tx] = X[bx * threads + tx]
            Y[bx * threads + tx] = tile[threads - 1 - tx]

    return main


@tilelang.jit(out_idx=[-1], pass_configs=NO_SYNC)
def tree_sum_divergent(N=4096, threads=256):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), S: T.Tensor((N // threads,), "float32")):
        with T.Kernel(N // threads, threads=threads) as bx:
            tx = T.get_thread_binding()
            buf = T.alloc_shared((threads,), "float32")
            buf[tx] = X[bx * threads + tx]
            T.sync_threads()
            for s in T.unroll(8):
                if tx < (threads >> (s + 1)):
                    buf[tx] += buf[tx + (threads >> (s + 1))]
                    T.sync_threads()
            if tx == 0:
                S[bx] = buf[0]

    return main


@tilelang.jit(out_idx=[-1])
def half_of_the_block(M=16, N=64, threads=128):
    """A barrier in a branch of two whole warps."""

    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=threads) as bx:
            tx = T.get_thread_binding()
            row = T.alloc_shared((N,), "float32")
            if tx < N:
                row[tx] = X[bx, tx]
                T.sync_threads()
                Y[bx, tx] = row[N - 1 - tx]

    return main


@tilelang.jit
def exclusive_scan(N=2048, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Sums: T.Tensor((N // threads,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(N // threads, threads=threads) as bx:
            tx = T.get_thread_binding()
            total = T.alloc_local((1,), "float32")
            offset = T.alloc_local((1,), "float32")
            if tx == 0:
                total[0] = 0.0
                for k in T.serial(threads):
                    total[0] += X[bx * threads + k]
                Sums[bx] = total[0]
            T.sync_threads()
            offset[0] = 0.0
            for b in T.serial(bx):
                offset[0] += Sums[b]
            Y[bx * threads + tx] = offset[0]

    return main


@tilelang.jit
def histogram_plain(N=4096, bins=64, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), H: T.Tensor((bins,), "int32")):
        with T.Kernel(N // threads, threads=threads) as bx:
            tx = T.get_thread_binding()
            H[X[bx * threads + tx] % bins] += 1

    return main


@tilelang.jit
def histogram_dirty(N=4096, bins=64, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), H: T.Tensor((bins,), "int32")):
        with T.Kernel(N // 512, threads=threads) as bx:
            tx = T.get_thread_binding()
            counts = T.alloc_shared((bins,), "int32")
            for k in T.serial(4):
                T.atomic_add(counts[X[bx * 512 + k * threads + tx] % bins], 1)
            T.sync_threads()
            if tx < bins:
                T.atomic_add(H[tx], counts[tx])

    return main


@tilelang.jit
def histogram_stored(N=4096, bins=64, threads=128):
    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), H: T.Tensor((bins,), "int32")):
        with T.Kernel(N // 512, threads=threads) as bx:
            tx = T.get_thread_binding()
            counts = T.alloc_shared((bins,), "int32")
            if tx < bins:
                counts[tx] = 0
            T.sync_threads()
            for k in T.serial(4):
                T.atomic_add(counts[X[bx * 512 + k * threads + tx] % bins], 1)
            T.sync_threads()
            if tx < bins:
                H[tx] = counts[tx]

    return main


@tilelang.jit(out_idx=[-1])
def row_max(M=128, N=1024, block_M=16, block_N=128):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32")):
        with T.Kernel(M // block_M, threads=128) as bx:
            x = T.alloc_fragment((block_M, block_N), "float32")
            best = T.alloc_fragment((block_M,), "float32")
            for k in T.serial(N // block_N):
                T.copy(X[bx * block_M, k * block_N], x)
                T.reduce_max(x, best, dim=1, clear=False)
            T.copy(best, Y[bx * block_M])

    return main


@tilelang.jit
def rmsnorm(M=64, N=512):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float16"), W: T.Tensor((N,), "float16"), Y: T.Tensor((M, N), "float16")):
        with T.Kernel(M // 8, threads=128) as bx:
            x = T.alloc_fragment((8, N), "float32")
            sq = T.alloc_fragment((8, N), "float32")
            s = T.alloc_fragment((8,), "float32")
            T.copy(X[bx * 8, 0], x)
            for i, j in T.Parallel(8, N):
                sq[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(sq, s, dim=1)
            for i, j in T.Parallel(8, N):
                Y[bx * 8 + i, j] = x[i, j] * T.rsqrt(s[i] / N + 1e-6) * W[j]

    return main


@tilelang.jit
def conv_row(N=1024, K=5):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), W: T.Tensor((K,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(N // 128, threads=128) as bx:
            tile = T.alloc_shared((128 + K - 1,), "float32")
            acc = T.alloc_fragment((128,), "float32")
            for i in T.Parallel(128 + K - 1):
                tile[i] = T.if_then_else(bx * 128 + i < N, X[bx * 128 + i], 0.0)
            T.clear(acc)
            for k in T.serial(K):
                for i in T.Parallel(128):
                    acc[i] += tile[i + k] * W[k]
            T.copy(acc, Y[bx * 128])

    return main


@tilelang.jit
def shuffle_sum(N=2048):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N // 128,), "float32")):
        with T.Kernel(N // 128, threads=128) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((2, 128), "float32")
            s[0, tx] = X[bx * 128 + tx]
            for k in T.serial(7):
                T.sync_threads()
                s[(k + 1) % 2, tx] = s[k % 2, tx] + T.if_then_else(
                    tx + (1 << k) < 128, s[k % 2, (tx + (1 << k)) % 128], 0.0
                )
            T.sync_threads()
            if tx == 0:
                Y[bx] = s[1, 0]

    return main


@tilelang.jit
def embedding(V=1000, D=128, N=256):
    @T.prim_func
    def main(Ids: T.Tensor((N,), "int32"), Table: T.Tensor((V, D), "float16"), Y: T.Tensor((N, D), "float16")):
        with T.Kernel(N, threads=64) as bx:
            for j in T.Parallel(D):
                Y[bx, j] = Table[Ids[bx], j]

    return main


@tilelang.jit
def rowdot_uncleared(M=64, K=256):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float32"), x: T.Tensor((K,), "float32"), y: T.Tensor((M,), "float32")):
        with T.Kernel(M // 64, threads=64) as bx:
            tx = T.get_thread_binding()
            acc = T.alloc_local((1,), "float32")
            for k in T.serial(K):
                acc[0] += A[bx * 64 + tx, k] * x[k]
            y[bx * 64 + tx] = acc[0]

    return main


@tilelang.jit
def gemm_swapped(M=256, N=128, K=64):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(N // 64, M // 64, threads=128) as (bx, by):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(K // 32, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[bx * 64, by * 64])

    return main


@tilelang.jit
def gemv_split(M=128, K=1024, split=4):
    @T.prim_func
    def main(A: T.Tensor((M, K), "float32"), x: T.Tensor((K,), "float32"), y: T.Tensor((M,), "float32")):
        with T.Kernel(M // 128, split, threads=128) as (bx, by):
            tx = T.get_thread_binding()
            acc = T.alloc_local((1,), "float32")
            acc[0] = 0.0
            for k in T.serial(K // split):
                acc[0] += A[bx * 128 + tx, by * (K // split) + k] * x[by * (K // split) + k]
            y[bx * 128 + tx] += acc[0]

    return main


@tilelang.jit
def rotate_rows(M=256, N=128):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32")):
        with T.Kernel(M, threads=128) as bx:
            tx = T.get_thread_binding()
            X[bx, tx] = X[(bx + 1) % M, tx]

    return main


@tilelang.jit
def prefix_read(M=64, N=128):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M, N), "float32")):
        with T.Kernel(M // 16, threads=128) as bx:
            s = T.alloc_shared((16, N), "float32")
            T.copy(X[bx * 16, 0], s)
            for i, j in T.Parallel(16, N):
                Y[bx * 16 + i, j] = s[i, j] + s[i + 1, j]

    return main


@tilelang.jit
def local_store(N=1024):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(N // 512, threads=128) as bx:
            tx = T.get_thread_binding()
            r = T.alloc_local((4,), "float32")
            for i in T.serial(5):
                r[i] = X[bx * 512 + i * 128 + tx]
            for i in T.serial(4):
                Y[bx * 512 + i * 128 + tx] = r[i] * 2.0

    return main


@tilelang.jit(pass_configs=NO_SYNC)
def tile_transpose(N=256):
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N, N), "float32")):
        with T.Kernel(N // 32, N // 32, threads=128) as (bx, by):
            s = T.alloc_shared((32, 32), "float32")
            for i, j in T.Parallel(32, 32):
                s[i, j] = A[by * 32 + i, bx * 32 + j]
            for i, j in T.Parallel(32, 32):
                B[bx * 32 + i, by * 32 + j] = s[j, i]

    return main


@tilelang.jit(pass_configs=NO_SYNC)
def guarded_barrier(N=1000):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 128), threads=128) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            if bx * 128 + tx < N:
                s[tx] = X[bx * 128 + tx]
                T.sync_threads()
                Y[bx * 128 + tx] = s[tx] * 2.0

    return main


@tilelang.jit
def normalize_by_max(N=1024):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Best: T.Tensor((N // 128,), "float32"), Y: T.Tensor((N,), "float32")):
        with T.Kernel(N // 128, threads=128) as bx:
            x = T.alloc_fragment((128,), "float32")
            m = T.alloc_fragment((1,), "float32")
            every = T.alloc_fragment((N // 128,), "float32")
            top = T.alloc_fragment((1,), "float32")
            T.copy(X[bx * 128], x)
            T.reduce_max(x, m, dim=0)
            T.copy(m, Best[bx])
            T.copy(Best, every)
            T.reduce_max(every, top, dim=0)
            for i in T.Parallel(128):
                Y[bx * 128 + i] = x[i] / top[0]

    return main


@tilelang.jit
def histogram_shared_plain(N=4096):
    @T.prim_func
    def main(X: T.Tensor((N,), "int32"), H: T.Tensor((32,), "int32")):
        with T.Kernel(N // 1024, threads=128) as bx:
            tx = T.get_thread_binding()
            bins = T.alloc_shared((32,), "int32")
            if tx < 32:
                bins[tx] = 0
            T.sync_threads()
            for k in T.serial(8):
                b = X[bx * 1024 + k * 128 + tx] & 31
                bins[b] = bins[b] + 1
            T.sync_threads()
            if tx < 32:
                T.atomic_add(H[tx], bins[tx])

    return main


@tilelang.jit
def histogram_unset(N=4096):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), H: T.Tensor((16,), "int32")):
        with T.Kernel(4, threads=256) as bx:
            tx = T.get_thread_binding()
            bins = T.alloc_shared((16,), "int32")
            for k in T.serial(4):
                v = T.cast(T.min(T.max(X[bx * 1024 + k * 256 + tx] * 16.0, 0.0), 15.0), "int32")
                T.atomic_add(bins[v], 1)
            T.sync_threads()
            if tx < 16:
                T.atomic_add(H[tx], bins[tx])

    return main


@tilelang.jit
def column_sums_stored(M=512, N=128):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), S: T.Tensor((N,), "float32")):
        with T.Kernel(M // 64, threads=128) as bx:
            x = T.alloc_fragment((64, N), "float32")
            s = T.alloc_fragment((N,), "float32")
            T.copy(X[bx * 64, 0], x)
            T.reduce_sum(x, s, dim=0)
            T.copy(s, S[0])

    return main


@tilelang.jit
def running_max(M=64, N=512):
    @T.prim_func
    def main(X: T.Tensor((M, N), "float32"), Y: T.Tensor((M,), "float32"), L: T.Tensor((M,), "float32")):
        with T.Kernel(M // 16, threads=128) as bx:
            x = T.alloc_fragment((16, 128), "float32")
            m = T.alloc_fragment((16,), "float32")
            total = T.alloc_fragment((16,), "float32")
            part = T.alloc_fragment((16,), "float32")
            T.fill(m, -T.infinity("float32"))
            for k in T.serial(N // 128):
                T.copy(X[bx * 16, k * 128], x)
                T.reduce_max(x, m, dim=1, clear=False)
                T.reduce_sum(x, part, dim=1)
                for i in T.Parallel(16):
                    total[i] = total[i] + part[i]
            T.copy(m, Y[bx * 16])
            T.copy(total, L[bx * 16])

    return main


def counts_of_bytes():
    @T.prim_func
    def main(X: T.Tensor((8192,), "uint8"), H: T.Tensor((256,), "int32")):
        with T.Kernel(4, threads=256) as bx:
            tx = T.get_thread_binding()
            bins = T.alloc_shared((256,), "int32")
            T.clear(bins)
            T.sync_threads()
            for k in T.serial(8):
                b = T.cast(X[bx * 2048 + k * 256 + tx], "int32")
                bins[b] += 1
            T.sync_threads()
            T.atomic_add(H[tx], bins[tx])

    return main


def counts_of_a_tail():
    @T.prim_func
    def main(X: T.Tensor((5000,), "int32"), H: T.Tensor((64,), "int32")):
        with T.Kernel(5, threads=128) as bx:
            tx = T.get_thread_binding()
            bins = T.alloc_shared((64,), "int32")
            T.clear(bins)
            for k in T.serial(8):
                i = bx * 1024 + k * 128 + tx
                if i < 5000:
                    bins[X[i]] = bins[X[i]] + 1
            T.sync_threads()
            if tx < 64:
                T.atomic_add(H[tx], bins[tx])

    return main


def counts_of_all_blocks():
    @T.prim_func
    def main(X: T.Tensor((65536,), "int32"), H: T.Tensor((1000,), "int32")):
        with T.Kernel(512, threads=128) as bx:
            tx = T.get_thread_binding()
            H[X[bx * 128 + tx]] += 1

    return main


def counts_that_may_differ():
    @T.prim_func
    def main(X: T.Tensor((128,), "int32"), H: T.Tensor((1000,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            if tx < 100:
                H[X[tx]] += 1

    return main


def scattered_sums():
    @T.prim_func
    def main(X: T.Tensor((4096,), "float32"), to: T.Tensor((4096,), "int32"), Y: T.Tensor((4096,), "float32")):
        with T.Kernel(32, threads=128) as bx:
            tx = T.get_thread_binding()
            Y[to[bx * 128 + tx]] += X[bx * 128 + tx]

    return main


def unit_histogram_unset():
    @T.prim_func
    def main(X: T.Tensor((32, 1024), "float32"), H: T.Tensor((128,), "int32")):
        with T.Kernel(32, threads=128) as row:
            tx = T.get_thread_binding()
            bins = T.alloc_shared((128,), "int32")
            for k in T.serial(8):
                b = T.min(T.cast(X[row, k * 128 + tx] * 128.0, "int32"), 127)
                T.atomic_add(bins[b], 1)
            T.sync_threads()
            T.atomic_add(H[tx], bins[tx])

    return main


@tilelang.jit
def replicas(N=32, threads=256):
    """Eight threads write one value, and each reads what it wrote itself."""

    @T.prim_func
    def main(X: T.Tensor((4, N), "float32"), Y: T.Tensor((4, threads), "float32")):
        with T.Kernel(1, threads=threads):
            s = T.alloc_shared((4 * N,), "float32")
            tx = T.get_thread_binding()
            for i in T.serial(4):
                s[i * N + tx // 8] = X[i, tx // 8] * 2.0
                Y[i, tx] = s[i * N + tx // 8]
                T.sync_threads()

    return main


gemm_relu = Case(gemm_relu)
replicas = Case(replicas)
saxpy = Case(saxpy)
block_sum = Case(block_sum)
histogram = Case(histogram)
transpose = Case(transpose)
gemm_uncleared = Case(gemm_uncleared)
transpose_swapped = Case(transpose_swapped)
gemm_split_k = Case(gemm_split_k)
shift_left = Case(shift_left)
diff_read = Case(diff_read)
pad_store = Case(pad_store)
reverse_tile = Case(reverse_tile)
tree_sum_divergent = Case(tree_sum_divergent)
half_of_the_block = Case(half_of_the_block)
exclusive_scan = Case(exclusive_scan)
histogram_plain = Case(histogram_plain)
histogram_dirty = Case(histogram_dirty)
histogram_stored = Case(histogram_stored)
row_max = Case(row_max)
rmsnorm = Case(rmsnorm)
conv_row = Case(conv_row)
shuffle_sum = Case(shuffle_sum)
embedding = Case(embedding)
rowdot_uncleared = Case(rowdot_uncleared)
gemm_swapped = Case(gemm_swapped)
gemv_split = Case(gemv_split)
rotate_rows = Case(rotate_rows)
prefix_read = Case(prefix_read)
local_store = Case(local_store)
tile_transpose = Case(tile_transpose)
guarded_barrier = Case(guarded_barrier)
normalize_by_max = Case(normalize_by_max)
histogram_shared_plain = Case(histogram_shared_plain)
histogram_unset = Case(histogram_unset)
column_sums_stored = Case(column_sums_stored)
running_max = Case(running_max)
counts_of_bytes = Case(counts_of_bytes)
counts_of_a_tail = Case(counts_of_a_tail)
counts_of_all_blocks = Case(counts_of_all_blocks)
counts_that_may_differ = Case(counts_that_may_differ)
scattered_sums = Case(scattered_sums)
unit_histogram_unset = Case(unit_histogram_unset)
