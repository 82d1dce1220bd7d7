"""T.wgmma_gemm: who reads its sum before T.wait_wgmma has no value to count on, and that is the kernel's author."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.tiles.building import Kernel, call, flag, number, region
from tlcheck.execute.run import execute
from tlcheck.snapshot.ir import Evaluate

WAIT = call("wait_wgmma", number(0))


def products(kernel: Kernel, count: int) -> list[Evaluate]:
    """Products of two tiles, each added to the same sum."""
    a, b, c = (region(tile) for tile in kernel.tiles)
    sizes = [number(16)] * 3
    return [
        call("wgmma_gemm", a, b, c, flag(False), flag(False), *sizes, number(1), flag(n == 0)) for n in range(count)
    ]


@pytest.mark.parametrize(
    ("steps", "waits", "reason"),
    [
        (1, (), "as written, asynchronous products race for C_s: the author's own"),
        (2, (WAIT,), ""),
        (1, (call("wait_wgmma", number(1)),), "as written, asynchronous products race for C_s: the author's own"),
    ],
)
def test_what_is_read_before_the_wait(steps: int, waits: tuple[Evaluate, ...], reason: str) -> None:
    """What is lowered stores nothing: wrong, or of no meaning. A second product may add to what is under way."""
    kernel = Kernel(threads=128)
    tensors = [kernel.tensor(name, "float32", np.zeros((16, 16))) for name in "AB"]
    out = kernel.tensor("C", "float32", [16, 16])
    for name, scope in (("A", "shared.dyn"), ("B", "shared.dyn"), ("C", "local.fragment")):
        kernel.tile(f"{name}_s", "float32", (16, 16), scope)
    loads = [call("copy", region(t), region(s)) for t, s in zip(tensors, kernel.tiles[:2], strict=True)]
    store = call("copy", region(kernel.tiles[2]), region(out))
    written = [*loads, *products(kernel, steps), *waits, store]
    outcome = execute(kernel.snapshot(written, [])).outputs[-1]
    assert outcome.verdict == ("undecided" if reason else "refuted")
    assert outcome.reason == reason
