"""Installing with the real venv and pip, from an index in a folder."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cpu.toolchain.stand_ins import Index, Steps
from tlcheck.errors import UsageError
from tlcheck.toolchain import environment, stamped_folders
from tlcheck.toolchain.environment import release_recipe
from tlcheck.toolchain.imports import imports
from tlcheck.toolchain.install import install, remove
from tlcheck.toolchain.releases import TORCH
from tlcheck.toolchain.resolve import from_environment, resolve

SHARED = "import torch, pathlib; print(torch.answer, pathlib.Path(torch.__file__).parents[1].name)"


@pytest.mark.slow
def test_two_toolchains_share_one_torch(index: Index, reporter: Steps) -> None:
    index.tilelang("9.1")
    index.tilelang("9.2")
    index.wheel("own", "1.0", {"own.py": "value = 1\n"})
    made = install(release_recipe("9.1"), reporter)
    second = install(release_recipe("9.2", ("own",)), reporter)

    assert reporter.steps.count(f"install torch {TORCH}, shared by all toolchains") == 1
    for python in (made.python, second.python):
        done = subprocess.run([python, "-c", SHARED], capture_output=True, text=True, check=True)
        assert done.stdout == f"42 {environment.torch_folder(TORCH).name}\n"
    assert not list(environment.site_packages(made.folder).glob("torch*"))

    assert resolve("9.1").python == made.python
    assert resolve("9.2", ["own"]).python == second.python
    with pytest.raises(UsageError, match=r"run `tlcheck toolchain install 9\.2`"):
        resolve("9.2")  # without the user's package it is another environment
    subprocess.run([second.python, "-c", "import own"], check=True)

    reporter.steps.clear()
    assert install(release_recipe("9.1"), reporter) == made
    assert reporter.steps == []

    remove(made.folder, reporter)
    assert [found for found in environment.folders() if environment.load(found)] == [second.folder]


@pytest.mark.slow
def test_who_asks_after_an_install_imports_nothing(index: Index, reporter: Steps, tmp_path: Path) -> None:
    count = tmp_path / "imports"
    index.tilelang("9.1", f"with open({str(count)!r}, 'a') as file: file.write('x')\n")
    made = install(release_recipe("9.1"), reporter)
    error, _, known = imports(from_environment("9.1", made), made.folder)
    assert (error, known, count.read_text()) == ("", True, "x")


@pytest.mark.slow
def test_a_toolchain_that_does_not_import_is_not_installed(index: Index, reporter: Steps) -> None:
    index.tilelang("9.1", "raise OSError('libcuda.so.1: cannot open shared object file')\n")
    with pytest.raises(
        UsageError, match=r"cannot install 9\.1: OSError: libcuda\.so\.1: cannot open .* \(log: .*\.log\)"
    ):
        install(release_recipe("9.1"), reporter)
    assert environment.folders() == []


@pytest.mark.slow
def test_a_release_that_is_not_there_says_so(index: Index, reporter: Steps) -> None:
    """An index that has no TileLang at all leaves pip's own words."""
    with pytest.raises(UsageError, match=r"cannot install 9\.9: No matching distribution found for tilelang==9\.9"):
        install(release_recipe("9.9"), reporter)


@pytest.mark.slow
def test_a_killed_install_is_never_believed(index: Index, tmp_path: Path, reporter: Steps) -> None:
    """Killed at its last step, with the import still under way: the next install waits for it, then starts anew."""
    started, go = tmp_path / "started", tmp_path / "go"
    source = f"""
import pathlib, time
pathlib.Path({str(started)!r}).touch()
while not pathlib.Path({str(go)!r}).exists():
    time.sleep(0.02)
"""
    index.tilelang("9.1", source)
    recipe = release_recipe("9.1")
    command = [sys.executable, "-m", "tlcheck", "toolchain", "install", "9.1"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as killed:
        while not started.exists():
            assert killed.poll() is None
            time.sleep(0.02)
        killed.send_signal(signal.SIGKILL)
    assert recipe.folder.is_dir()
    assert environment.find(recipe) is None

    reporter.on_step = lambda text: go.touch() if text.startswith("wait") else None
    made = install(recipe, reporter)
    assert reporter.steps[:2] == ["wait for another install to end", "make the environment"]
    assert environment.find(recipe) == made


def test_other_pins_are_another_environment(cache: Path) -> None:
    """As after an upgrade of tlcheck that corrects the table."""
    recipe = release_recipe("0.1.7")
    recipe.folder.mkdir(parents=True)
    stamp = {"name": "0.1.7", "tilelang": "tilelang==0.1.7", "pins": recipe.pins, "requirements": [], "torch": TORCH}
    stamped_folders.write_stamp(recipe.folder, {**stamp, "cuda_libraries": []})
    assert environment.find(recipe) is None  # its torch is not there
    environment.torch_folder(TORCH).mkdir(parents=True)
    stamped_folders.write_stamp(environment.torch_folder(TORCH), {})
    assert environment.find(recipe) is not None
    stamped_folders.write_stamp(recipe.folder, {**stamp, "pins": ["z3-solver==1"], "cuda_libraries": []})
    assert environment.find(recipe) is None
