"""Barriers, waits and fences that are gone: a risk unless the order of the accesses there is decided."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.gate.comparing import compared, made
from tlcheck.facts.kernel_facts import Count, Facts, Sync
from tlcheck.gate.outcome import DEFAULT_FAILING, LoweredSide
from tlcheck.verdicts.claim import AGREED, UNDECIDED, Claim, SourceLine, Verdict

BEFORE_A, BEFORE_B = Sync("barrier", "before read of a", Count(8)), Sync("barrier", "before read of b", Count(8))
FENCE = Sync("proxy fence", "", Count(2))


def order(buffer: str, verdict: Verdict) -> Claim:
    reason = "its author" if verdict == UNDECIDED else ""
    return Claim("order", buffer, buffer, SourceLine("k.py", 1, True), verdict, "execution", reason=reason)


def side(*syncs: Sync, claims: tuple[Claim, ...] = ()) -> LoweredSide:
    plain = made()
    return replace(plain, facts=Facts("0.1.15", syncs=syncs), result=replace(plain.result, claims=claims))


DECIDED = order("a", AGREED), order("b", AGREED)
OPEN = order("a", UNDECIDED), order("b", AGREED)


@pytest.mark.parametrize(
    ("after", "klass", "words"),
    [
        (side(BEFORE_B, FENCE, claims=DECIDED), "changed", "order of a agreed"),  # it was not before
        (side(BEFORE_B, FENCE, claims=OPEN), "sync-risk", "the order of a is not decided now"),
        (side(BEFORE_A, FENCE, claims=OPEN), "changed", "order of b still agreed"),  # b's barrier, and b is decided
        (side(BEFORE_A, BEFORE_B, claims=OPEN), "sync-risk", "the order of a is not decided now"),
        (side(BEFORE_A, BEFORE_B, claims=DECIDED), "changed", "order agreed"),
        (side(BEFORE_B, FENCE), "sync-risk", "the order of any access is not decided now"),
    ],
)
def test_what_is_gone_is_a_risk_where_the_order_is_open(after: LoweredSide, klass: str, words: str) -> None:
    pair = compared(side(BEFORE_A, BEFORE_B, FENCE, claims=OPEN), after)
    (outcome,) = [o for o in pair.outcomes if o.kind in ("barrier", "wait")]
    assert outcome.klass == klass
    assert words == outcome.claims if klass == "changed" else outcome.words.endswith(words)


def test_what_came_is_none_and_what_is_refuted_is_wrong() -> None:
    (more,) = compared(side(), side(BEFORE_A)).outcomes
    assert (more.klass, more.claims) == ("changed", "nothing is claimed of it")
    assert "sync-risk" in DEFAULT_FAILING


def test_a_barrier_that_moved_or_comes_less_often_counts_too() -> None:
    moved = compared(side(BEFORE_A), side(BEFORE_B)).outcomes
    rarer = compared(side(BEFORE_A), side(replace(BEFORE_A, count=Count(4)))).outcomes
    assert [o.klass for o in (*moved, *rarer)] == ["sync-risk", "sync-risk"]


def test_a_buffer_as_lowered_that_is_not_made_any_more_is_nothing() -> None:
    """A release may stage in shared memory where another one does not."""
    assert compared(side(claims=DECIDED), side(claims=(order("a", AGREED),))).klass == "same"
