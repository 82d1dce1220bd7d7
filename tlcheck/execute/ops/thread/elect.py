"""elect.sync as TileLang uses it: one thread of a group of threads (PTX 9.7.13.16; tl_shuffle_elect in the library).

tl_shuffle_elect(0) holds in one thread of the block's first warp, tl_shuffle_elect(n) in one of every n threads: of
every ceil(n / 32) warps, and before 0.1.12 of every n // 32. Of fewer than 32 threads these elect nobody (the library
takes a remainder by 0). The instruction elects some thread of those that are active; here it is the first.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, OfLanes
from tlcheck.execute.memory.values import Array
from tlcheck.execute.stops import NotModelled
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

_PARTS_COUNT = Release.of("0.1.12")  # the first release in which part of a warp counts as a warp


@call("tl_shuffle_elect", "shuffle_elect", formula=True)
def elect(e: Expr, program: KernelProgram) -> Computation:
    """Whether the thread is the elected one of its group; (worlds, threads)."""
    extent = e.args[0].value if e.args and e.args[0].op == "int" else None
    if not isinstance(extent, int) or (extent % WARP and program.options.source):
        raise NotModelled("shuffle_elect of another number of threads than whole warps")
    warps = -(-extent // WARP) if program.release >= _PARTS_COUNT else extent // WARP
    warp = np.arange(program.state.threads) // WARP
    chosen = warp == 0 if extent == 0 else warp % warps == 0 if warps else warp < 0

    def elected(frame: Frame) -> Array:
        mask = frame.mask() & chosen
        idle = -len(chosen) % WARP  # lanes of a last warp that is not whole
        warps = np.pad(mask, ((0, 0), (0, idle))).reshape(len(mask), -1, WARP)
        first = np.zeros(warps.shape, np.bool_)
        np.put_along_axis(first, warps.argmax(axis=-1)[..., None], True, axis=-1)
        return np.asarray((first & warps).reshape(len(mask), -1)[:, : len(chosen)])

    return OfLanes(elected).of
