"""A hazard fails as an error does, and every format tells the two apart."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from tests.cpu.checking import make_atomic, make_finding, make_run
from tlcheck.gate.verdict_outcomes import verdict_outcomes
from tlcheck.matrix.cell import cells_of
from tlcheck.report import junit, sarif
from tlcheck.report.check_notices import document_of
from tlcheck.verdicts.claim import Claim, Weight
from tlcheck.verdicts.problems import problem_of
from tlcheck.verdicts.results import Result, exit_code
from tlcheck.verdicts.summary import summary_in_words
from tlcheck.witness import Accesses, Act


def claim(weight: Weight) -> Claim:
    finding = replace(make_finding("TLR002"), weight=weight)
    return replace(make_atomic("refuted"), kind="order", key="s", buffer="s", finding=finding)


def result(weight: Weight) -> Result:
    return Result(make_run(), (claim(weight),))


@pytest.mark.parametrize(
    ("weight", "title", "level", "state", "klass", "summary"),
    [
        ("error", "TLR002", "error", "wrong", "wrong", "1 bug in TileLang"),
        ("hazard", "(hazard)", "warning", "hazard", "hazard", "1 hazard in TileLang"),
    ],
)
def test_both_fail_and_are_told_apart(
    weight: Weight, title: str, level: str, state: str, klass: str, summary: str
) -> None:
    found = result(weight)
    assert exit_code([found], strict=False) == 1
    assert found.claims[0].finding is not None
    assert title in problem_of(found, found.claims[0], found.claims[0].finding).title
    document = document_of([found], [], 1)
    assert document.failed
    (told,) = json.loads(sarif.render(document))["runs"][0]["results"]
    assert told["level"] == level
    assert ElementTree.fromstring(junit.render(document)).find(".//failure") is not None
    (cell,) = cells_of([found], [])
    assert cell.state == state
    assert cell.is_wrong
    (outcome,) = verdict_outcomes((), found.claims)
    assert outcome.klass == klass
    assert summary in summary_in_words([found])


def test_a_title_has_its_rules_name_once() -> None:
    found = result("error")
    assert found.claims[0].finding is not None
    problem = problem_of(found, found.claims[0], found.claims[0].finding)
    assert replace(problem, rule="TLL002", name="deadlock", what="deadlock: waits").title == "TLL002 deadlock: waits"


def test_an_access_without_words_leaves_no_empty_row() -> None:
    found = result("error")
    (one,) = found.claims
    assert one.finding is not None
    bare = replace(one.finding, witness=Accesses((), Act("needs 1,152 threads", (), source=one.source.line)))
    assert [mark.accesses for mark in problem_of(found, one, bare).marks if "" in mark.accesses] == []
