"""Atomics of whole tiles: T.atomic_add, T.atomic_max, T.atomic_min of regions (TileLang, language/atomic.py).

Each element of the destination is combined once with its element of the source, or with one value for all; the loop
goes over the destination's sizes, which the source has too. Elements outside a tensor are left out of the destination,
and count as 0 does in the source; none may be outside memory of the block. Without a loop over threads a block does
this once; where a region depends on the thread, each thread does.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import converted, kind_of
from tlcheck.execute.ops.thread.atomics import require_memory
from tlcheck.execute.ops.tile.regions import Lattice, Region, Tile, block_frame, differs, is_region, region_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr


@call("atomicadd", formula=True)
def atomicadd(e: Expr, program: KernelProgram) -> Computation:
    """The destination's elements become sums."""
    return _combined(e, program, np.add)


@call("atomicmax", formula=True)
def atomicmax(e: Expr, program: KernelProgram) -> Computation:
    """The destination's elements become maxima."""
    return _combined(e, program, np.maximum)


@call("atomicmin", formula=True)
def atomicmin(e: Expr, program: KernelProgram) -> Computation:
    """The destination's elements become minima."""
    return _combined(e, program, np.minimum)


def _combined(e: Expr, program: KernelProgram, operation: np.ufunc) -> Computation:
    require_memory(e.args[1], program)
    region = region_of(e.args[1], program)
    lattice = Lattice([region.sizes[axis] for axis in region.long], program)
    target = Tile(region, program, lattice, region.long, copied=False)
    if not is_region(e.args[0]):
        return _with_value(e.args[0], target, program, operation)
    given = region_of(e.args[0], program)
    source, own = _source(given, region, lattice, program), Lattice([given.sizes[axis] for axis in given.long], program)
    exact = program.options.exact

    def run(frame: Frame) -> int:
        if own.axes and own.shape(frame) != lattice.shape(frame):
            raise NotModelled("atomic between regions of unlike sizes")
        inner = source.frame(frame, target)
        found = source.read(inner, unused=target.located(inner).outside)
        target.combine(inner, converted(found, source.kind, target.kind, exact), operation)
        return 0

    return run


def _source(source: Region, target: Region, lattice: Lattice, program: KernelProgram) -> Tile:
    if len(source.long) not in (0, len(target.long)):
        raise NotModelled("atomic between regions of unlike axes")
    return Tile(source, program, lattice, source.long, copied=False)


def _with_value(e: Expr, target: Tile, program: KernelProgram, operation: np.ufunc) -> Computation:
    value, source, exact = program.code(e), kind_of(e.dtype), program.options.exact

    def run(frame: Frame) -> int:
        term = converted(value.run(frame), source, target.kind, exact)
        own = differs(term) or target.differs(frame)
        target.combine(frame if own else block_frame(frame), term, operation)
        return 0

    return run
