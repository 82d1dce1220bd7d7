"""In a gate the author's fault is on both sides: no difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.checking import make_finding, make_result, make_run
from tests.cpu.gate.comparing import compared
from tlcheck.facts import Facts
from tlcheck.gate.outcome import LoweredSide
from tlcheck.verdicts.claim import Claim, Excuse, SourceLine

FAULT = replace(make_finding("TLS003"), name="uninitialized", checkpoint="source", pass_name="", blame="author")
LINE = SourceLine("k.py", 7, True, "T.gemm(a, b, c)")
UNDECIDED = Claim("output", "C", "C", LINE, "undecided", "execution", reason="it depends on memory that nothing wrote")
SOURCE = Claim("source", "TLS003 c", "c", LINE, "refuted", "execution", finding=FAULT, also=(UNDECIDED,))
WARNING = replace(SOURCE, key="TLS008 C", excuse=Excuse("warning", "the caller may have filled it"), also=())
AGREED = Claim("output", "C", "C", LINE, "agreed", "execution")


def side(*claims: Claim, release: str = "0.1.15") -> LoweredSide:
    result = replace(make_result(run=make_run(release)), claims=claims)
    return LoweredSide(result, Facts(release), 1.0, 7, "digest")


@pytest.mark.parametrize("claim", [SOURCE, WARNING])
def test_a_fault_of_both_sides_is_no_difference(claim: Claim) -> None:
    assert compared(side(claim, release="0.1.14"), side(claim)).outcomes == ()


def test_a_fault_that_one_side_does_not_show_is_no_wrong_release() -> None:
    """The source is the same: the other side could not show it."""
    for before, after in (((AGREED,), (SOURCE,)), ((SOURCE,), (AGREED,))):
        outcomes = compared(side(*before, release="0.1.14"), side(*after)).outcomes
        assert "wrong" not in {outcome.klass for outcome in outcomes}


def test_a_new_case_with_a_fault_of_its_author_is_not_wrong_by_the_release() -> None:
    assert "wrong" not in {outcome.klass for outcome in compared(None, side(SOURCE)).outcomes}
    assert "wrong" in {outcome.klass for outcome in compared(None, side(_compilers())).outcomes}


def _compilers() -> Claim:
    """The same claim as TileLang's fault."""
    return replace(SOURCE, kind="output", finding=make_finding("TLO001"), also=())
