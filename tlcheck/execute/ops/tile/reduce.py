"""T.reduce and its kinds: sum, abssum, max, min, absmax, bitand, bitor, bitxor (TileLang, language/reduce_op.py).

The destination has the source's axes without the reduced one, or with it as 1; a source with one axis gives one
element. Each element becomes the combination of the source's along the axis, converted to the destination's dtype
before; without `clear` also combined with what the destination was (abssum and absmax take the absolute value of the
source's elements only). Of a number and a NaN, max and min take the number, with `nan_propagate` NaN. Of NaN alone
they make what they begin with: an infinity, or 0. How many elements share a barrier (`batch`) changes nothing.

For a shared destination TileLang makes a fragment `NAME_frag`, and a copy of it afterwards. Before 0.1.8 nothing fills
that fragment without `clear`: the source means what the shared buffer holds.

Floats are summed in float64 and rounded once; integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tlcheck.execute.compile import formulas
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import Cell, Operands
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, converted
from tlcheck.execute.ops.tile.extremes import reduced
from tlcheck.execute.ops.tile.regions import Region, Tile, region_of, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.program.roles import WRITE, accesses
from tlcheck.snapshot.ir import Alloc, Expr, Stmt, Store
from tlcheck.snapshot.walk import expressions, statements

_MADE = "_frag"  # what TileLang adds to the name of a shared buffer


@dataclass(frozen=True, slots=True)
class Reduction:
    """A record of how elements combine, what is taken of each of the source's, and what a maximum begins with."""

    combine: np.ufunc
    of_each: Callable[[Array], Array] | None = None
    first: float | None = None


KINDS = {
    "sum": Reduction(np.add),
    "abssum": Reduction(np.add, np.abs),
    "max": Reduction(np.maximum, first=-np.inf),
    "min": Reduction(np.minimum, first=np.inf),
    "absmax": Reduction(np.maximum, np.abs, first=0.0),
    "bitand": Reduction(np.bitwise_and),
    "bitor": Reduction(np.bitwise_or),
    "bitxor": Reduction(np.bitwise_xor),
}


@call("reduce", formula=True)
def reduce(e: Expr, program: KernelProgram) -> Computation:
    """The destination's elements become the reductions of the source's along an axis."""
    kind, axis, clear = KINDS.get(str(e.args[2].value)), e.args[3].value, bool(e.args[4].value)
    if kind is None or not isinstance(axis, int):
        raise NotModelled(f"reduce {e.args[2].value}")
    into = region_of(e.args[1], program)
    source, target = whole(region_of(e.args[0], program), program), whole(into, program)
    before = target if clear or (shared := _stands_for(into, program)) is None else whole(shared, program)
    exact, field = program.options.exact, program.options.field if target.kind.is_float else None
    propagate = dict(e.annotations).get("nan_propagate", "0") not in ("0", "False")
    combine = (
        partial(reduced, kind.combine, propagate=propagate, first=kind.first)
        if field is None
        else formulas.reduction(kind.combine, field)
    )
    of_each = kind.of_each if field is None or kind.of_each is None else field.absolute

    def run(frame: Frame) -> int:
        inner = source.frame(frame, target)
        terms = np.asarray(converted(source.array(inner), source.kind, target.kind, exact))
        found = combine(terms if of_each is None else of_each(terms), axis)
        found = found.reshape(-1, *found.shape[-2:])
        if not clear:
            found = combine(np.stack(np.broadcast_arrays(before.read(inner), found)), 0)
        program.observers.reduction(_lines(inner, source, target, axis, not clear), keeps=not clear)
        sizes = _partial_sums(terms, axis) if kind.combine is np.add and program.options.costly else 0.0
        settle = program.state.summed(target.kind, terms.shape[axis], sizes)
        target.write(inner, found if settle is None else settle(found))
        return 0

    return run


def _partial_sums(terms: Array, axis: int) -> Array:
    """The usual size of sums of some of the terms, one for each result."""
    found = np.asarray(np.sqrt(np.sum(np.square(terms), axis)))
    return found.reshape(-1, *found.shape[-2:])


def _stands_for(target: Region, program: KernelProgram) -> Region | None:
    """The shared buffer whose fragment TileLang made, and nothing but this statement writes; None for other targets.

    A statement of TileLang's own has no line of the kernel's file.
    """
    at, name = program.state.at, target.buffer.name
    if not program.options.source or at is None or at.line or not name.endswith(_MADE):
        return None
    uid, found = target.buffer.data.uid, None
    for stmt in statements(program.function.body):
        if isinstance(stmt, Alloc):
            is_shared = stmt.buffer.name == name.removesuffix(_MADE) and stmt.buffer.scope.startswith("shared")
            found = stmt.buffer if is_shared else found
        elif stmt is not at and _writes(stmt, uid):
            return None
    return None if found is None else Region(found, target.starts, target.sizes)


def _writes(stmt: Stmt, uid: int) -> bool:
    """Whether a statement writes a buffer."""
    if isinstance(stmt, Store):
        return stmt.buffer.data.uid == uid
    return any(mode & WRITE and data.uid == uid for e in expressions(stmt) for data, mode in accesses(e))


def _lines(frame: Frame, source: Tile, target: Tile, axis: int, keeps: bool) -> Operands:
    """The elements of the source that make one of the target; then that one itself where it is combined with them."""

    def lines(index: tuple[int, ...]) -> list[list[Cell]]:
        found = []
        for tile, across in ((source, True), (target, False)) if keeps else ((source, True),):
            where = tile.flat(frame).reshape(*tile.lattice.shape(frame), frame.worlds, -1)
            own = np.moveaxis(where, axis, 0) if across else where[None]
            own = own.reshape(own.shape[0], -1, *own.shape[-2:])[:, index[0]]
            world, lane = index[1], index[2] if own.shape[-1] > 1 else 0
            found.append([(tile.place.memory, int(position)) for position in own[:, world, lane]])
        return found

    return lines
