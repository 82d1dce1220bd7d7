"""`tlcheck toolchain` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cpu.toolchain.stand_ins import Index
from tlcheck.cli.main import main
from tlcheck.toolchain import environment
from tlcheck.toolchain.environment import PYTHON_TAG
from tlcheck.toolchain.releases import TORCH


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """A project whose kernels need a package of its own in every toolchain."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[tool.tlcheck]\nrequirements = ["own"]\n')
    monkeypatch.chdir(folder)
    return folder


def test_install_list_path_remove(index: Index, capsys: pytest.CaptureFixture[str], project: Path) -> None:
    wheel = index.tilelang("9.1")
    index.wheel("own", "1.0", {"own.py": "value = 1\n"})
    # A checkout in the working folder and one on PYTHONPATH must not be taken for the toolchain's TileLang.
    (project / "tilelang").mkdir()
    (project / "tilelang" / "__init__.py").write_text("raise SystemExit('the checkout was imported')\n")

    assert main(["toolchain", "install", str(wheel)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("9.1-wheel-")
    assert ": installed in " in captured.out
    assert ": import tilelang\n" in captured.err

    assert main(["toolchain", "install", str(wheel)]) == 0
    assert ": already installed in " in capsys.readouterr().out

    assert main(["toolchain", "list"]) == 0
    name, folder, packages = capsys.readouterr().out.split()
    assert (name[:10], packages) == ("9.1-wheel-", "own")

    assert main(["toolchain", "path", str(wheel)]) == 0
    assert capsys.readouterr().out == f"{folder}/bin/python\n"

    wheel.unlink()
    assert main(["toolchain", "remove", name]) == 0
    torch = environment.torch_folder(TORCH)
    assert capsys.readouterr().out.splitlines() == [
        f"{name}: removed {folder}",
        f"removed {torch}, which no toolchain uses any more",
    ]
    assert environment.folders() == []
    assert not torch.exists()


def test_of_several_one_that_cannot_be_had_does_not_stop_the_others(
    index: Index, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("9.1", "9.3"):
        index.tilelang(version)
    index.wheel("own", "1.0", {"own.py": "value = 1\n"})
    assert main(["toolchain", "install", "9.1", "9.2", "9.3", "9.1"]) == 2
    captured = capsys.readouterr()
    assert [line.split(":")[0] for line in captured.out.splitlines()] == ["9.1", "9.3"]
    assert "cannot install 9.2: No matching distribution found for tilelang==9.2" in captured.err.splitlines()[-1]

    assert main(["toolchain", "remove", "9.1"]) == 0
    assert environment.torch_folder(TORCH).is_dir()  # 9.3 uses it
    capsys.readouterr()


@pytest.mark.parametrize("action", ["install", "path", "remove"])
def test_nonsense_is_refused(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["toolchain", action, "nonsense"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("tlcheck: error: ")
    assert shown.count("\n") == 1


def test_list_shows_what_an_interrupted_install_left(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("0.1.15", "0.1.8"):
        (cache / "toolchains" / f"{name}-{PYTHON_TAG}").mkdir(parents=True)
    assert main(["toolchain", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("-")[0] for line in lines] == ["0.1.8", "0.1.15"]
    assert all(line.endswith("incomplete: install it again") for line in lines)
