# mypy: ignore-errors
# ruff: noqa: N803, N812
"""Kernels in every form in which one is written. A line with an atomic ends in `# atomic`."""

import tilelang
import tilelang.language as T
import torch

from tlcheck import Case

FAST_MATH = {tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True}


def simt(rows, threads=128):
    @T.prim_func
    def main(A: T.Tensor((rows,), "float32"), B: T.Tensor((rows,), "float32")):
        with T.Kernel(1, threads=threads):
            for i in T.Parallel(rows):
                T.atomic_add(B[i], A[i] * 2.0)  # atomic

    return main


@tilelang.jit(pass_configs=FAST_MATH)
def tile(rows, dtype="float32"):
    @T.prim_func
    def main(A: T.Tensor((rows, 64), dtype), B: T.Tensor((rows, 64), dtype)):
        with T.Kernel(T.ceildiv(rows, 64), threads=128) as block:
            held = T.alloc_fragment((64, 64), dtype)
            T.copy(A[block * 64 : block * 64 + 64, 0:64], held)
            T.atomic_add(B[block * 64 : block * 64 + 64, 0:64], held)  # atomic
            T.atomic_add(
                B[block * 64 : block * 64 + 64, 0:64],
                held,
            )

    return main


def by_capability():
    major, minor = torch.cuda.get_device_capability()
    return simt(128 * (10 * major + minor))


def histogram():
    @T.prim_func
    def main(A: T.Tensor((512,), "int32"), C: T.Tensor((256,), "int32"), D: T.Tensor((512,), "int32")):
        with T.Kernel(1, threads=128):
            bins = T.alloc_shared((256,), "int32")
            thread = T.get_thread_binding()
            T.fill(bins, 0)
            for k in T.serial(4):
                before = T.atomic_add(bins[A[k * 128 + thread]], 1, return_prev=True)  # atomic
                D[k * 128 + thread] = before
            for i in T.Parallel(256):
                T.atomic_add(C[i], bins[i])  # atomic

    return main


def pipelined():
    @T.prim_func
    def main(A: T.Tensor((64, 512), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, 64), "float32")
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[0, k * 64], tile)
                T.atomic_add(B[0:64, 0:64], tile)  # atomic

    return main


def reduced():
    @T.prim_func
    def main(A: T.Tensor((64, 32), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=128) as bx:
            tile = T.alloc_fragment((64, 32), "float32")
            sums = T.alloc_fragment((64,), "float32")
            T.copy(A, tile)
            if bx < 1:
                T.reduce_sum(tile, sums, dim=1)
                T.copy(sums, B)

    return main


def two_kernels():
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                T.atomic_add(B[i], A[i])  # atomic
        with T.Kernel(1, threads=128):
            for i in T.Parallel(128):
                T.atomic_add(C[i], B[i])  # atomic

    return main


ready = simt(512)
small = Case(simt, args={"rows": 128})
large = Case(tile, args={"rows": 4096})
