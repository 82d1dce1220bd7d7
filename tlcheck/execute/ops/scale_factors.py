"""Scale factors of block-scaled products: bytes of 32-bit words (PTX 9.7.14.3, 9.7.16.10.7).

UE8M0 is 2 to the power of the byte less 127. UE4M3 is E4M3 without its sign.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.memory.values import Array, from_bits, kind_of
from tlcheck.snapshot.ir import Expr

UE8M0, UE4M3 = "ue8m0", "ue4m3"
_BIAS, _NO_NUMBER = 127, 255
_MAGNITUDE = 0x7F
_MATRICES = 3  # A, B and C


def has_factors(e: Expr) -> bool:
    """Whether a call is a block-scaled product. Up to 0.1.12 it is T.gemm with regions of factors besides A, B, C."""
    if e.value == "gemm":
        return sum(a.op == "call" and a.value == "region" for a in e.args) > _MATRICES
    return e.value in ("gemm_blockscaled", "tcgen05_gemm_blockscaled")


def factors(words: Array, number: int | Array, of: str = UE8M0) -> Array:
    """The factors that are the bytes of a number of some words."""
    octets = np.asarray(words).astype(np.int64) >> (8 * np.asarray(number)) & 0xFF
    if of == UE4M3:
        return from_bits(octets & _MAGNITUDE, kind_of("float8_e4m3fn"))
    return np.where(octets == _NO_NUMBER, np.nan, np.exp2(octets.astype(np.float64) - _BIAS))
