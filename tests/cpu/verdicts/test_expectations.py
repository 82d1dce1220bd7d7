"""Expectations of cases against results made by hand."""

from __future__ import annotations

import pytest

from tests.cpu.checking import failed, make_atomic, make_result, make_run
from tlcheck.case import Expect
from tlcheck.errors import UsageError
from tlcheck.verdicts.expectations import advise, settle
from tlcheck.verdicts.results import Result, exit_code

WRONG_IN_OLD = Expect(releases="<=0.1.7", rule="TLA001", buffer="B", targets=("sm_90",), reason="known")
REFUSED = Expect(releases=">=0.1.7", error="Only elementwise .* allowed", reason="refused since")


def settled(*verdicts: str, expect: Expect = WRONG_IN_OLD, release: str = "0.1.7", target: str = "sm_90") -> Result:
    return settle(make_result(*verdicts, run=make_run(release, target, [expect])))


def test_an_expected_finding_is_counted_apart_and_is_no_error() -> None:
    result = settled("proved", "refuted")
    assert [result.count(v) for v in ("proved", "refuted", "expected")] == [1, 0, 1]
    assert result.claims[1].excuse is not None
    assert result.claims[1].excuse.reason == "known"
    assert not result.broken
    assert exit_code([result], strict=True) == 0


@pytest.mark.parametrize(
    "expect",
    [
        Expect(releases="<0.1.7", rule="TLA001"),
        Expect(releases="<=0.1.7", rule="TLA002"),
        Expect(releases="<=0.1.7", rule="TLA001", buffer="C"),
        Expect(releases="<=0.1.7", rule="TLA001", targets=("sm_80",)),
        Expect(releases="<=0.1.7", error="boom"),
    ],
)
def test_another_release_rule_buffer_or_target_is_not_expected(expect: Expect) -> None:
    result = settled("refuted", expect=expect)
    assert (result.count("refuted"), result.count("expected")) == (1, 0)


@pytest.mark.parametrize(
    ("releases", "release", "applies"),
    [
        ("<=0.1.7", "0.1.7+cuda.gita1b2c3", True),  # wheels name what they were built with
        ("<=0.1.7", "0.1.7.post1", False),  # PEP 440
        (">=0.1.6.post2,<=0.1.7", "0.1.6.post2", True),
        (">=0.1.7", "0.1.16.dev3", True),
        (">=0.1", "", False),  # a build that says nothing about itself
    ],
)
def test_ranges_of_releases(releases: str, release: str, applies: bool) -> None:
    result = settled("refuted", expect=Expect(releases=releases, rule="TLA001"), release=release)
    assert result.count("expected") == int(applies)


def test_an_expectation_that_no_longer_holds_is_an_error() -> None:
    result = settled("proved", "proved")
    assert len(result.broken) == 1
    assert "TLA001 on B is expected of <=0.1.7, and 0.1.7 at sm_90 does not have it" in result.broken[0]
    assert exit_code([result], strict=False) == 1


def test_an_undecided_atomic_leaves_an_expectation_open() -> None:
    assert not settled("proved", "undecided").broken


def test_an_expectation_about_another_release_does_not_count() -> None:
    result = settled("proved", release="0.1.15")
    assert not result.broken
    assert exit_code([result], strict=True) == 0


def test_an_expected_error() -> None:
    run = make_run("0.1.15", expects=[REFUSED])
    result = settle(failed(message="ValueError: Only elementwise operations are allowed", run=run))
    assert result.excuse is not None
    assert result.excuse.reason == "refused since"
    assert exit_code([result], strict=True) == 0


def test_another_error_than_the_expected_one() -> None:
    result = settle(failed(message="SIGABRT", run=make_run("0.1.15", expects=[REFUSED])))
    assert result.excuse is None
    assert exit_code([result], strict=False) == 3


def test_an_expected_error_that_does_not_come() -> None:
    assert "an error like 'Only elementwise" in settled("proved", expect=REFUSED).broken[0]


def test_a_failure_says_nothing_about_an_expected_finding() -> None:
    assert not settle(failed(run=make_run(expects=[WRONG_IN_OLD]))).broken


def right_from(result: Result) -> str:
    (claim,) = result.claims
    assert claim.finding is not None
    return claim.finding.right_from


def test_the_first_later_release_without_it_is_advised() -> None:
    result = advise(make_result("refuted", run=make_run("0.1.6.post2", expects=[WRONG_IN_OLD])))
    assert right_from(result) == "0.1.7.post1"
    assert result.claims[0].excuse is None
    everywhere = Expect(releases=">=0.1", rule="TLA001")
    assert right_from(advise(make_result("refuted", run=make_run(expects=[everywhere])))) == ""
    assert advise(make_result("proved", run=make_run(expects=[WRONG_IN_OLD]))).claims == (make_atomic(),)


@pytest.mark.parametrize("expect", [Expect(releases="~0.1", rule="TLA001"), Expect(releases=">=0.1", error="(")])
def test_what_is_wrong_with_an_expectation_names_the_case(expect: Expect) -> None:
    with pytest.raises(UsageError, match=r"k\.py::case: "):
        settle(failed(run=make_run(expects=[expect])))
