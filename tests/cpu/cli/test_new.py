"""`tlcheck new`: what it writes passes the linter, and its tests fail until they are filled in."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tlcheck.cli.main import main
from tlcheck.execute.compile import registry
from tlcheck.execute.stops import NotModelled
from tlcheck.signatures import table
from tlcheck.verdicts import rules
from tlcheck.verdicts.rules.rule import _rule

ROOT = Path(__file__).parents[3]
TABLE = Path("tlcheck/signatures/table.py")
INSTRUCTION = ("new", "instruction", "increment", "--manual", "PTX 9.7.13.6")
RULE = ("new", "rule", "TLL009", "fast-asleep", "a thread that sleeps")


@pytest.fixture(autouse=True)
def _checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As much of one as is looked at."""
    for folder in (TABLE.parent, Path("tlcheck/execute/ops/thread"), Path("tests/cpu/execute/ops/thread")):
        (tmp_path / folder).mkdir(parents=True)
    for folder in (Path("tlcheck/verdicts/rules"), Path("tests/cpu/verdicts/rules")):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / TABLE, tmp_path / TABLE)
    shutil.copy(ROOT / "tlcheck/verdicts/rules/tll002_deadlock.py", tmp_path / "tlcheck/verdicts/rules")
    settings = (ROOT / "pyproject.toml").read_text()  # where it imports from is not there
    own = '[tool.ruff.lint.isort]\nknown-first-party = ["tests", "tlcheck"]\n'
    (tmp_path / "pyproject.toml").write_text(f"{settings}\n{own}")
    monkeypatch.chdir(tmp_path)


def linted() -> str:
    """Return what ruff says of all files."""
    ruff = [sys.executable, "-m", "ruff"]
    found = [
        subprocess.run([*ruff, *command, "--no-cache", "."], capture_output=True, text=True, check=False)
        for command in (["check", "--quiet"], ["format", "--check", "--quiet"])
    ]
    return "".join(done.stdout + done.stderr for done in found) + "".join(str(d.returncode) for d in found)


def held(file: str) -> dict[str, Any]:
    """The names of a file that was written, executed."""
    names: dict[str, Any] = {"__name__": Path(file).stem}
    exec(compile(Path(file).read_text(), file, "exec"), names)
    return names


def test_what_is_written_passes_the_linter(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(INSTRUCTION) == 0
    assert main(RULE) == 0
    written = capsys.readouterr().out.splitlines()
    assert written[0] == "tlcheck/execute/ops/thread/increment.py"
    assert linted() == "00"
    Path(written[0]).write_text("import os\n" + Path(written[0]).read_text())
    assert linted().endswith("11")


def test_the_test_of_an_instruction_fails_until_the_handler_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.load()
    monkeypatch.setattr(registry, "CALLS", dict(registry.CALLS))
    assert main(INSTRUCTION) == 0
    added = set(TABLE.read_text().splitlines()) - set((ROOT / TABLE).read_text().splitlines())
    assert added == {"    increment,", "    increment.FAMILY,"}
    family = held("tlcheck/signatures/increment.py")["FAMILY"]
    monkeypatch.setitem(table.FAMILY_OF, "increment", family)
    handler = Path("tlcheck/execute/ops/thread/increment.py")
    its_test = Path("tests/cpu/execute/ops/thread/test_increment.py")
    held(str(handler))
    with pytest.raises(NotModelled, match="increment"):
        held(str(its_test))["test_increment_does_what_the_manual_says"]()
    registry.CALLS.pop("increment")
    body = "element = program.pointer(e.args[0])\n    return lambda f: element.store(f, element.load(f) + 1) or 0"
    handler.write_text(handler.read_text().replace('raise NotModelled("increment")', body))
    held(str(handler))
    with pytest.raises(AssertionError):
        held(str(its_test))["test_increment_does_what_the_manual_says"]()
    its_test.write_text(its_test.read_text().replace("wanted = a", "wanted = a + 1"))
    held(str(its_test))["test_increment_does_what_the_manual_says"]()


def test_the_test_of_a_rule_fails_until_an_execution_finds_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(RULE) == 0
    monkeypatch.setattr("tlcheck.verdicts.rules.__path__", [*rules.__path__, str(tmp_path / "tlcheck/verdicts/rules")])
    rule = _rule("tll009_fast_asleep")
    assert (rule.id, rule.name, rule.title) == ("TLL009", "fast-asleep", "a thread that sleeps")
    assert rule.problem == "fast asleep"
    with pytest.raises(AssertionError):
        held("tests/cpu/verdicts/rules/test_tll009.py")["test_a_kernel_that_breaks_it_is_found"]()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rule", "TLL002", "x", "y"), "TLL002 is taken: tll002_deadlock.py"),
        (("rule", "TLA099", "x", "y"), "a rule of the proofs (TLA) has no scaffold"),
        (("instruction", "Increment", "--manual", "x"), "lower case letters"),
    ],
)
def test_what_cannot_be_written(words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", *words]) == 2
    assert said in capsys.readouterr().err


def test_nothing_is_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(INSTRUCTION) == 0
    before = TABLE.read_text()
    assert main(INSTRUCTION) == 2
    assert "increment.py is there" in capsys.readouterr().err
    assert TABLE.read_text() == before


def test_elsewhere_it_says_where_it_belongs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path.parent)
    assert main(INSTRUCTION) == 2
    assert "a checkout of tlcheck" in capsys.readouterr().err
