"""Names of a kernel file, read without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.lower.selection import parse
from tlcheck.lower.source_names import require_name

KERNELS = """import tilelang
raise RuntimeError("this file is not to be run")

@tilelang.jit
def scale(
    M=256,
):
    def main():
        pass
    return main

small = Case(scale)
if True:
    hidden = small
"""


@pytest.fixture(autouse=True)
def _file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.py").write_text(KERNELS)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", ["scale", "small", "hidden", "main", "tilelang"])
def test_a_name_that_a_statement_binds_is_left_to_python(name: str) -> None:
    require_name(Path("k.py"), name)


@pytest.mark.parametrize(
    ("name", "said"), [("scales", "no 'scales' in k.py; did you mean scale?"), ("zzz", "it has: scale")]
)
def test_another_name_is_told_without_running_the_file(
    name: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", f"k.py::{name}"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err
    assert main(["gate", "--to", "0.1.14", f"k.py::{name}@0.1.9"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("line", ["from other import *", "globals()['x'] = 1", "def __getattr__(name): ...", "x ="])
def test_a_file_that_may_bind_names_otherwise_is_left_to_python(line: str) -> None:
    Path("k.py").write_text(f"{KERNELS}\n{line}\n")
    require_name(Path("k.py"), "zzz")


@pytest.mark.parametrize(("line", "name"), [(4, "scale"), (6, "scale"), (8, "scale"), (10, "scale"), (12, "small")])
def test_a_line_stands_for_the_kernel_that_it_is_in(line: int, name: str) -> None:
    assert (parse(f"k.py:{line}").path, parse(f"k.py:{line}").name) == (Path("k.py"), name)
    assert parse(f"k.py:{line}@0.1.9").toolchain == "0.1.9"


@pytest.mark.parametrize("line", [1, 3, 11, 99])
def test_a_line_of_no_kernel(line: int) -> None:
    with pytest.raises(UsageError, match=f"k.py:{line}: no function and no case is at this line"):
        parse(f"k.py:{line}")
