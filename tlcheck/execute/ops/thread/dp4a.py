"""DP4A: the product of two vectors of four packed bytes (common.h of the device library; PTX 9.7.1.23, dp4a)."""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import extern
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr

_LANES = 4


@extern("DP4A")
def dot_product(e: Expr, program: KernelProgram) -> Computation:
    """(a, b, c), addresses: c += the sum of a[i] * b[i], signed bytes into an int32."""
    a, b = (program.pointer(argument, _LANES) for argument in e.args[:2])
    total = program.pointer(e.args[2])
    if (a.kind.name, b.kind.name, total.kind.name) != ("int8", "int8", "int32"):
        raise NotModelled(f"DP4A of {a.kind.name}, {b.kind.name} and {total.kind.name}")

    def run(frame: Frame) -> int:
        products = a.load(frame).astype(np.int32) * b.load(frame).astype(np.int32)
        total.store(frame, total.load(frame) + products.sum(0, dtype=np.int32))
        return 0

    return run
