"""Find what a choice reads: `c ? A[i] : B[j]` reads one element of two, and compares only that.

Passes simplify each side by what its condition says, so that the other lanes would read something else there. Both
sides of a comparison have one form, and the condition is part of it: where its operands are equal, it takes the same
side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tlcheck.algebra.polynomial import Poly
from tlcheck.prove.footprints import Footprint


def taken(
    intended: Sequence[Footprint],
    actual: Sequence[Footprint],
    is_known: Callable[[Footprint, Poly], bool] = lambda footprint, condition: True,
) -> tuple[list[Footprint], list[Footprint]]:
    """Both sides, which have one form; a leaf counts as read everywhere unless all its conditions are known."""
    both = (*intended, *actual)
    known = [
        all(leaf.when and all(is_known(f, p) for p in leaf.when) for f, leaf in zip(both, leaves, strict=True))
        for leaves in zip(*(f.leaves for f in both), strict=True)
    ]
    left, right = ([_of(f, known) for f in side] for side in (intended, actual))
    return left, right


def _of(footprint: Footprint, known: Sequence[bool]) -> Footprint:
    leaves = (
        leaf if is_known else replace(leaf, when=()) for leaf, is_known in zip(footprint.leaves, known, strict=True)
    )
    return replace(footprint, leaves=tuple(leaves))
