"""Loops whose iterations do not depend on one another: all iterations at once, each a world of its own.

The statements of the body run one after the other, each in all iterations. That is the same as one iteration after the
other where no statement touches a cell that another iteration writes. Registers are compared cell by cell; what a
body writes to shared memory or a tensor it must not read there, and in one statement only, whose vectors are the same
cells or none: of elements that change places, another one would be the last. The order of accesses is
the same too, but for their place in the loop: a witness is found by a run of plain loops (`Options.plain`).

Two kinds of registers may be touched by several iterations all the same. Of what each iteration writes before it reads
it, iterations have copies of their own, and the last one's is what remains. What mma alone adds to, the iterations add
together: a loop over k is one product.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tlcheck.execute.compile import registry
from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.functions import FUNCTIONS
from tlcheck.execute.compile.parallel import variables_of
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Code, Step
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.values import Array, kind_of, lanes_of
from tlcheck.execute.stops import Stopped
from tlcheck.signatures import mma
from tlcheck.signatures.calls import arguments_of_call, is_external, name_of_call
from tlcheck.signatures.signature import Collective, Completion, Signature
from tlcheck.signatures.table import argument, family_of, signature_of
from tlcheck.snapshot.ir import Alloc, Attr, Bind, Evaluate, Expr, For, If, Seq, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements

_VALUES = frozenset({*FUNCTIONS, "if_then_else", "address_of", "access_ptr", "tvm_access_ptr", "pack_b16"})
_APART = (Collective.THREAD, Collective.WARP)  # whose instructions of several iterations have nothing in common
_MOST_LANES = 1 << 17  # of all worlds and iterations
_Touching = tuple[Stmt, list[int], list[int]]  # a statement, and what the places that it reads and writes are made of


def at_once(stmt: For, program: KernelProgram) -> Step | None:
    """The step of a loop that can run so; None for another."""
    if program.options.plain or program.options.source or program.iterating:
        return None
    loops, body = _nest(stmt)
    if prod(map(_count, loops)) * len(program.state.worlds) * program.state.threads > _MOST_LANES:
        return None
    if not loops or not all(_known(s) for s in statements(body)) or not _copies_alike(body, program):
        return None
    counts = [_count(loop) for loop in loops]
    times, worlds = prod(counts), len(program.state.worlds)
    inner = program.repeated(times)
    # the loops' variables, by uid, in each iteration and world: (iterations * worlds, 1)
    grids = np.indices([_count(loop) for loop in loops]).reshape(len(loops), -1)
    values = {
        loop.var.uid: np.repeat(grid + int(loop.start.value or 0), worlds)
        .astype(kind_of(loop.var.dtype).array)
        .reshape(-1, 1)
        for loop, grid in zip(loops, grids, strict=True)
    }
    inner.state.axes = (*counts, *program.state.axes)
    inner.state.sums = ChainMap({}, program.state.sums)
    inner.state.fixed = {uid: np.tile(value, (times, 1)) for uid, value in program.state.fixed.items()} | values
    inner.variables |= {uid: _fixed(value) for uid, value in inner.state.fixed.items()}
    try:
        step = inner.step(body)
        found = None if step.leaves else Registers.of(body, inner, program, times)
    except Stopped:
        return None
    if found is None:
        return None
    program.made += inner.made
    return _running(step, body, values, counts, program, inner, found)


def _running(
    step: Step,
    body: Stmt,
    values: dict[int, Array],
    counts: list[int],
    program: KernelProgram,
    inner: KernelProgram,
    registers: Registers,
) -> Step:
    times, uses = prod(counts), [uid for uid in _uses(body, program) if uid not in values]
    tiled: list[Mask | None] = [None, None]  # the mask of the last time, and for all iterations
    before = sum(prod(counts[: axis + 1]) for axis in range(len(counts)))

    def run(frame: Frame) -> None:
        variables = frame.variables | values
        variables |= {uid: _tiled(frame.variables[uid], times) for uid in uses if uid in frame.variables}
        if tiled[0] is not frame.active:
            tiled[:] = [frame.active, _tiled(frame.active, times)]
        spent = inner.state.spent
        try:
            step.run(Frame(variables, frame.worlds * times, frame.lanes, tiled[1]))
        except Stopped:
            program.state.at = inner.state.at
            raise
        registers.remain(frame)
        program.state.spend(before + (inner.state.spent - spent) * times)

    return Step(run)


def _uses(body: Stmt, program: KernelProgram) -> list[int]:
    """The variables that a body uses, with those of which the value of one of them is made where it is used."""
    found = variables_of(body)
    for uid in found:
        if uid in program.ahead:
            found += [e.uid for e in postorder([program.ahead[uid]]) if e.op == "var" and e.uid not in found]
    return found


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


def _known(stmt: Stmt) -> bool:
    """Whether a statement reads and writes nothing but what can be seen."""
    if isinstance(stmt, Evaluate):
        if stmt.value.op in ("int", "var"):
            return True
        return _signature(stmt) is not None and all(map(_plain, stmt.value.args))
    if isinstance(stmt, Alloc):
        return stmt.buffer.scope == "local"
    if isinstance(stmt, For):
        return bool(_nest(stmt)[0])
    if isinstance(stmt, Attr):
        return stmt.key not in registry.ATTRIBUTES and registry.is_without_meaning(stmt.key)
    return isinstance(stmt, (Seq, Store, Bind, If)) and all(map(_plain, expressions(stmt)))


def _copies_alike(body: Stmt, program: KernelProgram) -> bool:
    """Whether the same threads make the asynchronous copies of a body in all iterations, if there are any."""
    made = [(s.value, signature_of(s.value)) for s in statements(body) if isinstance(s, Evaluate)]
    copies = [e for e, signature in made if signature is not None and signature.asynchronous is not None]
    apart = program.options.early or any(isinstance(s, If) for s in statements(body))
    return not copies or (not apart and all(len(e.args) < 5 for e in copies))


def _plain(e: Expr) -> bool:
    """Whether an expression calls nothing but functions of values."""
    return all(x.op not in ("call", "let", "unknown") or _is_function(x) for x in postorder([e]))


def _is_function(e: Expr) -> bool:
    return name_of_call(e) in (FUNCTIONS if is_external(e) else _VALUES)


def _signature(stmt: Stmt) -> Signature | None:
    """The signature of an instruction that writes to one place and does nothing else; None for other statements."""
    found = signature_of(stmt.value) if isinstance(stmt, Evaluate) else None
    if found is None or len(found.destinations) != 1 or found.waits or found.collective not in _APART:
        return None
    return found if found.asynchronous in (None, Completion.CP_ASYNC_GROUP) else None


@dataclass(frozen=True)
class Registers:
    """A record of what a loop's iterations leave of registers of which each has a copy: (whole, copies, which cells
    they write).
    """

    own: list[tuple[Cells, Cells, Mask]]

    @classmethod
    def of(cls, body: Stmt, inner: KernelProgram, program: KernelProgram, times: int) -> Registers | None:
        """Give iterations copies of registers where they need them; None where one touches what another one writes."""
        writes, found, worlds = set(_writes(body)), cls([]), len(program.state.worlds)
        if not writes <= {id(key) for key, _ in inner.made}:
            return None
        touching = [(stmt, *_keys_of(stmt)) for stmt in statements(body)]
        widths = dict(_widths(body))
        inside = {program.pointers.root(s.buffer.data.uid) for s in statements(body) if isinstance(s, Alloc)}
        for root in {place.root for key, place in inner.made if id(key) in writes} - inside:
            whole = program.state.memory[root]
            places = [(id(key), place) for key, place in inner.made if place.root == root]
            if not isinstance(whole, Cells) or whole.shared:
                if len(places) > 1 or not _is_whole(places[0][1], widths.get(places[0][0])):
                    return None
            elif len({place.memory.flat.size for _, place in places}) > 1:
                return None  # a loop within has copies of its own
            elif _apart([(key in writes, place) for key, place in places], times, worlds):
                continue
            elif _is_sum(touching, places, times, worlds):
                inner.state.sums[root] = times, worlds
            elif (written := _first_written(touching, places, whole, times, worlds)) is not None:
                size, lanes = whole.size, whole.data.shape[2]
                inner.state.memory[root] = copies = Cells(size, whole.kinds, inner.state.chances, lanes)
                found.own.append((whole, copies, written))
            else:
                return None
        return found

    def remain(self, frame: Frame) -> None:
        """Keep in registers what the last iteration of the loop left."""
        for whole, copies, written in self.own:
            mask = written if frame.active is None else written & frame.active
            whole.overwrite(copies.data[:, -whole.data.shape[1] :], mask)


def _writes(body: Stmt) -> Iterator[int]:
    """Yield what the places that are written are made of."""
    for stmt in statements(body):
        if isinstance(stmt, Store):
            yield id(stmt.indices)
        elif isinstance(stmt, Evaluate) and (signature := _signature(stmt)) is not None:
            yield id(argument(stmt.value, signature.destinations[0]))


def _keys_of(stmt: Stmt) -> tuple[list[int], list[int]]:
    """Return what the places that a statement reads are made of, and those that it writes."""
    reads = [id(e.args) for e in postorder(expressions(stmt)) if e.op == "load"]
    if isinstance(stmt, Store):
        return reads, [id(stmt.indices)]
    if isinstance(stmt, Evaluate) and (signature := _signature(stmt)) is not None:
        arguments, (place,) = arguments_of_call(stmt.value), signature.destinations
        others = [id(e) for number, e in enumerate(arguments) if number != place.at or signature.updates]
        return reads + others, [id(arguments[place.at])]
    return reads, []


def _adds(stmt: Stmt) -> bool:
    """Whether a statement is a product that is added to what it writes."""
    return isinstance(stmt, Evaluate) and family_of(stmt.value) in (mma.MMA, mma.MMA_SP)


def _positions(place: BufferElement, times: int, worlds: int) -> Array | None:
    """Return where a place is, (elements and inner loops, iterations, worlds, threads); None if it varies otherwise."""
    state = place.state
    if not place.steady or place.needs:
        return None
    try:
        located = place.located(Frame(dict(state.fixed), len(state.worlds), state.threads))
    except KeyError:  # of another variable
        return None
    flat = place.memory.flat_position(located.position)
    flat = np.broadcast_to(flat, (*flat.shape[:-2], len(state.worlds), state.threads))
    return flat.reshape(-1, times, worlds, state.threads)


def _widths(body: Stmt) -> Iterator[tuple[int, int]]:
    """Yield how many elements are written at once to what places are made of; 1 for sums, which have no order."""
    for stmt in statements(body):
        if isinstance(stmt, Store):
            yield id(stmt.indices), lanes_of(stmt.value.dtype)
        elif isinstance(stmt, Evaluate) and (signature := _signature(stmt)) is not None and signature.updates:
            yield id(argument(stmt.value, signature.destinations[0])), 1


def _is_whole(place: BufferElement, width: int | None) -> bool:
    """Whether two vectors at a place are the same cells or none. width: in elements, None for an instruction's."""
    return width == 1 or (place.aligned > 1 if width is None else place.aligned * 8 == width * place.kind.bits)


def _apart(places: list[tuple[bool, BufferElement]], times: int, worlds: int) -> bool:
    """Whether each cell of registers that an iteration writes is touched by that iteration alone.

    places: all of one allocation, and whether they are written. Their indices may depend on the loops only.
    """
    owner = np.full(places[0][1].memory.flat.size, -1)
    for writes, place in sorted(places, key=lambda pair: not pair[0]):
        flat = _positions(place, times, worlds)
        if flat is None:
            return False
        flat = flat[:, :, 0]
        iteration = np.broadcast_to(np.arange(times).reshape(1, -1, 1), flat.shape)
        if not ((owner[flat] == -1) | (owner[flat] == iteration)).all():
            return False
        if writes:
            owner[flat] = iteration
            if (owner[flat] != iteration).any():
                return False
    return True


def _is_sum(touching: list[_Touching], places: list[tuple[int, BufferElement]], times: int, worlds: int) -> bool:
    """Whether mma alone touches an allocation, to add to the same cells in each iteration."""
    root, sums, others = places[0][1].root, set(), set()
    for stmt, reads, writes in touching:
        if _adds(stmt):
            sums |= set(writes)
            others |= set(reads) - set(writes)
        else:
            others |= {*reads, *writes}
    for key, place in places:
        flat = _positions(place, times, worlds)
        if key not in sums or key in others or root in place.state.sums or flat is None:
            return False
        if not place.state.options.exact or (flat != flat[:, :1]).any():
            return False
    return True


def _first_written(
    touching: list[_Touching], places: list[tuple[int, BufferElement]], whole: Cells, times: int, worlds: int
) -> Mask | None:
    """Return which cells of registers each iteration writes, if it reads no others; None where that is not sure."""
    if whole.tags is not None or whole.data.shape[1] != worlds or any(_is_conditional(stmt) for stmt, _, _ in touching):
        return None
    made: dict[int, list[BufferElement]] = {}
    for key, place in places:
        made.setdefault(key, []).append(place)
    written, iteration = np.zeros((times, whole.flat.size), np.bool_), np.arange(times).reshape(-1, 1, 1)
    for _, reads, writes in touching:
        for key, place in [(k, p) for k in [*reads, *writes] for p in made.get(k, ())]:
            flat = _positions(place, times, worlds)
            if flat is None or (key in reads and not written[iteration, flat].all()):
                return None
            if key in writes and len(made[key]) > 1:
                return None
            if key in writes:
                written[iteration, flat] = True
    seen = {key for _, reads, writes in touching for key in (*reads, *writes)}
    found: Mask = written[-1].reshape(whole.data.shape)
    return found if seen.issuperset(made) and (written == written[-1]).all() else None


def _is_conditional(stmt: Stmt) -> bool:
    return isinstance(stmt, If) or (isinstance(stmt, Store) and stmt.predicate is not None)
