"""Cases for `tlcheck run --device cpu`: right, wrongly written, without a reference, inputs that do not fit."""

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


def inputs(args, generator, device):
    return torch.rand(256, generator=generator, device=device), torch.zeros(256, device=device)


def too_few(args, generator, device):
    return (torch.zeros(256),)


def too_short(args, generator, device):
    return torch.zeros(255), torch.zeros(256)


def raising(args, generator, device):
    raise ValueError("no numbers today")


def doubled(args, a, c):
    return {"C": a.double() * 2}


SM80 = ("sm_80",)
right = Case(scaled, {}, SM80, inputs, doubled)
author = Case(scaled, {"factor": 3}, SM80, inputs, doubled)
alone = Case(scaled, {}, SM80, inputs)
count = Case(scaled, {}, SM80, too_few, doubled)
shape = Case(scaled, {}, SM80, too_short, doubled)
raised = Case(scaled, {}, SM80, raising, doubled)
