"""The terms of a wrong sum that the lowered kernel adds more often than the source, or less often.

Both levels run again in the blocks that show the difference, and every addition to the element is recorded. Terms are
equal if one block adds them and their values are equal but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tlcheck.execute.compare.output_outcome import RELATIVE, Difference
from tlcheck.execute.observe.additions import Additions, MadeAddition, adds_to_itself
from tlcheck.execute.request import Request
from tlcheck.execute.stops import Illegal, Stopped
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.program.atomics import atomic_name
from tlcheck.signatures import atomics
from tlcheck.signatures.table import family_of
from tlcheck.snapshot.ir import Snapshot, Stmt
from tlcheck.snapshot.walk import expressions, postorder


@dataclass(frozen=True, slots=True)
class UnequalTerm:
    """Additions of one value by one block, of which the two levels make different numbers."""

    source: tuple[MadeAddition, ...]
    lowered: tuple[MadeAddition, ...]

    @property
    def acts(self) -> tuple[MadeAddition, ...]:
        """The additions of the lowered kernel; those of the source where it makes none."""
        return self.lowered or self.source


def unequal_terms(snapshot: Snapshot, request: Request, name: str, found: Difference) -> tuple[UnequalTerm, ...]:
    """The terms that make a sum wrong; none where the element is no sum, or they do not explain its value.

    request: of the blocks and the seed in which the element differs so, and the checkpoint.
    """
    writers = [writer.origin.stmt for writer in (found.author, found.writer) if writer is not None]
    if found.rounded or found.special or not any(is_addition(stmt) for stmt in writers):
        return ()
    try:
        made = levels_of(snapshot, request).invocations(early=found.early)
        source = _recorded(made.source(), name, found)
        lowered = _recorded(made.lowered(), name, found)
    except (Stopped, Illegal, KeyError):  # KeyError: the lowered kernel has no such parameter
        return ()
    explain = _leaves(source, found.expected) and _leaves(lowered, found.got) and source.start == lowered.start
    return tuple(_unequal(source.made, lowered.made)) if explain else ()


def is_addition(stmt: Stmt | None) -> bool:
    """Whether a statement is an atomic, or adds to the element that it stores."""
    calls = () if stmt is None else postorder(expressions(stmt))
    return adds_to_itself(stmt) or any(atomic_name(e) or family_of(e) is atomics.FAMILY for e in calls)


def _recorded(invocation: Invocation, name: str, found: Difference) -> Additions:
    additions = Additions(invocation.kernel, name, found.seed, found.element)
    invocation.run(additions)
    return additions


def _leaves(additions: Additions, said: str) -> bool:
    """Whether the additions leave this value."""
    if additions.start is None or not additions.whole:
        return False
    terms = [additions.start, *(each.value for each in additions.made)]
    total = math.fsum(terms) if all(map(math.isfinite, terms)) else sum(terms)
    if said.startswith("poison"):
        return math.isnan(total)
    value = float(said)
    size = max(1, len(terms)) * RELATIVE * max(abs(term) for term in terms)
    return total == value or abs(total - value) <= size or (math.isnan(total) and math.isnan(value))


def _unequal(source: Sequence[MadeAddition], lowered: Sequence[MadeAddition]) -> list[UnequalTerm]:
    """The terms with unequal numbers: too many first, then those that the source lacks, then what is missing."""
    both = [(each, True) for each in source if each.value] + [(each, False) for each in lowered if each.value]
    found: list[UnequalTerm] = []
    for _, of_block in groupby(sorted(both, key=lambda one: one[0].block), key=lambda one: one[0].block):
        ordered = sorted(of_block, key=lambda one: (math.isnan(one[0].value), one[0].value))
        group: list[tuple[MadeAddition, bool]] = []
        for one in ordered:
            if group and not _same(group[-1][0].value, one[0].value):
                found.append(_term(group))
                group = []
            group.append(one)
        found.append(_term(group))
    unequal = [term for term in found if len(term.source) != len(term.lowered)]
    return sorted(unequal, key=lambda term: (not term.lowered, not term.source, len(term.lowered) < len(term.source)))


def _term(group: Sequence[tuple[MadeAddition, bool]]) -> UnequalTerm:
    return UnequalTerm(*(tuple([each for each, own in group if own is of_source]) for of_source in (True, False)))


def _same(one: float, other: float) -> bool:
    return one == other or abs(one - other) <= RELATIVE * abs(one) or (math.isnan(one) and math.isnan(other))
