"""Test which passes are executed to find the first after which a claim is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cpu.checking import INVARIANT, make_finding
from tests.cpu.gate.test_bisect_passes import every_pass
from tlcheck.gate.bisect_passes import _executed
from tlcheck.gate.pass_execution import ExecutedPasses, PassOnset, PassState
from tlcheck.gate.pipeline import Pipeline
from tlcheck.verdicts.claim import Claim, FindingOrigin, SourceLine

CLAIM = Claim("output", "B", "B", SourceLine("k.py", 1, True), "refuted", "execution")


class Told(ExecutedPasses):
    """Passes whose states are told; `asked` are those that would have been executed."""

    def __init__(self, states: Sequence[str]) -> None:
        whole = every_pass(INVARIANT)
        function = next(iter(whole.checkpoints.values()))
        keys = [f"{n:03}-pass" for n in range(len(states))]
        passes = dict.fromkeys(keys, "pass")
        self._pipeline = Pipeline(replace(whole, checkpoints=dict.fromkeys(keys, function), passes=passes))
        self._states, self.asked = states, list[int]()
        self._executed = self.asked

    def state(self, claim: Claim, number: int) -> PassState:
        self.asked.append(number)
        return PassState(self._states[number], "unclear" if self._states[number] == "undecided" else "")


@pytest.mark.parametrize("first", [1, 2, 17, 40, 65])
def test_passes_are_searched_by_halves(first: int) -> None:
    told = Told(["right"] * first + ["wrong"] * (66 - first))
    right, wrong, _ = told._searched(CLAIM, 1)
    assert (right, wrong) == (first - 1, first)
    assert len(told.asked) <= 7


@pytest.mark.parametrize(("first", "asked"), [(41, [40, 41]), (30, [40, 20, 30, 25, 27, 28, 29])])
def test_where_memory_is_shared_the_pass_that_shares_it_is_looked_at_first(first: int, asked: list[int]) -> None:
    """It is guilty only if it is right before and wrong after."""
    told = Told(["right"] * first + ["wrong"] * (66 - first))
    told._pipeline.names[41] = "tl.MergeSharedMemoryAllocations"
    origin = FindingOrigin("overwritten", 3, 4, ("a", "b"), "b lies where a does")
    claim = replace(CLAIM, finding=replace(make_finding("TLO001"), origin=origin))
    right, wrong, _ = told._searched(claim, 1)
    assert (right, wrong, told.asked) == (first - 1, first, asked)


def test_passes_that_cannot_be_executed_lie_between() -> None:
    told = Told(["right"] * 30 + ["undecided"] * 5 + ["wrong"] * 31)
    right, wrong, states = told._searched(CLAIM, 1)
    assert (right, wrong) == (29, 35)
    assert [states[n].reason for n in range(30, 35)] == ["unclear"] * 5
    assert len(told.asked) <= 13


class ToldOrder(Told):
    """A wait that is missing wherever orders are watched; an output's states are told."""

    _wrong = ("B",)  # type: ignore[assignment]

    def _orders(self, claim: Claim) -> str:
        return ""

    def state(self, claim: Claim, number: int) -> PassState:
        return PassState("wrong") if claim.kind == "order" else super().state(claim, number)


@pytest.mark.parametrize(("first", "onset"), [(30, 30), (60, 51)])
def test_a_wait_is_missing_since_an_output_is_wrong(first: int, onset: int) -> None:
    """Orders are watched from VectorizeLoop on, here pass 50: the next pass is guilty only if nothing says more."""
    told = ToldOrder(["right"] * first + ["wrong"] * (66 - first))
    told._pipeline.vectors = 50
    assert told.onset(replace(CLAIM, kind="order", buffer="s")).number == onset


def test_passes_of_one_name_are_numbered() -> None:
    assert Told(["right"] * 3)._pipeline.called(1) == "pass (2 of 3)"


@pytest.mark.parametrize(("orders", "role"), [("tl.ThreadSync", "orders"), ("", "may-break")])
def test_a_pass_that_should_have_ordered_two_accesses_breaks_nothing(orders: str, role: str) -> None:
    """Without such a pass it may be one before orders are watched."""
    pipeline = Told(["right"] * 3)._pipeline
    pipeline.names[2], pipeline.vectors = "tl.ThreadSync", 1
    claim = replace(CLAIM, kind="order", finding=make_finding("TLR001"))
    assert _executed(pipeline, claim, PassOnset(2, orders=orders)).role == role


def _raced(*missing: str) -> Any:
    """An execution with races for one buffer, each of which lacks something."""
    races = [SimpleNamespace(buffer="s", parameter="", missing=each) for each in missing]
    return SimpleNamespace(races=races, outputs=(), statements=(1, 1), illegal=None)


@pytest.mark.parametrize(
    ("at_the_end", "before", "state"),
    [
        ("a wait for the copy", ["a barrier"], "undecided"),
        ("a wait for the copy", ["a barrier", "a wait for the copy"], "wrong"),
        ("a wait for the copy", [], "right"),
        ("a barrier", ["a wait for the copy"], "wrong"),
    ],
)
def test_barriers_that_a_later_pass_puts_in_are_no_missing_wait(at_the_end: str, before: list[str], state: str) -> None:
    told = Told(["right"] * 3)
    told._names, told._final = {}, _raced(at_the_end)
    assert told._said(replace(CLAIM, kind="order", buffer="s"), _raced(*before)).state == state
