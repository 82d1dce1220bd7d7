"""A script that asks for the product of 16-bit floats does not wait for a CPU that has no instructions for them."""

from __future__ import annotations

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tlcheck.toolchain.releases import PINNED

pytestmark = pytest.mark.toolchain
SCRIPT = """
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from tlcheck.worker.capture.tape import done_as_on_a_gpu

class Watch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.__name__.startswith("addmm"):
            print("computed in", *sorted({str(arg.dtype) for arg in args}))
        return func(*args, **(kwargs or {}))

for dtype in (torch.bfloat16, torch.float16, torch.float64):
    tensors = [torch.full((4, 4), value, dtype=dtype) for value in (1.0, 2.0, 0.25)]
    with Watch():
        made = done_as_on_a_gpu(torch.ops.aten.addmm.default, tensors, {"beta": 2})
    print(made.dtype, made[0, 0].item())
"""


@pytest.mark.slow
def test_products_of_16_bit_floats_are_computed_in_float32_and_rounded_once() -> None:
    toolchain = installed(PINNED)
    env = {**os.environ, **toolchain.env, "PYTHONPATH": str(Path(__file__).parents[4])}
    command = [str(toolchain.python), "-c", textwrap.dedent(SCRIPT)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "computed in torch.float32",
        "torch.bfloat16 4.0",
        "computed in torch.float32",
        "torch.float16 4.0",
        "computed in torch.float64",
        "torch.float64 4.0",
    ]
