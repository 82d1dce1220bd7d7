"""`capture` says what it writes of each kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.lower.captured import write
from tlcheck.lower.runs import Lowered, Run
from tlcheck.toolchain.releases import PINNED


@pytest.mark.parametrize(
    ("is_captured", "said"),
    [(False, "needs no case: gemm.py::gemm builds it"), (True, "no case can build it: its builder")],
)
def test_it_says_why_a_kernel_has_no_case(is_captured: bool, said: str, tmp_path: Path) -> None:
    lowered = Lowered(
        Run("gemm.py", "gemm", "sm_90", PINNED, {}, is_captured=is_captured), tmp_path / "kernel.snapshot.json"
    )
    ((_, words),) = write([lowered], tmp_path, force=False, snapshots=False)
    assert words.startswith(said)
    assert not list(tmp_path.iterdir())
