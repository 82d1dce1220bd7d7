"""`tlcheck toolchain` from the command line."""

from __future__ import annotations

import socket
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.cpu.toolchain.stand_ins import Index
from tlcheck.cli.main import main
from tlcheck.toolchain import environment, stamped_folders
from tlcheck.toolchain import index as package_index
from tlcheck.toolchain.environment import PYTHON_TAG
from tlcheck.toolchain.releases import PINNED, TORCH


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """A project whose kernels need a package of its own in every toolchain."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[tool.tlcheck]\nrequirements = ["own"]\n')
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.slow
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
    line, torch_line = capsys.readouterr().out.splitlines()
    name, _, unit, folder, packages = line.split()
    assert (name[:10], unit, packages) == ("9.1-wheel-", "kB", "own")
    assert torch_line.split()[0] == "torch"
    assert torch_line.endswith("shared by all")

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


@pytest.mark.slow
def test_of_several_one_that_cannot_be_had_does_not_stop_the_others(
    index: Index, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("9.1", "9.3"):
        index.tilelang(version)
    index.wheel("own", "1.0", {"own.py": "value = 1\n"})
    assert main(["toolchain", "install", "9.1", "9.2", "9.3", "9.1"]) == 2
    captured = capsys.readouterr()
    assert [line.split(":")[0] for line in captured.out.splitlines()] == ["9.1", "9.3"]
    assert "cannot install 9.2: the package index has no tilelang 9.2; did you mean 9.3? (log:" in captured.err

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


@pytest.mark.slow
def test_without_a_name_it_installs_what_the_project_names(
    index: Index, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for version in ("9.1", "9.2"):
        index.tilelang(version)
    (project / "pyproject.toml").write_text('[tool.tlcheck]\ntoolchain = "9.1"\n')
    assert main(["toolchain", "install", "9.2"]) == 0
    assert main(["toolchain", "install"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("9.1: installed in ")
    assert main(["toolchain", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.endswith("  in use")] == ["9.1"]
    assert len(lines) == 3


def test_what_tlcheck_does_not_make_is_not_installed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "pyproject.toml").write_text('[tool.tlcheck]\ntoolchain = "current"\n')
    assert main(["toolchain", "install"]) == 2
    assert capsys.readouterr().err.startswith("tlcheck: error: cannot install 'current': give a release, ")


@pytest.mark.slow
def test_no_network_is_told_apart_from_an_unknown_release(
    index: Index, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    """No server listens at port 9."""
    (project / "pyproject.toml").write_text("[tool.tlcheck]\n")
    for variable in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    assert main(["toolchain", "install", "0.1.8"]) == 2
    shown = capsys.readouterr().err.splitlines()[-1]
    assert "cannot install 0.1.8: no network: the package index cannot be reached (Connection refused); " in shown
    assert f"missing: torch=={TORCH}, tilelang==0.1.8, apache-tvm-ffi==0.1.9, z3-solver==" in shown
    assert main(["toolchain", "install", "latest"]) == 2
    assert "latest tilelang: no network: the package index cannot" in capsys.readouterr().err


@pytest.mark.parametrize(("no_index", "is_asked"), [("1", False), ("true", False), ("0", True), ("", True)])
def test_folders_alone_need_no_network(monkeypatch: pytest.MonkeyPatch, no_index: str, is_asked: bool) -> None:
    def asked() -> tuple[str, str]:
        calls.append(1)
        return "9.1", ""

    calls: list[int] = []
    monkeypatch.setattr(package_index, "_asked", asked)
    monkeypatch.setenv("PIP_NO_INDEX", no_index)
    package_index.require_network(["tilelang"])
    assert bool(calls) == is_asked


def test_an_index_that_never_answers_is_told_in_seconds(
    index: Index, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, project: Path
) -> None:
    """It accepts connections and says nothing; pip by itself waits for 90 s."""
    (project / "pyproject.toml").write_text("[tool.tlcheck]\n")
    for variable in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(variable)
    monkeypatch.setattr(package_index, "_ANSWER", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
        assert main(["toolchain", "install", "0.1.8"]) == 2
    shown = capsys.readouterr().err.splitlines()
    assert "no network: the package index cannot be reached (no answer in 1 s); missing: " in shown[-1]
    assert not any("make the environment" in line for line in shown)


def test_list_marks_the_pinned_release(cache: Path, capsys: pytest.CaptureFixture[str], project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.tlcheck]\n")
    torch = environment.torch_folder(TORCH)
    for recipe in (environment.release_recipe("0.1.8"), environment.release_recipe(PINNED)):
        recipe.folder.mkdir(parents=True)
        stamped_folders.write_stamp(recipe.folder, {**asdict(recipe), "cuda_libraries": []})
    torch.mkdir(parents=True)
    stamped_folders.write_stamp(torch, {"torch": TORCH})
    assert main(["toolchain", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("  pinned, in use") for line in lines] == [False, True, False]
