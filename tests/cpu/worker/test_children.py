"""A process goes on to lower more of a file if it has imported that as it is."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tlcheck.worker.children import Child, OutputStream, _stamp
from tlcheck.worker.dependencies import Dependencies
from tlcheck.worker.jobs import LowerJob

_LATER = 1_000_000_000  # ns


@pytest.fixture
def child(tmp_path: Path) -> Child:
    """Has lowered a kernel of a file that imports another one, and waits."""
    for name in ("kernels", "helper"):
        (tmp_path / f"{name}.py").write_text("one = 1\n")
    file, read = str(tmp_path / "kernels.py"), Dependencies({str(tmp_path / "helper.py"): "digest"})
    output, lines = (OutputStream(os.open(os.devnull, os.O_RDONLY), 1) for _ in range(2))
    work = [(1, LowerJob(file, "one", output="one.json"))]
    began = time.time_ns() + _LATER
    return Child(work, 0, output, lines, orders=0, answered=1, imported=_stamp(file), read=read, began=began)


def test_a_process_goes_on_while_its_files_are_as_they_were(child: Child) -> None:
    assert child.can_go_on_with(LowerJob(child.job.file, "two", output="two.json"))


def test_so_it_does_where_they_were_written_just_before_it_began(child: Child) -> None:
    files = Path(child.job.file), *map(Path, child.read.files if child.read else ())
    child.began = max(file.stat().st_ctime_ns for file in files) + 1
    assert child.can_go_on_with(LowerJob(child.job.file, "two", output="two.json"))


def test_an_edited_file_is_imported_anew(child: Child) -> None:
    Path(child.job.file).write_text("one = 1 + 1\n")
    assert not child.can_go_on_with(LowerJob(child.job.file, "two", output="two.json"))


def test_so_is_one_whose_helper_was_edited(child: Child) -> None:
    child.began -= 2 * _LATER
    assert not child.can_go_on_with(LowerJob(child.job.file, "two", output="two.json"))
