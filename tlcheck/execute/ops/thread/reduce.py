"""Reductions over threads by the device library: tl::AllReduce (reduce.h), tl::warp_reduce_*.

AllReduce<op, threads, scale, offset, ...> is a butterfly: for the distances threads / 2 down to scale, each thread
combines its value with that of thread ^ distance: through shared memory from 32 on, through shuffles below.
AllReduce<op, threads, scale, offset, barrier, batch, stride>::run_batch does it for `batch` values that lie side by
side, with one barrier for all; in the workspace each of them is `stride` after the one before. On AMD (hip/reduce.h)
shuffles are for distances below 64, no barrier is named, and `run` counts the threads in its workspace from thread 0
on, whatever the offset.

Some releases' tl::warp_reduce_* takes integers of 64 bits through int, for whose instruction (redux.sync) it takes all
integers. For bits that instruction is unsigned.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tlcheck.execute.compile import formulas
from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call, extern
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Kind, Value, is_poison, kind_of, maximum, minimum, rounding
from tlcheck.execute.ops.thread.sync import await_warps, meet
from tlcheck.execute.ops.thread.warps import from_lanes
from tlcheck.execute.stops import NotModelled
from tlcheck.program.generated import is_cut
from tlcheck.signatures.calls import template_arguments
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.target import AMD

Combine = Callable[[Any, Any], Any]
_OPERATIONS: dict[str, Combine] = {
    "Sum": lambda a, b: a + b,
    "Max": maximum,
    "Min": minimum,
    "MaxNan": np.maximum,
    "MinNan": np.minimum,
    "BitAnd": lambda a, b: a & b,
    "BitOr": lambda a, b: a | b,
    "BitXor": lambda a, b: a ^ b,
}
_HALF = 16  # bits
_PACKED = ("_bf16x2", "_fp16x2", "_f32x2")


@extern("tl::AllReduce", "tl::AllReduce::run_hopper", formula=True)
def all_reduce(e: Expr, program: KernelProgram) -> Computation:
    """(value[, workspace]): the combination over the threads that differ in the bits from scale to threads / 2."""
    value, combined = program.code(e.args[0]), _all_reduced(e, kind_of(e.args[0].dtype), np.arange(1), program)
    return lambda frame: combined(frame, value.run(frame))


@extern("tl::AllReduce::run_batch", formula=True)
def all_reduce_batch(e: Expr, program: KernelProgram) -> Computation:
    """(pointer to values[, workspace]): each of the values becomes its combination."""
    operation, *numbers = template_arguments(str(e.value))
    if len(numbers) not in (5, 6) or not all(n.isdigit() for n in numbers[-2:]):
        raise NotModelled(str(e.value))
    batch, stride = int(numbers[-2]), int(numbers[-1])
    width = 2 if operation.endswith(_PACKED) else 1
    values = program.pointer(e.args[0], batch * width)
    places = (np.arange(batch)[:, None] * stride * width + np.arange(width)).reshape(-1)
    combined = _all_reduced(e, values.kind, places, program, width)

    def run(frame: Frame) -> Value:
        values.store(frame, combined(frame, values.load(frame)))
        return 0

    return run


def _all_reduced(
    e: Expr, kind: Kind, places: Array, program: KernelProgram, width: int = 1
) -> Callable[[Frame, Value], Value]:
    """Return what the library makes of each thread's values. places: of thread 0's numbers in the workspace.

    width: how many numbers a value is.
    """
    operation, distances, first = _butterfly(str(e.value))
    combine = formulas.combination(operation, _OPERATIONS[operation], program.options.field if kind.is_float else None)
    if program.options.target.family == AMD and not str(e.value).endswith("run_batch"):
        first = 0  # red_buf[threadIdx.x]
    workspace = _workspace(e.args[1:], distances, first, places, width, program)
    counted, warp = _counted_threads(str(e.value)), program.options.target.warp
    combine = _settled(combine, kind, program)
    shuffled = next((d for d in distances if workspace is None or d < warp), 0)  # the first of them

    def run(frame: Frame, current: Value) -> Value:
        for distance in distances:
            if workspace is None or distance < warp:
                if distance == shuffled:
                    await_warps(program, frame)
                thread = np.arange(frame.lanes).reshape(1, -1)
                current = combine(current, from_lanes(current, thread ^ distance, frame, program, kind))
            else:
                current = combine(current, _staged(current, workspace, distance, counted, frame, program))
        return current

    return run


def _butterfly(name: str) -> tuple[str, list[int], int]:
    """The operation, at which distances, and the first thread that takes part."""
    operation, *numbers = template_arguments(name)
    operation = operation.removeprefix("tl::")
    for suffix in _PACKED:
        operation = operation.removesuffix(suffix)
    operation = operation.removesuffix("Op") if "Nan" not in operation else operation.replace("Op", "")
    if operation not in _OPERATIONS or not all(n.isdigit() for n in numbers[:3]) or len(numbers) < 2:
        raise NotModelled(name)
    threads, scale = int(numbers[0]), int(numbers[1])
    distances = []
    while threads > scale:
        threads //= 2
        distances.append(threads)
    if distances and distances[-1] != scale:
        raise NotModelled(name)
    return operation, distances, int(numbers[2]) if len(numbers) > 2 else 0


def _workspace(
    args: tuple[Expr, ...], distances: list[int], first: int, places: Array, width: int, program: KernelProgram
) -> dict[int, BufferElement] | None:
    """The cells of the thread at each distance (0: one's own) in the workspace; None if shuffles are enough."""
    if not any(d >= program.options.target.warp for d in distances):
        return None
    if not args or program.extents[1:] != (1, 1):
        raise NotModelled("tl::AllReduce over warps without a workspace")
    own = np.arange(program.state.threads).reshape(1, -1) - first

    def cells(distance: int) -> BufferElement:
        index = (own ^ distance) * width
        return program.pointer(args[0], places, Code(lambda frame: index, frozenset(), True))

    return {distance: cells(distance) for distance in (0, *distances) if not 0 < distance < program.options.target.warp}


def _counted_threads(name: str) -> int:
    """Return how many threads the library's barriers 1 and 2 count; 0 for __syncthreads, which counts all."""
    policy = re.search(r"NamedBarrier<(\d+)>", name)
    if policy is not None:
        return int(policy.group(1))
    numbers = template_arguments(name)[1:]
    if not name.endswith("run_hopper"):
        return 0
    return int(numbers[3] if len(numbers) > 3 else numbers[0])


def _staged(
    value: Value,
    workspace: dict[int, BufferElement],
    distance: int,
    counted: int,
    frame: Frame,
    program: KernelProgram,
) -> Array:
    """The value of the thread at a distance, through shared memory."""
    before, after = (1, 2) if counted else (0, 0)
    meet(program, frame, before, counted)
    workspace[0].store(frame, value)
    meet(program, frame, after, counted)
    return np.array(workspace[distance].load(frame))


def _settled(combine: Combine, kind: Kind, program: KernelProgram) -> Combine:
    """The combination with its result rounded, unless floats are exact."""
    settle = rounding(kind, program.options.exact)
    if program.options.target.family == AMD and kind.is_float and kind.bits <= _HALF:
        combine = _of_numbers(combine, kind)
    return combine if settle is None else lambda a, b: settle(combine(a, b))


def _of_numbers(combine: Combine, kind: Kind) -> Combine:
    """A combination of numbers. HIP's maximum of two halves, `x > y ? x : y`, is either of them where one is NaN."""

    def run(a: Any, b: Any) -> Any:
        for values in (np.asarray(a), np.asarray(b)):
            if (np.isnan(values) & ~is_poison(values)).any():
                raise NotModelled(f"a reduction of {kind.name} that has a NaN")
        return combine(a, b)

    return run


def _warp_reduce(operation: str) -> Callable[[Expr, KernelProgram], Computation]:
    """(value): the combination over the warp, in every lane."""

    def handler(e: Expr, program: KernelProgram) -> Computation:
        value, kind = program.code(e.args[-1]), kind_of(e.args[-1].dtype)
        cut = program.options.is_cuda and is_cut(e.args[-1].dtype, program.release)
        inner = kind_of("uint32" if operation.startswith("Bit") else "int32") if cut else kind
        if inner.is_float and operation.startswith("Bit"):
            raise NotModelled(f"a warp's reduction of {kind.name} by bits, which the device library does not compile")
        in_field = program.options.field if inner.is_float else None
        combine = _settled(formulas.combination(operation, _OPERATIONS[operation], in_field), inner, program)

        def run(frame: Frame) -> Value:
            current = value.run(frame)
            if cut:
                current = np.asarray(current).astype(inner.array)
            await_warps(program, frame)
            thread = np.arange(frame.lanes).reshape(1, -1)
            for distance in (16, 8, 4, 2, 1):
                current = combine(current, from_lanes(current, thread ^ distance, frame, program, inner))
            return np.asarray(current).astype(kind.array) if cut else current

        return run

    return handler


for _name, _operation in (("sum", "Sum"), ("max", "Max"), ("min", "Min"), ("bitand", "BitAnd"), ("bitor", "BitOr")):
    call(f"warp_reduce_{_name}", formula=True)(_warp_reduce(_operation))
    extern(f"tl::warp_reduce_{_name}", formula=True)(_warp_reduce(_operation))
