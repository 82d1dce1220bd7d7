"""Kernels that show bugs of TileLang on sm_100 and in clusters: which releases have each says `test_mended.py`."""

import tilelang
import tilelang.language as T

from tlcheck.case import Case

LINEAR = getattr(tilelang.layout, "make_linear_layout", None)  # older releases have another word for it
CLUSTER = getattr(T, "ClusterKernel", T.Kernel)  # T.Kernel of older releases has clusters, too
NOWS = {"tl.disable_warp_specialized": True}


@tilelang.jit
def ts_pair():
    """C = A @ B.T of two blocks, A from tensor memory (pull request 2287)."""

    @T.prim_func
    def main(A: T.Tensor((256, 64), "bfloat16"), B: T.Tensor((64, 64), "bfloat16"), C: T.Tensor((256, 64), "float32")):
        with CLUSTER(2, threads=128, cluster_dims=2) as block:
            a = T.alloc_shared((128, 64), "bfloat16")
            held = T.alloc_fragment((128, 64), "bfloat16")
            left = T.alloc_tmem((128, 64), "bfloat16")
            b = T.alloc_shared((32, 64), "bfloat16")
            sums = T.alloc_tmem((128, 64), "float32")
            c = T.alloc_fragment((128, 64), "float32")
            done = T.alloc_cluster_barrier([1])
            rank = T.block_rank_in_cluster()
            T.assume(rank < 2)
            T.copy(A[block * 128, 0], a)
            T.copy(B[rank * 32, 0], b)
            T.copy(a, held)
            T.copy(held, left)
            T.fence_proxy_async()
            T.tcgen05_before_thread_sync()
            T.cluster_sync()
            T.tcgen05_after_thread_sync()
            if rank == 0 and T.get_thread_binding() < 32:
                T.tcgen05_gemm(left, b, sums, transpose_B=True, mbar=done, clear_accum=True, use_2cta=True)
            T.mbarrier_wait_parity(done, 0)
            T.copy(sums, c)
            T.copy(c, C[block * 128, 0])

    return main


@tilelang.jit(pass_configs=NOWS)
def bulk_zeros():
    """Shared memory is cleared by one thread, with st.bulk, and read by all (pull request 2700)."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float32"), C: T.Tensor((128, 64), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128, 64), "float32")
            f = T.alloc_fragment((128, 64), "float32")
            T.clear(s)
            for i, j in T.Parallel(128, 64):
                f[i, j] = A[i, j] + s[i, j]
            T.copy(f, C)

    return main


@tilelang.jit(pass_configs=NOWS)
def odd_bytes():
    """508 bytes go to another block's shared memory (pull request 2683)."""

    @T.prim_func
    def main(A: T.Tensor((127,), "float32"), B: T.Tensor((127,), "float32")):
        with CLUSTER(2, threads=128, cluster_dims=2) as block:
            own = T.alloc_shared((127,), "float32")
            theirs = T.alloc_shared((127,), "float32")
            come = T.alloc_cluster_barrier([1])
            T.fill(theirs, 0.0)
            T.cluster_sync()
            if block == 0:
                T.copy(A, own)
                T.copy_cluster(own, theirs, dst_block=1, remote_barrier=come[0])
            if block == 1:
                T.mbarrier_wait_parity(come[0], 0)
                T.copy(theirs, B)
            T.cluster_sync()

    return main


@tilelang.jit(pass_configs=NOWS)
def parities():
    """Each step has an mbarrier of its own, whose phase T.copy_cluster takes from the loop (issue 2927, open)."""

    @T.prim_func
    def main(A: T.Tensor((4, 64, 64), "float16"), B: T.Tensor((2, 4, 64, 64), "float16")):
        with CLUSTER(2, threads=128, cluster_dims=2) as block:
            s = T.alloc_shared((4, 64, 64), "float16")
            come = T.alloc_barrier([1] * 4)
            T.cluster_sync()
            for k in T.serial(4):
                T.copy_cluster(A[k, :, :], s[k, :, :], cluster_mask=3, remote_barrier=come[k])
            for k in T.serial(4):
                T.copy(s[k, :, :], B[block, k, :, :])
            T.cluster_sync()

    return main


@tilelang.jit(pass_configs=NOWS)
def bytes_of_pairs(ranks: int):
    """The first block of each pair waits for the bytes of both, in a cluster of `ranks` (issue 2644)."""

    @T.prim_func
    def main(A: T.Tensor((ranks * 128, 128), "bfloat16"), B: T.Tensor((ranks * 128, 64), "bfloat16")):
        with CLUSTER(ranks, threads=128, cluster_dims=ranks) as block:
            s = T.alloc_shared((128, 64), "bfloat16")
            come = T.alloc_cluster_barrier([64])
            rank, thread = T.block_rank_in_cluster(), T.get_thread_binding()
            T.assume(rank < ranks)
            T.cluster_sync()
            if thread < 32:
                T.tma_copy(A[block * 128 : (block + 1) * 128, 0:64], s, barrier=come[0])
                T.mbarrier_arrive(come[0], rank // 2 * 2)
            if rank % 2 == 0:
                T.mbarrier_wait_parity(come[0], 0)
            T.cluster_sync()
            T.copy(s, B[block * 128, 0])
            T.cluster_sync()

    return main


@tilelang.jit
def negative_words():
    """Equal int32 fill vectors of 256 bits (issue 2489, pull request 2673)."""

    @T.prim_func
    def main(A: T.Tensor((4096,), "int32")):
        with T.Kernel(2, threads=128) as block:
            for i in T.Parallel(2048):
                A[block * 2048 + i] = -7

    return main


@tilelang.jit
def equal_bytes():
    """Equal constants of eight bits fill vectors of 256 bits (pull request 2701)."""

    @T.prim_func
    def main(A: T.Tensor((16384,), "uint8")):
        with T.Kernel(2, threads=128) as block:
            for i in T.Parallel(8192):
                A[block * 8192 + i] = T.uint8(213)

    return main


@tilelang.jit
def many_columns():
    """Sums of 256, 128 and five times 16 columns of the 512 of tensor memory: an allocation has 32 at least (2831)."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "bfloat16"),
        B: T.Tensor((256, 64), "bfloat16"),
        C: T.Tensor((128, 256), "float32"),
        D: T.Tensor((128, 128), "float32"),
        E: T.Tensor((5, 128, 16), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "bfloat16")
            b = T.alloc_shared((256, 64), "bfloat16")
            widest = T.alloc_tmem((128, 256), "float32")
            wide = T.alloc_tmem((128, 128), "float32")
            first = T.alloc_tmem((128, 16), "float32")
            second = T.alloc_tmem((128, 16), "float32")
            third = T.alloc_tmem((128, 16), "float32")
            fourth = T.alloc_tmem((128, 16), "float32")
            fifth = T.alloc_tmem((128, 16), "float32")
            c = T.alloc_fragment((128, 256), "float32")
            d = T.alloc_fragment((128, 128), "float32")
            e = T.alloc_fragment((128, 16), "float32")
            done = T.alloc_barrier([1] * 7)
            T.copy(A, a)
            T.copy(B, b)
            T.tcgen05_gemm(a, b, widest, transpose_B=True, mbar=done[0], clear_accum=True)
            T.mbarrier_wait_parity(done[0], 0)
            T.tcgen05_gemm(a, b[0:128, :], wide, transpose_B=True, mbar=done[1], clear_accum=True)
            T.mbarrier_wait_parity(done[1], 0)
            T.tcgen05_gemm(a, b[0:16, :], first, transpose_B=True, mbar=done[2], clear_accum=True)
            T.mbarrier_wait_parity(done[2], 0)
            T.tcgen05_gemm(a, b[16:32, :], second, transpose_B=True, mbar=done[3], clear_accum=True)
            T.mbarrier_wait_parity(done[3], 0)
            T.tcgen05_gemm(a, b[32:48, :], third, transpose_B=True, mbar=done[4], clear_accum=True)
            T.mbarrier_wait_parity(done[4], 0)
            T.tcgen05_gemm(a, b[48:64, :], fourth, transpose_B=True, mbar=done[5], clear_accum=True)
            T.mbarrier_wait_parity(done[5], 0)
            T.tcgen05_gemm(a, b[64:80, :], fifth, transpose_B=True, mbar=done[6], clear_accum=True)
            T.mbarrier_wait_parity(done[6], 0)
            T.copy(widest, c)
            T.copy(c, C)
            T.copy(wide, d)
            T.copy(d, D)
            T.copy(first, e)
            T.copy(e, E[0, :, :])
            T.copy(second, e)
            T.copy(e, E[1, :, :])
            T.copy(third, e)
            T.copy(e, E[2, :, :])
            T.copy(fourth, e)
            T.copy(e, E[3, :, :])
            T.copy(fifth, e)
            T.copy(e, E[4, :, :])

    return main


@tilelang.jit
def odd_tail():
    """252 bytes are stored by one bulk copy (issue 2525, pull request 2646)."""

    @T.prim_func
    def main(A: T.Tensor((63,), "float32"), B: T.Tensor((63,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((63,), "float32")
            for i in T.Parallel(63):
                s[i] = A[i] + 1.0
            T.copy(s, B)

    return main


@tilelang.jit
def last_tile():
    """The last of four tiles reaches beyond the tensor (issue 2529, pull request 2716)."""

    @T.prim_func
    def main(B: T.Tensor((1000,), "float32")):
        with T.Kernel(4, threads=128) as block:
            s = T.alloc_shared((256,), "float32")
            T.annotate_layout({s: LINEAR(s)})
            for i in T.Parallel(256):
                s[i] = T.cast(block * 256 + i, "float32")
            T.copy(s, B[block * 256])

    return main


@tilelang.jit
def padded_rows():
    """Rows of 32 numbers lie 40 apart (pull request 2746)."""

    @T.prim_func
    def main(A: T.Tensor((2, 32), "float32"), B: T.StridedTensor((2, 32), (40, 1), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((2, 32), "float32")
            for i, j in T.Parallel(2, 32):
                s[i, j] = A[i, j]
            T.copy(s, B)

    return main


@tilelang.jit
def small_stages():
    """A stage of a pipeline has 64 bytes (issue 2528, pull request 2737)."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float16"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((32,), "float16")
            f = T.alloc_fragment((32,), "float32")
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[k * 32 : (k + 1) * 32], s)
                T.copy(s, f)
                for i in T.Parallel(32):
                    B[k * 32 + i] = f[i] * 2.0

    return main


@tilelang.jit(pass_configs={"tl.disable_data_race_check": True, "tl.disable_thread_storage_sync": True})
def sum_of_half():
    """Half of the threads hold what is reduced (pull request 2777)."""

    @T.prim_func
    def main(A: T.Tensor((4, 512), "float32"), B: T.Tensor((4, 512), "float32")):
        with T.Kernel(1, threads=128):
            f = T.alloc_fragment((4, 512), "float32")
            sums = T.alloc_fragment((4,), "float32")
            held = T.Fragment(f.shape, forward_fn=lambda i, j: (j // 8, i * 8 + j % 8))
            total = T.Fragment(sums.shape, forward_fn=lambda i, copy: (copy, i), replicate=64)
            T.annotate_layout({f: held, sums: total})
            for i, j in T.Parallel(4, 512):
                f[i, j] = A[i, j]
            T.reduce_sum(f, sums, dim=1)
            for i, j in T.Parallel(4, 512):
                B[i, j] = f[i, j] + sums[i]

    return main


@tilelang.jit(pass_configs=NOWS)
def halves_of_sums():
    """Two products into the halves of one tile of tensor memory (pull request 2785)."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "bfloat16"), B: T.Tensor((128, 64), "bfloat16"), C: T.Tensor((128, 128), "float32")
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 64), "bfloat16")
            first = T.alloc_shared((64, 64), "bfloat16")
            second = T.alloc_shared((64, 64), "bfloat16")
            sums = T.alloc_tmem((128, 128), "float32")
            c = T.alloc_fragment((128, 128), "float32")
            done = T.alloc_barrier([1, 1])
            T.copy(A, a)
            T.copy(B[0:64, :], first)
            T.copy(B[64:128, :], second)
            T.tcgen05_gemm(a, first, sums[:, 0:64], transpose_B=True, mbar=done[0], clear_accum=True)
            T.tcgen05_gemm(a, second, sums[:, 64:128], transpose_B=True, mbar=done[1], clear_accum=True)
            T.mbarrier_wait_parity(done[0], 0)
            T.mbarrier_wait_parity(done[1], 0)
            T.copy(sums, c)
            T.copy(c, C)

    return main


@tilelang.jit(pass_configs=NOWS)
def lower_rows():
    """A is the lower half of a tile, K two swizzle atoms wide (issue 2964, pull request 2965)."""

    @T.prim_func
    def main(
        A: T.Tensor((256, 128), "bfloat16"), B: T.Tensor((64, 128), "bfloat16"), C: T.Tensor((128, 64), "float32")
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((256, 128), "bfloat16")
            b = T.alloc_shared((64, 128), "bfloat16")
            sums = T.alloc_tmem((128, 64), "float32")
            c = T.alloc_fragment((128, 64), "float32")
            done = T.alloc_barrier(1)
            T.copy(A, a)
            T.copy(B, b)
            T.tcgen05_gemm(a[128:256, :], b, sums, transpose_B=True, mbar=done, clear_accum=True)
            T.mbarrier_wait_parity(done, 0)
            T.copy(sums, c)
            T.copy(c, C)

    return main


@tilelang.jit(pass_configs=NOWS)
def stored_by_threads():
    """Threads store what a block-scaled product reads, and nobody but TileLang can fence (pull request 3139)."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 128), "float8_e4m3fn"),
        B: T.Tensor((128, 128), "float8_e4m3fn"),
        FA: T.Tensor((128,), "uint32"),
        FB: T.Tensor((128,), "uint32"),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 128), "float8_e4m3fn")
            b = T.alloc_shared((128, 128), "float8_e4m3fn")
            fa = T.alloc_shared((128,), "uint32")
            fb = T.alloc_shared((128,), "uint32")
            of_a = T.alloc_tmem((128, 4), "uint32")
            of_b = T.alloc_tmem((128, 4), "uint32")
            sums = T.alloc_tmem((128, 128), "float32")
            c = T.alloc_fragment((128, 128), "float32")
            done = T.alloc_barrier(1)
            T.copy(FA, fa)
            T.copy(FB, fb)
            T.sync_threads()
            if T.get_thread_binding() < 32:
                T.tcgen05_sf_warp_transpose(fa)
                T.tcgen05_sf_warp_transpose(fb)
                T.fence_proxy_async()
            for i, j in T.Parallel(128, 128):
                a[i, j] = A[i, j]
            for i, j in T.Parallel(128, 128):
                b[i, j] = B[i, j]
            T.sync_threads()
            if T.get_thread_binding() < 32:
                T.tcgen05_cp_warpx4(fa, of_a)
                T.tcgen05_cp_warpx4(fb, of_b)
                T.tcgen05_gemm_blockscaled(
                    a,
                    b,
                    sums,
                    of_a,
                    of_b,
                    transpose_B=True,
                    mbar=done,
                    clear_accum=True,
                    k_start=0,
                    sf_a_granularity_k=128,
                    sf_b_granularity_k=128,
                )
            T.mbarrier_wait_parity(done, 0)
            T.copy(sums, c)
            T.copy(c, C)

    return main


@tilelang.jit
def early_read():
    """The consumer reads what threads of the producer copy before a bulk copy's tile (pull request 2166)."""

    @T.prim_func
    def main(
        A: T.Tensor((64, 256), "float16"),
        B: T.Tensor((64, 256), "float16"),
        rows: T.Tensor((4, 64), "int32"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            picked = T.alloc_shared((64, 64), "float16")
            f = T.alloc_fragment((64, 64), "float32")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            T.clear(f)
            for k in T.Pipelined(4, num_stages=2):
                for i, j in T.Parallel(64, 64):
                    picked[i, j] = A[rows[k, i], k * 64 + j]
                T.copy(A[0, k * 64], a)
                T.copy(B[0, k * 64], b)
                for i, j in T.Parallel(64, 64):
                    f[i, j] += picked[i, j]
                T.gemm(a, b, c, transpose_B=True)
            for i, j in T.Parallel(64, 64):
                C[i, j] = c[i, j] + f[i, j]

    return main


@tilelang.jit(pass_configs={"tl.disable_thread_storage_sync": True})
def behind_words():
    """A swizzled tile lies behind 128 bytes of words (pull request 2391)."""

    @T.prim_func
    def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 64), "float16"), D: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=256):
            words = T.alloc_shared((32,), "int32")
            s = T.alloc_shared((128, 64), "float16")
            T.annotate_layout({s: tilelang.layout.make_swizzled_layout(s)})
            thread = T.get_thread_binding(0)
            if thread < 32:
                words[thread] = thread
            T.sync_threads()
            come = T.alloc_barrier(256)
            T.tma_copy(A[0, 0], s, barrier=come)
            T.barrier_arrive(come)
            T.mbarrier_wait_parity(come, 0)
            for i in T.serial(32):
                B[thread // 2, thread % 2 * 32 + i] = s[thread // 2, thread % 2 * 32 + i]
            if thread == 0:
                D[0] = words[31]

    return main


ts = Case(ts_pair, targets=("sm_100",))
zeros = Case(bulk_zeros, targets=("sm_100",))
odd = Case(odd_bytes, targets=("sm_90",))
phases = Case(parities, targets=("sm_90",))
pair = Case(bytes_of_pairs, {"ranks": 2}, targets=("sm_100",))
pairs = Case(bytes_of_pairs, {"ranks": 4}, targets=("sm_100",))
words = Case(negative_words, targets=("sm_100",))
bytes_ = Case(equal_bytes, targets=("sm_100",))
columns = Case(many_columns, targets=("sm_100",))
tail = Case(odd_tail, targets=("sm_120",))
tile = Case(last_tile, targets=("sm_100",))
rows_ = Case(padded_rows, targets=("sm_100",))
stages = Case(small_stages, targets=("sm_100",))
half = Case(sum_of_half, targets=("sm_120",))
halves = Case(halves_of_sums, targets=("sm_100",))
lower = Case(lower_rows, targets=("sm_100",))
stored = Case(stored_by_threads, targets=("sm_100",))
early = Case(early_read, targets=("sm_120",))
behind = Case(behind_words, targets=("sm_120",))
