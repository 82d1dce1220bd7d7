"""Test what of a folder travels to nodes, and how it comes to be there."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tlcheck.cluster import folder as folders
from tlcheck.cluster.folder import Folder, unpacked
from tlcheck.errors import UsageError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a kernel, something that git would be told to ignore, and what never travels."""
    made = tmp_path / "project"
    for name in ("kernels/a.py", "data/large.bin", ".venv/lib/b.py", "kernels/__pycache__/a.pyc"):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(name)
    monkeypatch.chdir(made)
    return made


def git(*arguments: str) -> None:
    subprocess.run(["git", *arguments], check=True, capture_output=True)


def names(folder: Folder) -> set[str]:
    return {str(file) for file in folder.files}


def test_without_a_repository_all_travels_but_environments(project: Path) -> None:
    assert names(Folder.current()) == {"kernels/a.py", "data/large.bin"}


def test_what_git_ignores_stays_and_a_job_that_needs_it_is_refused(project: Path) -> None:
    git("init")
    (project / ".gitignore").write_text("data\n.venv\n__pycache__\n")
    found = Folder.current()
    assert names(found) == {".gitignore", "kernels/a.py"}
    found.require("kernels/a.py")
    found.require("kernels")
    with pytest.raises(UsageError, match=r"data/large\.bin does not travel to nodes: git ignores it"):
        found.require("data/large.bin")
    with pytest.raises(UsageError, match="not below the current folder"):
        found.require("..")


def test_a_folder_that_git_ignores_as_a_whole_travels(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git("init")
    (project / ".gitignore").write_text("data\n")
    monkeypatch.chdir(project / "data")
    assert names(Folder.current()) == {"large.bin"}


def test_a_folder_that_is_too_large_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_LIMIT", 20)
    with pytest.raises(UsageError, match="begin in the folder of the kernels"):
        Folder.current()


def test_links_travel_as_what_they_lead_to(project: Path, cache: Path) -> None:
    (project / "lib").symlink_to("kernels")
    (project / "kernels" / "one.py").symlink_to("a.py")
    git("init")
    git("add", "lib")
    there = unpacked(Folder.current().packed())
    assert (there / "lib" / "a.py").read_text() == "kernels/a.py"
    assert not (there / "kernels" / "one.py").is_symlink()


def test_nodes_of_one_machine_share_a_folder_and_old_ones_go(project: Path, cache: Path) -> None:
    first = unpacked(Folder.current().packed())
    handle = os.open(first, os.O_RDONLY)
    assert unpacked(Folder.current().packed()) == first
    assert os.fstat(handle).st_nlink  # what another node runs in is still there
    os.close(handle)
    os.utime(first, (time.time() - 8 * 86_400,) * 2)
    (project / "kernels" / "a.py").write_text("changed")
    second = unpacked(Folder.current().packed())
    assert (second / "kernels" / "a.py").read_text() == "changed"
    assert [*second.parent.iterdir()] == [second]
