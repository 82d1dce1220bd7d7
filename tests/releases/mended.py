"""Kernels that show bugs of TileLang on sm_100 and in clusters: which releases have each says `test_mended.py`."""

import tilelang
import tilelang.language as T

from tlcheck.case import Case

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


ts = Case(ts_pair, targets=("sm_100",))
zeros = Case(bulk_zeros, targets=("sm_100",))
odd = Case(odd_bytes, targets=("sm_90",))
phases = Case(parities, targets=("sm_90",))
pair = Case(bytes_of_pairs, {"ranks": 2}, targets=("sm_100",))
pairs = Case(bytes_of_pairs, {"ranks": 4}, targets=("sm_100",))
words = Case(negative_words, targets=("sm_100",))
bytes_ = Case(equal_bytes, targets=("sm_100",))
columns = Case(many_columns, targets=("sm_100",))
