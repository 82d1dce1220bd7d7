"""Review in a terminal, with real keys."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cpu.golden.goldens import saved
from tests.cpu.golden.terminal import Terminal
from tlcheck.cli.main import main
from tlcheck.golden.store import GoldenStore

pytestmark = pytest.mark.slow

KEYS = "q quit"
HERE = ("annotated_gemm", "cast_bf16", "loop_pipelined")
ACCEPT = """\
[[accept]]
id = "TLA013"
case = "cases/atomics.py::cast_bf16"
releases = "<=0.1.8"
reason = "0.1.8 passes a pair by value; nvcc says so"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three goldens of 0.1.8 are approved, and what 0.1.15 makes of the kernels waits."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TLCHECK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\n")
    (tmp_path / "tlcheck-accept.toml").write_text(ACCEPT)
    assert main(["golden", "update", *(str(saved(name, "0.1.8")) for name in HERE)]) == 0
    assert main(["golden", "accept", "--reason", "first"]) == 0
    assert main(["golden", "update", *(str(saved(name)) for name in HERE)]) == 0
    return tmp_path


def review(folder: Path, rows: int = 24) -> Terminal:
    # xdist tells its workers the width of the terminal that they are started from: this program has its own.
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")} | {"TERM": "xterm-256color"}
    return Terminal([sys.executable, "-m", "tlcheck", "golden", "review"], folder, env, rows)


def waiting(folder: Path) -> list[str]:
    return [pending.key.name for pending in GoldenStore(folder / "golden").pending()]


def reasons(folder: Path) -> dict[str, str]:
    found = GoldenStore(folder / "golden").read().approvals.approved
    return {key.partition("::")[2].split()[0]: made.reason for key, made in found.items()}


def test_accept_reject_and_skip(project: Path) -> None:
    with review(project) as terminal:
        assert "1 of 3" in terminal.see(KEYS)
        terminal.press("a")
        terminal.see("not now")
        terminal.press("the new release\n")
        assert "1 of 2" in terminal.see(KEYS)
        terminal.press("s")
        assert "2 of 2" in terminal.see(KEYS)
        terminal.press("r")
        terminal.see("not now")
        terminal.press("slower\n")
        assert "1 of 1" in terminal.see(KEYS)
        terminal.press("q")
        terminal.see("1 change left")
        assert terminal.end() == 0
    assert waiting(project) == ["cast_bf16"]
    assert reasons(project) == {"annotated_gemm": "the new release", "cast_bf16": "first", "loop_pipelined": "first"}
    rejected = GoldenStore(project / "golden").read().approvals.rejected
    assert [made.reason for made in rejected.values()] == ["slower"]


def test_the_screen_says_what_changed_and_fits(project: Path) -> None:
    rows = 30
    with review(project, rows) as terminal:
        terminal.see("1 of 3")
        screen = terminal.see(KEYS)
        assert "cases/atomics.py::annotated_gemm sm_90, cases/atomics.py::cast_bf16 sm_90  differs" in screen
        assert "tilelang: 0.1.8 -> 0.1.15" in screen
        assert screen.count("\n") < rows
        terminal.press(" ")
        terminal.see("1 of 3")
        assert "sm_90  differs" not in terminal.see(KEYS)
        terminal.press("b")
        assert "sm_90  differs" in terminal.see(KEYS)
        terminal.press("?")
        assert "asks why" in terminal.see(KEYS)
        terminal.press("x")
        assert "no such key" in terminal.see(KEYS)


def test_no_reason_is_no_decision(project: Path) -> None:
    with review(project) as terminal:
        terminal.see(KEYS)
        terminal.press("a")
        terminal.see("not now")
        terminal.press("\n")
        assert "1 of 3" in terminal.see(KEYS)
    assert len(waiting(project)) == 3


@pytest.mark.parametrize("how", ["Ctrl-C", "kill"])
def test_an_end_by_force_loses_no_decision_and_the_next_review_goes_on(project: Path, how: str) -> None:
    with review(project) as terminal:
        terminal.see(KEYS)
        terminal.press("a")
        terminal.see("not now")
        terminal.press("kept\n")
        terminal.see(KEYS)
        terminal.press("s")
        terminal.see("loop_pipelined sm_90  differs")
        terminal.see(KEYS)
        if how == "kill":
            terminal.kill()
        else:
            terminal.press("\x03")
            assert terminal.end() == 130
    assert waiting(project) == ["cast_bf16", "loop_pipelined"]
    assert reasons(project)["annotated_gemm"] == "kept"
    with review(project) as terminal:
        assert "2 of 2" in terminal.see("loop_pipelined sm_90  differs")


def test_all_of_a_group(project: Path) -> None:
    """Two kernels whose IR another release leaves as it was."""
    for name in ("annotated_gemm", "cast_bf16"):
        main(["golden", "accept", f"cases/atomics.py::{name}", "--reason", "second"])
    main(["golden", "reject"])
    assert main(["golden", "update", *(str(saved(name, "0.1.14")) for name in ("annotated_gemm", "cast_bf16"))]) == 0
    with review(project) as terminal:
        assert "the same IR" in terminal.see(KEYS)
        terminal.press("g")
        terminal.see("not now")
        terminal.press("same IR\n")
        terminal.see("0 changes left")
        assert terminal.end() == 0
    assert reasons(project) == {"annotated_gemm": "same IR", "cast_bf16": "same IR", "loop_pipelined": "first"}


def test_without_a_terminal_it_names_the_other_commands(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["golden", "review"]) == 2
    assert "tlcheck golden accept --reason TEXT" in capsys.readouterr().err


def test_what_is_refuted_cannot_be_accepted(project: Path) -> None:
    main(["golden", "reject"])
    assert main(["golden", "update", str(saved("annotated_gemm", "0.1.7"))]) == 0
    with review(project) as terminal:
        assert "refuted: TLA001 at B" in terminal.see(KEYS)
        terminal.press("a")
        assert "accept TLA001 by name" in terminal.see(KEYS).replace("\n", " ")
    assert waiting(project) == ["annotated_gemm"]
