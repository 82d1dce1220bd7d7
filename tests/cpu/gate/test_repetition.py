"""`--repeat`: one release that lowers one kernel in several ways."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import RIGHT, WRONG, StandInWorker, declared
from tlcheck.cli.main import main
from tlcheck.lower import session
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.rules.rule_pages import pages
from tlcheck.worker.protocol import Failure


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path | Failure]:
    """The forms that workers make one after the other, again and again; to be filled."""
    made: list[Path | Failure] = []
    turns: Iterator[Path | Failure] = cycle(made)

    def start(python: Path, env: Mapping[str, str], **options: Any) -> StandInWorker:
        form = next(turns)
        files = {"k.py": (declared("gemm", ("sm_90",)),)}
        if isinstance(form, Failure):
            return StandInWorker(files=files, failures={"gemm": form})
        return StandInWorker(files=files, snapshots={"gemm": form})

    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\n")
    (tmp_path / "k.py").write_text("import tlcheck\n")
    monkeypatch.setattr(session, "resolve", lambda name, requirements: Toolchain(name, "release", Path(name)))
    monkeypatch.setattr(session, "Worker", start)
    return made


def checked(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, Any]:
    code = main(["check", "--quick", "k.py", "--format", "json", *options])
    return code, {**json.loads(capsys.readouterr().out)["runs"][0], "seconds": 0}


def test_the_worst_form_is_reported_with_the_count(
    forms: list[Path | Failure], capsys: pytest.CaptureFixture[str]
) -> None:
    forms += [RIGHT, RIGHT, WRONG]
    code, run = checked(capsys, "--repeat", "3")
    assert code == 1
    *others, repetition = run["claims"]
    finding = repetition["finding"]
    assert (finding["rule"], finding["weight"], finding["blame"]) == ("TLL004", "hazard", "compiler")
    assert finding["what"] == "lowered 3 times by one release, it has 2 forms"
    assert finding["words"].startswith("2 times one, 1 time another: ")
    assert "TLA001" in {claim["finding"]["rule"] for claim in others if claim["finding"]}


def test_equal_forms_are_no_finding(forms: list[Path | Failure], capsys: pytest.CaptureFixture[str]) -> None:
    forms += [RIGHT]
    assert checked(capsys, "--repeat", "3") == checked(capsys)


def test_once_is_not_enough_to_see_it(forms: list[Path | Failure], capsys: pytest.CaptureFixture[str]) -> None:
    forms += [RIGHT, WRONG]
    code, run = checked(capsys)
    assert code == 0
    assert all(claim["finding"] is None for claim in run["claims"])


def test_what_fails_now_and_then_fails(forms: list[Path | Failure], capsys: pytest.CaptureFixture[str]) -> None:
    forms += [RIGHT, Failure("exception", "lower", "z3: out of time")]
    code, run = checked(capsys, "--repeat", "2")
    assert code == 3
    assert run["failure"]["message"] == "z3: out of time"
    assert run["notes"] == ["lowered 2 times by one release, it fails 1 time"]


def test_the_matrix_marks_the_cell(forms: list[Path | Failure], capsys: pytest.CaptureFixture[str]) -> None:
    forms += [RIGHT, WRONG]
    main(["matrix", "k.py", "--quick", "--toolchains", "0.1.15", "--repeat", "2", "--format", "json"])
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert cell["state"] in ("wrong", "hazard")
    assert "TLL004" in {claim["finding"]["rule"] for claim in cell["claims"] if claim["finding"]}


def test_the_page_of_the_rule_shows_what_check_says(
    forms: list[Path | Failure], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a user's file: the page names none of the project's own."""
    monkeypatch.setenv("COLUMNS", "100")
    (page,) = [page.text for page in pages() if page.id == "TLL004"]
    code, command, shown = re.findall(r"```python\n(.*?)```.*?\$ tlcheck (check [^\n]*)\n(.*?)```", page, re.DOTALL)[0]
    Path("k.py").write_text(f"import tilelang\nimport tilelang.language as T\nimport tlcheck\n\n\n{code}")
    for name, saved in ("right", RIGHT), ("wrong", WRONG):
        fields = {**json.loads(saved.read_text()), "file": "k.py", "line": 6}
        Path(name).write_text(json.dumps(fields))
    forms += [Path("right"), Path("right"), Path("wrong")]
    main(shlex.split(command))
    assert shown in capsys.readouterr().out
