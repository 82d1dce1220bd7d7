"""Test what is known of a corpus, and what is left to do."""

from __future__ import annotations

import csv
from pathlib import Path

from benchmarks import corpus, tables
from benchmarks.corpus import Row

KNOWN = [
    Row("b.py", "sm_90", "0.1.15", "f[n=1,m=2]", "wrong", "TLO001 TLR001"),
    Row("a.py", "sm_80", "0.1.15", "", "none", ""),
    Row("b.py", "sm_80", "0.1.15", "f", "fine", ""),
]


def test_what_was_done_is_not_done_again() -> None:
    assert corpus.left(KNOWN, "b.py", ["0.1.14", "0.1.15"], ["sm_80", "sm_90"]) == ["0.1.14"]
    assert corpus.left(KNOWN, "a.py", ["0.1.15"], ["sm_80"]) == []
    assert corpus.left(KNOWN, "a.py", ["0.1.15"], ["sm_80", "sm_90"]) == ["0.1.15"]


def test_the_file_is_sorted_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "corpus.csv"
    assert tables.read(file, Row) == set()
    tables.write(file, Row._fields, KNOWN)
    first = file.read_text()
    assert [line.partition(",")[0] for line in first.splitlines()] == ["script", "a.py", "b.py", "b.py"]
    assert tables.read(file, Row) == set(KNOWN)
    tables.write(file, Row._fields, tables.read(file, Row))
    assert file.read_text() == first


def test_a_cell_names_the_rules_of_what_is_refuted() -> None:
    claims: list[dict[str, object]] = [
        {"verdict": "refuted", "finding": {"rule": rule}} for rule in ("TLR001", "TLO001")
    ]
    claims.append({"verdict": "undecided", "finding": None})
    cell = {"target": "sm_90", "toolchain": "0.1.15", "name": "f", "state": "wrong", "claims": claims * 2}
    assert [*corpus.rows_of("b.py", [cell])] == [Row("b.py", "sm_90", "0.1.15", "f", "wrong", "TLO001 TLR001")]


def test_the_results_are_sorted() -> None:
    rows = corpus.FILE.read_text(encoding="utf-8").splitlines()[1:]
    assert rows
    assert sorted(tables.read(corpus.FILE, Row)) == [Row(*line) for line in csv.reader(rows)]
