"""Test which releases of a bisection are executed, and which proofs alone decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import failed, make_atomic, make_result, make_run
from tlcheck.gate.bisect import rows
from tlcheck.gate.judged_releases import JudgedKernel, JudgedRelease, judged_releases
from tlcheck.lower.runs import Lowered
from tlcheck.report.bisect_report import _unexecuted
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.results import Result

ATOMIC = {"right": make_atomic(), "wrong": make_atomic("refuted"), "open": make_atomic("undecided")}
OUTPUT = {
    "right": replace(make_atomic("agreed", "C"), kind="output", basis="execution"),
    "wrong": replace(make_atomic("refuted", "C"), kind="output", basis="execution"),
}
Told = Mapping[str, tuple[Claim, ...]]  # by release: its atomic, and what executing it shows


def lowered(release: str) -> Lowered:
    run = replace(make_run(release), position=(int(release), 0))
    return Lowered(run, None if release == "9" else Path("k.snapshot.json"))


def judged(told: Told) -> tuple[list[JudgedRelease], list[str], list[str]]:
    """Return what is found, and which releases were executed and proved, in this order."""
    asked: dict[bool, list[str]] = {True: [], False: []}

    def judge(kernels: Iterable[Lowered], executes: bool) -> Iterator[JudgedKernel]:
        for one in kernels:
            release = one.run.toolchain
            asked[executes].append(release)
            claims = told[release] if executes else told[release][:1]
            yield one, failed(run=one.run) if one.snapshot is None else replace(make_result(run=one.run), claims=claims)

    found = judged_releases(
        [lowered(release) for release in told], lambda some: judge(some, True), lambda some: judge(some, False)
    )
    return found, asked[True], asked[False]


def told(*releases: tuple[str, str]) -> Told:
    return {str(n): (ATOMIC[atomic], OUTPUT[output]) for n, (atomic, output) in enumerate(releases)}


FINE, WRONG = ("right", "right"), ("wrong", "right")


@pytest.mark.parametrize("ends", [(WRONG, FINE), (FINE, WRONG)])
def test_between_ends_that_a_proof_tells_apart_proofs_decide(ends: tuple[tuple[str, str], tuple[str, str]]) -> None:
    """Every release is asked, so that a bug that comes back is seen. The end that is right is executed."""
    found, executed, proved = judged(told(ends[0], WRONG, FINE, WRONG, ends[1]))
    right = ["4"] if ends[1] == FINE else ["0"]
    assert (executed, proved) == (right, ["0", "4", "1", "2", "3"])
    assert [one.lowered.run.toolchain for one in found if one.executed] == right
    states = [p.state for p in rows([one.result for one in found], list("01234"))[0].points]
    assert states == [{WRONG: "wrong", FINE: "right"}[x] for x in (ends[0], WRONG, FINE, WRONG, ends[1])]


@pytest.mark.parametrize(
    "ends",
    [
        (FINE, FINE),
        (WRONG, WRONG),
        (("right", "wrong"), FINE),
        (("right", "wrong"), WRONG),
        (("open", "right"), WRONG),
    ],
    ids=["both right", "both wrong", "an output wrong", "the other's output wrong", "undecided"],
)
def test_else_every_release_is_executed(ends: tuple[tuple[str, str], tuple[str, str]]) -> None:
    found, executed, proved = judged(told(ends[0], ("right", "wrong"), FINE, ends[1]))
    assert (sorted(executed), proved) == (list("0123"), ["0", "3"])
    assert all(one.executed for one in found)


def test_what_no_proof_decides_is_executed() -> None:
    _, executed, proved = judged(told(WRONG, ("open", "wrong"), FINE, FINE))
    assert (executed, proved) == (["3", "1"], ["0", "3", "1", "2"])


def test_a_release_that_does_not_lower_the_kernel_is_no_end() -> None:
    found, executed, proved = judged({**told(WRONG, FINE, FINE), "9": ()})
    assert (executed, proved) == (["2", "9"], ["0", "2", "1"])
    assert found[-1].result.failure is not None


def test_releases_that_were_not_executed_are_named() -> None:
    found, _, _ = judged(told(WRONG, FINE, FINE, FINE))
    results: list[Result] = [one.result for one in found]
    proved = {one.lowered.run.position for one in found if not one.executed}
    (row,) = rows(results, list("0123"), proved=proved)
    (line,) = map(str, _unexecuted(row))
    assert line == "  proofs alone in 0 to 2: 3 releases, not executed (--blocks 4 executes all)"
    (row,) = rows(results, list("0123"))
    assert not list(_unexecuted(row))
