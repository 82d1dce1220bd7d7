"""T.tvm_thread_allreduce: what the threads along an axis of the block have, combined, in all of them.

TVM's builtin.h and lower_thread_allreduce: (count, values, condition, results, axes). The attribute `reduce_scope`
around it holds the reducer: two variables, what it makes of them, and the value that changes nothing.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import attribute, call
from tlcheck.execute.memory.codes import Code, Computation, Step
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Value, kind_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Attr, Expr

_REDUCER = "reducer of threads"


@attribute("reduce_scope")
def scope(stmt: Attr, program: KernelProgram) -> Step:
    """Note how the values within are combined."""
    program.state.shared[_REDUCER] = stmt.node
    return program.step(stmt.body)


@call("tvm_thread_allreduce", formula=True)
def all_reduce(e: Expr, program: KernelProgram) -> Computation:
    """(1, value, condition, result, axes): result = the combination over the threads for which the condition holds."""
    count, value, condition, result, *axes = e.args
    if count.value != 1 or result.op != "load" or result.buffer is None or program.iterating:
        raise NotModelled("tvm_thread_allreduce of several values")
    left, right, joined, neutral = _reducer(program)
    own, holds, start = program.code(value), program.code(condition), program.code(neutral)
    place, along = program.place(result.buffer, result.args), [program.code(axis) for axis in axes]
    form = kind_of(value.dtype).array

    def run(frame: Frame) -> int:
        shape = (frame.worlds, frame.lanes)
        taking_part = np.broadcast_to(np.asarray(holds.run(frame), np.bool_), shape) & frame.mask()
        values = np.where(taking_part, own.run(frame), start.run(frame)).astype(form)
        total: Value = start.run(frame)
        for thread in _group([code.run(frame) for code in along], program):
            frame.variables[left], frame.variables[right] = total, values[:, thread]
            total = joined.run(frame)
        place.store(frame, total)
        return 0

    return run


def _reducer(program: KernelProgram) -> tuple[int, int, Code, Expr]:
    """The variables of two values, what they make together, and the neutral value."""
    parts = program.state.shared.get(_REDUCER, ())
    if not isinstance(parts, tuple) or len(parts) != 4:
        raise NotModelled("tvm_thread_allreduce: the snapshot does not say what it combines")
    left, right, result, neutral = parts
    for uid in (left.uid, right.uid):
        program.variables[uid] = Code(_variable(uid))
    return left.uid, right.uid, program.code(result), neutral


def _variable(uid: int) -> Computation:
    return lambda frame: frame.variables[uid]


def _group(along: list[Value], program: KernelProgram) -> list[Array]:
    """Return the threads that combine with those of the block, for each place along the axes."""
    steps = {axis: math.prod(program.extents[:axis]) for axis in range(3) if program.extents[axis] > 1}
    reduced = [axis for axis in steps if any(np.array_equal(value, program.thread_index(axis)) for value in along)]
    if len(reduced) != sum(isinstance(value, np.ndarray) for value in along):
        raise NotModelled("tvm_thread_allreduce along what is no axis of the block")
    first = np.arange(program.state.threads)
    for axis in reduced:
        first = first - np.asarray(program.thread_index(axis)).reshape(-1) * steps[axis]
    places = product(*[range(program.extents[axis]) for axis in reduced])
    return [first + sum(n * steps[axis] for n, axis in zip(place, reduced, strict=True)) for place in places]
