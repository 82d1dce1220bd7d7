"""T.wgmma_gemm, and T.gemm(wg_wait=-1): who reads the sum before T.wait_wgmma has no value to count on, and that is the
kernel's author."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, flag, number, region
from tlcheck.execute.compare.both_levels import execute
from tlcheck.snapshot.ir import Evaluate

WAIT = call("wait_wgmma", number(0))
OWN = "asynchronous products race for C_s in the source"


def products(kernel: Kernel, count: int, waited: int | None) -> list[Evaluate]:
    """Products of two tiles, each added to the same sum. waited: T.gemm's `wg_wait`; None for T.wgmma_gemm."""
    a, b, c = (region(tile) for tile in kernel.tiles)
    sizes, strides = [number(16)] * 3, [number(n) for n in (16, 16, 0, 0, 1)]
    name, more = ("wgmma_gemm", []) if waited is None else ("gemm_py", [*strides, number(waited)])
    return [call(name, a, b, c, flag(False), flag(False), *sizes, number(1), flag(n == 0), *more) for n in range(count)]


@pytest.mark.parametrize(
    ("steps", "waited", "waits", "reason"),
    [
        (1, None, (), OWN),
        (2, None, (WAIT,), ""),
        (1, None, (call("wait_wgmma", number(1)),), OWN),
        (1, -1, (), OWN),
        (2, -1, (WAIT,), ""),
        (1, 0, (), ""),
    ],
)
def test_what_is_read_before_the_wait(steps: int, waited: int | None, waits: tuple[Evaluate, ...], reason: str) -> None:
    """The lowered kernel stores nothing: wrong, or of no meaning. A second product may add to what is under way."""
    kernel = Kernel(threads=128)
    tensors = [kernel.tensor(name, "float32", np.zeros((16, 16))) for name in "AB"]
    out = kernel.tensor("C", "float32", [16, 16])
    for name, scope in (("A", "shared.dyn"), ("B", "shared.dyn"), ("C", "local.fragment")):
        kernel.tile(f"{name}_s", "float32", (16, 16), scope)
    loads = [call("copy", region(t), region(s)) for t, s in zip(tensors, kernel.tiles[:2], strict=True)]
    store = call("copy", region(kernel.tiles[2]), region(out))
    written = [*loads, *products(kernel, steps, waited), *waits, store]
    outcome = execute(kernel.snapshot(written, [])).outputs[-1]
    assert outcome.verdict == ("undecided" if reason else "refuted")
    assert outcome.reason == reason
