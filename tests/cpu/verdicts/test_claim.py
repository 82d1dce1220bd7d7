"""One cause, one finding: what a refuted claim explains stands under it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import make_atomic, make_finding, make_run
from tlcheck.case import Expect
from tlcheck.reasons import OTHER_FORM, UNKNOWN_CALL, VALUE_UNREAD, Reason, ReasonKind
from tlcheck.report.check_notices import document_of
from tlcheck.verdicts.acceptance import Acceptance, Acceptances
from tlcheck.verdicts.causes import by_cause
from tlcheck.verdicts.claim import Blame, Claim, Executed, Kind, Verdict, kind_of, on_device, with_content
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.results import Result, exit_code
from tlcheck.verdicts.words import also_in_words, counts_in_words

RULES: dict[Kind, str] = {"atomic": "TLA001", "output": "TLO001", "order": "TLR001", "legality": "TLL001"}


def claim(kind: Kind, verdict: Verdict = "refuted", buffer: str = "B") -> Claim:
    finding = make_finding(RULES[kind]) if verdict == "refuted" else None
    return replace(make_atomic(), kind=kind, key=buffer, buffer=buffer, verdict=verdict, finding=finding)


def shape(claims: tuple[Claim, ...]) -> list[tuple[str, list[str]]]:
    return [(c.kind, [other.kind for other in c.also]) for c in claims]


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ((claim("atomic"), claim("output")), [("atomic", ["output"])]),
        ((claim("output"), claim("atomic")), [("atomic", ["output"])]),
        ((claim("legality"), claim("atomic"), claim("output")), [("atomic", ["legality", "output"])]),
        ((claim("order"), claim("output")), [("order", ["output"])]),
        ((claim("legality"), claim("output")), [("legality", ["output"])]),
        ((claim("order"), claim("order"), claim("output")), [("order", ["order", "output"])]),
        ((claim("order"), claim("order", buffer="C")), [("order", []), ("order", [])]),
        ((claim("order"), claim("legality")), [("order", []), ("legality", [])]),
        ((claim("atomic"), claim("output", buffer="C")), [("atomic", []), ("output", [])]),
        ((claim("atomic"), claim("output", "agreed")), [("atomic", []), ("output", [])]),
        ((claim("atomic", "undecided"), claim("output")), [("atomic", []), ("output", [])]),
        ((claim("atomic"), claim("atomic"), claim("output")), [("atomic", ["output"]), ("atomic", [])]),
    ],
)
def test_a_claim_stands_under_the_one_that_explains_it(
    claims: tuple[Claim, ...], expected: list[tuple[str, list[str]]]
) -> None:
    assert shape(by_cause(claims)) == expected


@pytest.mark.parametrize(("line", "expected"), [(7, [("source", ["atomic"])]), (8, [("atomic", []), ("source", [])])])
def test_an_atomic_beyond_its_buffer_stands_under_the_index_of_its_line(
    line: int, expected: list[tuple[str, list[str]]]
) -> None:
    atomic = replace(claim("atomic"), finding=make_finding("TLA007"), source=replace(make_atomic().source, line=7))
    index = replace(atomic, kind="source", finding=make_finding("TLS002"), source=replace(atomic.source, line=line))
    assert shape(by_cause((atomic, index))) == expected


@pytest.mark.parametrize(
    ("rule", "buffer", "line", "count"),
    [("TLA005", "f", 7, 1), ("TLA005", "f", 8, 2), ("TLA005", "", 7, 2), ("TLA006", "f", 7, 2), ("TLA007", "f", 7, 2)],
)
def test_what_an_atomic_reads_beyond_a_tile_and_adds(rule: str, buffer: str, line: int, count: int) -> None:
    """buffer: that the author's index leaves; empty for the one that the atomic changes."""
    atomic = replace(claim("atomic"), finding=make_finding(rule), source=replace(make_atomic().source, line=7))
    left = buffer or atomic.buffer
    source = replace(atomic.source, line=line)
    index = replace(atomic, kind="source", buffer=left, finding=make_finding("TLS002"), source=source)
    assert len(by_cause((atomic, index))) == count


@pytest.mark.parametrize(("blame", "blamed"), [("compiler", True), ("author", False)])
def test_who_is_to_blame_stands_in_the_finding(blame: Blame, blamed: bool) -> None:
    """An atomic that is spelled wrong, and a launch that asks for too much, are no bug of the compiler."""
    refuted = claim("atomic")
    assert refuted.finding is not None
    assert replace(refuted, finding=replace(refuted.finding, blame=blame)).blames_compiler == blamed


RAN = Executed(((0, 0, 0),), 4, ("random",), (0, 1), ("float64",))


def ran(kind: Kind, verdict: Verdict, buffer: str = "B") -> Claim:
    return replace(claim(kind, verdict, buffer), executed=RAN)


@pytest.mark.parametrize(
    ("atomic", "executed", "expected"),
    [
        (claim("atomic", "proved"), (), None),
        (claim("atomic", "proved"), (ran("output", "agreed"),), RAN),
        (claim("atomic", "proved"), (ran("output", "agreed"), ran("order", "agreed", "s")), RAN),
        (claim("atomic", "proved"), (ran("output", "undecided"),), None),
        (claim("atomic", "proved"), (ran("output", "refuted"),), None),
        (claim("atomic", "proved"), (ran("output", "agreed"), ran("order", "refuted", "s")), None),
        (claim("atomic", "proved"), (ran("output", "agreed"), ran("output", "undecided", "C")), RAN),
        (claim("atomic", "proved", "s"), (ran("output", "agreed"),), RAN),
        (claim("atomic", "proved", "s"), (ran("output", "agreed"), ran("output", "undecided", "C")), None),
        (claim("atomic", "undecided"), (ran("output", "agreed"),), None),
    ],
)
def test_the_content_of_a_proved_atomic_is_what_was_executed(
    atomic: Claim, executed: tuple[Claim, ...], expected: Executed | None
) -> None:
    assert [a.executed for a in with_content((atomic,), executed)] == [expected]


def refuted_by(*rules: str) -> Claim:
    finding = replace(make_finding(rules[0]), others=rules[1:])
    return replace(claim("atomic"), finding=finding)


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        (("TLA001",), "agreed"),
        (("TLA006",), "agreed"),
        (("TLA010",), "agreed"),
        (("TLA001", "TLA002"), "undecided"),
        (("TLA002",), "undecided"),
        (("TLA004",), "undecided"),
        (("TLA013",), "undecided"),
        (("TLA014",), "undecided"),
    ],
)
def test_an_output_does_not_agree_where_the_device_does_something_else(
    rules: tuple[str, ...], verdict: Verdict
) -> None:
    executed = (ran("output", "agreed"), ran("output", "refuted", "C"), ran("order", "agreed", "s"))
    found = on_device((refuted_by(*rules),), executed)
    assert [one.verdict for one in found] == [verdict, "refuted", "agreed"]
    assert on_device((claim("atomic", "proved"),), executed) == executed


def test_what_is_not_known_because_of_an_atomic_stands_under_it() -> None:
    atomic = refuted_by("TLA014")
    executed = on_device(
        (atomic,), (ran("output", "agreed"), ran("output", "agreed", "C"), ran("order", "agreed", "s"))
    )
    found = Result(make_run(), by_cause((atomic, *executed)))
    assert shape(found.claims) == [("atomic", ["output", "output"]), ("order", [])]
    assert also_in_words(found.claims[0])[1] == "output C: U028 TLA014 at B: the device does not do what was executed"
    assert found.count("undecided") == 0


def result(*claims: Claim, expect: str = "") -> Result:
    expects = [Expect(releases="<=0.1.7", rule=expect, reason="known")] if expect else []
    return Result(make_run(expects=expects), by_cause(claims))


def test_what_is_explained_counts_with_its_cause() -> None:
    found = result(claim("atomic"), claim("output"))
    assert found.count("refuted") == 1
    assert counts_in_words([found]) == "1 atomic: 1 refuted"
    (subject,) = document_of([found], [], 1).subjects
    assert [notice.id for notice in subject.notices] == ["TLA001"]


def test_what_is_explained_is_excused_with_its_cause() -> None:
    expected = Policy().apply(result(claim("atomic"), claim("output"), expect="TLA001"))
    accepted = Acceptances(Path(), (Acceptance("TLA001", "k.py::*", "<=0.1.7", "not deployed"),))
    for found in (expected, Policy(accepted).apply(result(claim("atomic"), claim("output")))):
        assert exit_code([found], strict=True) == 0
        assert not found.broken


def test_an_excuse_for_what_is_explained_does_not_cover_the_cause() -> None:
    found = Policy().apply(result(claim("atomic"), claim("output"), expect="TLO001"))
    assert (found.count("refuted"), found.broken) == (1, ())
    accepted = Acceptances(Path(), (Acceptance("TLO001", "k.py::*", "<=0.1.7", "not deployed"),))
    found = Policy(accepted).apply(result(claim("atomic"), claim("output")))
    assert found.count("refuted") == 1
    assert not list(accepted.unused([found]))


@pytest.mark.parametrize(("verdict", "broken"), [("undecided", 0), ("agreed", 1), ("proved", 1)])
def test_only_an_undecided_claim_of_its_kind_leaves_an_expectation_open(verdict: Verdict, broken: int) -> None:
    other = claim("output", "undecided")
    assert len(Policy().apply(result(claim("atomic", verdict), other, expect="TLA001")).broken) == broken


@pytest.mark.parametrize(
    ("verdicts", "code", "strict"),
    [
        ((), 3, 3),
        (("agreed",), 0, 0),
        (("undecided",), 3, 1),
        (("undecided", "agreed"), 0, 1),
        (("undecided", "refuted"), 1, 1),
    ],
)
def test_silence_is_no_verdict(verdicts: tuple[Verdict, ...], code: int, strict: int) -> None:
    found = result(*(claim("output", verdict, f"B{n}") for n, verdict in enumerate(verdicts)))
    assert exit_code([found], strict=False) == code
    assert exit_code([found], strict=True) == strict


def test_the_kind_of_a_rule_is_in_its_id() -> None:
    assert [kind_of(rule) for rule in RULES.values()] == list(RULES)
    assert kind_of("slower-risk") is None
    assert kind_of("") is None


def test_what_was_executed_is_said() -> None:
    executed = Executed(((0, 0), (7, 3)), 64, ("random",), (0, 1), ("float64",))
    assert executed.words == "2 of 64 blocks, inputs random (seeds 0, 1), as float64"


@pytest.mark.parametrize(
    ("unreached", "words"),
    [
        ((), ""),
        ((162, 0, 170, 162), "; not reached: lines 162, 170"),
        ((0, 0), "; 2 branches not reached"),
    ],
)
def test_what_was_not_reached_is_said(unreached: tuple[int, ...], words: str) -> None:
    executed = replace(RAN, sizes={"n": 128}, unreached=unreached)
    assert executed.words == f"1 of 4 blocks, n = 128, inputs random (seeds 0, 1), as float64{words}"
    assert executed.short == f"1 of 4 blocks, 2 inputs{words}"


@pytest.mark.parametrize(
    ("reason", "outcome", "verdict"),
    [
        (OTHER_FORM, "agreed", "agreed"),
        (VALUE_UNREAD, "proved", "agreed"),
        (OTHER_FORM, "undecided", "undecided"),
        (UNKNOWN_CALL, "agreed", "undecided"),
    ],
)
def test_an_atomic_that_no_proof_follows_agrees_with_its_output(
    reason: ReasonKind, outcome: Verdict, verdict: Verdict
) -> None:
    atomic = claim("atomic", "undecided").because(Reason(reason, "another form"))
    (found,) = with_content((atomic,), (ran("output", outcome),))
    assert (found.verdict, bool(found.code)) == (verdict, verdict == "undecided")


@pytest.mark.parametrize(("buffer", "place"), [("B", "B"), ("?", "the kernel")])
def test_a_claim_about_no_buffer_is_about_the_kernel(buffer: str, place: str) -> None:
    """Threads that wait in a shuffle, say."""
    assert claim("legality", "undecided", buffer).place == place
    assert claim("legality", buffer=buffer).words.split(":")[0].endswith(f" at {place}")
