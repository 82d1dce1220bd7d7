"""How the value of an expression changes with the variable of a loop: by the same in each iteration, or in cycles.

Stages of a pipeline take turns: what is at `k % 2 * 4096` is at two places, however often k moves on. Where the same
is found again after some iterations, what was made of it once need not be made again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

_LARGEST = 1 << 20  # of cycles and slopes: no number that a kernel counts with comes near the width of its type


@dataclass(frozen=True, slots=True)
class Growth:
    """After n iterations the value is larger by n * slope, for all n that are multiples of `period`."""

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
_STILL = Growth(Fraction(0), 1)  # of what does not depend on it


def cycle(growths: Sequence[Growth | None]) -> int:
    """The iterations after which all of these are the same again; 0 if that is not known."""
    if any(growth is None or growth.slope for growth in growths):
        return 0
    found = lcm(*[growth.period for growth in growths if growth is not None])
    return found if found <= _LARGEST else 0


def grown(op: str, args: Sequence[Growths], needs: Sequence[frozenset[int]], numbers: Sequence[int | None]) -> Growths:
    """How the value of an operation grows. needs: the variables of each argument; numbers: those that are constants."""
    found: dict[int, Growth] = {}
    if not any(args):
        return found
    for uid in frozenset().union(*needs):
        parts = [each.get(uid) if uid in needed else _STILL for each, needed in zip(args, needs, strict=True)]
        known = [part for part in parts if part is not None]
        growth = _combined(op, known, numbers) if len(known) == len(parts) else None
        if growth is not None and growth.is_small:
            found[uid] = growth
    return found


def _combined(op: str, parts: Sequence[Growth], numbers: Sequence[int | None]) -> Growth | None:
    if not any(part.slope for part in parts):
        return Growth(Fraction(0), lcm(*[part.period for part in parts]))
    return _GROWING[op](parts, numbers) if op in _GROWING else None


def _added(parts: Sequence[Growth], sign: int) -> Growth:
    a, b = parts
    return Growth(a.slope + sign * b.slope, lcm(a.period, b.period))


def _multiplied(parts: Sequence[Growth], numbers: Sequence[int | None]) -> Growth | None:
    for part, by in zip(parts, reversed(numbers), strict=True):
        if by is not None:
            return Growth(part.slope * by, part.period)
    return None


def _divided(parts: Sequence[Growth], numbers: Sequence[int | None]) -> Growth | None:
    by = numbers[1]
    return Growth(parts[0].slope / by, parts[0].until(by)) if by is not None and by > 0 else None


def _rest(parts: Sequence[Growth], numbers: Sequence[int | None]) -> Growth | None:
    by = numbers[1]
    return Growth(Fraction(0), parts[0].until(by)) if by is not None and by > 0 else None


def _same(parts: Sequence[Growth], numbers: Sequence[int | None]) -> Growth:
    return parts[0]


_GROWING: dict[str, Callable[[Sequence[Growth], Sequence[int | None]], Growth | None]] = {
    "add": lambda parts, numbers: _added(parts, 1),
    "sub": lambda parts, numbers: _added(parts, -1),
    "mul": _multiplied,
    "floordiv": _divided,
    "floormod": _rest,
    "broadcast": _same,
}
