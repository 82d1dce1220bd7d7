"""T.Parallel in the source: one lane for each iteration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import prod

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Code, Step
from tlcheck.execute.memory.frame import Frame, Mask, one_value
from tlcheck.execute.memory.values import Array, Value, kind_of, nothing
from tlcheck.execute.stops import OutOfBytes, SourceUnclear
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Alloc, For, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, statements


def is_shared_out(stmt: Stmt) -> bool:
    """Whether the threads share the iterations of a T.Parallel: not where all of them have to come together in each."""
    if not isinstance(stmt, For) or stmt.kind != "parallel":
        return False
    called = (signature_of(e) for s in statements(stmt.body) for e in postorder(expressions(s)))
    return not any(each is not None and each.exchanges and each.waits for each in called)


def parallel(stmt: For, program: KernelProgram) -> Step:
    """A nest of parallel loops, in row-major order of its iterations. One within other statements runs in sequence."""
    loops, inner = _nest(stmt)
    bounds = [(program.code(loop.start), program.code(loop.extent)) for loop in loops]
    fixed = all(c.steady and not c.needs and c.uniform for pair in bounds for c in pair)
    for loop in loops:
        _declare(loop, program, fixed)
    with program.in_parallel():
        body = program.step(inner)
    kinds = [kind_of(loop.var.dtype).array for loop in loops]
    private, outer = _registers(inner, program), variables_of(inner)

    def run(frame: Frame) -> None:
        program.observers.tile_reached(stmt, frame)
        ranges = [
            (one_value(a.run(frame), "bound of T.Parallel"), one_value(b.run(frame), "bound of T.Parallel"))
            for a, b in bounds
        ]
        lanes = prod(count for _, count in ranges)
        if lanes <= 0:
            return
        if lanes * frame.worlds * 8 > program.options.bytes:
            raise OutOfBytes
        variables = dict(frame.variables)
        for uid in outer:
            if uid in variables:
                variables[uid] = _of_all_threads(variables[uid], frame)
        grids = np.meshgrid(*[np.arange(a, a + n) for a, n in ranges], indexing="ij")
        for loop, values, kind in zip(loops, [g.reshape(-1) for g in grids], kinds, strict=True):
            variables[loop.var.uid] = values.astype(kind).reshape(1, -1)
        active = frame.of_worlds()
        program.state.spend(lanes // 1024)
        program.observers.parallel_loop(begins=True)
        with _copies(program, private, lanes, frame.mask()):
            body.run(Frame(variables, frame.worlds, lanes, active))
        program.observers.parallel_loop(begins=False)

    return Step(run)


def _nest(stmt: For) -> tuple[list[For], Stmt]:
    loops, inner = [stmt], stmt.body
    while isinstance(inner, For) and inner.kind == "parallel":
        loops.append(inner)
        inner = inner.body
    return loops, inner


def _declare(loop: For, program: KernelProgram, fixed: bool) -> None:
    uid = loop.var.uid

    def value(frame: Frame) -> Value:
        return frame.variables[uid]

    program.variables[uid] = Code(value, frozenset(), fixed, False)


def variables_of(body: Stmt) -> list[int]:
    """The variables that a loop's body uses."""
    uses = (e.uid for stmt in statements(body) for e in postorder(expressions(stmt)) if e.op == "var")
    return list(dict.fromkeys(uses))


def _of_all_threads(value: Value, frame: Frame) -> Value:
    """Return what a variable is in an iteration: its value in the threads, which must agree. Raises SourceUnclear."""
    if not isinstance(value, np.ndarray) or value.shape[-1] == 1:
        return value
    mask = frame.mask()
    return _agreed(np.broadcast_to(value, mask.shape), mask, "a value used in T.Parallel")


def _agreed(values: Array, active: Mask, what: str) -> Array:
    """The value of each world that all its active threads have, (..., worlds, 1). Raises SourceUnclear."""
    if values.shape[-1] == 1:
        return values
    chosen = np.argmax(active, axis=-1)[:, None].reshape((1,) * (values.ndim - 2) + (-1, 1))
    first = np.take_along_axis(values, chosen, axis=-1)
    if not ((values == first) | ((values != values) & (first != first)) | ~active).all():
        raise SourceUnclear(f"{what} differs between threads")
    return first


def _registers(body: Stmt, program: KernelProgram) -> list[int]:
    """The allocations of single threads that the loop uses and that were made outside of it."""
    used: dict[int, None] = {}
    for stmt in statements(body):
        buffers = [stmt.buffer] if isinstance(stmt, Store) else []
        buffers += [e.buffer for e in postorder(expressions(stmt)) if e.buffer is not None]
        used |= {program.pointers.root(b.data.uid): None for b in buffers if b.scope in ("local", "local.var")}
    inside = {s.buffer.data.uid for s in statements(body) if isinstance(s, Alloc)}
    return [root for root in used if root not in inside]


@contextmanager
def _copies(program: KernelProgram, private: list[int], lanes: int, active: Mask) -> Iterator[None]:
    """Give each iteration its own copy of the threads' registers; afterwards all active threads have what was written.

    What iterations wrote differently is poison: it depends on which thread runs which iteration. active: (worlds,
    threads), those that take part; their registers have to agree, and those of others stay as they are.
    """
    saved = {root: program.state.memory[root] for root in private}
    threads, program.state.lanes = program.state.lanes, lanes
    before: dict[int, Array] = {}
    for root, cells in saved.items():
        assert isinstance(cells, Cells)
        before[root] = np.array(_agreed(cells.data, active, "a register used in T.Parallel"))
        program.state.memory[root] = own = cells.with_lanes(lanes, before[root])
        program.observers.allocated(root, own)
    try:
        yield
    finally:
        program.state.lanes = threads
        for root, cells in saved.items():
            copies = program.state.memory[root]
            assert isinstance(cells, Cells)
            assert isinstance(copies, Cells)
            merged = _merged(before[root], copies)
            takes_part = active if cells.data.shape[-1] == active.shape[-1] else active.any(axis=-1, keepdims=True)
            np.copyto(cells.data, merged, where=takes_part)
            program.state.memory[root] = cells


def _merged(before: Array, copies: Cells) -> Array:
    """(cells, worlds, 1): what the iterations left of cells that were `before`."""
    bits = copies.data.view(np.uint8).reshape(*copies.data.shape, copies.data.itemsize)
    was = np.ascontiguousarray(before).view(np.uint8).reshape(*before.shape, copies.data.itemsize)
    changed = (bits != was).any(axis=-1)
    writer = np.argmax(changed, axis=-1, keepdims=True)
    after = np.take_along_axis(copies.data, writer, axis=-1)
    agree = (~changed | (copies.data == after)).all(axis=-1, keepdims=True)
    unknown = np.array([nothing(copies.kinds[0], seed) for seed in copies.seeds], copies.data.dtype).reshape(1, -1, 1)
    merged: Array = np.where(agree, after, unknown)
    return merged
