"""A kernel that is lowered once before the first job.

What TileLang and TVM prepare the first time is then prepared in every job, which is a copy of this process.
"""

from __future__ import annotations

from tilelang import language as tl

from tlcheck.targets.lookup import USUAL
from tlcheck.worker import assumed_device, lowering

_ARCH = USUAL[0]


@tl.prim_func  # type: ignore[untyped-decorator]
def _add(source: tl.Tensor((256,), "float32"), target: tl.Tensor((256,), "float32")) -> None:  # type: ignore[valid-type]
    with tl.Kernel(1, threads=128):
        staged = tl.alloc_shared((256,), "float32")
        tl.copy(source, staged)
        tl.atomic_add(target[0:256], staged)


def rehearse() -> None:
    """Lower it. Raises what TileLang raises."""
    assumed_device.pretend(_ARCH)
    lowering.lower(_add, {}, lowering.make_target(_ARCH), every_pass=False)
