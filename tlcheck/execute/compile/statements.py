"""Statements compiled to steps of a frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tlcheck.execute.compile import registry
from tlcheck.execute.compile.branches import divided, waits
from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.iterations import at_once
from tlcheck.execute.compile.parallel import is_shared_out, parallel
from tlcheck.execute.compile.program import STATEMENTS, KernelProgram
from tlcheck.execute.events import Observer
from tlcheck.execute.memory.codes import Code, Step, counter, remembered
from tlcheck.execute.memory.frame import Frame, LastMask, Mask
from tlcheck.execute.memory.state import RunState
from tlcheck.execute.memory.values import Value, lanes_of
from tlcheck.execute.schedule.agents import agents_of, endless
from tlcheck.execute.stops import BudgetSpent, Illegal, NotModelled
from tlcheck.program.generated import read_anew
from tlcheck.program.observed import spinning
from tlcheck.program.parted_tiles import is_tile_call
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
    While,
)
from tlcheck.snapshot.walk import postorder

_ENOUGH = 4  # iterations after which each part of a software pipeline has run
_MANY = 1 << 10  # iterations of a loop that may have come to a standstill


def _seq(stmt: Seq, program: KernelProgram) -> Step:
    place = next((i for i, part in enumerate(stmt.body) if _waits(part, program)), len(stmt.body))
    steps = []
    for number, part in enumerate(stmt.body[:place]):
        with program.following(number + 1 < len(stmt.body)):
            steps.append(program.step(part))
    if place < len(stmt.body):
        steps.append(divided(stmt.body[place], stmt.body[place + 1 :], program))
    runs, count, spend = [s.run for s in steps], len(steps), program.state.spend
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


def _for(stmt: For, program: KernelProgram) -> Step:
    if program.options.source and is_shared_out(stmt):
        return parallel(stmt, program)
    if stmt.kind == "thread_binding":
        raise NotModelled("loop bound to threads")
    for handler in (at_once, *registry.LOOPS):
        whole = handler(stmt, program)
        if whole is not None:
            return whole
    start, extent = program.code(stmt.start), program.code(stmt.extent)
    uid, state = stmt.var.uid, program.state
    state.loops[uid] = str(stmt.var.value)
    program.variables[uid] = counter(uid)
    with program.following(True):
        body = program.step(stmt.body)

    observers = program.observers
    open_ended = not extent.steady and observers.hear(Observer.steered, Observer.branched)
    if open_ended:
        observers.steered(stmt)
    anew = program.options.printed and not (start.steady and extent.steady) and _may_move(stmt, program)

    def run(frame: Frame) -> None:
        state.at = stmt
        if anew:
            _read_anew(stmt, start, extent, body, frame, state)
            return
        first, count = start.run(frame), extent.run(frame)
        if open_ended and np.max(count) >= _ENOUGH:
            observers.branched(stmt)
        if isinstance(first, np.ndarray) or isinstance(count, np.ndarray):
            _ragged(uid, first, count, body, frame, state)
        else:
            _counted(uid, range(int(first), int(first + count)), body, frame, state)
        frame.variables.pop(uid, None)

    return Step(run, body.leaves)


def _counted(uid: int, values: range, body: Step, frame: Frame, state: RunState) -> None:
    """A loop with the same bounds in all lanes."""
    variables, run = frame.variables, body.run
    state.spend(len(values))
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


def _ragged(uid: int, first: Value, count: Value, body: Step, frame: Frame, state: RunState) -> None:
    """A loop whose bounds differ: it runs over all values, each with the lanes for which it is one."""
    first, last = np.array(first), np.asarray(first) + np.asarray(count)  # not what memory holds later
    active, inside = frame.mask() & (last > first), LastMask()
    if not active.any():
        return
    begin = int(np.broadcast_to(first, active.shape)[active].min())
    end = int(np.broadcast_to(last, active.shape)[active].max())
    state.spend(end - begin)
    with loop(frame):
        for value in range(begin, end):
            frame.variables[uid] = value
            with frame.narrowed(inside.of(frame.among((first <= value) & (value < last)))):
                if not frame.idle():
                    iterate(frame, body)


def _may_move(stmt: For, program: KernelProgram) -> bool:
    """Whether the end of a loop, which CUDA reads in each iteration, is read from memory that the kernel writes."""
    stored = {b.data.uid for b in roles(program.function).outputs}
    given = {b.data.uid for b in program.function.buffers} - stored
    return any(program.pointers.root(e.buffer.data.uid) not in given for e in read_anew(stmt) if e.buffer is not None)


def _read_anew(stmt: For, start: Code, extent: Code, body: Step, frame: Frame, state: RunState) -> None:
    """A loop as `for (int k = a; k < a + n[0]; ++k)` runs: lanes begin at their first value, and end for good."""
    uid, inside = stmt.var.uid, LastMask()
    first = np.broadcast_to(np.array(start.run(frame)), (frame.worlds, frame.lanes))
    value = int(first[frame.mask()].min()) if not frame.idle() else 0
    with loop(frame):
        while not frame.idle():
            state.spend(1)
            state.at = stmt
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


def _while(stmt: While, program: KernelProgram) -> Step:
    state = program.state
    program.observers.steered(stmt)
    condition, spins = program.condition(stmt.condition), stmt in spinning(program.function)
    with program.following(True):
        body = program.step(stmt.body)

    def goes_on(frame: Frame) -> bool:
        state.spend(1)
        state.at = stmt
        holds = condition.run(frame)
        if isinstance(holds, np.ndarray):
            frame.active = frame.among(holds)
            return not frame.idle()
        return bool(holds)

    def run(frame: Frame) -> None:
        turns, found, agents = 0, b"", agents_of(state)
        with loop(frame):
            try:
                while not frame.idle() and goes_on(frame):
                    if spins and turns and not agents.alone:
                        agents.spin(stmt, frame, again=turns > 1)
                    iterate(frame, body)
                    turns += 1
                    if turns >= _MANY and turns & (turns - 1) == 0:
                        found = state.contents()
            except BudgetSpent:
                if turns < _MANY or state.contents() != found:
                    raise
                raise endless(stmt) from None

    return Step(run, body.leaves)


def _waits(stmt: Stmt, program: KernelProgram) -> bool:
    """Whether threads may wait for others in a branch."""
    return waits(stmt, program.options.partial, program.options.target.warp)


def _if(stmt: If, program: KernelProgram) -> Step:
    if _waits(stmt, program) or stmt in spinning(program.function):
        return divided(stmt, (), program)
    condition, state = program.condition(stmt.condition), program.state
    then = program.side(stmt.then, condition)
    other = None if stmt.orelse is None else program.side(stmt.orelse, condition)
    sides = then, other
    condition, inside, outside = remembered(condition), LastMask(), LastMask()
    last: list[Mask | None] = [None, None]  # the condition and the active lanes of the last time, which lanes take
    parts: list[tuple[bool, Mask | None]] = []  # each side, if any do

    def part(frame: Frame, holds: Mask) -> None:
        taken = [inside.of(frame.among(holds)), outside.of(frame.among(~holds))]
        parts[:] = [(lanes is None or bool(lanes.any()), lanes) for lanes in taken]
        last[:] = holds, frame.active

    def run(frame: Frame) -> None:
        state.at = stmt
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


def _bind(stmt: Bind, program: KernelProgram) -> Step:
    uid = stmt.var.uid
    if stmt.var.dtype == "handle" or _is_region(stmt.value):
        return Step(lambda frame: None)
    parts = list(postorder([stmt.value]))
    inside = {e.args[0].uid for e in parts if e.op == "let"}
    if any(program.is_unbound(e) for e in parts if e.uid not in inside):
        program.ahead[uid] = stmt.value
        return Step(lambda frame: None)
    value, state = program.code(stmt.value), program.state
    program.variables[uid] = replace(value, run=lambda frame: frame.variables[uid])

    def run(frame: Frame) -> None:
        state.at = stmt
        found = value.run(frame)
        frame.variables[uid] = found.copy() if isinstance(found, np.ndarray) and found.base is not None else found

    return Step(run)


def _is_region(e: Expr) -> bool:
    """Whether an expression is a part of a buffer with several axes, which has a name but no value."""
    return e.op == "load" and sum(lanes_of(index.dtype) > 1 for index in e.args) > 1


def _thread(stmt: Thread, program: KernelProgram) -> Step:
    tag, uid = stmt.tag, stmt.var.uid
    index: Value
    if tag.startswith("blockIdx."):
        index = program.block_index("xyz".index(tag[-1]))
    elif tag.startswith("threadIdx."):
        index = program.thread_index("xyz".index(tag[-1]))
    else:
        raise NotModelled(tag)
    uniform = not isinstance(index, np.ndarray)
    if isinstance(index, np.ndarray):
        index = index.astype(stmt.var.dtype)
    program.variables[uid] = Code(lambda frame: index, frozenset(), True, uniform)
    body = program.step(stmt.body)

    def run(frame: Frame) -> None:
        frame.variables[uid] = index
        body.run(frame)

    return Step(run, body.leaves)


def _attr(stmt: Attr, program: KernelProgram) -> Step:
    handler = registry.ATTRIBUTES.get(stmt.key)
    if handler is not None:
        return handler(stmt, program)
    if registry.is_without_meaning(stmt.key):
        return program.step(stmt.body)
    raise NotModelled(f"attribute {stmt.key}")


def _alloc(stmt: Alloc, program: KernelProgram) -> Step:
    buffer = stmt.buffer
    program.allocate(buffer)
    return Step(lambda frame: program.allocate(buffer, frame))


def _block(stmt: Block, program: KernelProgram) -> Step:
    with program.inside_block():
        for key in (*(key for key, _ in stmt.annotations), *(("barrier_init",) if stmt.barriers else ())):
            if key in registry.ANNOTATIONS:
                registry.ANNOTATIONS[key](stmt, program)
        for pointer, value in stmt.safe_values:
            program.addresses.safe_values[program.pointers.root(pointer.uid)] = _constant(value, program)
        return program.step(stmt.body)


def _constant(e: Expr, program: KernelProgram) -> int | float:
    code = program.code(e)
    if not code.uniform or code.needs:
        raise NotModelled("safe value that is no constant")
    value = code.run(Frame({}, 1, 1))
    found: int | float = value.item() if isinstance(value, np.ndarray) else value
    return found


def _assert(stmt: Assert, program: KernelProgram) -> Step:
    condition, message, line = program.condition(stmt.condition), stmt.message, stmt.line

    def run(frame: Frame) -> None:
        fails = frame.mask() & np.logical_not(condition.run(frame))
        if fails.any():
            world, lane = (int(i) for i in np.argwhere(fails)[0])
            raise Illegal(f"assertion fails: {message}", line, world, lane)

    return Step(run)


def _store(stmt: Store, program: KernelProgram) -> Step:
    for handler in registry.STORES:
        step = handler(stmt, program)
        if step is not None:
            return step
    place, value = program.place(stmt.buffer, stmt.indices), remembered(program.code(stmt.value))
    state = program.state
    if stmt.predicate is not None:
        return _predicated(stmt, place, value, program.code(stmt.predicate), state)

    def run(frame: Frame) -> None:
        state.at = stmt
        place.store(frame, value.run(frame))

    return _announced(stmt, run, program) if program.observers.hear(Observer.computed) else Step(run)


def _announced(stmt: Store, run: Callable[[Frame], None], program: KernelProgram) -> Step:
    """A store of which observers are told."""

    def announced(frame: Frame) -> None:
        program.observers.computed(stmt, frame)
        run(frame)

    return Step(announced)


def _predicated(stmt: Store, place: BufferElement, value: Code, predicate: Code, state: RunState) -> Step:
    """A store of the lanes of a vector for which a condition holds."""

    def run(frame: Frame) -> None:
        state.at = stmt
        with place.only_where(frame, predicate.run(frame)):
            place.store(frame, value.run(frame))

    return Step(run)


def _evaluate(stmt: Evaluate, program: KernelProgram) -> Step:
    if stmt.value.op in ("int", "var"):
        return Step(lambda frame: None)
    state = program.state
    state.at = stmt
    code = program.code(stmt.value)
    signature = signature_of(stmt.value)
    leaves = signature is not None and signature.leaves is not None

    def run(frame: Frame) -> None:
        state.at = stmt
        code.run(frame)

    def run_told(frame: Frame) -> None:
        program.observers.tile_reached(stmt, frame)
        run(frame)

    told = is_tile_call(stmt) and program.observers.hear(Observer.tile_reached)
    return Step(run_told if told else run, leaves)


STATEMENTS |= {
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
