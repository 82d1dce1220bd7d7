"""Cases for `tlcheck run --device cpu`: right, wrong on either side, without a reference, with unfit inputs."""

import os
import signal

import tilelang
import tilelang.language as T
import torch

from tlcheck.case import Case


@tilelang.jit
def scaled(factor=2):
    """Multiply 256 numbers."""

    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), C: T.Tensor((256,), "float32")):
        with T.Kernel(2, threads=128) as block:
            for i in T.Parallel(128):
                C[block * 128 + i] = A[block * 128 + i] * factor

    return main


@tilelang.jit
def converted():
    """Add bfloat16 numbers to float16 ones, in pairs."""

    @T.prim_func
    def main(A: T.Tensor((256,), "bfloat16"), B: T.Tensor((256,), "float16")):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((256,), "bfloat16")
            T.copy(A, a)
            for i in T.Parallel(256):
                T.atomic_add(B[i], a[i])

    return main


@tilelang.jit
def running():
    """Add each row to the next one, of which a pipeline has a copy already."""

    @T.prim_func
    def main(A: T.Tensor((5, 128), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((128,), "float32")
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[k, 0:128], s)
                for i in T.Parallel(128):
                    A[k + 1, i] = A[k + 1, i] + s[i]

    return main


@tilelang.jit
def squared(scale=300.0):
    """Sum squares in float16, of which the scale that is taken off in the end makes too large ones."""

    @T.prim_func
    def main(A: T.Tensor((64, 512), "float16"), B: T.Tensor((64,), "float16")):
        with T.Kernel(1, threads=128):
            squares = T.alloc_fragment((64, 512), "float16")
            sums = T.alloc_fragment((64,), "float16")
            for i, j in T.Parallel(64, 512):
                squares[i, j] = A[i, j] * A[i, j] * T.float16(scale)
            T.reduce_sum(squares, sums, dim=1)
            for i in T.Parallel(64):
                B[i] = sums[i] / T.float16(scale)

    return main


def inputs(args, generator, device):
    return torch.rand(256, generator=generator, device=device), torch.zeros(256, device=device)


def whole(args, generator, device):
    drawn = torch.randint(-4, 5, (256,), generator=generator, device=device)
    return drawn.bfloat16(), torch.zeros(256, device=device).half()


def halves(args, generator, device):
    return torch.randn(64, 512, generator=generator, device=device).half(), torch.zeros(64, device=device).half()


def nothing(args, generator, device):
    return torch.zeros(256), torch.zeros(256)


def too_few(args, generator, device):
    return (torch.zeros(256),)


def too_short(args, generator, device):
    return torch.zeros(255), torch.zeros(256)


def raising(args, generator, device):
    raise ValueError("no numbers today")


def crashing(args, generator, device):
    os.kill(os.getpid(), signal.SIGKILL)


def unequal(args, a, c):
    return {"C": a.view(128, 2) @ a.view(128, 2)}


def listed(args, a, c):
    return [2 * a]


def doubled(args, a, c):
    return {"C": a.double() * 2}


SM80 = ("sm_80",)
right = Case(scaled, {}, SM80, inputs, doubled)
author = Case(scaled, {"factor": 3}, SM80, inputs, doubled)
alone = Case(scaled, {}, SM80, inputs)
zeros = Case(scaled, {}, SM80, nothing, doubled, updates=("C",))
count = Case(scaled, {}, SM80, too_few, doubled)
shape = Case(scaled, {}, SM80, too_short, doubled)
raised = Case(scaled, {}, SM80, raising, doubled)
unreferred = Case(scaled, {}, SM80, inputs, unequal)
unnamed = Case(scaled, {}, SM80, inputs, listed)
crashed = Case(scaled, {}, SM80, crashing, doubled)
pairs = Case(converted, {}, SM80, whole, lambda args, a, b: {"B": b.double() + a.double()})
overflow = Case(squared, {}, SM80, halves, lambda args, a, b: {"B": (a.double() ** 2).sum(1)})
in_range = Case(squared, {"scale": 2.0}, SM80, halves, lambda args, a, b: {"B": (a.double() ** 2).sum(1)})
carried = Case(running, {}, ("sm_90",))
