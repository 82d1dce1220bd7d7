"""Loops whose iterations do not depend on one another: all iterations at once, each a world of its own.

The statements of the body run one after the other, each in all iterations. That is the same as one iteration after the
other where no statement touches a cell that another iteration writes. Registers are compared cell by cell; what a
body writes to shared memory or a tensor it must not read there, and in one statement only. The order of accesses is
the same too, but for their place in the loop: a witness is found by a run of plain loops (`Options.plain`).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.codes import Code, Step
from tlcheck.execute.frame import Frame, Mask
from tlcheck.execute.functions import FUNCTIONS
from tlcheck.execute.memory import Cells
from tlcheck.execute.parallel import variables_of
from tlcheck.execute.places import Place
from tlcheck.execute.reasons import Stopped
from tlcheck.execute.values import Array, kind_of
from tlcheck.snapshot.ir import Alloc, Bind, Evaluate, Expr, For, If, Seq, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine

# Calls that are statements, and the argument that names what they write.
_WRITTEN = {"ptx_mma": 10, "ptx_ldmatrix": 3, "ptx_stmatrix": 2}
_WRITTEN |= {
    f"atomic_{operation}{lanes}_elem_op": 0 for operation in ("add", "max", "min") for lanes in ("", "x2", "x4")
}
_VALUES = frozenset({*FUNCTIONS, "if_then_else", "address_of", "access_ptr", "tvm_access_ptr", "pack_b16"})
_EXTERNS = ("call_extern", "call_pure_extern")
_MOST_LANES = 1 << 17  # of all worlds and iterations


def at_once(stmt: For, machine: Machine) -> Step | None:
    """The step of a loop that can run so; None for another."""
    if machine.options.plain or machine.options.written or machine.iterating:
        return None
    loops, body = _nest(stmt)
    if prod(map(_count, loops)) * len(machine.worlds) * machine.threads > _MOST_LANES:
        return None
    if not loops or not all(_known(s) for s in statements(body)):
        return None
    counts = [_count(loop) for loop in loops]
    times, worlds = prod(counts), len(machine.worlds)
    inner = machine.repeated(times)
    values = _iterations(loops, worlds)
    inner.variables |= {uid: _fixed(value) for uid, value in values.items()}
    try:
        step = inner.step(body)
        if step.leaves or not _independent(body, inner, values, times):
            return None
    except Stopped:
        return None
    return _running(step, body, values, counts, machine, inner)


def _running(
    step: Step, body: Stmt, values: dict[int, Array], counts: list[int], machine: Machine, inner: Machine
) -> Step:
    times, uses = prod(counts), [uid for uid in variables_of(body) if uid not in values]
    tiled: list[Mask | None] = [None, None]  # the mask of the last time, and for all iterations
    before = sum(prod(counts[: axis + 1]) for axis in range(len(counts)))

    def run(frame: Frame) -> None:
        variables = frame.variables | values
        variables |= {uid: _tiled(frame.variables[uid], times) for uid in uses if uid in frame.variables}
        if tiled[0] is not frame.active:
            tiled[:] = [frame.active, _tiled(frame.active, times)]
        spent = inner.spent
        step.run(Frame(variables, frame.worlds * times, frame.lanes, tiled[1]))
        machine.spend(before + (inner.spent - spent) * times)

    return Step(run)


def _fixed(value: Array) -> Code:
    return Code(lambda frame: value, frozenset(), True)


def _tiled(value: Any, times: int) -> Any:
    """A value of all worlds, for every iteration."""
    if not isinstance(value, np.ndarray) or value.ndim < 2 or value.shape[-2] == 1:
        return value
    return np.tile(value, (*[1] * (value.ndim - 2), times, 1))


def _nest(stmt: Stmt) -> tuple[list[For], Stmt]:
    """Loops with nothing between them, and what they are around."""
    loops: list[For] = []
    while isinstance(stmt, For) and stmt.start.op == "int" and stmt.extent.op == "int" and _count(stmt) > 0:
        if stmt.kind not in ("serial", "unrolled", "vectorized"):
            return [], stmt
        loops.append(stmt)
        stmt = stmt.body
    return loops, stmt


def _count(loop: For) -> int:
    return int(loop.extent.value or 0)


def _iterations(loops: list[For], worlds: int) -> dict[int, Array]:
    """The loops' variables, by uid, in each iteration and world: (iterations * worlds, 1)."""
    grids = np.indices([_count(loop) for loop in loops]).reshape(len(loops), -1)
    return {
        loop.var.uid: np.repeat(grid + int(loop.start.value or 0), worlds)
        .astype(kind_of(loop.var.dtype).array)
        .reshape(-1, 1)
        for loop, grid in zip(loops, grids, strict=True)
    }


def _known(stmt: Stmt) -> bool:
    """Whether a statement reads and writes nothing but what can be seen."""
    if isinstance(stmt, Evaluate):
        if stmt.value.op in ("int", "var"):
            return True
        return stmt.value.op == "call" and stmt.value.value in _WRITTEN and all(map(_plain, stmt.value.args))
    if isinstance(stmt, Alloc):
        return stmt.buffer.scope == "local"
    return isinstance(stmt, (Seq, Store, Bind, If)) and all(map(_plain, expressions(stmt)))


def _plain(e: Expr) -> bool:
    """Whether an expression calls nothing but functions of values."""
    return all(x.op not in ("call", "let", "unknown") or _is_function(x) for x in postorder([e]))


def _is_function(e: Expr) -> bool:
    if e.value in _EXTERNS and e.args and e.args[0].op == "str":
        return str(e.args[0].value) in FUNCTIONS
    return e.value in _VALUES


def _independent(body: Stmt, inner: Machine, values: dict[int, Array], times: int) -> bool:
    """Whether no iteration touches what another one writes."""
    writes = set(_writes(body))
    for root in {place.root for key, place in inner.made if id(key) in writes}:
        if root in inner.memory:
            continue  # made by the body: each iteration has its own
        places = [(id(key) in writes, place) for key, place in inner.made if place.root == root]
        cells = inner.memory[root]
        if isinstance(cells, Cells) and not cells.shared:
            if not _apart(places, inner, values, times):
                return False
        elif len(places) > 1:
            return False
    return True


def _writes(body: Stmt) -> Iterator[int]:
    """What the places that are written are made of."""
    for stmt in statements(body):
        if isinstance(stmt, Store):
            yield id(stmt.indices)
        elif isinstance(stmt, Evaluate) and stmt.value.op == "call":
            yield id(stmt.value.args[_WRITTEN[str(stmt.value.value)]])


def _apart(places: list[tuple[bool, Place]], inner: Machine, values: dict[int, Array], times: int) -> bool:
    """Whether each cell of registers that an iteration writes is touched by that iteration alone.

    places: all of one allocation, and whether they are written. Their indices may depend on the loops only.
    """
    worlds, frame = len(inner.worlds), Frame(dict(values), len(inner.worlds), inner.threads)
    owner = np.full(places[0][1].memory.flat.size, -1) if isinstance(places[0][1].memory, Cells) else np.empty(0)
    for writes, place in sorted(places, key=lambda pair: not pair[0]):
        if not place.steady or place.needs:
            return False
        try:
            flat = place.memory.flat_position(place.located(frame).position)
        except KeyError:  # of another variable
            return False
        flat = np.broadcast_to(flat, (*flat.shape[:-2], worlds, inner.threads))
        flat = flat.reshape(-1, times, worlds // times, inner.threads)[:, :, 0]
        iteration = np.broadcast_to(np.arange(times).reshape(1, -1, 1), flat.shape)
        if not ((owner[flat] == -1) | (owner[flat] == iteration)).all():
            return False
        if writes:
            owner[flat] = iteration
            if (owner[flat] != iteration).any():
                return False
    return True
