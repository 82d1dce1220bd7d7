"""Kernels that talk while they are interpreted."""

import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case

N, BLOCK = 64, 32


@tilelang.jit(out_idx=[-1])
def talking(more=1.0):
    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(N // BLOCK, threads=32) as bx:
            s = T.alloc_shared((2, BLOCK // 2), "float32")
            r = T.alloc_fragment((BLOCK,), "float32")
            T.copy(A[bx * BLOCK], r)
            for i in T.Parallel(BLOCK):
                s[i // 16, i % 16] = i
            T.print(s, msg="tile")
            for k in T.serial(2):
                T.print(bx, msg="block's number")
                if bx == 1:
                    breakpoint()
                for i in T.Parallel(BLOCK):
                    r[i] = r[i] + more
            T.copy(r, C[bx * BLOCK])

    return kernel


@tilelang.jit(out_idx=[-1])
def plain():
    @T.prim_func
    def kernel(A: T.Tensor((N,), "float32"), C: T.Tensor((N,), "float32")):
        with T.Kernel(N // BLOCK, threads=32) as bx:
            T.print(T.get_thread_binding(), msg="thread")
            T.copy(A[bx * BLOCK], C[bx * BLOCK])

    return kernel


def inputs(args, generator, device):
    return torch.randn(N, generator=generator), torch.empty(N)


def reference(args, A, C):
    return {"C": A.double() + 2}


right = Case(talking, inputs=inputs, reference=reference)
wrong = Case(talking, args={"more": 2.0}, inputs=inputs, reference=reference)
