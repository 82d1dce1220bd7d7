"""What one origin explains stands under it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.checking import make_atomic, make_finding
from tests.fixtures.index import FOLDER
from tlcheck.execute.compare import diagnosis
from tlcheck.execute.request import Request
from tlcheck.reasons import SOURCE_STOPS, UNSET, Reason, ReasonKind
from tlcheck.verdicts.causes import by_cause
from tlcheck.verdicts.claim import Claim, FindingOrigin, Kind, OriginKind, Verdict
from tlcheck.verdicts.judging import verdicts_of
from tlcheck.verdicts.results import read_snapshot
from tlcheck.witness import Accesses, Act

RULES: dict[Kind, str] = {
    "output": "TLO001",
    "order": "TLR001",
    "legality": "TLL001",
    "atomic": "TLA005",
    "source": "TLS002",
}


def claim(
    kind: Kind,
    buffer: str,
    origin: FindingOrigin | None = None,
    verdict: Verdict = "refuted",
    span: tuple[int, int] = (0, 0),
) -> Claim:
    acts = [Act("read", (0, 0, 0), 0, {}, line, 0, "device-tir") for line in span]
    finding = replace(make_finding(RULES[kind]), origin=origin, witness=Accesses((0,), *acts))
    own = replace(make_atomic(), kind=kind, key=buffer, buffer=buffer, verdict=verdict)
    return replace(own, finding=finding if verdict == "refuted" else None)


def race(buffer: str, first: int, last: int, missing: str = "a barrier") -> Claim:
    origin = FindingOrigin("unordered", 0, 0, (buffer,), "words", missing)
    return claim("order", buffer, origin, span=(first, last))


def wrong(buffer: str, kind: OriginKind, at: str, line: int = 7) -> Claim:
    return claim("output", buffer, FindingOrigin(kind, line, 3, (at,), f"{at} is {kind}"))


def shape(*claims: Claim) -> list[tuple[str, list[str]]]:
    return [(c.buffer, [other.buffer for other in c.also]) for c in by_cause(claims)]


def test_one_barrier_would_order_both_pairs() -> None:
    assert shape(race("a", 10, 20), race("b", 12, 22)) == [("a", ["b"])]
    assert shape(race("a", 10, 20), race("b", 20, 22)) == [("a", []), ("b", [])]
    assert shape(race("a", 10, 20), race("b", 12, 22, "fence.proxy.async")) == [("a", []), ("b", [])]
    assert shape(race("a", 20, 10), race("b", 12, 22)) == [("a", []), ("b", [])], "from one step of a loop to the next"


@pytest.mark.parametrize(("kind", "explained"), [("early", True), ("unordered", True), ("other-value", False)])
def test_a_race_explains_the_outputs_that_go_wrong_at_its_buffer(kind: OriginKind, explained: bool) -> None:
    found = shape(race("s", 10, 20), wrong("C", kind, "s"))
    assert found == ([("s", ["C"])] if explained else [("s", []), ("C", [])])
    assert shape(race("s", 10, 20), wrong("C", kind, "t")) == [("s", []), ("C", [])]


def test_outputs_with_one_origin_are_one_finding() -> None:
    assert shape(wrong("C", "unwritten", "c"), wrong("D", "unwritten", "c")) == [("C", ["D"])]
    assert shape(wrong("C", "unwritten", "c"), wrong("D", "unwritten", "d")) == [("C", []), ("D", [])]
    assert shape(claim("output", "C"), claim("output", "D")) == [("C", []), ("D", [])]


def test_what_is_not_known_since_the_kernel_stops_stands_under_the_access() -> None:
    stopped = replace(claim("output", "C", verdict="undecided"), reason="as lowered: access of s out of bounds")
    other = replace(claim("output", "D", verdict="undecided"), reason="something else")
    assert shape(claim("legality", "s"), stopped, other) == [("s", ["C"]), ("D", [])]


@pytest.mark.parametrize(("reason", "explained"), [(SOURCE_STOPS, True), (UNSET, False)])
def test_an_atomic_that_leaves_its_buffer_as_written_stands_under_that_index(
    reason: ReasonKind, explained: bool
) -> None:
    index, left = claim("source", "s"), claim("atomic", "s", verdict="undecided").because(Reason(reason, "it leaves s"))
    assert shape(index, left) == ([("s", ["s"])] if explained else [("s", []), ("s", [])])
    assert shape(index, replace(left, buffer="t")) == [("s", []), ("t", [])]


@pytest.mark.parametrize(("call", "explained"), [("atomic_add_ret_elem_op", True), ("atomic_add_elem_op", False)])
def test_an_access_at_a_place_that_a_wrong_atomic_gives_stands_under_that(call: str, explained: bool) -> None:
    atomic, access = replace(claim("atomic", "N"), call=call, instructions=()), claim("legality", "O")
    assert shape(atomic, access) == ([("N", ["O"])] if explained else [("N", []), ("O", [])])


def test_what_explains_is_explained_itself() -> None:
    """A chain has one root."""
    first, second = race("a", 10, 20), race("b", 12, 22)
    assert shape(first, second, wrong("C", "early", "b")) == [("a", ["b", "C"])]


def test_a_hazard_that_shows_in_a_value_is_an_error() -> None:
    hazard = race("a", 10, 20, "fence.proxy.async")
    assert hazard.finding is not None
    hazard = replace(hazard, finding=replace(hazard.finding, weight="hazard"))
    (alone,), (both,) = by_cause((hazard,)), by_cause((hazard, wrong("C", "early", "a")))
    assert alone.finding is not None
    assert both.finding is not None
    assert (alone.finding.weight, both.finding.weight) == ("hazard", "error")


def test_an_output_that_a_refuted_atomic_explains_is_not_executed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def diagnosed(*_: object) -> None:
        raise AssertionError("its cause is known")

    monkeypatch.setattr(diagnosis, "_wrong_output", diagnosed)
    verdicts = verdicts_of(read_snapshot(FOLDER / "rules" / "TLA001-bad.snapshot.json"), Request())
    (atomic,) = [claim for claim in verdicts.claims if claim.kind == "atomic"]
    assert verdicts.failure is None
    assert [(also.kind, also.verdict) for also in atomic.also] == [("output", "refuted")]
