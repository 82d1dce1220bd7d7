"""The report for programs keeps to its schema."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cpu.checking import INVARIANT, RIGHT, WRONG, failed, make_atomic, make_result
from tlcheck.report import json as report
from tlcheck.verdicts.results import Excuse, Result, read_snapshot, saved_result

SCHEMA = json.loads(Path(report.__file__).with_name("schema.json").read_text())
EXCUSE = Excuse("expected", "known")
EVERYTHING = [
    *(saved_result(file, read_snapshot(file), n) for n, file in enumerate((WRONG, RIGHT, INVARIANT))),
    replace(make_result("undecided"), notes=("a note",), broken=("gone",)),
    replace(make_result(), atomics=(replace(make_atomic("refuted"), excuse=EXCUSE, right_from="0.1.8"),)),
    failed(),
    replace(failed("crash"), excuse=EXCUSE),
]


def rendered(results: list[Result], code: int = 1) -> Any:
    return json.loads(report.render(results, ["a note of all"], code))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_everything_keeps_to_the_schema() -> None:
    jsonschema.validate(rendered(EVERYTHING), SCHEMA)
    jsonschema.validate(rendered([], 0), SCHEMA)


@pytest.mark.parametrize("path", [("summary",), ("runs", 0), ("runs", 0, "atomics", 0), ("runs", 5, "failure")])
def test_the_schema_names_every_field(path: tuple[str | int, ...]) -> None:
    whole = rendered(EVERYTHING)
    part = whole
    for key in path:
        part = part[key]
    for name in list(part):
        value = part.pop(name)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(whole, SCHEMA)
        part[name] = value
    part["another"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(whole, SCHEMA)


def test_the_verdicts_add_up() -> None:
    summary = rendered(EVERYTHING)["summary"]
    verdicts = ("proved", "refuted", "undecided", "expected", "accepted")
    assert sum(summary[verdict] for verdict in verdicts) == summary["atomics"] == 5
    assert summary["cases"] == 4  # three that were saved, and k.py::case
    assert (summary["runs"], summary["not_checked"], summary["expected_errors"]) == (7, 1, 1)
    assert (summary["refuted"], summary["expected"], summary["unexpectedly_fine"]) == (2, 1, 1)


def test_a_finding_has_its_witness_in_numbers_and_words() -> None:
    atomic = rendered(EVERYTHING)["runs"][0]["atomics"][0]
    witness = atomic["finding"]["witness"]
    assert (witness["intended"], witness["written"], witness["stride"]) == (32, 1, 32)
    assert "belongs at offset 32, is added at offset 1" in witness["words"]
    assert (
        "AtomicAddx2"
        in atomic["finding"]["tir"]["lines"][atomic["finding"]["tir"]["line"] - atomic["finding"]["tir"]["first"]]
    )
    assert [point["name"] for point in atomic["checkpoints"]] == ["lower-tile-op", "vectorize-loop", "device-tir"]


def test_equal_results_give_equal_bytes() -> None:
    again = [saved_result(file, read_snapshot(file), n) for n, file in enumerate((WRONG, RIGHT, INVARIANT))]
    assert report.render(again, [], 1) == report.render(EVERYTHING[:3], [], 1)
