# ruff: noqa: N803, N806, N812
# mypy: ignore-errors
"""A script that reads what its kernels leave and goes on by it: three styles, atomics, a tuner."""

import os
import tempfile

import tilelang
import tilelang.language as T
import torch

SIZE = 4096


@tilelang.jit(out_idx=[1])
def add(n, block=256):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=128) as b:
            for i in T.Parallel(block):
                B[b * block + i] = A[b * block + i] + 1.0

    return main


@tilelang.jit
def count(n, bins):
    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), S: T.Tensor((bins,), "float32"), weight: T.float32):
        with T.Kernel(T.ceildiv(n, 256), threads=256) as b:
            for i in T.Parallel(256):
                T.atomic_add(S[A[b * 256 + i]], weight)

    return main


@tilelang.jit
def twice(A):
    N = T.const("N")
    A: T.Tensor[[N], T.float16]
    B = T.empty((N,), T.float16)
    with T.Kernel(T.ceildiv(N, 256), threads=128) as b:
        for i in T.Parallel(256):
            B[b * 256 + i] = A[b * 256 + i] * 2.0
    return B


tuned = tilelang.autotune(configs=[{"block": block} for block in (256, 512)], warmup=1, rep=2)(add)


if __name__ == "__main__":
    os.chdir(tempfile.gettempdir())  # the tuner writes a log
    x = torch.randn(SIZE, device="cuda")
    torch.testing.assert_close(add(SIZE)(x), x + 1)

    bins = torch.zeros(16, device="cuda")
    counted = count(SIZE, 16)
    which = torch.arange(SIZE, device="cuda", dtype=torch.int32) % 16
    counted(which, bins, 2.0)
    if bins.sum().item() == 2 * SIZE:
        counted(which, bins, 1.0)
    assert bins.tolist() == [3 * SIZE / 16] * 16

    half = x.half()
    torch.testing.assert_close(twice(half), 2 * half)

    best = tuned(4 * SIZE)
    assert best.config["block"] in (256, 512)
    assert best(torch.zeros(4 * SIZE, device="cuda")).sum().item() == 4 * SIZE
