"""Copies of tiles: T.copy, T.async_copy, T.tma_copy (TileLang, language/copy_op.py and op/copy.cc).

Both regions have the same axes once those of size 1 are left out. The loop goes over the sizes of the side that is
nearer to the registers (global, shared, registers; the source where both are equally near), and each side starts at
its own place. An element outside its buffer reads as 0, or as the buffer's safe value; one outside the destination is
not written. Elements are converted to the destination's dtype.

In the source a copy is complete when the next statement runs, also one that the kernel waits for itself: what a wait
that is missing does is a question to the kernel as lowered, and between the passes (`under_way`). Where a T.async_copy
or T.tma_copy has none the author forgot it, which `authors` notices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import COPIES, LOADS, STORES, Observer, Operation
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import converted
from tlcheck.execute.ops.thread.mbarrier import barrier
from tlcheck.execute.ops.tile.cluster_copy import to_a_block, to_several
from tlcheck.execute.ops.tile.regions import Lattice, Region, Tile, region_of
from tlcheck.execute.ops.tile.row_copy import of_rows
from tlcheck.execute.ops.tile.under_way import departure
from tlcheck.execute.schedule.clusters import cluster_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr

_OF_ROWS = {"is_gather4": True, "is_scatter4": False}


@call("copy", "async_copy", "tma_copy", formula=True)
def copy(e: Expr, program: KernelProgram) -> Computation:
    """The destination's elements become those of the source."""
    for note, _ in e.annotations:
        if note in _OF_ROWS:
            return of_rows(e, _OF_ROWS[note], program)
    source, target = paired(region_of(e.args[0], program), region_of(e.args[1], program), program)
    notes = {key for key, _ in (*e.annotations, *e.computed)}
    if "dst_block" in notes:
        return to_a_block(e, source, target, program)
    if "cluster_mask" in notes and prod(cluster_of(program.function)) > 1 and target.shared:
        return to_several(e, source, target, program)
    exact, depart = program.options.exact, departure(e, target, program)
    unwaited, observers = _unwaited(e, source, target, program), program.observers

    def run(frame: Frame) -> int:
        inner = source.frame(frame, target)
        if e.value == "tma_copy":
            observers.tma_copy(begins=True)
        values = converted(source.read(inner), source.kind, target.kind, exact)
        if depart is None:
            target.write(inner, values)
        if e.value == "tma_copy":
            observers.tma_copy(begins=False)
        if depart is not None:
            depart(frame, inner, np.asarray(values))
        elif observers.hear(Observer.operation_begun):
            for operation in unwaited(frame, inner):
                observers.operation_begun(operation)
        return 0

    return run


def _unwaited(
    e: Expr, source: Tile, target: Tile, program: KernelProgram
) -> Callable[[Frame, Frame], Iterator[Operation]]:
    """Return what the author waits for himself, from the threads' frame and the tile's."""
    awaited = dict(e.computed).get("barrier")
    if awaited is not None and awaited.buffer is not None and awaited.buffer.scope == "shared.cluster_barrier":
        awaited = None  # another block of the cluster may wait for it
    done = barrier(awaited, program) if e.value == "tma_copy" and target.shared and awaited is not None else None

    def operations(frame: Frame, inner: Frame) -> Iterator[Operation]:
        if e.value == "async_copy":
            yield Operation(COPIES, writes=[target.elements(inner)])
        elif e.value == "tma_copy" and source.shared:
            yield Operation(STORES, [source.elements(inner)], [target.elements(inner)])
        elif done is not None:
            for number, mask in done(frame).by_number:
                key, worlds = (done.barriers.name, number), np.asarray(mask.any(axis=-1))
                yield Operation(LOADS, writes=[target.elements(inner)], key=key, worlds=worlds)

    return operations


def paired(source: Region, target: Region, program: KernelProgram) -> tuple[Tile, Tile]:
    """Two regions as tiles with the same points."""
    base = source if _nearness(source) >= _nearness(target) else target
    if len(source.long) != len(target.long):
        raise NotModelled("copy between regions of unlike axes")
    lattice = Lattice([base.sizes[axis] for axis in base.long], program)
    return Tile(source, program, lattice, source.long), Tile(target, program, lattice, target.long)


def _nearness(region: Region) -> int:
    scope = region.buffer.scope
    if scope in ("local.fragment", "local"):
        return 2
    return 1 if scope in ("shared", "shared.dyn", "shared.tmem") else 0
