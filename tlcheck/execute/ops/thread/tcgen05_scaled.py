"""tcgen05.mma with block scaling: kind::mxf8f6f4, one factor for each row and 32 terms (PTX 9.7.16.10.7)."""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array
from tlcheck.execute.ops.thread.tcgen05_forms import numbers_of, scaled_form_of
from tlcheck.execute.ops.thread.tcgen05_mma import issuing
from tlcheck.execute.ops.thread.tcgen05_operands import Issuer, in_shared
from tlcheck.execute.ops.thread.tcgen05_scales import ScaleFactors
from tlcheck.signatures.tcgen05 import constant_bits, descriptor
from tlcheck.snapshot.ir import Expr

_SCALES_A, _SCALES_B = 9, 11


@call("ptx_tcgen05_mma_blockscaled_ss")
def product(e: Expr, program: KernelProgram) -> Computation:
    """(type of A, descriptor of A, its offset, of B, its offset, sums, their offset, instruction descriptor, whether it
    adds, factors of A, columns further on, of B, columns further on, two that are reserved, whether of two blocks).

    Of two blocks each has the factors of its own rows of A, and of all columns of B.
    """
    form, constant, word = scaled_form_of(e), constant_bits(descriptor(e)), program.code(descriptor(e))
    left = in_shared(e, 1, (form.m, form.k), form.left, form.left_by_k, program, form.blocks)
    rows = form.m // form.blocks
    of_a = ScaleFactors.of(e, _SCALES_A, rows, form.blocks, program)
    of_b = ScaleFactors.of(e, _SCALES_B, form.n, form.blocks, program)

    def scaling(frame: Frame, issuer: Issuer) -> Array:
        numbers = numbers_of(issuer.pick(word.run(frame), frame.worlds).astype(np.int64), constant)
        a, b = (side.take(frame, issuer, number) for side, number in zip((of_a, of_b), numbers, strict=True))
        return np.concatenate([x[:, :, None] * y[:, None, :] for x, y in zip(a, b, strict=True)], axis=1)

    return issuing(e, form, left, program, scaling)
