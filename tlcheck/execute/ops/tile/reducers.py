"""T.alloc_reducer: results that the iterations of a T.Parallel combine (TileLang, language/reduce_op.py).

A reducer is one tile of a block, combined by sum, max, min, bitand, bitor or bitxor. Its epoch begins with
T.reducer_init (the neutral element, combined once with the value given), T.reducer_update combines once for each
iteration, and T.finalize_reducer(reducer, destination) writes the result. In the older form, which newer reducers may
have too, T.fill or T.clear begins the reducer, a store `r[i] = r[i] + x` in a T.Parallel is the update, and
T.finalize_reducer(reducer) leaves the result where it is. The kind of a reducer is in its block's annotations.

From tl.ReducerPlanMaterialize to LowerTileOp a reducer is a fragment, and an update a store `r[i] = r[i] + x`, in
`tl.parallel_multiplicity` where threads repeat iterations. It still combines once for each iteration.
"""

from __future__ import annotations

import math

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import attribute, call, store
from tlcheck.execute.field import Field
from tlcheck.execute.memory.codes import Computation, Step
from tlcheck.execute.memory.frame import Frame, everywhere, one_per_world
from tlcheck.execute.memory.values import Kind, Value, converted
from tlcheck.execute.ops.tile.annotations import entries
from tlcheck.execute.ops.tile.extremes import without_nan
from tlcheck.execute.ops.tile.reduce import KINDS
from tlcheck.execute.ops.tile.regions import Tile, block_frame, combine_into, region_of, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.program.updates import MULTIPLICITY, parted_updates, update_of
from tlcheck.snapshot.ir import Attr, Block, Buffer, Expr, Store
from tlcheck.snapshot.walk import statements

_NUMBERED = ("sum", "max", "min", "bitand", "bitor", "bitxor")  # ReducerV2OpType


@call("reducer_init", formula=True)
def reducer_init(e: Expr, program: KernelProgram) -> Computation:
    """The reducer becomes the neutral element, or the value given."""
    region = region_of(e.args[0], program)
    target = whole(region, program)
    first: Value = neutral(_kind_of_reducer(region.buffer, program), target.kind)
    given = program.code(e.args[1]) if len(e.args) > 1 else None

    def run(frame: Frame) -> int:
        inner = block_frame(frame)
        target.write(inner, first if given is None else one_per_world(given.run(frame), "value of T.reducer_init"))
        return 0

    return run


@call("reducer_update", formula=True)
def reducer_update(e: Expr, program: KernelProgram) -> Computation:
    """The element is combined with the value, once for each iteration."""
    load = e.args[0]
    assert load.buffer is not None
    combine = KINDS[_kind_of_reducer(load.buffer, program)].combine
    place, value = program.place(load.buffer, load.args), program.code(e.args[1])

    def run(frame: Frame) -> int:
        _update(place, frame, value.run(frame), combine)
        return 0

    return run


@call("finalize_reducer_v2", formula=True)
def finalize_reducer(e: Expr, program: KernelProgram) -> Computation:
    """The destination becomes the reducer's result."""
    source, target = (whole(region_of(e.args[i], program), program) for i in (0, 1))
    return lambda frame: _copied(source, target, frame, program.options.exact)


@call("finalize_reducer", formula=True)
def finalize_in_place(e: Expr, program: KernelProgram) -> Computation:
    """The reducer holds its result already, but for the value that it began with, where a note names that."""
    seed = dict(e.computed).get("seed")
    if seed is None:
        return lambda frame: 0
    combine = KINDS[_NUMBERED[int(e.args[1].value or 0)]].combine
    target, first = whole(region_of(e.args[0], program), program), program.code(seed)

    def run(frame: Frame) -> int:
        inner = block_frame(frame)
        given = one_per_world(first.run(frame), "value of T.reducer_init")
        target.write(inner, combine(target.read(inner), without_nan(combine, np.asarray(given))))
        return 0

    return run


@store
def update_by_store(stmt: Store, program: KernelProgram) -> Step | None:
    """A store in a T.Parallel that combines an element of a reducer with a value."""
    if not program.iterating:
        return None
    kind, term = update_of(stmt)
    if stmt.buffer.name in _reducers(program):
        if kind is None or term is None:
            raise NotModelled("store to a reducer that is no update")
        if kind != _kind_of_reducer(stmt.buffer, program):
            raise NotModelled(f"reducer combined by another operation than its own: {kind}")
        return _updating(stmt, kind, term, program)
    if kind is None or term is None or not program.options.midway or stmt not in parted_updates(program.function):
        return None
    return _updating(stmt, kind, term, program)


@attribute(MULTIPLICITY)
def once_for_each_iteration(stmt: Attr, program: KernelProgram) -> Step:
    """The update of a reducer in a T.Parallel, whose iterations several threads may repeat."""
    kind, term = update_of(stmt.body) if isinstance(stmt.body, Store) else (None, None)
    if kind is None or term is None or not program.iterating:
        raise NotModelled(f"attribute {stmt.key}")
    assert isinstance(stmt.body, Store)
    return _updating(stmt.body, kind, term, program)


def _updating(stmt: Store, kind: str, term: Expr, program: KernelProgram) -> Step:
    place, value = program.place(stmt.buffer, stmt.indices), program.code(term)
    combine = KINDS[kind].combine

    def run(frame: Frame) -> None:
        program.state.at = stmt
        _update(place, frame, value.run(frame), combine)

    return Step(run)


def neutral(reduction: str, kind: Kind) -> int | float:
    """The element that changes nothing when it is combined."""
    if reduction in ("max", "min"):
        low, high = (-math.inf, math.inf) if kind.is_float else kind.limits
        return low if reduction == "max" else high
    if reduction == "bitand":
        return -1 if kind.family == "int" else kind.limits[1]
    return 0


def _reducers(program: KernelProgram) -> dict[str, str]:
    """Return what the blocks of the kernel say of reducers, by name."""
    found: dict[str, str] = {}
    for stmt in statements(program.function.body):
        if isinstance(stmt, Block):
            for key in ("reducer_info", "reducer_info_v2"):
                found |= entries(dict(stmt.annotations).get(key, "{}"))
    return found


def _kind_of_reducer(buffer: Buffer, program: KernelProgram) -> str:
    entry = _reducers(program).get(buffer.name, "")
    kind = dict(part.strip().split(": ", 1) for part in entry.strip("{}").split(",") if ": " in part).get("op")
    if kind not in KINDS:
        raise NotModelled(f"reducer {buffer.name} of unknown kind")
    return kind


def _update(place: BufferElement, frame: Frame, value: Value, combine: np.ufunc) -> None:
    found, mask = place.position(frame)
    position = place.memory.flat_position(found)
    shape = np.broadcast_shapes(position.shape, np.shape(value), (frame.worlds, frame.lanes))
    chosen = np.broadcast_to(everywhere(mask, frame), shape)
    where, terms = np.broadcast_to(position, shape)[chosen], np.broadcast_to(value, shape)[chosen]
    combine_into(place, where, without_nan(combine, terms), combine)


def _copied(source: Tile, target: Tile, frame: Frame, exact: bool | Field) -> int:
    inner = source.frame(frame, target)
    if source.lattice.shape(frame) != target.lattice.shape(frame):
        raise NotModelled("T.finalize_reducer into a tile of another shape")
    target.write(inner, converted(source.read(inner), source.kind, target.kind, exact))
    return 0
