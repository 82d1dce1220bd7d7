"""Kernels in which tlcheck once failed: each has something that hardly any kernel has.

`tlcheck check odd_cases.py --arch sm_90 --toolchain 0.1.15 --save DIR`, then `zip odd-0.1.15.zip DIR/*`.
"""

import tilelang
import tilelang.language as T


@tilelang.jit
def bits_of_halves():
    @T.prim_func
    def main(A: T.Tensor((128,), "float16"), B: T.Tensor((128,), "float16")):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            B[tx] = T.warp_reduce_bitand(A[tx])

    return main


@tilelang.jit(pass_configs={"tl.enable_lower_ldgstg": True})
def asked_by_a_word():
    """A branch that waits, by a condition that is loaded as a word."""

    @T.prim_func
    def main(A: T.Tensor((4, 128), "float32"), I: T.Tensor((2,), "int32"), B: T.Tensor((2, 4, 128), "float32")):
        with T.Kernel(2, threads=128) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((128,), "float32")
            if I[bx] > 2:
                for k in T.serial(4):
                    s[tx] = A[k, tx]
                    B[bx, k, tx] = s[127 - tx]

    return main


@tilelang.jit
def safe_below_zero():
    @T.prim_func
    def main(A: T.Tensor((40, 50), "uint8"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(2, 2, threads=128) as (bx, by):
            T.annotate_safe_value({A: -99})
            s = T.alloc_shared((32, 32), "float32")
            T.copy(A[by * 32, bx * 32], s)
            T.copy(s, B[by * 32, bx * 32])

    return main


@tilelang.jit
def for_nobody():
    """No iteration adds."""

    @T.prim_func
    def main(A: T.Tensor((512,), "float32"), I: T.Tensor((1,), "int32"), B: T.Tensor((1024,), "float32")):
        with T.Kernel(1, threads=128) as _:
            for i in T.Parallel(512):
                if i > 0:
                    if i < 1:
                        T.atomic_add(B[I[0] + i], A[i])

    return main


@tilelang.jit
def as_often_as_the_thread():
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=128) as _:
            tx = T.get_thread_binding()
            for z in T.serial(tx, 1, 3):
                T.atomic_addx2(B[tx * 2], A[tx * 2])

    return main


@tilelang.jit
def scan_of_nothing():
    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=128) as _:
            s = T.alloc_shared((16,), "int32")
            T.copy(A, s)
            T.cumsum(src=s[100:16], dst=s[100:16], dim=0)
            T.copy(s, B)

    return main


@tilelang.jit
def register_of_all():
    """More iterations than threads read a register, and memory that nothing has set."""

    @T.prim_func
    def main(A: T.Tensor((400,), "float32"), B: T.Tensor((400,), "float32")):
        with T.Kernel(1, threads=128) as _:
            n = T.alloc_var("int32")
            s = T.alloc_shared((400,), "float32")
            n = 3
            for i in T.Parallel(400):
                B[i] = T.if_then_else(i > n, A[i], s[i])

    return main
