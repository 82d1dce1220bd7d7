"""Describe what cases expect of releases (`Expect`), held against what was found: as pytest's strict xfail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from tlcheck.case import Expect
from tlcheck.errors import UsageError
from tlcheck.lower.runs import Run
from tlcheck.program.release import Release
from tlcheck.toolchain.releases import RELEASES
from tlcheck.verdicts.claim import UNDECIDED, Claim, Excuse, kind_of
from tlcheck.verdicts.results import Result


def settle(result: Result) -> Result:
    """Excuse what the case expects of this release and target, and name the expectations that do not hold."""
    here = _here(result)
    if result.failure is not None:
        known = next((expect for expect in here if expect.error and _raised(expect, result)), None)
        return replace(result, excuse=Excuse("expected", known.reason)) if known else result
    claims = tuple(_settled(claim, here) for claim in result.claims)
    broken = tuple(_words(expect, result.run) for expect in here if _is_broken(expect, result))
    return replace(result, claims=claims, broken=broken)


def advise(result: Result) -> Result:
    """Note the release that has it right at each finding that the case expects."""
    here = _here(result)
    return replace(result, claims=tuple(_advised(claim, here, result.run) for claim in result.claims))


def _here(result: Result) -> list[Expect]:
    run = result.run
    here = [expect for expect in run.expects if within(expect.releases, run.release, run.case)]
    return [expect for expect in here if not expect.targets or run.target in expect.targets]


def within(releases: str, release: str, owner: str) -> bool:
    """Whether a PEP 440 specifier has a release. Raises UsageError, which names `owner`, if it is none."""
    try:
        return SpecifierSet(releases).contains(Version(release), prereleases=True)
    except InvalidSpecifier as error:
        raise UsageError(f"{owner}: releases={releases!r}: {error}") from error
    except InvalidVersion:  # a build without a version: nothing is known of it
        return False


def _raised(expect: Expect, result: Result) -> bool:
    failure = result.failure
    assert failure is not None
    try:
        return re.search(expect.error, f"{failure.message}\n{failure.detail}") is not None
    except re.error as error:
        raise UsageError(f"{result.run.case}: error={expect.error!r}: {error}") from error


def _settled(claim: Claim, here: Sequence[Expect]) -> Claim:
    known = _known(claim, here)
    return replace(claim, excuse=Excuse("expected", known.reason)) if known else claim


def _advised(claim: Claim, here: Sequence[Expect], run: Run) -> Claim:
    known = _known(claim, here)
    if known is None or claim.finding is None:
        return claim
    return replace(claim, finding=replace(claim.finding, right_from=_right_from(known, run)))


def _known(claim: Claim, here: Sequence[Expect]) -> Expect | None:
    return next((expect for expect in here if _is_found(expect, claim)), None)


def _is_found(expect: Expect, claim: Claim) -> bool:
    return claim.finding is not None and expect.rule == claim.finding.rule and _concerns(expect, claim)


def _concerns(expect: Expect, claim: Claim) -> bool:
    return not expect.buffer or expect.buffer == claim.buffer


def _is_broken(expect: Expect, result: Result) -> bool:
    """Whether nothing was found of what is expected; claims of its kind that are undecided leave that open."""
    if expect.error:
        return True
    claims = [one for claim in result.claims for one in (claim, *claim.also) if _concerns(expect, one)]
    return not any(
        _is_found(expect, claim) or (claim.verdict == UNDECIDED and claim.kind == kind_of(expect.rule))
        for claim in claims
    )


def _right_from(expect: Expect, run: Run) -> str:
    """The first known release after this one that the expectation leaves out; empty if there is none."""
    later = (version for version in RELEASES if Release.of(version) > Release.of(run.release))
    return next((version for version in later if not within(expect.releases, version, run.case)), "")


def _words(expect: Expect, run: Run) -> str:
    what = expect.rule or f"an error like {expect.error!r}"
    where = f" on {expect.buffer}" if expect.buffer else ""
    return f"{what}{where} is expected of {expect.releases}, and {run.release} at {run.target} does not have it"
