"""Tell how the generated CUDA packs equal or chosen lanes into wider integers, where that loses some of them.

Bytes: up to 0.1.11 `make_int` of the device library extends the sign of each of four int8 over those above it.
Words: from 0.1.10 to 0.1.12 eight int32 are printed as four `(long long)(int)(low) | (long long)(int)(high) << 32`, in
which the sign of the low one covers the high one (pull request 2673). Halves: before 0.1.13 thirty-two equal constants
of eight bits are four numbers of 32 bits for the four of 64 bits that `make_longlong4` takes, and other equal bytes do
not compile (pull request 2701).
"""

from __future__ import annotations

from enum import Enum

from tlcheck.program.release import Release
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Expr

_BYTES_APART = Release.of("0.1.12")  # the release from which on `make_int` keeps four int8 apart
_IN_PAIRS = Release.of("0.1.10")  # the release from which on words of 32 bits are packed in pairs
_WHOLE = Release.of("0.1.13")  # the release from which on pairs of words, and 32 bytes, are right
_OF_256 = {8: 32, 32: 8}  # bits of a number: how many are 256 bits


class Packing(Enum):
    """The ways in which lanes are lost; the value says it in words."""

    BYTES = "make_int of four int8 extends the sign of each over those above it"
    WORDS = "eight int32 are printed in pairs, and the sign of the lower one covers the other"
    HALVES = "of 32 equal constants of 8 bits CUDA sets the lower four of each eight, and the others to 0"


def packing(e: Expr, release: Release) -> Packing | None:
    """Return how a vector's lanes are lost; None where they are not. Equal constants that fill one number are right."""
    if e.op not in ("broadcast", "shuffle"):
        return None
    found, equal = dtype_of(e.dtype), e.op == "broadcast"
    if found.lanes == _OF_256.get(found.bits) and found.is_integral and release < _WHOLE:
        if found.bits == 8 and equal and e.args[0].op == "int":
            return Packing.HALVES
        if found.name == "int32" and release >= _IN_PAIRS:
            return Packing.WORDS
    smears = equal and found.name == "int8" and found.lanes % 4 == 0 and release < _BYTES_APART
    return Packing.BYTES if smears and not (found.lanes == 4 and e.args[0].op == "int") else None


def is_unpacked(e: Expr, release: Release) -> bool:
    """Whether equal lanes are printed as `make_longlong4` of 32 arguments, which the device library has not yet."""
    found = dtype_of(e.dtype)
    return (
        e.op == "broadcast"
        and found.is_integral
        and (found.bits, found.lanes) == (8, _OF_256[8])
        and e.args[0].op != "int"
        and release < _WHOLE
    )
