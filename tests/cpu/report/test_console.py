"""Test where reports are printed: widths, blanks and colours with a terminal and without one."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.table import Table

from tests.cpu.checking import make_atomic, make_finding, make_result
from tlcheck.report import check_text
from tlcheck.report.console import console
from tlcheck.verdicts.claim import Excerpt


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def page(long: str) -> str:
    file = io.StringIO()
    finding = replace(make_finding(), layout=long, excerpt=Excerpt(1, 1, (long,)))
    claim = replace(make_atomic("refuted"), finding=finding)
    check_text.write(console(file), [replace(make_result(), claims=(claim,))], [], check_text.TextForm(verbose=True))
    return file.getvalue()


def test_a_file_gets_whole_lines_without_blanks_at_their_ends() -> None:
    long = "D[tx % 32 // 4] " * 20 + "end"
    lines = page(long).splitlines()
    assert f"   layout: {long}" in lines
    assert f"   TIR: >    1 {long}" in lines
    assert [line for line in lines if line != line.rstrip()] == []


def test_columns_says_how_wide_a_file_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rows = [line for line in page("x " * 300).splitlines() if line.endswith("x x x")]
    assert len(rows) > 10
    assert max(map(len, rows)) <= 60


def test_no_color_leaves_out_bold(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    console().print("[bold red]word")
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    console().print("[bold red]word")
    assert capsys.readouterr().out == "word\n"


def test_tables_keep_their_columns(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_row("a", "long " * 40 + "end")
    table.add_row("bcd", "short")
    console().print(table)
    assert capsys.readouterr().out == f"a    {'long ' * 40}end\nbcd  short\n"
