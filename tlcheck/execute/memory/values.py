"""Data types, what a value of each is on the CPU, and poison.

A value is a NumPy array over lanes, or a Python scalar where it is the same in all of them. Floating values of every
dtype are float64; integers are machine integers of their width; bool is bool. Arrays have the axes (vector lanes,)
worlds, threads or iterations; each may be 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tlcheck.execute.field import PRIME, Field, reduced, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.arrays import array_like, saturated
from tlcheck.snapshot.dtypes import dtype_of

Array = npt.NDArray[Any]
Value = Array | int | float | bool

_SMALL_FLOATS = {
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
    "float4_e2m1_unpacked": ml_dtypes.float4_e2m1fn,  # 16 in 16 bytes; a byte each here
    "float6_e2m3fn": ml_dtypes.float6_e2m3fn,
    "float6_e3m2fn": ml_dtypes.float6_e3m2fn,
    "float6_e2m3_unpacked": ml_dtypes.float6_e2m3fn,
    "float6_e3m2_unpacked": ml_dtypes.float6_e3m2fn,
    "bfloat16": ml_dtypes.bfloat16,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,  # as the CUDA that TileLang makes of it has it: up to 448, without inf
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
}
_NARROW = 8  # bits of a type to which rounding is what is meant
_SATURATING = frozenset(
    {
        "float4_e2m1fn",
        "float4_e2m1_unpacked",
        "float6_e2m3fn",
        "float6_e3m2fn",
        "float6_e2m3_unpacked",
        "float6_e3m2_unpacked",
        "float8_e4m3",
        "float8_e4m3fn",
        "float8_e5m2",
    }
    | {"float8_e4m3fnuz", "float8_e5m2fnuz"}  # HIP, __hip_cvt_float_to_fp8 with __HIP_SATFINITE
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A dtype without its lanes. family: float, int, uint, bool or handle; bits: its width, also in memory."""

    name: str
    family: str
    bits: int

    @property
    def is_float(self) -> bool:
        return self.family == "float"

    @property
    def octets(self) -> int:
        """The bytes that an element takes, or shares with others."""
        return max(1, self.bits // 8)

    @property
    def array(self) -> np.dtype[Any]:
        """The dtype of arrays that hold such values."""
        if self.family == "float":
            return np.dtype(np.float64)
        if self.family == "bool":
            return np.dtype(np.bool_)
        return np.dtype(f"{self.family}{max(8, self.bits)}")

    @property
    def memory(self) -> np.dtype[Any]:
        """The dtype of such an element in the kernel's own memory."""
        return np.dtype(_SMALL_FLOATS[self.name]) if self.family == "float" else self.array

    @property
    def unit(self) -> float:
        """The largest part of itself that a number loses when it is rounded to the type."""
        return float(_limits(self.memory).eps) / 2

    @property
    def largest(self) -> float:
        """The largest number of a floating type."""
        return float(_limits(self.memory).max)

    @property
    def words(self) -> np.dtype[Any]:
        """Unsigned integers of the same width."""
        return np.dtype(f"uint{max(8, self.bits)}")

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer."""
        if self.family == "int":
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1


@cache
def _limits(dtype: np.dtype[Any]) -> Any:
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


@cache
def kind_of(dtype: str) -> Kind:
    """The kind of a dtype in TVM's spelling, lanes aside. Raises NotModelled for one that is not known."""
    return _parsed(dtype)[0]


@cache
def lanes_of(dtype: str) -> int:
    """The vector lanes of a dtype."""
    return _parsed(dtype)[1]


def _parsed(dtype: str) -> tuple[Kind, int]:
    found = dtype_of(dtype)
    if found.kind in ("handle", "bool"):
        return Kind(found.name, found.kind, found.bits), found.lanes
    if found.name in ("tfloat32", "tfloat"):
        return Kind("float32", "float", 32), found.lanes
    if found.name in _SMALL_FLOATS or (found.kind in ("int", "uint") and found.bits in (4, 8, 16, 32, 64)):
        return Kind(found.name, found.kind, found.bits), found.lanes
    raise NotModelled(f"dtype {dtype}")


def wrapped(value: int, kind: Kind) -> int:
    """A Python integer as the machine integer of its width."""
    low, high = kind.limits
    if low <= value <= high:
        return value
    value &= (1 << kind.bits) - 1
    return value - (1 << kind.bits) if value > high else value


def rounded(value: Value, kind: Kind) -> Value:
    """The nearest value that the dtype has, as float64; NaN keeps its payload."""
    if not kind.is_float or kind.bits == 64:
        return value
    array = np.asarray(value, dtype=np.float64)
    near = _narrowed(array, kind).astype(np.float64)
    unordered = np.isnan(array)
    found = np.where(unordered, array, near) if unordered.any() else near
    return found if isinstance(value, np.ndarray) else float(found)


def _narrowed(array: Array, kind: Kind) -> Array:
    """Numbers as a kind has them in memory; of 8 bits, none becomes more than the largest (PTX, "cvt.satfinite")."""
    if kind.name in _SATURATING:
        array = np.clip(array, -kind.largest, kind.largest)
    return array.astype(kind.memory)


def rounding(kind: Kind, exact: bool | Field) -> Callable[[Any], Any] | None:
    """Return what to do with the result of an operation on floats of a kind; None for nothing."""
    if isinstance(exact, Field):
        require_wide(kind)
        return reduced if kind.is_float else None
    if exact or not kind.is_float or kind.bits == 64:
        return None
    return lambda value: rounded(value, kind)


def is_narrow(kind: Kind) -> bool:
    """Whether it is a float of so few bits that rounding to it is what is meant."""
    return kind.is_float and kind.bits <= _NARROW


def require_wide(kind: Kind) -> None:
    """Raise NotModelled for a type in which no formula over the reals says what is computed."""
    if is_narrow(kind):
        raise NotModelled(f"arithmetic in {kind.name}")


def bits_of(value: Value, kind: Kind) -> Array:
    """The bits of values, after rounding to the dtype, as unsigned integers of its width."""
    array = np.asarray(value, dtype=kind.array)
    words = np.ascontiguousarray(_narrowed(array, kind)).view(kind.words)
    return words if kind.bits >= 8 else words & kind.words.type((1 << kind.bits) - 1)


def from_bits(bits: Array, kind: Kind) -> Array:
    """The values that have these bits."""
    words = np.ascontiguousarray(bits.astype(kind.words, copy=False))
    return within(words.view(kind.memory).astype(kind.array), kind)


def reinterpreted(value: Value, source: Kind, target: Kind, exact: bool | Field) -> Value:
    """The bits of floats of eight bits taken for another format; poison stays poison.

    exact: floats are not rounded: what is left of it is the other bias.
    """
    array = np.asarray(value, dtype=np.float64)
    if exact:
        found = array * (2.0 if source.name.endswith("fnuz") else 0.5)
    else:
        taken = from_bits(bits_of(array, source), target)
        found = np.where(is_poison(array), array, taken).reshape(array.shape)
    return found if isinstance(value, np.ndarray) else float(found)


def within(integers: Array, kind: Kind) -> Array:
    """Integers of a kind, wrapped where NumPy has no type of its width."""
    if kind.bits >= 8 or kind.is_float:
        return integers
    low = kind.limits[0]
    return ((integers - low) & ((1 << kind.bits) - 1)) + low


def converted(value: Value, source: Kind, target: Kind, exact: bool | Field) -> Value:
    """A cast as CUDA makes it: floats to integers truncate and saturate, integers wrap.

    exact: floats keep their float64 value instead of being rounded to the target, or are elements of a field.
    """
    if source == target:
        return value
    if isinstance(exact, Field) and (source.is_float or target.is_float):
        return _in_field(value, source, target, exact)
    if target.family == "bool":
        return np.not_equal(value, 0) if isinstance(value, np.ndarray) else bool(value)
    if target.is_float:
        if source.bits == 64 and not source.is_float and not exact and target.bits < 64:
            # integers of 64 bits as ones that float64 has: of the two next to it the odd one, which rounds as it does
            integers = np.asarray(value, source.array)
            lost = (integers & 0x7FF != 0).astype(source.array)
            found = np.where(abs(integers >> 1) < 1 << 52, integers, integers >> 11 << 11 | lost << 11)
            value = found if isinstance(value, np.ndarray) else int(found)
        wide = value.astype(np.float64) if isinstance(value, np.ndarray) else float(value)
        return wide if exact else rounded(wide, target)
    if source.is_float:
        array = np.asarray(value, dtype=np.float64)
        whole = saturated(array, *target.limits, target.array)
        if np.isnan(array).any():
            words = np.asarray(value, dtype=np.float64)
            unset = np.where(_is_other(words), array_like(_pattern(target, ~0)), array_like(_pattern(target, 0)))
            whole = np.where(is_poison(words), unset, whole)
        return whole if isinstance(value, np.ndarray) else int(whole.item())
    if isinstance(value, np.ndarray):
        return within(value.astype(target.array), target)
    return wrapped(int(value), target)


def _in_field(value: Value, source: Kind, target: Kind, field: Field) -> Value:
    """A cast where floats are elements of a field: another type of float has the same numbers, but for narrow ones."""
    narrow = is_narrow(target)
    if not target.is_float or (narrow and not source.is_float):
        raise NotModelled(f"{target.name} made of {source.name}")
    if not source.is_float:
        return whole(value) if isinstance(value, np.ndarray) else float(int(value) % PRIME)
    return field.function(f"rounded to {target.name}", value) if narrow else value


def stretched(array: Array, shape: tuple[int, ...]) -> Array:
    """The array in a shape that it broadcasts to. NumPy takes its time even where that is its own."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def lengthened(array: Array, size: int) -> Array:
    """The array with zeros behind it, so many elements in all; memory is taken as these are used."""
    longer = np.zeros(size, array.dtype)
    longer[: len(array)] = array
    return longer


def require_sum(combine: np.ufunc, kind: Kind) -> None:
    """Raise NotModelled where elements of a field are combined by anything but a sum."""
    if combine is not np.add or not kind.is_float:
        raise NotModelled(f"{combine.__name__} into {kind.name}")


# The quiet NaN whose payload says that it is poison; its low 20 bits are the number of the reason. The bit above says
# that it becomes another integer than usual.
_POISON = 0x7FF8_5EED_0000_0000
_REASONS = (1 << 20) - 1
_OTHER = 1 << 20


def poison(reason: int = 0, other: bool = False) -> float:
    """The float64 NaN that stands for a value that nobody has written. other: see `nothing`."""
    bits = _POISON | (reason & _REASONS) | (_OTHER if other else 0)
    return float(np.array([bits], dtype=np.uint64).view(np.float64)[0])


def _is_other(values: Array) -> npt.NDArray[np.bool_]:
    return np.asarray((np.ascontiguousarray(values).view(np.uint64) & np.uint64(_OTHER)) != 0)


def is_poison(values: Array) -> npt.NDArray[np.bool_]:
    """Return which float64 values are poison; a NaN that an operation made is not."""
    words = np.ascontiguousarray(values).view(np.uint64)
    found: npt.NDArray[np.bool_] = (words & np.uint64(0x7FFF_FFFF_0000_0000)) == np.uint64(_POISON)
    return found


def reason_of(value: float) -> int:
    """The number of the reason of a poison."""
    return int(np.array([value], dtype=np.float64).view(np.uint64)[0]) & _REASONS


def _pattern(kind: Kind, seed: int) -> int:
    """The integer that stands for what nobody has written: another one for each seed, all bits others for ~seed.

    For odd seeds they are the least and the greatest one: a maximum or a minimum with another number hides the rest.
    """
    if _is_extreme(seed):
        return kind.limits[0] if seed >= 0 else kind.limits[1]
    bits = 0x5EED_B0B5_5EED_B0B5 ^ ((seed if seed >= 0 else ~seed) * 0x3C3C_3C3C_3C3C_3C3C)
    return wrapped(bits if seed >= 0 else ~bits, kind)


def _is_extreme(seed: int) -> bool:
    return seed % 2 == (seed >= 0)


def nothing(kind: Kind, seed: int, reason: int = 0) -> Value:
    """Poison of any kind, for the worlds of one seed.

    Integers have no NaN: theirs is a number, which an output must not hang on. ~seed instead of a seed gives another
    one, and floats of which another one is made.
    """
    if kind.is_float:
        return poison(reason, seed < 0)
    if kind.family == "bool":
        return bool(seed & 1)
    return _pattern(kind, seed)


def apart(kind: Kind, seed: int, cells: int) -> Array:
    """Return what to add to an integer that nobody has written, in each of some cells: not zeros for ~seed alone.

    The greatest number stays within 3 of itself.
    """
    if seed >= 0:
        return np.zeros(cells, kind.array)
    mixed = np.arange(cells, dtype=np.uint64) * np.uint64(0x9E37_79B1) >> np.uint64(7)
    return np.asarray(-(mixed & np.uint64(3)).astype(kind.array) if _is_extreme(seed) else mixed.astype(kind.array))


@lru_cache(maxsize=256)
def nothing_in(kind: Kind, seeds: tuple[int, ...], reason: int = 0) -> Array:
    """Poison of any kind in the worlds of these seeds, (worlds, 1), read-only."""
    of_seed = {seed: nothing(kind, seed, reason) for seed in dict.fromkeys(seeds)}
    found = np.array([of_seed[seed] for seed in seeds], kind.array).reshape(-1, 1)
    found.flags.writeable = False
    return found


def maximum(a: Any, b: Any) -> Any:
    """The larger of two values; of a number and a NaN the number, as CUDA's fmax, but poison stays poison."""
    return _ordered(np.maximum(a, b), np.fmax, a, b)


def minimum(a: Any, b: Any) -> Any:
    """The smaller of two values; of a number and a NaN the number, as CUDA's fmin, but poison stays poison."""
    return _ordered(np.minimum(a, b), np.fmin, a, b)


def _ordered(found: Any, ignoring: np.ufunc, a: Any, b: Any) -> Any:
    if np.asarray(found).dtype.kind != "f":
        return found
    unordered = np.isnan(found)
    if not np.any(unordered):
        return found
    return np.where(unordered & ~is_poison(np.asarray(found)), ignoring(a, b), found)
