"""The report for programs keeps to its schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cpu.checking import INVARIANT, RIGHT, WRONG, failed, make_atomic, make_finding, make_result, saved_result
from tlcheck.report import check_json as report
from tlcheck.report.check_json import CheckReport
from tlcheck.report.schemas import schema_of, write
from tlcheck.verdicts.claim import Claim, Excuse, Executed, SourceLine
from tlcheck.verdicts.results import Result, read_snapshot
from tlcheck.witness import Accesses, Act, Element

DOCS = Path(__file__).parents[3] / "docs" / "schemas"
VALIDATOR = jsonschema.Draft202012Validator(schema_of(CheckReport))
EXCUSE = Excuse("expected", "known")
ACT = Act("write", (0, 1), 5, {"k": 2}, 40, 7, "device-tir")
WITNESSES = (Element((0, 1), "nan", "2.0", "random", ACT), Accesses((3,), ACT, Act("copy", (0, 1))))
EXECUTED = Executed(((0, 0), (1, 3)), 8, ("random",), (0, 1), ("float64", "declared"))
OUTPUT = Claim("output", "B", "B", SourceLine("k.py", 7, True), "agreed", "execution", executed=EXECUTED)
EVERYTHING = [
    *(saved_result(file, read_snapshot(file), n) for n, file in enumerate((WRONG, RIGHT, INVARIANT))),
    replace(make_result("undecided"), notes=("a note",), broken=("gone",)),
    replace(
        make_result(),
        claims=(
            replace(
                make_atomic("refuted"),
                excuse=EXCUSE,
                finding=replace(make_finding(), right_from="0.1.8"),
                also=tuple(
                    replace(OUTPUT, verdict="refuted", finding=replace(make_finding("TLO001"), witness=witness))
                    for witness in WITNESSES
                ),
            ),
            OUTPUT,
        ),
    ),
    failed(),
    replace(failed("crash"), excuse=EXCUSE),
    failed("target"),
    failed("capture"),
]


def rendered(results: list[Result], code: int = 1) -> Any:
    return json.loads(report.render(results, ["a note of all"], code))


def test_the_schemas_are_ones() -> None:
    for file in DOCS.glob("*.json"):
        VALIDATOR.check_schema(json.loads(file.read_text()))


def test_the_schemas_in_docs_are_up_to_date(tmp_path: Path) -> None:
    """Else run `make docs`."""
    write(tmp_path)
    assert {f.name: f.read_text() for f in tmp_path.iterdir()} == {f.name: f.read_text() for f in DOCS.iterdir()}


def test_everything_keeps_to_the_schema() -> None:
    VALIDATOR.validate(rendered(EVERYTHING))
    VALIDATOR.validate(rendered([], 0))


PLACES: list[tuple[str | int, ...]] = [
    ("summary",),
    ("runs", 0),
    ("runs", 0, "claims", 0),
    ("runs", 0, "claims", 0, "finding"),
    ("runs", 0, "claims", 0, "finding", "witness"),
    ("runs", 4, "claims", 0, "also", 1, "finding", "witness", "second"),
    ("runs", 4, "claims", 1, "executed"),
    ("runs", 5, "failure"),
]


@pytest.mark.parametrize("path", PLACES)
def test_the_schema_names_every_field(path: tuple[str | int, ...]) -> None:
    whole = rendered(EVERYTHING)
    part = whole
    for key in path:
        part = part[key]
    for name in list(part):
        value = part.pop(name)
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate(whole)
        part[name] = value
    part["another"] = 1
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(whole)


def test_the_verdicts_add_up() -> None:
    summary = rendered(EVERYTHING)["summary"]
    verdicts = ("proved", "agreed", "refuted", "undecided", "expected", "accepted")
    assert sum(summary[verdict] for verdict in verdicts) == summary["claims"] == 6
    assert summary["cases"] == 4  # three that were saved, and k.py::case
    assert (summary["runs"], summary["not_checked"], summary["expected_errors"]) == (9, 3, 1)
    assert (summary["refuted"], summary["expected"], summary["agreed"]) == (2, 1, 1)
    assert (summary["not_decided"], summary["unexpectedly_fine"]) == (1, 1)


def test_a_run_in_which_nothing_is_decided_says_so() -> None:
    assert [run["decided"] for run in rendered(EVERYTHING)["runs"]] == [True] * 3 + [False, True] + [False] * 4


def test_a_finding_has_its_witness_in_numbers_and_words() -> None:
    finding = rendered(EVERYTHING)["runs"][0]["claims"][0]["finding"]
    witness, excerpt = finding["witness"], finding["excerpt"]
    assert (witness["kind"], witness["intended"], witness["written"], witness["stride"]) == ("addition", 32, 1, 32)
    assert "belongs at offset 32, is added at offset 1" in finding["words"]
    assert "AtomicAddx2" in excerpt["lines"][excerpt["marked"] - excerpt["first"]]


def test_a_claim_says_how_it_fared_at_each_checkpoint() -> None:
    claim = rendered(EVERYTHING)["runs"][0]["claims"][0]
    assert [stage["checkpoint"] for stage in claim["stages"]] == ["lower-tile-op", "vectorize-loop", "device-tir"]


def test_texts_that_are_no_unicode_are_written() -> None:
    odd = failed(message="\udcff")
    assert json.loads(report.render([odd], [], 3))["runs"][0]["failure"]["message"] == "\udcff"


def test_equal_results_give_equal_bytes() -> None:
    again = [saved_result(file, read_snapshot(file), n) for n, file in enumerate((WRONG, RIGHT, INVARIANT))]
    assert report.render(again, [], 1) == report.render(EVERYTHING[:3], [], 1)
