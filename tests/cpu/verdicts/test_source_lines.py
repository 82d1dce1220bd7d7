"""The line of a claim whose release tells none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import make_atomic
from tlcheck.verdicts.claim import SourceLine
from tlcheck.verdicts.source_lines import with_lines

KERNELS = """
@jit
def one(n):
    @T.prim_func
    def main(A, B):
        T.copy(A[0, n], As)
        T.copy(src=As, dst=B[n])
        T.copy(As, twice)
        T.copy(B, twice)

    return main


@jit
def other():
    T.async_copy(A[0], Bs)
"""


@pytest.mark.parametrize(
    ("buffer", "begins", "line", "words"),
    [
        ("As", 2, 6, "6 (the copy into it)"),
        ("B", 2, 7, "7 (the copy into it)"),
        ("twice", 2, 2, "2 (the kernel; the line is not known)"),
        ("Bs", 2, 2, "2 (the kernel; the line is not known)"),
        ("Bs", 14, 16, "16 (the copy into it)"),
        ("As", 99, 99, "99 (the kernel; the line is not known)"),
    ],
)
def test_the_only_copy_into_a_buffer_is_its_line(
    buffer: str, begins: int, line: int, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "k.py"
    file.write_text(KERNELS)
    claim = replace(make_atomic("refuted", buffer), source=SourceLine(str(file), begins, exact=False))
    (found,) = with_lines([claim])
    assert found.source.words == f"{file}:{words}"
    lines = KERNELS.splitlines()
    assert found.source.text == (lines[line - 1].strip() if line < 99 else "")


def test_a_line_that_is_known_stays(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(KERNELS)
    claim = replace(make_atomic("refuted", "As"), source=SourceLine(str(file), 8, exact=True))
    assert with_lines([claim])[0].source.words == f"{file}:8"


def test_a_file_that_is_no_python_any_more(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("def (")
    claim = replace(make_atomic("refuted", "As"), source=SourceLine(str(file), 1, exact=False))
    assert with_lines([claim])[0].source.words == f"{file}:1 (the kernel; the line is not known)"


def test_a_file_that_was_edited_is_read_anew(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text(KERNELS)
    claim = replace(make_atomic("refuted", "As"), source=SourceLine(str(file), 2, exact=False))
    assert with_lines([claim])[0].source.text == "T.copy(A[0, n], As)"
    file.write_text(KERNELS.replace("T.copy(A[0, n], As)", "T.copy(A[1, n], As)  # the other row"))
    assert with_lines([claim])[0].source.text == "T.copy(A[1, n], As)  # the other row"
    file.unlink()
    assert with_lines([claim])[0].source.text == ""
