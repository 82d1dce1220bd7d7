"""docs/findings.md and the heads of its pages are what their data make of them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("findings_make", ROOT / "docs" / "findings" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for it
    spec.loader.exec_module(module)
    return module


def test_the_pages_are_up_to_date(maker: ModuleType) -> None:
    made = maker.made()
    assert len(made) > 35
    assert [file.name for file, text in made.items() if file.read_text() != text] == [], "run `make docs`"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["0.1.9"], "0.1.9"),
        (["0.1.9", "0.1.10", "0.1.11", "0.1.13"], "0.1.9 to 0.1.11, 0.1.13"),
        (["0.1.6.post2", "0.1.15"], "0.1.6.post2, 0.1.15"),
    ],
)
def test_releases_are_named_by_their_spans(maker: ModuleType, wrong: list[str], words: str) -> None:
    assert maker.spans(dict.fromkeys(wrong)) == words


def test_archs_that_differ_have_rows_of_their_own(maker: ModuleType) -> None:
    refuted = {"verdict": "refuted", "rules": ["TLR001"]}
    expected = {"k": {"sm_80": {"0.1.9": refuted}, "sm_90": {"0.1.9": refuted, "0.1.10": refuted}}}
    fixes = {("k", "sm_90"): "0.1.11"}
    rows = list(maker.table([maker.Written(("k",), "a title", file="01-k.md")], expected, fixes))
    assert rows[2:] == [
        "| [`k`](findings/01-k.md) | a title | sm_80 | 0.1.9 | TLR001 | - |",
        "| [`k`](findings/01-k.md) | a title | sm_90 | 0.1.9 to 0.1.10 | TLR001 | 0.1.11 |",
    ]


def test_what_mends_a_kernel_is_the_first_change_that_does(maker: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "fixes.csv"
    file.write_text("case,arch,workaround\na,sm_80,TL_A=True; TL_B=True\nb,sm_90,TileLang 0.1.11\nc,sm_80,\n")
    assert maker.fixes_of(file) == {
        ("a", "sm_80"): "`TL_A=True`",
        ("b", "sm_90"): "0.1.11",
        ("c", "sm_80"): "none",
    }


def test_kernels_that_the_newest_release_has_wrong_are_counted(maker: ModuleType) -> None:
    newest, older = maker.ORDER[-1], maker.ORDER[-2]
    race = {"verdict": "refuted", "rules": ["TLR001"]}
    value = {"verdict": "refuted", "rules": ["TLO001"]}
    expected = {
        "both": {"sm_80": {newest: value}, "sm_90": {newest: race}},
        "value": {"sm_80": {newest: value, older: race}},
        "mended": {"sm_80": {older: race, newest: {"verdict": "agreed"}}, "sm_90": {older: race}},
    }
    assert maker.wrong_now(expected, expected) == (2, 1)
