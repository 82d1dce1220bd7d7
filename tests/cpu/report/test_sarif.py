"""The SARIF log against a schema, and what code scanning makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cpu.checking import SAVED, saved_result
from tests.cpu.report.documents import DOCUMENT, EMPTY, WRONG
from tests.cpu.report.sarif_subset import SCHEMA
from tlcheck.report import sarif
from tlcheck.report.check_notices import document_of
from tlcheck.report.notices import Document, Subject
from tlcheck.verdicts.results import read_snapshot


def run_of(document: Document) -> Any:
    log = json.loads(sarif.render(document))
    jsonschema.validate(log, SCHEMA)
    (run,) = log["runs"]
    return run


def test_the_log_fits_the_schema_and_rules_are_found_by_their_index() -> None:
    run = run_of(DOCUMENT)
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == ["broken", "changed", "slower-risk", "wrong"]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [r["ruleId"] for r in run["results"]]
    assert [result["level"] for result in run["results"]] == ["error", "warning", "warning", "note", "warning", "error"]
    assert run["tool"]["driver"]["rules"][3]["shortDescription"]["text"] == "an atomic is refuted"


def test_a_report_without_notices_has_no_results() -> None:
    assert run_of(EMPTY)["results"] == []


def test_what_is_accepted_is_suppressed_with_its_reason() -> None:
    found = {result["ruleId"]: result.get("suppressions") for result in run_of(DOCUMENT)["results"]}
    assert found["broken"] == [{"kind": "external", "justification": "not deployed"}]
    assert found["wrong"] is None


def test_places_are_in_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for file, uri, base in (
        (str(tmp_path / "kernels" / "k.py"), "kernels/k.py", "SRCROOT"),
        ("kernels/k.py", "kernels/k.py", "SRCROOT"),
        ("/elsewhere/k.py", "file:///elsewhere/k.py", None),
    ):
        notice = replace(WRONG, file=file)
        (result,) = run_of(Document("gate", "", (Subject(file, "full", "sm_90", (notice,)),)))["results"]
        artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
        assert (artifact["uri"], artifact.get("uriBaseId")) == (uri, base)


def test_a_fingerprint_stays_when_lines_move_and_differs_between_kernels() -> None:
    def fingerprint(subject: Subject) -> str:
        (result,) = run_of(Document("gate", "", (subject,)))["results"]
        return str(result["partialFingerprints"]["tlcheck/v1"])

    here = Subject("k.py", "a", "sm_80", (WRONG,))
    assert fingerprint(here) == fingerprint(replace(here, notices=(replace(WRONG, line=99),)))
    others = [replace(here, name="b"), replace(here, target="sm_90"), replace(here, notices=(replace(WRONG, id="x"),))]
    assert len({fingerprint(subject) for subject in (here, *others)}) == 4


def test_findings_of_real_snapshots() -> None:
    files = sorted(SAVED.glob("*-0.1.7.snapshot.json"))
    results = [saved_result(file, read_snapshot(file), n) for n, file in enumerate(files)]
    run = run_of(document_of(results, (), 1))
    refuted = [a.finding.rule for result in results for a in result.claims if a.finding is not None]
    assert sorted(result["ruleId"] for result in run["results"] if result["level"] == "error") == sorted(refuted)
    assert len(refuted) >= 3
    told = [result["message"]["text"] for result in run["results"] if result["level"] == "error"]
    assert [text for text in told if "\n   witness: " not in text] == []
