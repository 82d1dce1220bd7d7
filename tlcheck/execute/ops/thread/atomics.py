"""Atomic read-modify-writes by threads: atom and red (PTX 9.7.13.6), the device library's atomic.h.

Lanes act in the order of their threads. A vector form acts on neighbouring elements, one by one; the library's
AtomicAddx2 and AtomicAddx4 take a vector or the address of one. The memory order is no part of the value: observers
are told of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call, extern
from tlcheck.execute.events import Observer
from tlcheck.execute.memory.cells import Position
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, Mask, everywhere
from tlcheck.execute.memory.values import Array, Kind, Value, converted, kind_of, lanes_of, rounding
from tlcheck.execute.stops import Illegal, LeavesAxis, NotModelled
from tlcheck.program.promotion import is_promoted
from tlcheck.signatures.atomics import ATOMICS, Atomic, order_of
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.walk import postorder

_COMBINE: dict[str, Any] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "or": np.bitwise_or,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
}


@dataclass(frozen=True)
class Made:
    """An atomic as observers are told of it. order: of memory, by its number in C++. iterating: in a T.Parallel."""

    atomic: Atomic
    order: int
    iterating: bool

    @classmethod
    def of(cls, e: Expr, program: KernelProgram) -> Made:
        """Return the object of a call."""
        return cls(ATOMICS[name_of_call(e)], order_of(e) or 0, program.iterating)


def update(place: BufferElement, frame: Frame, value: Value, combine: np.ufunc, made: Made) -> None:
    """Combine values into memory, once for each active lane."""
    position, mask = _position(place, frame)
    _seen(place, frame, position, mask, made)
    where, values = _by_lane(frame, mask, place.memory.flat_position(position), value)
    _tell_terms(place, frame, mask, made, where, values)
    settle = rounding(place.kind, place.state.options.exact)
    if settle is None:
        place.memory.accumulate(where.reshape(-1), values.reshape(-1), combine, place.kind)
    else:
        _in_order(place, where, values, lambda old, new: settle(combine(old, new)))


def replaced(place: BufferElement, frame: Frame, value: Value, combine: Callable[[Any, Any], Any], made: Made) -> Array:
    """Combine values into memory; what was there before, in each lane: ((vector lanes,) worlds, lanes)."""
    position, mask = _position(place, frame)
    _seen(place, frame, position, mask, made)
    where, values = _by_lane(frame, mask, place.memory.flat_position(position), value)
    _tell_terms(place, frame, mask, made, where, values)
    before = _in_order(place, where, values, combine)
    chosen = everywhere(mask, frame)
    found = np.zeros((where.shape[1], frame.worlds, frame.lanes), place.kind.array)
    found[:, chosen] = before.T
    return found if where.shape[1] > 1 else found[0]


def _seen(place: BufferElement, frame: Frame, position: Any, mask: Any, made: Made) -> None:
    """Publish it."""
    observers = place.observers
    if observers.hear(Observer.atomic_made):
        _tell_order(place, frame, position, mask, made)
    if observers.covers(place):
        observers.atomic(place, position, everywhere(mask, frame), place.state.origin(frame))
    if observers.hear(Observer.atomic_left):
        outside = place.located(frame).outside
        if outside is not None and place.is_left(outside, frame):
            observers.atomic_left(place, frame, outside)
    observers.combined(frame, position, mask)


def _tell_order(place: BufferElement, frame: Frame, position: Any, mask: Any, made: Made) -> None:
    """Publish its memory order, with its threads one after the other."""
    chosen = np.flatnonzero(everywhere(mask, frame))
    chosen = _in_turn(chosen, place.state.options.order)
    where = place.memory.flat_position(position)
    shape = np.broadcast_shapes((1, frame.worlds, frame.lanes), where.shape)
    cells = np.broadcast_to(where, shape).reshape(shape[0], -1).take(chosen, axis=1)
    worlds, threads = (np.tile(part, shape[0]) for part in np.divmod(chosen, frame.lanes))
    by = None if made.iterating else (worlds, threads)
    origin = place.state.origin(frame)
    place.observers.atomic_made(made.atomic, made.order, place.root, cells.reshape(-1), by, origin)


def _tell_terms(place: BufferElement, frame: Frame, mask: Any, made: Made, where: Array, values: Array) -> None:
    """Publish what it adds. where, values: (lanes, vector lanes)."""
    if made.atomic.operation != "add" or not place.observers.hear(Observer.added):
        return
    lanes = np.repeat(np.flatnonzero(everywhere(mask, frame)), where.shape[1])
    worlds, threads = np.divmod(lanes, frame.lanes)
    threads = np.full_like(threads, -1) if made.iterating else threads
    terms = np.broadcast_to(values, where.shape).reshape(-1)
    place.observers.added(place.memory, where.reshape(-1), terms, worlds, threads, place.state.origin(frame))


def _position(place: BufferElement, frame: Frame) -> tuple[Position, Mask | None]:
    """Return where each lane acts, and which lanes do. Raises Illegal for a vector that begins in bounds and ends
    outside.
    """
    position, mask = place.position(frame)
    if mask is None or mask.ndim == 2:
        return position, mask
    whole = np.asarray(mask.all(axis=0))
    parts = np.argwhere(mask.any(axis=0) & ~whole)
    if len(parts):
        world, lane = (int(n) for n in parts[0])
        raise Illegal(f"access of {place.name} out of bounds", place.state.line, world, lane, place.name)
    return position, whole


def _by_lane(frame: Frame, mask: Any, position: Array, value: Value) -> tuple[Array, Array]:
    """Positions and values of the lanes of `mask`, (lanes, vector lanes)."""
    shape = np.broadcast_shapes((1, frame.worlds, frame.lanes), position.shape, np.shape(value))
    where, values = (np.broadcast_to(v, shape).reshape(shape[0], -1).T for v in (position, value))
    if mask is None:
        return where, values
    chosen = np.flatnonzero(np.broadcast_to(mask, shape[-2:]))
    return where.take(chosen, axis=0), values.take(chosen, axis=0)


def _in_order(place: BufferElement, where: Array, values: Array, combine: Callable[[Any, Any], Any]) -> Array:
    """Combine one after the other where several go to one element; what was there before each of them."""
    flat, before = where.reshape(-1), np.empty(where.size, place.kind.array)
    changes, memory = np.broadcast_to(values, where.shape).reshape(-1), place.memory
    for turn in _turns(flat, place.state.options.order):
        old = memory.take(flat[turn], place.kind)
        before[turn] = old
        memory.put(flat[turn], combine(old, changes[turn]), None, place.kind)
    return before.reshape(where.shape)


def _in_turn(lanes: Array, number: int) -> Array:
    """Lanes in the order in which they act. number: of the order, see `Options.order`."""
    return (lanes, lanes[::-1], np.r_[lanes[::2], lanes[1::2]])[number]


def _turns(where: Array, number: int) -> list[Array]:
    """The first of each element, the second ones, and so on. number: of the order, see `Options.order`."""
    lanes = _in_turn(np.arange(len(where)), number)
    order = lanes[np.argsort(where[lanes], kind="stable")]
    ordered = where[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rank = np.arange(len(where)) - np.repeat(starts, np.diff(np.r_[starts, len(where)]))
    return [order[rank == turn] for turn in range(int(rank.max()) + 1)] if len(where) else []


def _operand(e: Expr, lanes: int, kind: Kind, program: KernelProgram) -> Computation:
    """The value to combine: a vector, or the address of one."""
    if e.op == "call" and e.value in ("address_of", "access_ptr", "tvm_access_ptr"):
        source = _elements(e, program, lanes)

        def pointed(frame: Frame) -> Value:
            _position(source, frame)
            return converted(source.load(frame), source.kind, kind, program.options.exact)

        return pointed
    if lanes_of(e.dtype) != lanes:
        raise NotModelled(f"atomic of {lanes} elements with a value of {e.dtype}")
    in_int = program.options.printed and is_promoted(e)  # the library casts it back to the element's type
    code, given = program.code(e), kind_of("int32" if in_int else e.dtype)
    return lambda frame: converted(code.run(frame), given, kind, program.options.exact)


def _elements(address: Expr, program: KernelProgram, lanes: int = 1) -> BufferElement:
    """The place that an address points to. Raises NotModelled for elements of which a byte has several."""
    place = program.pointer(address, lanes)
    if place.kind.bits < 8:
        raise NotModelled(f"an atomic on {place.kind.name}")
    return place


def require_memory(target: Expr, program: KernelProgram) -> None:
    """Raise NotModelled for an atomic on registers that is written: atom and red take addresses in global or shared
    memory, and a device traps, or faults, at any other.
    """
    buffers = [p.buffer for p in postorder([target]) if p.op == "load" and p.buffer is not None]
    if program.options.source and buffers and buffers[-1].scope.startswith("local"):
        raise NotModelled(f"an atomic on {buffers[-1].name}, which is in registers")


def _require_axes(axes: BufferElement, place: BufferElement, frame: Frame, matters: Any) -> None:
    """Raise LeavesAxis where an index of the source leaves its axis, but not the tensor's end, and the value matters.

    TileLang guards some of these atomics: of symbolic sizes from 0.1.7 on, of others in some releases. A negative index
    counts from the end in some.
    """
    outside, beyond = axes.located(frame).outside, place.located(frame).outside
    if outside is None:
        return
    left = outside & frame.mask() & matters
    if beyond is not None:
        left = left & (~beyond | (np.asarray(place.address(frame)) < 0))
    if left.any():
        raise LeavesAxis(place.name)


def _combining(atomic: Atomic) -> Callable[[Expr, KernelProgram], Computation]:
    """(address or element, value[, memory order])."""

    def handler(e: Expr, program: KernelProgram) -> Computation:
        require_memory(e.args[0], program)
        place = _elements(e.args[0], program, atomic.width)
        value, combine = _operand(e.args[1], atomic.width, place.kind, program), _COMBINE[atomic.operation]
        if program.options.field is not None and place.kind.is_float and (combine is not np.add or atomic.returns):
            raise NotModelled(name_of_call(e))
        settle, made = rounding(place.kind, program.options.exact), Made.of(e, program)
        axes = program.addresses.on_axes(e.args[0]) if program.options.source and atomic.width == 1 else None

        def settled(old: Any, new: Any) -> Any:
            return combine(old, new) if settle is None else settle(combine(old, new))

        def run(frame: Frame) -> Value:
            given = value(frame)
            if axes is not None:
                _require_axes(axes, place, frame, True if combine is not np.add else np.asarray(given) != 0)
            if atomic.returns:
                return replaced(place, frame, given, settled, made)
            update(place, frame, given, combine, made)
            return 0

        return run

    return handler


for _name, _atomic in ATOMICS.items():
    if _atomic.combines:
        (call if _name.endswith("_elem_op") else extern)(_name, formula=True)(_combining(_atomic))


@call("atomic_load_elem_op", formula=True)
@extern("AtomicLoad", formula=True)
def atomic_load(e: Expr, program: KernelProgram) -> Computation:
    """(address[, memory order]): the element."""
    place, made = _elements(e.args[0], program), Made.of(e, program)

    def run(frame: Frame) -> Value:
        position, mask = _position(place, frame)
        _seen(place, frame, position, mask, made)
        return place.memory.take(position, place.kind)

    return run


@call("atomic_store_elem_op", formula=True)
@extern("AtomicStore", formula=True)
def atomic_store(e: Expr, program: KernelProgram) -> Computation:
    """(address, value[, memory order]): the element becomes the value."""
    place, made = _elements(e.args[0], program), Made.of(e, program)
    value = _operand(e.args[1], 1, place.kind, program)

    def run(frame: Frame) -> Value:
        position, mask = _position(place, frame)
        _seen(place, frame, position, mask, made)
        place.memory.put(position, value(frame), mask, place.kind)
        return 0

    return run
