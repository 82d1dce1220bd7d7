"""Functions of values alone, lane by lane: mathematics and bits.

Each entry makes, from the node of a call, a function of the values of its arguments. Meanings are those of the CUDA
Math API and of TVM's intrinsics of the same names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tlcheck.execute.compile.arithmetic import applied
from tlcheck.execute.memory.values import Kind, bits_of, from_bits, kind_of, maximum, minimum
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.operators import named

Apply = Callable[..., Any]
_COUNT = re.compile(r"<(-?\d+)>")


def _numpy(function: Callable[..., Any]) -> Callable[[Expr], Apply]:
    """A function of NumPy on floats; a scalar where all arguments are scalars."""

    def apply(*args: Any) -> Any:
        found = function(*args)
        return found if isinstance(found, np.ndarray) else float(found)

    return lambda e: apply


def _each(function: Callable[[float], float]) -> Callable[[Expr], Apply]:
    """A function that NumPy does not have."""
    return _numpy(np.vectorize(function, otypes=[np.float64]))


def _round_away(values: Any, slack: float = 0.0) -> Any:
    return np.copysign(np.floor(np.abs(values) * (1.0 + slack) + 0.5), values)


def _absolute(e: Expr) -> Apply:
    return lambda value: abs(value)


def _operator(e: Expr) -> Apply:
    """An operator that TIR spells as a call."""
    found = applied(e)
    if found is None:
        raise NotModelled(f"{e.value} of {e.dtype}")
    return found


def _reinterpret(e: Expr) -> Apply:
    """The bits of a value seen as another dtype of the same width."""
    source, target = kind_of(e.args[0].dtype), kind_of(e.dtype)
    if source.bits != target.bits:
        return _reinterpret_lanes(source, target)

    def apply(value: Any) -> Any:
        found = from_bits(bits_of(value, source), target)
        return found if isinstance(value, np.ndarray) else found.item()

    return apply


def _reinterpret_lanes(source: Kind, target: Kind) -> Apply:
    """Vectors of other widths: lanes in memory order, the first in the lowest bits."""

    def apply(value: Any) -> Any:
        bits = np.atleast_3d(bits_of(value, source)) if np.ndim(value) < 3 else bits_of(value, source)
        if np.ndim(value) == 2:
            bits = bits_of(value, source)[None]
        if np.ndim(value) == 0:
            bits = np.asarray(bits_of(value, source)).reshape(1, 1, 1)
        octets = np.moveaxis(bits, 0, -1)
        words = np.ascontiguousarray(octets).view(np.uint8).view(target.words)
        found = np.moveaxis(from_bits(words, target), -1, 0)
        return found[0] if found.shape[0] == 1 else found

    return apply


def _popcount(e: Expr) -> Apply:
    kind, argument = kind_of(e.dtype), kind_of(e.args[-1].dtype)

    def apply(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return np.bitwise_count(value.view(argument.words)).astype(kind.array)
        return (value & ((1 << argument.bits) - 1)).bit_count()

    return apply


def _leading_zeros(e: Expr) -> Apply:
    kind, argument = kind_of(e.dtype), kind_of(e.args[-1].dtype)

    def apply(value: Any) -> Any:
        words = np.asarray(value).astype(argument.array).view(argument.words).astype(np.uint64)
        count = np.full(words.shape, argument.bits)
        for bit in range(argument.bits):
            count = np.where(words >> np.uint64(bit) != 0, argument.bits - 1 - bit, count)
        return count.astype(kind.array) if isinstance(value, np.ndarray) else int(count)

    return apply


def _isnan(e: Expr) -> Apply:
    return lambda value: np.isnan(value) if isinstance(value, np.ndarray) else math.isnan(value)


def _isinf(e: Expr) -> Apply:
    return lambda value: np.isinf(value) if isinstance(value, np.ndarray) else math.isinf(value)


def _isfinite(e: Expr) -> Apply:
    return lambda value: np.isfinite(value) if isinstance(value, np.ndarray) else math.isfinite(value)


def _infinity(e: Expr) -> Apply:
    return lambda *ignored: math.inf


def _clamped(e: Expr) -> Apply:
    """T.clamp(value, low, high), a call from 0.1.15 on: of floats NaN in any of them is kept, as its docstring says."""
    if not kind_of(e.dtype).is_float:
        return lambda value, low, high: minimum(maximum(value, low), high)

    def apply(value: Any, low: Any, high: Any) -> Any:
        found = minimum(maximum(value, low), high)
        for given in (high, low, value):
            found = np.where(np.isnan(given), given, found)
        return found

    return apply


def _larger(e: Expr) -> Apply:
    return lambda a, b: maximum(a, b)


def _smaller(e: Expr) -> Apply:
    return lambda a, b: minimum(a, b)


def _saturated(e: Expr) -> Apply:
    return lambda value: minimum(maximum(value, 0.0), 1.0)  # NaN becomes 0


def _propagating(combine: Callable[[Any, Any], Any], other: Callable[[Any, Any], Any]) -> Callable[[Expr], Apply]:
    """Return NaN for a NaN and a number of 16-bit floats (__hmax_nan), else the number, as the library does."""

    def make(e: Expr) -> Apply:
        kind = kind_of(e.dtype)
        return (lambda a, b: combine(a, b)) if kind.is_float and kind.bits == 16 else lambda a, b: other(a, b)

    return make


def _first_bit(e: Expr) -> Apply:
    """__ffs: the number of the lowest bit that is set, from 1 on; 0 where none is."""

    def apply(value: Any) -> Any:
        words = np.asarray(value).astype(np.int64)
        found = np.where(words == 0, 0, np.log2((words & -words).astype(np.uint64).astype(np.float64)) + 1)
        return found.astype(np.int32) if isinstance(value, np.ndarray) else int(found)

    return apply


def _nth_bit(e: Expr) -> Apply:
    """__fns(mask, base, offset): the bit of the offset-th set one from base on, downwards if offset is negative."""

    def one(mask: int, base: int, offset: int) -> int:
        bits = [bit for bit in range(32) if mask >> bit & 1]
        if offset == 0:
            return base if mask >> base & 1 else 0xFFFFFFFF
        above, below = [b for b in bits if b >= base], [b for b in bits if b <= base][::-1]
        chosen, number = (above, offset) if offset > 0 else (below, -offset)
        return chosen[number - 1] if number <= len(chosen) else 0xFFFFFFFF

    def apply(mask: Any, base: Any, offset: Any) -> Any:
        found = np.vectorize(one, otypes=[np.uint32])(np.asarray(mask) & 0xFFFFFFFF, base, offset)
        arrays = any(isinstance(v, np.ndarray) for v in (mask, base, offset))
        return found if arrays else int(found)

    return apply


def _fused(a: Any, b: Any, c: Any, *mode: Any) -> Any:
    return a * b + c


def _power_of_int(e: Expr) -> Apply:
    """x to the power of a whole number; as lowered tl::pow_of_int<n>(x), which is x for n < 1 (cuda/common.h).

    Raises NotModelled for an integer to a negative power.
    """
    kind, count = kind_of(e.dtype), _COUNT.search(str(e.value))
    times = max(1, int(count[1])) if count else None

    def apply(value: Any, exponent: Any = times) -> Any:
        if not kind.is_float and np.any(np.less(exponent, 0)):
            raise NotModelled(f"a negative power of {kind.name}")
        found = np.power(np.asarray(value, kind.array), exponent, dtype=kind.array)
        return found if isinstance(value, np.ndarray) else found.item()

    return apply


def _next(e: Expr) -> Apply:
    """nextafter: the number of the type that comes next on the way to another one."""
    kind = kind_of(e.dtype)

    def apply(value: Any, towards: Any) -> Any:
        near = np.nextafter(*(np.asarray(a, kind.memory) for a in (value, towards))).astype(np.float64)
        found = np.where(np.isnan(value), value, near)
        return found if isinstance(value, np.ndarray) or isinstance(towards, np.ndarray) else found.item()

    return apply


def _same(e: Expr) -> Apply:
    return lambda value: value


round_nearly_away = _numpy(partial(_round_away, slack=2.0**-30))  # of what lies between two numbers but for little
_EXP10 = _numpy(lambda x: np.power(10.0, x))
_RSQRT = _numpy(lambda x, *mode: 1.0 / np.sqrt(x))
_RECIPROCAL = _numpy(lambda x, *mode: np.divide(1.0, x))
_SIGMOID = _numpy(lambda x: 1.0 / (1.0 + np.exp(-x)))

NAMED: dict[str, tuple[Callable[[Expr], Apply], tuple[str, ...]]] = {
    "exp": (_numpy(np.exp), ("__exp", "expf", "__expf", "hexp")),
    "exp2": (_numpy(np.exp2), ("exp2f", "hexp2")),
    "exp10": (_EXP10, ("__exp10", "exp10f", "__exp10f")),
    "log": (_numpy(np.log), ("__log", "logf", "__logf", "hlog")),
    "log2": (_numpy(np.log2), ("__log2", "log2f", "__log2f", "hlog2")),
    "log10": (_numpy(np.log10), ("__log10", "log10f", "__log10f")),
    "log1p": (_numpy(np.log1p), ("log1pf",)),
    "expm1": (_numpy(np.expm1), ("expm1f",)),
    "sqrt": (_numpy(lambda x, *mode: np.sqrt(x)), ("sqrtf", "hsqrt", "ieee_fsqrt", "__fsqrt_rn")),
    "rsqrt": (_RSQRT, ("rsqrtf", "hrsqrt", "ieee_frsqrt", "__frsqrt_rn")),
    "cbrt": (_numpy(np.cbrt), ("cbrtf",)),
    "sin": (_numpy(np.sin), ("__sin", "sinf", "__sinf", "hsin")),
    "cos": (_numpy(np.cos), ("__cos", "cosf", "__cosf", "hcos")),
    "tan": (_numpy(np.tan), ("__tan", "tanf", "__tanf", "htan")),
    "asin": (_numpy(np.arcsin), ("asinf",)),
    "acos": (_numpy(np.arccos), ("acosf",)),
    "atan": (_numpy(np.arctan), ("atanf",)),
    "atan2": (_numpy(np.arctan2), ("atan2f",)),
    "sinh": (_numpy(np.sinh), ("sinhf",)),
    "cosh": (_numpy(np.cosh), ("coshf",)),
    "tanh": (_numpy(np.tanh), ("tanhf", "htanh")),
    "asinh": (_numpy(np.arcsinh), ("asinhf",)),
    "acosh": (_numpy(np.arccosh), ("acoshf",)),
    "atanh": (_numpy(np.arctanh), ("atanhf",)),
    "sigmoid": (_SIGMOID, ()),
    "erf": (_each(math.erf), ("erff",)),
    "erfc": (_each(math.erfc), ("erfcf",)),
    "pow": (_numpy(np.power), ("powf", "__powf")),
    "pow_of_int": (_power_of_int, ("tl::pow_of_int",)),
    "ldexp": (_numpy(np.ldexp), ("ldexpf",)),
    "nextafter": (_next, ("nextafterf",)),
    "floor": (_numpy(np.floor), ("floorf", "hfloor")),
    "ceil": (_numpy(np.ceil), ("ceilf", "hceil")),
    "trunc": (_numpy(np.trunc), ("truncf", "htrunc")),
    "roundf": (_numpy(_round_away), ("round_ties_away_from_zero", "tl::RoundTiesAwayFromZero")),
    # TIR's round, in any release, takes the even number of two (it is folded so); C's round is roundf's.
    "round": (_numpy(np.rint), ("nearbyint", "rint", "rintf", "nearbyintf", "hrint")),
    "fmod": (_numpy(np.fmod), ("fmodf",)),
    "fma": (_numpy(_fused), ("fmaf", "__fmaf_rn", "ieee_fmaf", "fma2")),
    "hypot": (_numpy(np.hypot), ("hypotf",)),
    "copysign": (_numpy(np.copysign), ("copysignf",)),
    "fabs": (_absolute, ("abs", "fabsf", "__habs", "habs", "abs2")),
    **dict.fromkeys(named("bits", "shift", "same"), (_operator, ())),
    "reinterpret": (_reinterpret, ()),
    "popcount": (_popcount, ("__popc", "__popcll")),
    "clz": (_leading_zeros, ("__clz", "__clzll")),
    "isnan": (_isnan, ("__isnanf",)),
    "isinf": (_isinf, ()),
    "isfinite": (_isfinite, ()),
    "infinity": (_infinity, ()),
    "__ldg": (_same, ()),
    "clamp": (_clamped, ()),
    "__ffs": (_first_bit, ("__ffsll",)),
    "__fns": (_nth_bit, ()),
    "fast_rcp": (_RECIPROCAL, ("ieee_frcp", "__frcp_rn")),
    "ieee_add": (_numpy(lambda a, b, *mode: np.add(a, b)), ("add2", "fadd2", "__fadd_rn")),
    "ieee_sub": (_numpy(lambda a, b, *mode: np.subtract(a, b)), ("sub2", "__fsub_rn")),
    "ieee_mul": (_numpy(lambda a, b, *mode: np.multiply(a, b)), ("mul2", "fmul2", "fmul", "__fmul_rn")),
    "ieee_fdiv": (_numpy(lambda a, b, *mode: np.divide(a, b)), ("__fdiv_rn", "__fdividef", "fdividef")),
    "max2": (_larger, ("fmax", "fmaxf", "__hmax")),
    "min2": (_smaller, ("fmin", "fminf", "__hmin")),
    "__saturatef": (_saturated, ()),
    "max_nan": (_propagating(np.maximum, maximum), ("max2_nan",)),
    "min_nan": (_propagating(np.minimum, minimum), ("min2_nan",)),
}

FUNCTIONS: dict[str, Callable[[Expr], Apply]] = {
    name: make for first, (make, others) in NAMED.items() for name in (first, *others)
}
