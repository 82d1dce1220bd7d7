"""A case with inputs and a reference: what the kernel is meant to compute."""

import tilelang
import tilelang.language as T

from tlcheck.case import Case


@tilelang.jit
def scale(M, N, block=64):
    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(M, block), threads=128) as bx:
            for i, j in T.Parallel(block, N):
                B[bx * block + i, j] = A[bx * block + i, j] * 2.0

    return main


def inputs(args, generator, device):
    import torch

    shape = (args["M"], args["N"])
    return torch.randn(shape, generator=generator, device=device), torch.zeros(shape, device=device)


def reference(args, A, B):
    return {"B": A.double() * 2.0}


small = Case(scale, args={"M": 64, "N": 32}, targets=("sm_80",), inputs=inputs, reference=reference)
