"""The releases of a bisection, judged: executed only as far as proofs do not tell them apart.

Where a proof refutes an atomic of the oldest or of the newest, and the other one, executed, is right, it is known which
claim is looked for: the other releases are proved alone. There an output may be wrong for another reason: the report
names the releases that were not executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tlcheck.gate.bisect import RIGHT, WRONG, case_key, state_of
from tlcheck.lower.runs import Lowered
from tlcheck.verdicts.claim import UNDECIDED
from tlcheck.verdicts.results import Result

JudgedKernel = tuple[Lowered, Result]
Judging = Callable[[Iterable[Lowered]], Iterator[JudgedKernel]]


@dataclass(frozen=True)
class JudgedRelease:
    """A kernel as one release lowers it, and its verdicts. executed: else these are proofs alone."""

    lowered: Lowered
    result: Result
    executed: bool = True


def judged_releases(found: Sequence[Lowered], execute: Judging, prove: Judging) -> list[JudgedRelease]:
    """Judge every kernel that was lowered. execute, prove: judge kernels with executions, and without."""
    rows = [row for row in _rows(found) if len(row) > 1]
    at_ends = _by_kernel(prove([end for row in rows for end in (row[0], row[-1])]))
    told = [sides for row in rows if (sides := _sides(row, at_ends)) is not None]
    executed = _by_kernel(execute([sides.right for sides in told]))
    told = [sides for sides in told if state_of(executed[id(sides.right)]) == RIGHT]
    between = _by_kernel(prove([one for sides in told for one in sides.between]))
    proved = {key: result for key, result in between.items() if _is_decided(result)}
    proved |= {id(sides.wrong): at_ends[id(sides.wrong)] for sides in told}
    executed |= _by_kernel(execute([one for one in found if id(one) not in executed and id(one) not in proved]))
    both = proved | executed
    return [JudgedRelease(one, both[id(one)], executed=id(one) in executed) for one in found]


@dataclass(frozen=True)
class _Sides:
    """The releases of one kernel: the end of which a proof refutes an atomic, the other end, and those between."""

    wrong: Lowered
    right: Lowered
    between: Sequence[Lowered]


def _sides(row: Sequence[Lowered], proved: Mapping[int, Result]) -> _Sides | None:
    """The sides of a row, by what proofs say of its ends; None where they do not tell them apart."""
    ends = row[0], row[-1]
    wrong = [end for end in ends if state_of(proved[id(end)]) == WRONG]
    right = [end for end in ends if _is_decided(proved[id(end)]) and end not in wrong]
    return _Sides(wrong[0], right[0], row[1:-1]) if wrong and right else None


def _by_kernel(judged: Iterator[JudgedKernel]) -> dict[int, Result]:
    return {id(lowered): result for lowered, result in judged}


def _rows(found: Sequence[Lowered]) -> list[list[Lowered]]:
    """The kernels of each case and target, from the oldest release on: those that were lowered."""
    rows: dict[tuple[str, str], list[Lowered]] = {}
    for one in sorted(found, key=lambda one: one.run.position):
        if one.snapshot is not None:
            rows.setdefault((case_key(one.run), one.run.target), []).append(one)
    return list(rows.values())


def _is_decided(result: Result) -> bool:
    return result.failure is None and all(claim.verdict != UNDECIDED for claim in result.claims)
