"""Find where a range of releases changes its mind: every one is checked, since a bug may go, come back and go again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import pairwise

from packaging.version import Version

from tlcheck.errors import UsageError
from tlcheck.gate.outcome import DIFFERS
from tlcheck.gate.pairing import unquoted
from tlcheck.gate.source_reference import SourceAnswer
from tlcheck.gate.verdict_outcomes import all_claims
from tlcheck.lower.runs import Position, Run, toolchain_title
from tlcheck.toolchain import environment
from tlcheck.toolchain.releases import RELEASES
from tlcheck.toolchain.resolve import install_of, recipe_of
from tlcheck.verdicts.claim import AGREED, Claim
from tlcheck.verdicts.results import Result

RIGHT, WRONG, UNDECIDED, FAILS, ABSENT = "right", "wrong", "undecided", "fails", "absent"


@dataclass(frozen=True)
class Point:
    """The result of a kernel with one release, or after one pass: `at`.

    state: `right`, `wrong`, `undecided`, `fails` (it cannot be lowered or checked) or `absent` (no such case there).
    result: what was found; None where it is absent. source_answer: how the source compares with the case's
    reference; None where that was not asked. agreed: of one that is right: a claim that matters in its row was executed
    and agrees, and is not proved. executed: else the result is of proofs alone.
    """

    at: str
    state: str
    result: Result | None = None
    source_answer: SourceAnswer | None = None
    agreed: bool = False
    executed: bool = True

    @property
    def word(self) -> str:
        """The state for people, who are told what is not proved."""
        return AGREED if self.agreed and self.state == RIGHT else self.state

    @property
    def wrong(self) -> tuple[Claim, ...]:
        """The claims that are refuted."""
        claims = self.result.claims if self.result else ()
        return tuple(claim for claim in claims if claim.finding is not None)


@dataclass(frozen=True)
class BisectRow:
    """One case for one target over all releases, or passes of the one `release`, in order."""

    case: str
    target: str
    points: tuple[Point, ...]
    release: str = ""

    @property
    def transitions(self) -> tuple[tuple[Point, Point], ...]:
        """Neighbours of different states."""
        return tuple((a, b) for a, b in pairwise(self.points) if a.state != b.state)


def ends_of(first: str | None, last: str | None, requirements: Iterable[str] = ()) -> tuple[str, str]:
    """The ends that the user gives; else the oldest and the newest release that is installed. Raises UsageError."""
    if first and last:
        return first, last
    own = tuple(requirements)
    there = [r for r in RELEASES if _is_installed(r, own)]
    if not there:
        raise UsageError("no release is installed: run `tlcheck toolchain install RELEASE...`")
    oldest, newest = min(there, key=Version), max(there, key=Version)
    return first or oldest, last or newest


def range_of(first: str, last: str, requirements: Iterable[str] = (), *, every: bool = True) -> list[str]:
    """The toolchains from one to another, both included, oldest first: the known releases between, and the ends.

    every: whether each release between has to be installed; else those that are not are left out. What is no release (a
    wheel, a checkout, the active environment) may be an end too; its other releases are then those up to the newest.
    Raises UsageError if the range is empty or some of it is not installed.
    """
    ends = [(name, _version(name)) for name in dict.fromkeys((first, last))]
    low, high = _version(first), _version(last)
    if low and high and low > high:
        raise UsageError(f"--from {first} is newer than --to {last}")
    known = {Version(v) for v in RELEASES}
    inside = {v for v in known if (not low or v >= low) and (not high or v <= high)}
    releases = [str(v) for v in sorted(inside | {v for _, v in ends if v})]
    own = tuple(requirements)
    if not every:
        releases = [r for r in releases if r in (first, last) or _is_installed(r, own)]
    require_installed(releases, own)
    return [*([first] if low is None else []), *releases, *([last] if high is None and last != first else [])]


def _version(toolchain: str) -> Version | None:
    """The release that a toolchain is; None for one that is not made from the package index."""
    recipe = None if toolchain.endswith(".whl") else recipe_of(toolchain)
    return Version(recipe.name) if recipe else None


def require_installed(releases: Sequence[str], requirements: tuple[str, ...]) -> None:
    """Raise UsageError, with the command that installs them, if some of the releases are not there."""
    missing = [r for r in releases if not _is_installed(r, requirements)]
    if missing:
        raise UsageError(f"not installed: run `{install_of(missing, requirements)}`")


def _is_installed(release: str, requirements: tuple[str, ...]) -> bool:
    return environment.find(environment.release_recipe(release, requirements)) is not None


def rows(
    results: Iterable[Result],
    toolchains: Sequence[str],
    answers: Mapping[Position, SourceAnswer] | None = None,
    proved: Set[Position] = frozenset(),
) -> list[BisectRow]:
    """One row for each case and target, in the order of reports. A file that fails, fails for all of its cases.

    answers: of those runs whose source kernel was compared with a reference. proved: the runs with proofs alone.
    """
    found = sorted(results, key=lambda result: result.run.position)
    keys = list(dict.fromkeys((case_key(r.run), r.run.target) for r in found if r.run.target))
    keys = keys or list(dict.fromkeys((case_key(r.run), "") for r in found))
    points = [_points(case, target, found, toolchains, answers or {}) for case, target in keys]
    told = [tuple([replace(point, executed=_is_executed(point, proved)) for point in own]) for own in points]
    return [BisectRow(case, target, own) for (case, target), own in zip(keys, told, strict=True)]


def _is_executed(point: Point, proved: Set[Position]) -> bool:
    return point.result is None or point.result.run.position not in proved


def case_key(run: Run) -> str:
    """Return what a case is called in every release: kernels of scripts have their arguments in their names."""
    return unquoted(run.case)


def _points(
    case: str,
    target: str,
    found: Sequence[Result],
    toolchains: Sequence[str],
    answers: Mapping[Position, SourceAnswer],
) -> tuple[Point, ...]:
    own: Mapping[str, Result] = {
        result.run.toolchain: result
        for result in found
        if (case_key(result.run), result.run.target) == (case, target) or _is_of_file(result, case)
    }
    points = [_point(toolchain, own.get(toolchain), answers) for toolchain in toolchains]
    matter = {_name(claim) for point in points for claim in point.wrong}
    return tuple([replace(point, agreed=_only_agrees(point, matter)) for point in points])


def _only_agrees(point: Point, matter: Set[tuple[str, str]]) -> bool:
    """Whether one of the claims that matter, which are those wrong elsewhere if some are, is not proved."""
    claims = all_claims(point.result.claims) if point.result is not None else []
    own = [claim for claim in claims if not matter or _name(claim) in matter]
    return (bool(matter) and not own) or any(claim.verdict == AGREED for claim in own)


def _name(claim: Claim) -> tuple[str, str]:
    return claim.kind, claim.key


def _is_of_file(result: Result, case: str) -> bool:
    """Whether this says that the whole file of the case could not be imported."""
    return not result.run.target and case in (result.run.case, f"{result.run.file}::{case.rpartition('::')[2]}")


def _point(toolchain: str, result: Result | None, answers: Mapping[Position, SourceAnswer]) -> Point:
    if result is None:
        return Point(toolchain, ABSENT)
    release = result.run.release
    title = toolchain_title(toolchain, result.run.versions)
    at = title if toolchain == release or not release else f"{title} ({release})"
    answer = answers.get(result.run.position)
    is_wrong = answer is not None and answer.answer == DIFFERS
    return Point(at, WRONG if is_wrong else state_of(result), result, answer)


def state_of(result: Result) -> str:
    """The worst of a result, in one word."""
    if result.failure is not None:
        return FAILS
    if any(claim.blames_compiler for claim in result.claims):
        return WRONG
    return RIGHT if all(claim.is_clean for claim in result.claims) else UNDECIDED
