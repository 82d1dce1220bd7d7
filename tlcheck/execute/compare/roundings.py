"""Find what float64 hides: a run in the kernel's own types, and whether it loses more than the source does.

Both levels run once more with floats rounded to their types, the source with what rounding each term of a
sum may cost on top. Their distances from the exact results are compared, not their elements: another order of
additions is another rounding of each. What is rounded too early, or overflows, is further off nearly everywhere; where
a choice hangs on rounding, a few elements are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.pages import Stored
from tlcheck.execute.memory.values import Array, Kind, kind_of
from tlcheck.snapshot.ir import Bind, Evaluate, Expr, Function
from tlcheck.snapshot.walk import expressions, postorder, statements

_TIMES = 4  # as far off as the source: still rounding
_LEAST = 2.0**-14  # of a result's usual size: what no type narrower than float32 comes near to
_QUANTILES = (0.5, 0.9)
_FEWEST = 8  # elements: of fewer, one may be off by chance
_MOVING = frozenset({"load", "ramp", "broadcast", "shuffle", "var", "float"})  # these round nothing


def rounds(function: Function) -> bool:
    """Whether a kernel computes floats narrower than 32 bits, or makes such of others.

    What a statement that is a call leaves is nobody's: T.atomic_addx4, up to 0.1.12, a `float4`, CUDA's vector.
    """
    return any(
        e.op not in _MOVING and e.dtype.startswith(("float", "bfloat")) and kind_of(e.dtype).bits < 32
        for stmt in statements(function.body)
        for e in postorder(stmt.value.args if isinstance(stmt, Evaluate) else expressions(stmt))
    )


def coarser(exact: Stored, source: Stored, lowered: Stored, kind: Kind) -> Mask | None:
    """Return which elements to show where a kernel as lowered loses more than in the source; None where it does not.

    exact: the results in float64; the others in real types, `written` with the cost of its sums.
    """
    if not kind.is_float or not len(exact.elements):
        return None
    if not (np.array_equal(exact.elements, source.elements) and np.array_equal(exact.elements, lowered.elements)):
        return None
    known = np.isfinite(exact.values) & np.isfinite(source.values)
    if not known.any():
        return None
    with np.errstate(all="ignore"):
        own, got = (np.abs(side.values - exact.values) for side in (source, lowered))
    overflows = known & ~np.isfinite(lowered.values) & (np.abs(exact.values) < kind.largest / 16)
    as_well = np.isfinite(exact.values) & ~np.isfinite(source.values)
    if overflows.sum() > _TIMES * as_well.sum():
        return overflows
    known &= np.isfinite(lowered.values)
    if not known.any():
        return None
    allowed = [
        max(_TIMES * _quantile(own, known, q), _LEAST * _quantile(np.abs(exact.values), known, q)) for q in _QUANTILES
    ]
    if any(_quantile(got, known, q) <= bound for q, bound in zip(_QUANTILES, allowed, strict=True)):
        return None
    return np.asarray(known & (got > allowed[0]))


def cancels(function: Function) -> bool:
    """Whether a source without floats narrower than 32 bits subtracts from a sum: its rounding may be what it is for.

    So are `(a + c) - c`, which rounds to a multiple, and the error of a sum (Knuth's two-sum, Kahan).
    """
    if rounds(function):
        return False
    values = {s.var.uid: s.value for s in statements(function.body) if isinstance(s, Bind)}
    return any(_is_sum_less(e, values) for s in statements(function.body) for e in postorder(expressions(s)))


def _is_sum_less(e: Expr, values: Mapping[int, Expr]) -> bool:
    """Whether an expression is a difference of floats with a sum or difference in it."""
    if e.op != "sub" or not e.dtype.startswith("float"):
        return False
    return any((values.get(a.uid, a) if a.op == "var" else a).op in ("add", "sub") for a in e.args)


def finer(exact: Stored, source: Stored, lowered: Stored, kind: Kind) -> Mask | None:
    """Return which elements to show where a kernel as lowered lacks a rounding of the source; None where it has each.

    As `coarser`, the other way round: where no type is narrower than float32, nothing else loses as much.
    """
    if kind.bits < 32 or len(exact.elements) < _FEWEST or not np.isfinite(source.values).all():
        return None
    return coarser(exact, lowered, source, kind)


def _quantile(values: Array, of: Mask, q: float) -> float:
    return float(np.quantile(values[of], q, method="inverted_cdf"))
