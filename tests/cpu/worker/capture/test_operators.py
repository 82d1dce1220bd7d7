"""Operators that scripts register with torch: what they run is captured, with a real TileLang and without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import installed, published
from tlcheck.cli.main import main
from tlcheck.toolchain.releases import PINNED

pytestmark = pytest.mark.toolchain

HEAD = """
import collections, tilelang, torch
import tilelang.language as T

@tilelang.jit(out_idx=[1])
def plus(n, name):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 64), threads=64) as bx:
            for i in T.Parallel(64):
                B[bx * 64 + i] = A[bx * 64 + i] + T.float32(len(name))
    return main

ran = collections.Counter()

def run(name, x):
    assert x.is_cuda and x.device.type == "cuda" and torch.empty_like(x).is_cuda
    ran[name] += 1
    return plus(x.numel(), name)(x)
"""
CUSTOM = """
@torch.library.custom_op("own::product", mutates_args=())
def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return run("forward", x) * y

@product.register_fake
def _(x, y):
    return torch.empty_like(x)

@torch.library.custom_op("own::slope", mutates_args=(), device_types="cuda")
def slope(grad: torch.Tensor) -> torch.Tensor:
    return run("backward_", grad)

@slope.register_fake
def _(grad):
    return torch.empty_like(grad)

def keep(ctx, inputs, output):
    assert inputs[0].is_cuda and output.device.type == "cuda"
    ctx.save_for_backward(*inputs)

def backward(ctx, grad):
    x, y = ctx.saved_tensors
    return slope(grad) * y, slope(grad) * x

product.register_autograd(backward, setup_context=keep)

class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.ops.own.product(x, x)

    @staticmethod
    def backward(ctx, grad):
        return torch.ops.own.slope.default(grad)

for size in (128, 2**21):
    x, y = (torch.randn(size, device="cuda", requires_grad=True) for _ in range(2))
    torch.compile(product, fullgraph=True)(x, y).sum().backward()
    for tensor, other in ((x, y), (y, x)):
        assert tensor.grad.is_cuda
        assert torch.allclose(tensor.grad, 10 * other)
    Function.apply(x).sum().backward()
    assert torch.allclose(x.grad, 10 * y + 10)
    with torch.no_grad():
        assert torch.allclose(product(x, y), (x + 7) * y)
assert ran == {"forward": 6, "backward_": 6}
"""
OLDER = """
library = torch.library.Library("older", "DEF")
library.define("first(Tensor x) -> Tensor")
library.impl("first", lambda x: 1 / 0, "CPU")
library.impl("first", lambda x: run("before", x), "CUDA")
library.define("last(Tensor x) -> Tensor")
library.impl("last", lambda x: run("composite", x), "CompositeImplicitAutograd")
torch.library.define("newer::into", "(Tensor x, Tensor(a!) y, *, float scale=1.0) -> ()")

@torch.library.impl("newer::into", "cuda")
def into(x, y, *, scale=1.0):
    y.copy_(run("in place", x) * scale)

@torch.library.impl("newer::into", "cpu")
def never(x, y, *, scale=1.0):
    1 / 0

for size in (128, 2**21):
    x = torch.randn(size, device="cuda")
    y = torch.zeros_like(x)
    torch.ops.newer.into(x, y, scale=2.0)
    assert torch.allclose(y, 2 * x + 16)
    assert torch.allclose(torch.ops.older.first(x), x + 6)
    assert torch.allclose(torch.ops.older.last(x), x + 9)
assert ran == {"in place": 2, "before": 2, "composite": 2}
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(PINNED)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\n")


def captured(capsys: pytest.CaptureFixture[str], *parts: str) -> tuple[set[str], Any]:
    """The names that kernels were made with and their sizes, and what the report says of the script's end."""
    Path("script.py").write_text("\n".join(parts))
    main(["check", "script.py", "--quick", "--format", "json"])
    report = published(capsys.readouterr().out, "check")
    return {run["case"].partition("[")[2] for run in report["runs"]}, report["notes"]


@pytest.mark.slow
def test_custom_operators_and_their_backward(capsys: pytest.CaptureFixture[str]) -> None:
    cases, notes = captured(capsys, HEAD, CUSTOM)
    assert not [note for note in notes if "ended" in note]
    assert cases == {f"n={size},name='{name}']" for size in (128, 2**21) for name in ("forward", "backward_")}


@pytest.mark.slow
def test_implementations_in_a_library(capsys: pytest.CaptureFixture[str]) -> None:
    cases, notes = captured(capsys, HEAD, OLDER)
    assert not [note for note in notes if "ended" in note]
    assert cases == {
        f"n={size},name='{name}']" for size in (128, 2**21) for name in ("in place", "before", "composite")
    }
