"""Describe how far an output is from its reference, and how far it may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tlcheck.worker.gpu.float32 import Float32

_MARGIN = 2.0  # times the sum of the expected errors
WORST = 16.0  # times the tolerance, for a single element: 6 standard deviations are the maximum of 10^9 normal errors
_SHOWN = 8  # wrong elements


@dataclass(frozen=True)
class Tolerance:
    """A bound of ||out - ref|| / ||ref||, and what it is made of: (what, expected relative error)."""

    bound: float
    parts: tuple[tuple[str, float], ...]


def half_spacing(dtype: Any) -> float:
    """The largest relative error of rounding to this dtype."""
    return float(torch.finfo(dtype).eps) / 2


def tolerance(out: Any, updated: bool, terms: int, rounded: str, reference: tuple[str, float]) -> Tolerance:
    """Return the tolerance of an output. Sums are kept in float32, or in memory where the output is updated there.

    reference: what it is, and how far it is from the truth.
    """
    if not out.is_floating_point:
        return Tolerance(0.0, ())
    sums = out if updated or out is torch.float64 else torch.float32
    parts = [(f"result in {_name(out)}", half_spacing(out)), reference]
    if terms > 1:
        parts.append((f"sum of {terms} in {_name(sums)}", math.sqrt(terms) * half_spacing(sums)))
    if rounded:
        parts.append((f"rounded to {rounded} on the way", half_spacing(getattr(torch, rounded))))
    return Tolerance(_MARGIN * sum(error for _, error in parts), tuple(parts))


def declared(bound: float) -> Tolerance:
    return Tolerance(bound, (("declared by the case", bound),))


def in_float32(reference: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Compute a reference in float32."""
    with Float32():
        return reference()


def reference_error(narrow: Mapping[str, Any], truth: Mapping[str, Any]) -> dict[str, float]:
    """Relative error of the reference computed in float32, by output; 0 for integers."""
    return {
        name: relative(narrow[name].double(), true) if true.is_floating_point() else 0.0 for name, true in truth.items()
    }


def relative(out: Any, ref: Any) -> float:
    """||out - ref|| / ||ref||; equal infinities do not differ, nor do NaN and NaN."""
    distance = float(_difference(out, ref).norm())
    size = _size(ref)
    return distance / size if size else distance


def same(a: Any, b: Any) -> Any:
    """Mask of the elements that are equal, or NaN in both."""
    return (a == b) | (torch.isnan(a) & torch.isnan(b))


def _difference(out: Any, ref: Any) -> Any:
    return torch.where(same(out, ref), 0.0, out - ref)


def _size(ref: Any) -> float:
    """||ref|| of the numbers in it."""
    return float(torch.where(torch.isfinite(ref), ref, 0.0).norm())


@dataclass(frozen=True)
class ComparedTensor:
    """One output against its reference. wrong: mask of the elements beyond their bound. error: of the whole.

    worst: flat offset of the worst element; None for no elements.
    """

    wrong: Any
    error: float
    worst: int | None


def comparable(out: Any) -> Any:
    """The same values in a type for which torch has the operations of a comparison: it has few for these."""
    return out.to(torch.int64) if out.dtype in (torch.uint16, torch.uint32) else out


def compare(out: Any, ref: Any, allowed: Tolerance, exact: bool, narrow: Any = None) -> ComparedTensor:
    """Integers, and with `exact` everything, have to be equal (to the reference rounded once to the output's dtype).

    narrow: the reference in float32, for integers that hang on rounding.
    """
    if exact or not out.is_floating_point():
        wrong = ~same(out, ref.to(out.dtype))
        if narrow is not None and not exact and bool(wrong.any()):
            wrong = _beyond_ties(wrong, out, ref, narrow)
            out = torch.where(wrong, out, ref)
        error = relative(out.double(), ref.double())
        return ComparedTensor(wrong, error, _first(wrong))
    out, ref = out.double(), ref.double()
    distance = _difference(out, ref).abs()
    finite = ref[torch.isfinite(ref)]
    typical = float(finite.norm()) / math.sqrt(max(1, finite.numel()))
    excess = distance / (WORST * allowed.bound * (ref.abs() + typical) + math.ulp(0.0))
    excess = torch.where(torch.isnan(distance), torch.inf, torch.where(distance == 0, 0.0, excess))
    worst = int(excess.argmax()) if excess.numel() else None
    return ComparedTensor(~(excess <= 1), relative(out, ref), worst)


def _beyond_ties(wrong: Any, out: Any, ref: Any, narrow: Any) -> Any:
    """The wrong integers that rounding does not explain.

    Where rounding decides (a quotient halfway between two integers), float32 has another number than float64. A kernel
    may have that one, or the neighbour of the right one at as many ties of its own. An index that is chosen otherwise
    is no neighbour: of these only what float32 chooses is right.
    """
    rest = wrong & (out != narrow)
    ties = int(_neighbours(narrow, ref).sum())
    return torch.zeros_like(rest) if int(rest.sum()) <= ties and bool(_neighbours(out, ref)[rest].all()) else rest


def _neighbours(some: Any, others: Any) -> Any:
    return (some.double() - others.double()).abs() == 1


def _first(mask: Any) -> int | None:
    found = mask.flatten().nonzero()
    return int(found[0]) if len(found) else (0 if mask.numel() else None)


def index(offset: int, shape: Sequence[int]) -> list[int]:
    """The index of a flat offset."""
    found = []
    for size in reversed(shape):
        found.append(offset % size)
        offset //= size
    return found[::-1]


def element(offset: int, out: Any, ref: Any) -> dict[str, Any]:
    """One element as plain data; what JSON has no number for is text."""
    got, expected = (plain(tensor.flatten()[offset].item()) for tensor in (out, ref))
    return {"index": index(offset, out.shape), "got": got, "expected": expected}


def elements(mask: Any, out: Any, ref: Any) -> list[dict[str, Any]]:
    """The first elements of a mask."""
    return [element(int(offset), out, ref) for offset in mask.flatten().nonzero()[:_SHOWN]]


def plain(value: float | int) -> float | int | str:
    return value if math.isfinite(value) else str(value)


def moved(first: Any, later: Any, ref: Any, terms: int, atomics: bool) -> tuple[float, bool]:
    """Return how far two runs on the same inputs are apart, relative to the reference, and whether that is too far.

    With float atomics the order of `terms` additions may differ; otherwise not a bit may.
    """
    if bool(same(first, later).all()):
        return 0.0, False
    if not first.is_floating_point():
        return float((first != later).double().mean()), True
    size = _size(ref.double()) or 1.0
    difference = torch.where(same(first, later), 0.0, (first - later).double())
    distance = float(difference.norm()) / size
    bound = 2 * _MARGIN * math.sqrt(terms) * half_spacing(first.dtype) if atomics else 0.0
    typical = size / math.sqrt(first.numel())
    worst = float((difference.abs() / (ref.double().abs().nan_to_num(0.0) + typical)).max())
    return distance, not (distance <= bound and worst <= WORST * bound)


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
