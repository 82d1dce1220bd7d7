"""Statements compiled to steps of a frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.compile import registry
from tlcheck.execute.compile.branches import divided, waits
from tlcheck.execute.compile.codes import Code, Step, counter, remembered
from tlcheck.execute.compile.iterations import at_once
from tlcheck.execute.compile.parallel import is_shared_out, parallel
from tlcheck.execute.memory.frame import Frame, LastMask, Mask
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.values import Value, lanes_of
from tlcheck.execute.reasons import BudgetSpent, Illegal, NotModelled
from tlcheck.program.generated import read_anew
from tlcheck.program.roles import roles
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import (
    Alloc,
    Assert,
    Attr,
    Bind,
    Block,
    Evaluate,
    Expr,
    For,
    If,
    Seq,
    Stmt,
    Store,
    Thread,
    Unknown,
    While,
)
from tlcheck.snapshot.walk import first_line, postorder

if TYPE_CHECKING:
    from tlcheck.execute.schedule.machine import Machine


_ENOUGH = 4  # iterations after which each part of a software pipeline has run
_MANY = 1 << 10  # iterations of a loop that may have come to a standstill


def compiled_statement(stmt: Stmt, machine: Machine) -> Step:
    """The step of a statement. Raises NotModelled, with its name, for one that no handler knows."""
    if isinstance(stmt, Unknown):
        raise NotModelled(stmt.what)
    make = _STATEMENTS.get(type(stmt))
    if make is None:
        raise NotModelled(type(stmt).__name__)
    step: Step = make(stmt, machine)
    return step


def _seq(stmt: Seq, machine: Machine) -> Step:
    place = next((i for i, part in enumerate(stmt.body) if waits(part)), len(stmt.body))
    steps = []
    for number, part in enumerate(stmt.body[:place]):
        with machine.following(number + 1 < len(stmt.body)):
            steps.append(machine.step(part))
    if place < len(stmt.body):
        steps.append(divided(stmt.body[place], stmt.body[place + 1 :], machine))
    runs, count, spend = [s.run for s in steps], len(steps), machine.spend
    if not any(s.leaves for s in steps):

        def run(frame: Frame) -> None:
            spend(count)
            for step in runs:
                step(frame)

        return Step(run)

    def run_leaving(frame: Frame) -> None:
        spend(count)
        for step in runs:
            if frame.idle():
                return
            step(frame)

    return Step(run_leaving, True)


def _for(stmt: For, machine: Machine) -> Step:
    if machine.options.written and is_shared_out(stmt):
        return parallel(stmt, machine)
    if stmt.kind == "thread_binding":
        raise NotModelled("loop bound to threads")
    for handler in (at_once, *registry.LOOPS):
        whole = handler(stmt, machine)
        if whole is not None:
            return whole
    start, extent = machine.code(stmt.start), machine.code(stmt.extent)
    uid = stmt.var.uid
    machine.loops[uid] = str(stmt.var.value)
    machine.variables[uid] = counter(uid)
    with machine.following(True):
        body = machine.step(stmt.body)

    open_ended = machine.options.written and not extent.steady
    if open_ended:
        machine.steered.add(id(stmt))
        machine.untried[id(stmt)] = first_line(stmt)
    anew = machine.options.printed and not (start.steady and extent.steady) and _may_move(stmt, machine)

    def run(frame: Frame) -> None:
        machine.at = stmt
        if anew:
            _read_anew(stmt, start, extent, body, frame, machine)
            return
        first, count = start.run(frame), extent.run(frame)
        if open_ended and np.max(count) >= _ENOUGH:
            machine.untried.pop(id(stmt), None)
        if isinstance(first, np.ndarray) or isinstance(count, np.ndarray):
            _ragged(uid, first, count, body, frame, machine)
        else:
            _counted(uid, range(int(first), int(first + count)), body, frame, machine)
        frame.variables.pop(uid, None)

    return Step(run, body.leaves)


def _counted(uid: int, values: range, body: Step, frame: Frame, machine: Machine) -> None:
    """A loop with the same bounds in all lanes."""
    variables, run = frame.variables, body.run
    machine.spend(len(values))
    if not body.leaves:
        for value in values:
            variables[uid] = value
            run(frame)
        return
    with loop(frame):
        for value in values:
            if frame.idle():
                return
            variables[uid] = value
            iterate(frame, body)


def _ragged(uid: int, first: Value, count: Value, body: Step, frame: Frame, machine: Machine) -> None:
    """A loop whose bounds differ: it runs over all values, each with the lanes for which it is one."""
    first, last = np.array(first), np.asarray(first) + np.asarray(count)  # not what memory holds later
    active, inside = frame.mask() & (last > first), LastMask()
    if not active.any():
        return
    begin = int(np.broadcast_to(first, active.shape)[active].min())
    end = int(np.broadcast_to(last, active.shape)[active].max())
    machine.spend(end - begin)
    with loop(frame):
        for value in range(begin, end):
            frame.variables[uid] = value
            with frame.narrowed(inside.of(frame.among((first <= value) & (value < last)))):
                if not frame.idle():
                    iterate(frame, body)


def _may_move(stmt: For, machine: Machine) -> bool:
    """Whether the end of a loop, which CUDA reads in each iteration, is read from memory that the kernel writes."""
    stored = {b.data.uid for b in roles(machine.function).outputs}
    given = {b.data.uid for b in machine.function.buffers} - stored
    return any(machine.pointers.root(e.buffer.data.uid) not in given for e in read_anew(stmt) if e.buffer is not None)


def _read_anew(stmt: For, start: Code, extent: Code, body: Step, frame: Frame, machine: Machine) -> None:
    """A loop as `for (int k = a; k < a + n[0]; ++k)` runs: lanes begin at their first value, and end for good."""
    uid, inside = stmt.var.uid, LastMask()
    first = np.broadcast_to(np.array(start.run(frame)), (frame.worlds, frame.lanes))
    value = int(first[frame.mask()].min()) if not frame.idle() else 0
    with loop(frame):
        while not frame.idle():
            machine.spend(1)
            machine.at = stmt
            begun = first <= value
            frame.active = frame.among(~begun | (value < start.run(frame) + np.asarray(extent.run(frame))))
            with frame.narrowed(inside.of(frame.among(begun))):
                if not frame.idle():
                    frame.variables[uid] = value
                    iterate(frame, body)
            value += 1
    frame.variables.pop(uid, None)


class loop:  # noqa: N801
    """Around the iterations of a loop: lanes that break out of it are active again afterwards."""

    def __init__(self, frame: Frame) -> None:
        self._frame, self._active, self._broken, self._skipped = frame, frame.active, frame.broken, frame.skipped

    def __enter__(self) -> None:
        self._frame.broken = None

    def __exit__(self, *error: object) -> None:
        frame = self._frame
        frame.broken, frame.skipped = self._broken, self._skipped
        frame.active = frame.remaining(self._active)


def iterate(frame: Frame, body: Step) -> None:
    """One iteration: lanes that continue with the next are active again afterwards."""
    saved, skipped = frame.active, frame.skipped
    frame.skipped = None
    body.run(frame)
    frame.skipped = skipped
    frame.active = frame.remaining(saved)


def _while(stmt: While, machine: Machine) -> Step:
    if machine.options.written:
        machine.steered.add(id(stmt))
    condition = machine.code(stmt.condition)
    with machine.following(True):
        body = machine.step(stmt.body)

    def goes_on(frame: Frame) -> bool:
        machine.spend(1)
        machine.at = stmt
        holds = condition.run(frame)
        if isinstance(holds, np.ndarray):
            frame.active = frame.among(holds)
            return not frame.idle()
        return bool(holds)

    def run(frame: Frame) -> None:
        turns, found = 0, b""
        with loop(frame):
            try:
                while not frame.idle() and goes_on(frame):
                    iterate(frame, body)
                    turns += 1
                    if turns >= _MANY and turns & (turns - 1) == 0:
                        found = machine.contents()
            except BudgetSpent:
                if turns < _MANY or machine.contents() != found:
                    raise
                line = first_line(stmt)
                where = f" (line {line})" if line else ""
                raise BudgetSpent(f"in the blocks that run, a loop never ends{where}") from None

    return Step(run, body.leaves)


def _if(stmt: If, machine: Machine) -> Step:
    if waits(stmt):
        return divided(stmt, (), machine)
    condition = machine.code(stmt.condition)
    then = machine.side(stmt.then, condition)
    other = None if stmt.orelse is None else machine.side(stmt.orelse, condition)
    sides = then, other
    condition, inside, outside = remembered(condition), LastMask(), LastMask()
    last: list[Mask | None] = [None, None]  # the condition and the active lanes of the last time, which lanes take
    parts: list[tuple[bool, Mask | None]] = []  # each side, if any do

    def part(frame: Frame, holds: Mask) -> None:
        taken = [inside.of(frame.among(holds)), outside.of(frame.among(~holds))]
        parts[:] = [(lanes is None or bool(lanes.any()), lanes) for lanes in taken]
        last[:] = holds, frame.active

    def run(frame: Frame) -> None:
        machine.at = stmt
        holds = condition.run(frame)
        if not isinstance(holds, np.ndarray):
            if holds:
                then.run(frame)
            elif other is not None:
                other.run(frame)
            return
        saved = frame.active
        if last[0] is not holds or last[1] is not saved:
            part(frame, holds)
        for side, (taken, lanes) in zip(sides, list(parts), strict=True):
            if taken and side is not None:
                frame.active = lanes
                side.run(frame)
                frame.active = frame.remaining(saved)

    return Step(run, then.leaves or (other is not None and other.leaves))


def _bind(stmt: Bind, machine: Machine) -> Step:
    uid = stmt.var.uid
    if stmt.var.dtype == "handle" or _is_region(stmt.value):
        return Step(lambda frame: None)
    parts = list(postorder([stmt.value]))
    inside = {e.args[0].uid for e in parts if e.op == "let"}
    if any(machine.is_unbound(e) for e in parts if e.uid not in inside):
        machine.ahead[uid] = stmt.value
        return Step(lambda frame: None)
    value = machine.code(stmt.value)
    machine.variables[uid] = replace(value, run=lambda frame: frame.variables[uid])

    def run(frame: Frame) -> None:
        machine.at = stmt
        found = value.run(frame)
        frame.variables[uid] = found.copy() if isinstance(found, np.ndarray) and found.base is not None else found

    return Step(run)


def _is_region(e: Expr) -> bool:
    """Whether an expression is a part of a buffer with several axes, which has a name but no value."""
    return e.op == "load" and sum(lanes_of(index.dtype) > 1 for index in e.args) > 1


def _thread(stmt: Thread, machine: Machine) -> Step:
    tag, uid = stmt.tag, stmt.var.uid
    index: Value
    if tag.startswith("blockIdx."):
        index = machine.block_index("xyz".index(tag[-1]))
    elif tag.startswith("threadIdx."):
        index = machine.thread_index("xyz".index(tag[-1]))
    else:
        raise NotModelled(tag)
    uniform = not isinstance(index, np.ndarray)
    if isinstance(index, np.ndarray):
        index = index.astype(stmt.var.dtype)
    machine.variables[uid] = Code(lambda frame: index, frozenset(), True, uniform)
    body = machine.step(stmt.body)

    def run(frame: Frame) -> None:
        frame.variables[uid] = index
        body.run(frame)

    return Step(run, body.leaves)


def _attr(stmt: Attr, machine: Machine) -> Step:
    handler = registry.ATTRIBUTES.get(stmt.key)
    if handler is not None:
        return handler(stmt, machine)
    if registry.is_without_meaning(stmt.key):
        return machine.step(stmt.body)
    raise NotModelled(f"attribute {stmt.key}")


def _alloc(stmt: Alloc, machine: Machine) -> Step:
    buffer = stmt.buffer
    machine.allocate(buffer)
    return Step(lambda frame: machine.allocate(buffer, frame))


def _block(stmt: Block, machine: Machine) -> Step:
    with machine.inside_block():
        for key in (*(key for key, _ in stmt.annotations), *(("barrier_init",) if stmt.barriers else ())):
            if key in registry.ANNOTATIONS:
                registry.ANNOTATIONS[key](stmt, machine)
        for pointer, value in stmt.safe_values:
            machine.safe_values[machine.pointers.root(pointer.uid)] = _constant(value, machine)
        return machine.step(stmt.body)


def _constant(e: Expr, machine: Machine) -> int | float:
    code = machine.code(e)
    if not code.uniform or code.needs:
        raise NotModelled("safe value that is no constant")
    value = code.run(Frame({}, 1, 1))
    found: int | float = value.item() if isinstance(value, np.ndarray) else value
    return found


def _assert(stmt: Assert, machine: Machine) -> Step:
    condition, message, line = machine.code(stmt.condition), stmt.message, stmt.line

    def run(frame: Frame) -> None:
        fails = frame.mask() & np.logical_not(condition.run(frame))
        if fails.any():
            world, lane = (int(i) for i in np.argwhere(fails)[0])
            raise Illegal(f"assertion fails: {message}", line, world, lane)

    return Step(run)


def _store(stmt: Store, machine: Machine) -> Step:
    for handler in registry.STORES:
        step = handler(stmt, machine)
        if step is not None:
            return step
    place, value = machine.place(stmt.buffer, stmt.indices), remembered(machine.code(stmt.value))
    if stmt.predicate is not None:
        return _predicated(stmt, place, value, machine.code(stmt.predicate), machine)

    def run(frame: Frame) -> None:
        machine.at = stmt
        place.store(frame, value.run(frame))

    return Step(run)


def _predicated(stmt: Store, place: Place, value: Code, predicate: Code, machine: Machine) -> Step:
    """A store of the lanes of a vector for which a condition holds."""

    def run(frame: Frame) -> None:
        machine.at = stmt
        with place.only_where(frame, predicate.run(frame)):
            place.store(frame, value.run(frame))

    return Step(run)


def _evaluate(stmt: Evaluate, machine: Machine) -> Step:
    if stmt.value.op in ("int", "var"):
        return Step(lambda frame: None)
    machine.at = stmt
    code = machine.code(stmt.value)
    signature = signature_of(stmt.value)
    leaves = signature is not None and signature.leaves

    def run(frame: Frame) -> None:
        machine.at = stmt
        code.run(frame)

    return Step(run, leaves)


_STATEMENTS: dict[type[Stmt], Callable[[Any, Any], Step]] = {
    Seq: _seq,
    For: _for,
    While: _while,
    If: _if,
    Bind: _bind,
    Thread: _thread,
    Attr: _attr,
    Alloc: _alloc,
    Block: _block,
    Store: _store,
    Evaluate: _evaluate,
    Assert: _assert,
}
