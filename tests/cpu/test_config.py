"""Reading [tool.tlcheck]."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.config import Config, read_config
from tlcheck.errors import UsageError

FULL = """
[tool.tlcheck]
paths = ["kernels", "more/one.py"]
arch = ["sm_80", "sm_90"]
toolchain = "0.1.14"
requirements = ["einops>=0.7"]
pythonpath = ["src"]
acceptance = "accepted.toml"
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "pyproject.toml"
    file.write_text(text)
    return file


def test_reads_every_key_relative_to_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, FULL)
    below = tmp_path / "kernels" / "deep"
    below.mkdir(parents=True)
    (tmp_path / "src").mkdir()
    assert read_config(below) == Config(
        file=file,
        paths=(tmp_path / "kernels", tmp_path / "more" / "one.py"),
        arch=("sm_80", "sm_90"),
        toolchain="0.1.14",
        requirements=("einops>=0.7",),
        pythonpath=(tmp_path / "src",),
        acceptance=tmp_path / "accepted.toml",
    )


def test_a_nearer_file_without_the_table_is_passed_over(tmp_path: Path) -> None:
    file = write(tmp_path, FULL)
    below = tmp_path / "package"
    below.mkdir()
    (tmp_path / "src").mkdir()
    write(below, "[tool.other]\nx = 1\n")
    assert read_config(below).file == file


def test_defaults(tmp_path: Path) -> None:
    file = write(tmp_path, "[tool.tlcheck]\n")
    assert read_config(tmp_path) == Config(file=file, toolchain="pinned")


def test_the_usual_acceptance_file_is_taken_where_it_is_there(tmp_path: Path) -> None:
    write(tmp_path, "[tool.tlcheck]\n")
    (tmp_path / "tlcheck-accept.toml").touch()
    assert read_config(tmp_path).acceptance == tmp_path / "tlcheck-accept.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.tlcheck]\npath = []\n", r"toml:2: unknown key 'path' in \[tool.tlcheck\]; did you mean paths\?"),
        ("[tool.tlcheck]\nzzz = 1\n", r"unknown key 'zzz' in \[tool.tlcheck\] \(known: paths, arch"),
        ("[tool.tlcheck]\nfile = 'x'\n", "unknown key 'file'"),
        ("[tool.tlcheck]\narch = 'sm_90'\n", r"arch in \[tool.tlcheck\] must be a list of strings, not 'sm_90'"),
        ("[tool.tlcheck]\npaths = [1]\n", r"paths .* must be a list of strings, not \[1\]"),
        ("[tool.tlcheck]\ntoolchain = 0.1\n", "toolchain .* must be a string, not 0.1"),
        ("[tool.tlcheck]\nblocks = 2\nbudget = 4.5\n", r"toml:3: budget .* must be such as 4000000"),
        ("[tool.tlcheck]\npythonpath = ['sr']\n", r"toml:2: pythonpath: no folder .*/sr"),
        ("[tool.tlcheck]\n\nrequirements = ['einops==']\n", r"toml:3: requirements: 'einops==': "),
        ("[tool]\ntlcheck = 1\n", r"tool\.tlcheck must be a table"),
        ("[tool.tlcheck\n", r"pyproject\.toml: Expected"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, text)
    with pytest.raises(UsageError, match=message) as error:
        read_config(tmp_path)
    assert "\n" not in str(error.value)


def test_a_requirement_may_be_a_path(tmp_path: Path) -> None:
    several = """['./local', 'x @ https://example.org/x.whl', 'y[z]>=1; python_version > "3"']"""
    write(tmp_path, f"[tool.tlcheck]\nrequirements = {several}\n")
    assert len(read_config(tmp_path).requirements) == 3


def test_a_toolchain_by_its_path_counts_from_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tlcheck]\ntoolchain = "src/tilelang"\n')
    (tmp_path / "kernels").mkdir()
    assert read_config(tmp_path / "kernels").toolchain == "src/tilelang"  # not there
    (tmp_path / "src" / "tilelang").mkdir(parents=True)
    assert read_config(tmp_path / "kernels").toolchain == str(tmp_path / "src" / "tilelang")
