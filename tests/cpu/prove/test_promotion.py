"""Additions that depend on sums of 8 bits: proofs know what TIR adds, and not what the generated CUDA does."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import installed
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

KERNEL = """
    import tilelang.language as T
    from tlcheck.case import Case

    def added(dtype):
        @T.prim_func
        def main(A: T.Tensor((128,), dtype), W: T.Tensor((128,), dtype), B: T.Tensor((128,), "int32")):
            with T.Kernel(1, threads=128):
                tx = T.get_thread_binding()
                T.atomic_add(B[tx], T.cast(A[tx] - W[tx], "int32"))
        return main

    bytes_ = Case(added, args=dict(dtype="uint8"), targets=("sm_90",))
    words = Case(added, args=dict(dtype="int32"), targets=("sm_90",))
"""


@pytest.mark.slow
@pytest.mark.toolchain
def test_an_atomic_of_a_widened_difference(tmp_path: Path) -> None:
    installed(PINNED)
    file, report = tmp_path / "kernels.py", tmp_path / "report.json"
    file.write_text(textwrap.dedent(KERNEL))
    main(["check", str(file), "--quick", "--format", "json", "-o", str(report)])
    runs: list[Any] = json.loads(report.read_text())["runs"]
    verdicts = {run["name"]: (claim["verdict"], claim["reason"]) for run in runs for claim in run["claims"]}
    reason = "at device-tir the kernel computes with 8 or 16 bits, which the generated CUDA does in 32"
    assert verdicts["bytes_"] == ("undecided", reason)
    assert verdicts["words"][0] == "proved"
