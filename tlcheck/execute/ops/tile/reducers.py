"""T.alloc_reducer: results that the iterations of a T.Parallel combine (TileLang, language/reduce_op.py).

A reducer is one tile of a block, combined by sum, max, min, bitand, bitor or bitxor. Its epoch begins with
T.reducer_init (the neutral element, combined once with the value given), T.reducer_update combines once for each
iteration, and T.finalize_reducer(reducer, destination) writes the result. In the older form, which newer reducers may
have too, T.fill or T.clear begins the reducer, a store `r[i] = r[i] + x` in a T.Parallel is the update, and
T.finalize_reducer(reducer) leaves the result where it is. The kind of a reducer is in its block's annotations.
"""

from __future__ import annotations

import math

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call, store
from tlcheck.execute.field import Field
from tlcheck.execute.memory.codes import Run, Step
from tlcheck.execute.memory.frame import Frame, one_per_world
from tlcheck.execute.memory.values import Kind, Value, converted
from tlcheck.execute.ops.tile.annotations import entries
from tlcheck.execute.ops.tile.extremes import without_nan
from tlcheck.execute.ops.tile.reduce import KINDS
from tlcheck.execute.ops.tile.regions import Tile, block_frame, combine_into, region_of, whole
from tlcheck.execute.reasons import NotModelled
from tlcheck.snapshot.ir import Block, Buffer, Expr, Store
from tlcheck.snapshot.walk import statements

_OPERATORS = {"add": "sum", "max": "max", "min": "min"}
_CALLED = {"bitwise_and": "bitand", "bitwise_or": "bitor", "bitwise_xor": "bitxor"}


@call("reducer_init")
def reducer_init(e: Expr, program: KernelProgram) -> Run:
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


@call("reducer_update")
def reducer_update(e: Expr, program: KernelProgram) -> Run:
    """The element is combined with the value, once for each iteration."""
    load = e.args[0]
    assert load.buffer is not None
    combine = KINDS[_kind_of_reducer(load.buffer, program)].combine
    place, value = program.place(load.buffer, load.args), program.code(e.args[1])

    def run(frame: Frame) -> int:
        _update(place, frame, value.run(frame), combine)
        return 0

    return run


@call("finalize_reducer_v2")
def finalize_reducer(e: Expr, program: KernelProgram) -> Run:
    """The destination becomes the reducer's result."""
    source, target = (whole(region_of(e.args[i], program), program) for i in (0, 1))
    return lambda frame: _copied(source, target, frame, program.options.exact)


@call("finalize_reducer")
def finalize_in_place(e: Expr, program: KernelProgram) -> Run:
    """The reducer holds its result already."""
    return lambda frame: 0


@store
def update_by_store(stmt: Store, program: KernelProgram) -> Step | None:
    """A store in a T.Parallel that combines an element of a reducer with a value."""
    if not program.iterating or stmt.buffer.name not in _reducers(program):
        return None
    kind, term = _update_of(stmt)
    if kind is None or term is None:
        raise NotModelled("store to a reducer that is no update")
    if kind != _kind_of_reducer(stmt.buffer, program):
        raise NotModelled(f"reducer combined by another operation than its own: {kind}")
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


def _update_of(stmt: Store) -> tuple[str | None, Expr | None]:
    """The kind of a store `r[i] = r[i] + x`, and x."""
    value = stmt.value
    kind = _OPERATORS.get(value.op) or (_CALLED.get(str(value.value)) if value.op == "call" else None)
    if kind is None:
        return None, None
    for own, term in (value.args, value.args[::-1]):
        if own.op == "load" and own.buffer is stmt.buffer and _same(own.args, stmt.indices):
            return kind, term
    return None, None


def _same(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    """Whether two lists of expressions are written alike."""
    return len(a) == len(b) and all(
        x is y
        or (x.op == y.op and x.value == y.value and x.uid == y.uid and x.buffer is y.buffer and _same(x.args, y.args))
        for x, y in zip(a, b, strict=True)
    )


def _update(place: BufferElement, frame: Frame, value: Value, combine: np.ufunc) -> None:
    located = place.located(frame)
    position = place.memory.flat_position(located.position)
    shape = np.broadcast_shapes(position.shape, np.shape(value), (frame.worlds, frame.lanes))
    chosen = np.broadcast_to(frame.mask(), shape)
    where, terms = np.broadcast_to(position, shape)[chosen], np.broadcast_to(value, shape)[chosen]
    combine_into(place, where, without_nan(combine, terms), combine)


def _copied(source: Tile, target: Tile, frame: Frame, exact: bool | Field) -> int:
    inner = source.frame(frame, target)
    target.write(inner, converted(source.read(inner), source.kind, target.kind, exact))
    return 0
