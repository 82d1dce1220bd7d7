"""Numbers of a thread's lane, warp and warpgroup: T.get_lane_idx and the like (TileLang, tl_templates/cuda/intrin.h).

Arguments, each of which may be missing: threads of a warp, warps of a group.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.values import Array
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr

_WARPS = 4  # of a group


@call("get_lane_idx", formula=True)
def lane(e: Expr, program: KernelProgram) -> Computation:
    """The thread's number in its warp."""
    return _of_threads(e, program, lambda thread, warp, group: thread % warp)


@call("get_warp_idx", "get_warp_idx_sync", formula=True)
def warp(e: Expr, program: KernelProgram) -> Computation:
    """The number of its warp."""
    return _of_threads(e, program, lambda thread, warp, group: thread // warp)


@call("get_warp_group_idx", formula=True)
def group(e: Expr, program: KernelProgram) -> Computation:
    """The number of its group of warps."""
    return _of_threads(e, program, lambda thread, warp, group: thread // (warp * group))


def _of_threads(e: Expr, program: KernelProgram, number: Callable[[Array, int, int], Array]) -> Computation:
    if program.iterating:
        raise NotModelled(f"{e.value} in T.Parallel")
    sizes = [int(a.value or 0) if a.op == "int" else 0 for a in e.args]
    if 0 in sizes:
        raise NotModelled(f"{e.value} of warps of another size")
    usual = program.options.target.warp, _WARPS
    found = number(np.arange(program.state.threads).reshape(1, -1), *(*sizes, *usual[len(sizes) :])).astype(np.int32)
    return lambda frame: found
