"""Describe how the value of an expression changes with the variable of a loop: by the same in each iteration, or in
cycles.

Stages of a pipeline take turns: what is at `k % 2 * 4096` is at two places, however often k moves on. Where the same
is found again after some iterations, what was made of it once need not be made again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.operators import Scalars, exact, named

_LARGEST = 1 << 20  # of cycles and slopes: no number that a kernel counts with comes near the width of its type


@dataclass(frozen=True, slots=True)
class Growth:
    """A value that is larger by n * slope after n iterations, for all n that are multiples of `period`."""

    slope: Fraction
    period: int

    def until(self, multiple: int) -> int:
        """The iterations after which it is larger by a multiple of a number."""
        step = self.slope * self.period / multiple
        return self.period * step.denominator

    @property
    def is_small(self) -> bool:
        return self.period <= _LARGEST and abs(self.slope) <= _LARGEST


Growths = Mapping[int, Growth]  # by the variable's uid
ITSELF = Growth(Fraction(1), 1)  # of the variable
_RING = {name: exact(name, Scalars()) for name in named("ring")}
_STILL = Growth(Fraction(0), 1)  # of what does not depend on it


def cycle(growths: Sequence[Growth | None]) -> int:
    """The iterations after which all of these are the same again; 0 if that is not known."""
    if any(growth is None or growth.slope for growth in growths):
        return 0
    found = lcm(*[growth.period for growth in growths if growth is not None])
    return found if found <= _LARGEST else 0


def grown(
    op: str,
    dtype: str,
    args: Sequence[Growths],
    needs: Sequence[frozenset[int]],
    numbers: Sequence[int | None],
) -> Growths:
    """Return how the value of an operation grows. needs: the variables of each argument; numbers: those that are
    constants.

    Only numbers of the types that loops count in grow: those of 8 and 16 bits and the unsigned ones may wrap.
    """
    found: dict[int, Growth] = {}
    if not any(args):
        return found
    for uid in frozenset().union(*needs):
        parts = [each.get(uid) if uid in needed else _STILL for each, needed in zip(args, needs, strict=True)]
        known = [part for part in parts if part is not None]
        growth = _combined(op, dtype, known, numbers) if len(known) == len(parts) else None
        if growth is not None and growth.is_small:
            found[uid] = growth
    return found


def _combined(op: str, dtype: str, parts: Sequence[Growth], numbers: Sequence[int | None]) -> Growth | None:
    period = lcm(*[part.period for part in parts])
    if not any(part.slope for part in parts):
        return Growth(Fraction(0), period)
    if dtype_of(dtype).name not in ("int32", "int64"):
        return None
    if op == "mul":
        of = 0 if numbers[1] is not None else 1
        by = numbers[1 - of]
        return Growth(parts[of].slope * by, parts[of].period) if by is not None else None
    if op in _RING:
        a, b = parts
        return Growth(_RING[op](a.slope, b.slope), period)
    if op in ("floordiv", "floormod"):
        by = numbers[1]
        if by is None or by <= 0:
            return None
        return Growth(parts[0].slope / by if op == "floordiv" else Fraction(0), parts[0].until(by))
    return parts[0] if op == "broadcast" else None
