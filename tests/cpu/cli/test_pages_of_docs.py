"""The examples of docs/cases.md, docs/extending.md and docs/tutorial.md do what the pages say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import installed, published
from tlcheck.cli.main import main
from tlcheck.execute.compile import registry
from tlcheck.program.roles import roles
from tlcheck.signatures import table
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, Function
from tlcheck.toolchain.releases import PINNED, RELEASES
from tlcheck.verdicts import rules
from tlcheck.verdicts.rules.rule import _rule

EXTENDING = (Path(__file__).parents[3] / "docs" / "extending.md").read_text(encoding="utf-8")
TUTORIAL = (Path(__file__).parents[3] / "docs" / "tutorial.md").read_text(encoding="utf-8")
PAGE = (Path(__file__).parents[3] / "docs" / "cases.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
def test_the_case_of_the_page_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed(PINNED)
    example = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert example is not None
    (tmp_path / "scale.py").write_text(example[1])
    monkeypatch.chdir(tmp_path)
    assert main(["check", "scale.py", "--format", "json"]) == 0
    (run,) = published(capsys.readouterr().out, "check")["runs"]
    assert (run["case"], run["target"]) == ("scale.py::small", "sm_90")
    assert {claim["verdict"] for claim in run["claims"]} == {"agreed", "proved"}


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.usefixtures("kept_results")
def test_the_tutorial_shows_what_check_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The mistake first, then the kernel with what the page says to put before the loop."""
    installed(PINNED)
    kernel = re.search(r"```python\n(.*?)```", TUTORIAL, re.DOTALL)
    assert kernel is not None
    shown = re.findall(r"\$ tlcheck check gemm\.py::gemm\n(.*?)```", TUTORIAL, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    loop = "            for k in T.Pipelined"
    for code, text in zip((1, 0), (kernel[1], kernel[1].replace(loop, f"            T.clear(c)\n{loop}")), strict=True):
        Path("gemm.py").write_text(text)
        assert main(["check", "gemm.py::gemm"]) == code
        assert _untimed(capsys.readouterr().out) == _untimed(shown.pop(0))


def _untimed(text: str) -> str:
    return re.sub(r"  \d+\.\d s$", "", text, flags=re.MULTILINE)


def _examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", EXTENDING, re.DOTALL)


def test_the_operator_of_the_page_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.load()
    monkeypatch.setattr(registry, "CALLS", dict(registry.CALLS))
    handler, its_test, *_ = _examples()
    exec(compile(handler, "double.py", "exec"), {"__name__": "double"})
    held: dict[str, Any] = {"__name__": "test_double"}
    exec(compile(its_test, "test_double.py", "exec"), held)
    held["test_every_element_is_doubled"]()
    registry.CALLS.pop("double")
    wrong = handler.replace("2 * region", "3 * region")
    exec(compile(wrong, "double.py", "exec"), {"__name__": "double"})
    with pytest.raises(AssertionError):
        held["test_every_element_is_doubled"]()


def test_the_instruction_of_the_page_is_executed_and_known(monkeypatch: pytest.MonkeyPatch) -> None:
    registry.load()
    monkeypatch.setattr(registry, "CALLS", dict(registry.CALLS))
    _, _, handler, family, its_test, _ = _examples()
    exec(compile(handler, "increment.py", "exec"), {"__name__": "increment"})
    held: dict[str, Any] = {"__name__": "test_increment"}
    exec(compile(its_test, "test_increment.py", "exec"), held)
    test = held["test_every_element_is_incremented"]
    test()  # what nobody knows may change all its arguments, of which it has one
    signed: dict[str, Any] = {}
    exec(compile(family, "increment.py", "exec"), signed)
    monkeypatch.setitem(table.FAMILY_OF, "increment", signed["FAMILY"])
    test()
    element, e = _incremented()
    assert roles(Function("main", (element.data,), (element,), (), Evaluate(e))).updated == (element,)
    wrong = family.replace("updates=", "reads=")
    exec(compile(wrong, "increment.py", "exec"), signed)
    monkeypatch.setitem(table.FAMILY_OF, "increment", signed["FAMILY"])
    assert roles(Function("main", (element.data,), (element,), (), Evaluate(e))).outputs == ()
    with pytest.raises(AssertionError):
        test()


def _incremented() -> tuple[Buffer, Expr]:
    """A tensor, and a call that increments its first element."""
    zero = Expr("int", "int32", (), 0)
    tensor = Buffer("B", "int32", (Expr("int", "int32", (), 8),), "global", Expr("var", "handle", (), "B", 1))
    address = Expr("call", "handle", (Expr("load", "int32", (zero,), buffer=tensor),), "address_of")
    return tensor, Expr("call", "handle", (address,), "increment")


def test_the_rule_of_the_page_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tll009_asleep.py").write_text(_examples()[-1])
    monkeypatch.setattr("tlcheck.verdicts.rules.__path__", [*rules.__path__, str(tmp_path)])
    rule = _rule("tll009_asleep")
    assert (rule.id, rule.name, rule.title, rule.problem) == ("TLL009", "asleep", "a thread that sleeps", "asleep")


def test_the_release_of_the_page_is_the_next_one() -> None:
    assert PINNED in EXTENDING
    assert "0.1.16" not in RELEASES, "the page is about a release that is known by now"
