"""`tlcheck doctor` on machines in several states of health."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cpu.checking import published
from tlcheck.cli.main import main
from tlcheck.toolchain import environment, health, stamped_folders
from tlcheck.toolchain.environment import Recipe, release_recipe
from tlcheck.toolchain.releases import PINNED, TORCH


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, cache: Path, tmp_path: Path) -> None:
    """A project without settings, an empty cache; the prover is not imported here."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "pyproject.toml").write_text("[tool.tlcheck]\n")
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setattr(health, "_PROVER", "print('0.27')")


def put(recipe: Recipe, python: str) -> None:
    """A complete toolchain whose interpreter is a shell script."""
    for folder in (recipe.folder, environment.torch_folder(TORCH)):
        folder.mkdir(parents=True, exist_ok=True)
    (recipe.folder / "bin").mkdir()
    interpreter = recipe.folder / "bin" / "python"
    interpreter.write_text(f"#!/bin/sh\n{python}\n")
    interpreter.chmod(0o755)
    stamp = {"name": recipe.name, "tilelang": recipe.tilelang, "pins": recipe.pins, "requirements": [], "torch": TORCH}
    stamped_folders.write_stamp(recipe.folder, {**stamp, "cuda_libraries": []})
    stamped_folders.write_stamp(environment.torch_folder(TORCH), {"torch": TORCH})


def doctor(capsys: pytest.CaptureFixture[str]) -> tuple[int, Mapping[str, Mapping[str, str]]]:
    """Exit code, and the items by name."""
    code = main(["doctor", "--format", "json"])
    shown = published(capsys.readouterr().out, "doctor")
    return code, {item["name"]: item for item in shown["items"]}


def test_a_fresh_machine_is_told_to_install_the_pinned_toolchain(capsys: pytest.CaptureFixture[str]) -> None:
    code, items = doctor(capsys)
    assert code == 1
    assert items["in use"]["state"] == "problem"
    assert "run `tlcheck toolchain install pinned`" in items["in use"]["detail"]
    assert items["shared torch"]["state"] == "absent"
    assert re.fullmatch(r".*, \d+\.\d GB free", items["cache"]["detail"])
    assert items["prover"]["detail"].startswith("apache-tvm 0.27, imported in")


def test_a_working_machine_is_0(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    put(release_recipe(PINNED), "exit 0")
    code, items = doctor(capsys)
    assert code == 0
    assert items[PINNED]["state"] == "ok"
    assert items["config"]["detail"] == str(tmp_path / "project" / "pyproject.toml")


def test_a_toolchain_that_does_not_import(capsys: pytest.CaptureFixture[str]) -> None:
    put(release_recipe(PINNED), "exit 0")
    put(release_recipe("0.1.7"), "echo 'Traceback'; echo 'OSError: libcuda.so.1' >&2; exit 1")
    code, items = doctor(capsys)
    assert code == 1
    assert items["0.1.7"]["state"] == "problem"
    assert items["0.1.7"]["detail"] == "OSError: libcuda.so.1"
    assert "toolchain remove 0.1.7" in items["0.1.7"]["advice"]


def test_an_install_that_did_not_end(capsys: pytest.CaptureFixture[str]) -> None:
    release_recipe("0.1.8").folder.mkdir(parents=True)
    code, items = doctor(capsys)
    assert code == 1
    assert "an install did not end" in items["0.1.8"]["detail"]
    assert "`tlcheck toolchain install 0.1.8`" in items["0.1.8"]["advice"]


def test_a_broken_prover(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    put(release_recipe(PINNED), "exit 0")
    monkeypatch.setattr(health, "_PROVER", "raise OSError('undefined symbol')")
    code, items = doctor(capsys)
    assert code == 1
    assert items["prover"]["detail"] == "OSError: undefined symbol"


def test_no_compiler_and_no_nvcc_are_no_problem(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(release_recipe(PINNED), "exit 0")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    code, items = doctor(capsys)
    assert code == 0
    assert items["C compiler"]["state"] == items["nvcc"]["state"] == "absent"
    assert items["C compiler"]["advice"] == "install gcc (or clang)"


def test_text_is_plain_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "problem  in use        toolchain pinned is not installed" in shown
    assert shown.endswith("1 problem\n")


def test_a_toolchain_is_imported_again_only_after_a_change(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, count = release_recipe(PINNED), Path("count")
    monkeypatch.setenv("COUNT", str(count.absolute()))
    put(recipe, 'echo x >> "$COUNT"')

    def imports() -> int:
        return len(count.read_text().splitlines())

    code, items = doctor(capsys)
    assert (code, imports()) == (0, 1)
    assert items[PINNED]["detail"].startswith("imported in ")
    code, items = doctor(capsys)
    assert (code, imports()) == (0, 1)
    assert items[PINNED]["detail"].startswith("imported before in ")
    (recipe.folder / "lib.so").write_text("another library")
    assert (doctor(capsys)[0], imports()) == (0, 2)
    (recipe.folder / "bin" / "python").write_text('#!/bin/sh\necho x >> "$COUNT"\necho gone >&2\nexit 1\n')
    for tries in (3, 4):  # a failure is not kept
        code, items = doctor(capsys)
        assert (code, items[PINNED]["detail"], imports()) == (1, "gone", tries)
