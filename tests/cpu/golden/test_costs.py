"""Goldens and `diff` tell a kernel's cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.cost.kernels import snapshot
from tlcheck.cli.main import main
from tlcheck.golden.costs import cost_changes, read_cost
from tlcheck.snapshot import codec

SETTING = "[tool.tlcheck]\ngolden_cost = true\n"
Save = Callable[[str], str]
FILE = Path("golden/tests/fixtures/cost/product.sm_80.cost.json")


@pytest.fixture
def save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Save:
    """Saves a kernel under the name of one case, in a project whose goldens hold costs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    Path("pyproject.toml").write_text(SETTING)

    def saved(name: str) -> str:
        file = Path(f"{name}.snapshot.json")
        kept = replace(snapshot(name, "sm_80"), file="tests/fixtures/cost.py", case="product")
        file.write_text(codec.dumps(kept))
        return str(file)

    return saved


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    capsys.readouterr()
    code = main([*argv])
    return code, capsys.readouterr().out


def approve(file: str) -> None:
    assert main(["golden", "update", file]) == 0
    assert main(["golden", "accept", "--reason", "looked at"]) == 0


def test_a_lost_swizzle_is_a_risk_in_a_review(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    approve(save("product"))
    assert told(capsys, "golden", "check", save("product"))[0] == 0
    code, out = told(capsys, "golden", "check", save("product_linear"), "--stat")
    assert code == 1
    lines = [line for line in out.splitlines() if "slower-risk: cost:" in line]
    assert [line.split("`")[1] for line in lines] == ["a", "b"]
    assert all("8-way bank conflicts instead of no bank conflicts" in line for line in lines)


def test_a_golden_has_a_line_for_each_access_and_no_line_of_the_source(save: Save) -> None:
    approve(save("product"))
    text = FILE.read_text()
    cost = json.loads(text)
    assert len([line for line in text.splitlines() if '"requests"' in line]) == len(cost["sites"]) > 5
    assert {(site["line"], site["tir_line"]) for site in cost["sites"]} == {(0, 0)}


def test_costs_that_are_kept_only_now_are_to_be_approved(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    file = save("product")
    Path("pyproject.toml").write_text("[tool.tlcheck]\n")
    approve(file)
    Path("pyproject.toml").write_text(SETTING)
    code, out = told(capsys, "golden", "check", file)
    assert (code, "cost: recorded only now" in out) == (1, True)
    approve(file)
    assert told(capsys, "golden", "check", file)[0] == 0
    Path("pyproject.toml").write_text("[tool.tlcheck]\n")
    code, out = told(capsys, "golden", "check", file)
    assert (code, "cost: no longer recorded" in out) == (1, True)


def test_diff_counts_where_it_is_asked(save: Save, capsys: pytest.CaptureFixture[str]) -> None:
    files = save("product"), save("product_linear")
    assert "cost:" not in told(capsys, "diff", *files, "--stat")[1]
    code, out = told(capsys, "diff", *files, "--stat", "--cost")
    assert code == 1
    assert out.count("slower-risk: cost:") == 2
    better = told(capsys, "diff", *reversed(files), "--stat", "--cost")[1]
    assert "slower-risk: cost:" not in better
    assert "cost: read a (shared: ldmatrix x4, 16 bytes a thread): 32,768 -> 4,096 wavefronts" in better


def test_what_cannot_be_counted_says_why(save: Save) -> None:
    why = read_cost('{"not counted": "a loop without an end"}', {})
    counted = read_cost(_text(save), {})
    (change,) = cost_changes(counted, why)
    assert change.words == "cost: counted -> not counted (a loop without an end)"
    assert not list(cost_changes(why, why))
    with pytest.raises(ValueError, match="cannot be read"):
        read_cost('{"blocks": 3}', {})


def test_a_buffer_with_another_name_is_no_change(save: Save) -> None:
    text = _text(save)
    other = text.replace('"buffer": "a"', '"buffer": "tile"')
    assert list(cost_changes(read_cost(text, {}), read_cost(other, {})))
    assert not list(cost_changes(read_cost(text, {"a": "tile"}), read_cost(other, {})))


def _text(save: Save) -> str:
    approve(save("product"))
    return FILE.read_text()
