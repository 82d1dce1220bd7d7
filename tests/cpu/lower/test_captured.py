"""`capture` says what it writes of each kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.lower.captured import write
from tlcheck.lower.runs import Lowered, Run
from tlcheck.toolchain.releases import PINNED


@pytest.mark.parametrize(
    ("name", "said"),
    [("gemm", "needs no case: gemm.py::gemm builds it"), ("gemm[n=64]", "no case can build it: its builder")],
)
def test_it_says_why_a_kernel_has_no_case(name: str, said: str, tmp_path: Path) -> None:
    lowered = Lowered(Run("gemm.py", name, "sm_90", PINNED, {}), tmp_path / "kernel.snapshot.json")
    ((_, words),) = write([lowered], tmp_path, force=False, snapshots=False)
    assert words.startswith(said)
    assert not list(tmp_path.iterdir())
