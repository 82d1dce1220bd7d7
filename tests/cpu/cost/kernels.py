"""The kernels of tests/fixtures/cost.py, lowered by TileLang 0.1.15 (kernels-0.1.15.zip), and their cost."""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path

from tlcheck.cost.kernel_cost import KernelCost, SiteCost
from tlcheck.cost.measure import cost_of
from tlcheck.execute.request import ALL, Request
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot

_KERNELS = Path(__file__).parent / "kernels-0.1.15.zip"
_SOURCE = Path(__file__).parents[2] / "fixtures" / "cost.py"


@cache
def snapshot(name: str, arch: str) -> Snapshot:
    """A lowered kernel."""
    with zipfile.ZipFile(_KERNELS) as kernels:
        return codec.loads(kernels.read(f"{name}-{arch}.json").decode())


@cache
def cost(name: str, arch: str = "sm_80", blocks: int = ALL) -> KernelCost:
    """Return what it costs."""
    return cost_of(snapshot(name, arch), Request(blocks=blocks))


def site(name: str, space: str, operation: str, buffer: str, arch: str = "sm_80") -> SiteCost:
    """The one access of a kernel to a buffer in that way."""
    (found,) = [s for s in cost(name, arch).sites if (s.space, s.operation, s.buffer) == (space, operation, buffer)]
    return found


def line_of(text: str) -> int:
    """The line of the kernels' file that holds a text."""
    lines = _SOURCE.read_text(encoding="utf-8").splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if text in line]
    return found
