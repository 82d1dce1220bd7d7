"""Every known release runs a script, and names its kernels alike: the gate pairs them by these names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tlcheck.toolchain.releases import RELEASES

SCRIPT = """
import tilelang
import tilelang.language as T
import torch

@tilelang.autotune(configs=[{"block": 64}])
@tilelang.jit(out_idx=[1])
def add(n, block=32, act=None):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, block), threads=64) as bx:
            for i in T.Parallel(block):
                T.atomic_add(B[bx * block + i], A[bx * block + i])
    return main

@tilelang.jit
def copy(n, dtype, act):
    @T.prim_func
    def main(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i]
    return main

assert add(256)(torch.randn(256, device="cuda")).shape == (256,)
copy(128, "float16", act=lambda x: x)
copy(T.dynamic("m") if hasattr(T, "dynamic") else T.symbolic("m"), "float16", None)
"""
NAMES = [
    "script.py::add[n=256,block=64]",
    "script.py::copy[n=128,dtype='float16',act=<function <lambda>>]",
    "script.py::copy[n=m,dtype='float16',act=None]",
]


@pytest.mark.parametrize("release", RELEASES)
def test_it_names_the_kernels_of_a_script(release: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "tlcheck", "check", f"script.py@{release}", "--format", "json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert [run["case"] for run in report["runs"]] == NAMES
    proved = [
        (run["case"], claim["kind"])
        for run in report["runs"]
        for claim in run["claims"]
        if claim["verdict"] == "proved"
    ]
    assert proved == [(NAMES[0], "atomic"), (NAMES[0], "output"), (NAMES[1], "output")]  # the third has other sizes too
    assert report["notes"] == []
