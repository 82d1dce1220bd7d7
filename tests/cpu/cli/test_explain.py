"""`tlcheck explain`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tlcheck.cli.main import main
from tlcheck.reasons import KINDS
from tlcheck.verdicts.rules.rule_pages import pages


def explain(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(["explain", *argv])
    return (code, *capsys.readouterr())


@pytest.mark.parametrize("rule", ["TLA001", "tla001", "lanes-not-contiguous", "Lanes-Not-Contiguous"])
def test_a_page_by_id_or_name(capsys: pytest.CaptureFixture[str], rule: str) -> None:
    code, out, _ = explain(capsys, rule)
    assert code == 0
    assert out == next(page.markdown for page in pages() if page.id == "TLA001")


def test_without_a_rule_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = explain(capsys)
    lines = out.splitlines()
    assert len(lines) == len(pages()) > 10
    for line, page in zip(lines, pages(), strict=True):
        assert line.split(maxsplit=2) == [page.id, page.name, page.title]


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ("lanes", "did you mean TLA001 (lanes-not-contiguous)?"),
        ("misalignd-vector", "did you mean TLA002 (misaligned-vector)?"),
        ("xyz", "`tlcheck explain` lists all"),
        ("[red]", "no rule or reason '[red]'"),
    ],
)
def test_an_unknown_rule(capsys: pytest.CaptureFixture[str], rule: str, hint: str) -> None:
    code, out, err = explain(capsys, rule)
    assert (code, out) == (2, "")
    assert hint in err
    assert err.count("\n") == 1


def test_undecided_lists_the_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = explain(capsys, "undecided")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == [kind.code for kind in KINDS]


def test_a_terminal_gets_rendered_markdown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    _, out, _ = explain(capsys, "TLA001")
    assert "\x1b[" in out
    assert "```" not in out


def test_it_needs_nothing_heavy() -> None:
    code = """
import sys
from tlcheck.cli.main import main
from tlcheck.reasons import KINDS
main(["explain", "TLA001"])
heavy = {"numpy", "tvm", "tlcheck.prove.evidence"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
