"""`tlcheck check` of cases with inputs of their own, lowered with the pinned release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tlcheck.cli.main import main

KERNEL = """
import tilelang, torch
import tilelang.language as T
from tlcheck.case import Case

@tilelang.jit
def gather():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), I: T.Tensor((64,), "int32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(64):
                B[i] = T.if_then_else(A[I[i]] > 1000.0, 1.0 / A[I[i]], 0.0)
    return main

def made(size):
    def inputs(args, generator, device):
        values = torch.rand(size, generator=generator) + 2000.0
        return values, torch.randperm(64, generator=generator).int(), torch.zeros(64)
    return inputs

def few(args, generator, device):
    return (torch.zeros(64),)

def raising(args, generator, device):
    raise ValueError("no data")

def nothing(args, generator, device):
    return torch.zeros(64), torch.zeros(64, dtype=torch.int32), None

def narrow(args, generator, device):
    values = torch.rand(64, generator=generator).to(torch.bfloat16) + 2000.0
    return values, torch.randperm(64, generator=generator).int(), torch.zeros(64, dtype=torch.bfloat16)

good = Case(gather, inputs=made(64))
narrows = Case(gather, inputs=narrow)
none = Case(gather, inputs=nothing)
count = Case(gather, inputs=few)
raises = Case(gather, inputs=raising)
shaped = Case(gather, inputs=made(32))
"""


@pytest.mark.toolchain
def test_inputs_of_cases(kept_results: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those that fit are executed; what is wrong with the others is one line each, and the command ends with 2."""
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    assert main(["check", str(file), "--arch", "sm_80", "--format", "json"]) == 2
    found: dict[str, Any] = {r["name"]: r for r in json.loads(capsys.readouterr().out)["runs"]}
    for claim in [*found["good"]["claims"], *found["narrows"]["claims"]]:
        executed = claim["executed"]
        assert (claim["verdict"], executed["inputs"], executed["seeds"]) == ("agreed", ["the case's"], [0, 1])
    assert "output" in [claim["kind"] for claim in found["good"]["claims"]]
    said = {name: (r["failure"]["message"], r["failure"]["where"]) for name, r in found.items() if r["failure"]}
    assert said == {
        "count": ("inputs gives 1 values, the kernel takes 3: A, I, B", f"{file}:21"),
        "none": (f"{file}:27: inputs gives NoneType as value 3, which is neither a tensor nor a number", ""),
        "raises": (f"{file}:24: inputs raised ValueError: no data", ""),
        "shaped": ("inputs gives A of shape [32], the kernel takes [64]", f"{file}:16"),
    }
