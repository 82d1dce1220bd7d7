"""Reasons for *not decided*: the table, its page, and that every undecided claim has one."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from tlcheck.cli.main import main
from tlcheck.execute import stops as stops
from tlcheck.execute.request import Request
from tlcheck.execute.worlds.budget import Budget
from tlcheck.reasons import KINDS, NOT_MODELLED, Reason, kind_of_code, page, told
from tlcheck.snapshot import codec
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.judging import verdicts_of

ROOT = Path(__file__).parents[2]
FIXTURES = sorted((ROOT / "tests" / "fixtures").rglob("*.snapshot.json"))[::7]  # of all kernels and releases


def test_codes_and_names_are_given_once_and_in_order() -> None:
    assert [kind.code for kind in KINDS] == [f"U{number:03}" for number in range(1, len(KINDS) + 1)]
    assert len({kind.name for kind in KINDS}) == len(KINDS) > 30
    assert all(kind.title and kind.meaning.endswith(".") and kind.advice.endswith(".") for kind in KINDS)


def test_the_page_is_made_of_the_table() -> None:
    assert (ROOT / "docs" / "reasons.md").read_text() == page(), "run `make docs`"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_every_reason_is_explained(kind: object, capsys: pytest.CaptureFixture[str]) -> None:
    reason = kind_of_code(getattr(kind, "code", ""))
    assert reason is not None
    for asked in (reason.code, reason.code.lower(), reason.name):
        assert main(["explain", asked]) == 0
        assert capsys.readouterr().out == reason.markdown
    assert reason.advice in reason.markdown


def test_all_reasons_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "undecided"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [tuple(line.split(maxsplit=2)) for line in lines] == [(k.code, k.name, k.title) for k in KINDS]


def test_a_reason_is_told_with_its_code() -> None:
    assert told("U001", "cluster_sync") == "U001 cluster_sync is not modelled"
    assert told("U005", "time") == "U005 the allowed time is spent"
    assert told("U022", "all of it is {}") == "U022 all of it is {}"
    assert told("", "of an older tlcheck") == "of an older tlcheck"


def test_a_reason_is_equal_to_its_text_and_keeps_its_kind() -> None:
    reason = Reason(NOT_MODELLED, "cluster_sync")
    assert reason == "cluster_sync"
    for copy in (pickle.loads(pickle.dumps(reason)), stops.NotModelled("cluster_sync").reason):
        assert (copy, copy.kind, copy.code) == ("cluster_sync", NOT_MODELLED, "U001")


def _subclasses(of: type[stops.Stopped]) -> Iterator[type[stops.Stopped]]:
    for each in of.__subclasses__():
        yield each
        yield from _subclasses(each)


def test_whatever_stops_an_execution_has_a_kind() -> None:
    made = [
        stops.OutOfStatements(),
        stops.OutOfBytes(),
        stops.Entangled("x"),
        stops.SourceUnclear("x"),
        stops.Illegal("x", 0, 0, 0),
        stops.Deadlock("x", 0, 0, 0),
        stops.AbsentLanes("x", 0, 0, 0),
        stops.Unkept("x", 0, 0, 0),
        stops.Unaligned("x", 0, 0, 0),
        stops.Overrun("x", 0, 0, 0),
        stops.LeavesAxis("x"),
    ]
    assert all(stopped.reason.kind in KINDS for stopped in made)
    named = {type(stopped).__name__ for stopped in made}
    given = {"NotModelled", "BudgetSpent", "SourceIllegal", "Suspected"}  # take their kind, or are caught
    ours = {each.__name__ for each in _subclasses(stops.Stopped) if each.__module__.startswith("tlcheck")}
    assert ours - given == named


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_no_claim_of_a_fixture_is_undecided_without_a_code(file: Path) -> None:
    snapshot = codec.loads(file.read_text(encoding="utf-8"))
    claims = verdicts_of(snapshot, Request(seeds=(0,), budget=Budget(seconds=2.0))).claims
    assert [claim for claim in _with_explained(claims) if (claim.verdict == "undecided") != bool(claim.code)] == []


def _with_explained(claims: tuple[Claim, ...]) -> Iterator[Claim]:
    for claim in claims:
        yield claim
        yield from _with_explained(claim.also)
