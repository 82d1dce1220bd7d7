"""Mutators of one atomic call: where it goes, what it reads, what it does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.cpu.mutations.tools import binary, flipped, integer, rewrite, source, target
from tests.cpu.prove.oracle_text import atomic_name
from tlcheck.snapshot.ir import Buffer, Expr, Function
from tlcheck.snapshot.walk import expressions, postorder, statements

Change = Callable[[Expr, Function], Expr | None]


def _index(load: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """A load or flat pointer with its last index changed."""
    if load.op == "load":
        return replace(load, args=(*load.args[:-1], change(load.args[-1])))
    return replace(load, args=(*load.args[:2], change(load.args[2]), *load.args[3:]))


def _at_target(change: Callable[[Expr], Expr]) -> Change:
    def apply(call: Expr, function: Function) -> Expr | None:
        return rewrite(call, {id(target(call)): _index(target(call), change)})

    return apply


def _stride(e: Expr) -> Expr:
    """The first constant factor in an index, doubled; twice the index if there is none."""
    for part in postorder([e]):
        if part.op == "mul" and part.args[1].op == "int":
            return rewrite(e, {id(part): replace(part, args=(part.args[0], integer(2 * int(part.args[1].value or 0))))})
    return binary("mul", e, integer(2))


def _destination_axes(call: Expr, function: Function) -> Expr | None:
    load = target(call)
    if load.op != "load" or len(load.args) < 2:
        return None
    return rewrite(call, {id(load): replace(load, args=(*load.args[:-2], load.args[-1], load.args[-2]))})


def _source_index(call: Expr, function: Function) -> Expr | None:
    load = source(call)
    return None if load is None else rewrite(call, {id(load): _index(load, flipped)})


def _source_axes(call: Expr, function: Function) -> Expr | None:
    load = source(call)
    if load is None or len(load.args) < 2:
        return None
    return rewrite(call, {id(load): replace(load, args=(*load.args[:-2], load.args[-1], load.args[-2]))})


def _renamed(call: Expr, old: str, new: str) -> Expr | None:
    name = str(call.args[0].value) if call.value == "call_extern" else str(call.value)
    changed = name.replace(old, new)
    if changed == name:
        return None
    if call.value == "call_extern":
        return replace(call, args=(replace(call.args[0], value=changed), *call.args[1:]))
    return replace(call, value=changed)


def _widened(call: Expr, function: Function) -> Expr | None:
    """A scalar addition as one of two lanes, with the next element of the source or the same value in the second."""
    wide = _renamed(call, "AtomicAdd", "AtomicAddx2") or _renamed(call, "atomic_add_", "atomic_addx2_")
    if wide is None or "x2" in atomic_name(call) or "x4" in atomic_name(call) or "ret" in atomic_name(call).lower():
        return None
    position = 2 if call.value == "call_extern" else 1
    value = wide.args[position]
    if value.op == "load":
        ramp = Expr("ramp", "int32x2", (value.args[-1], integer(1)), value=2)
        vector = replace(value, dtype=f"{value.dtype}x2", args=(*value.args[:-1], ramp))
    else:
        vector = Expr("broadcast", f"{value.dtype}x2", (value,), value=2)
    return replace(wide, args=(*wide.args[:position], vector, *wide.args[position + 1 :]))


def _maximum(call: Expr, function: Function) -> Expr | None:
    if "x2" in atomic_name(call) or "x4" in atomic_name(call) or "ret" in atomic_name(call).lower():
        return None
    return _renamed(call, "atomic_add", "atomic_max") or _renamed(call, "AtomicAdd", "AtomicMax")


def _without_order(call: Expr, function: Function) -> Expr | None:
    position = 3 if call.value == "call_extern" else 2
    if len(call.args) <= position or call.args[position].value in (0, None):
        return None
    return replace(call, args=(*call.args[:position], integer(0), *call.args[position + 1 :]))


def _redirected(buffer: Callable[[Expr, Function], Buffer | None]) -> Change:
    def apply(call: Expr, function: Function) -> Expr | None:
        old = target(call)
        new = buffer(old, function)
        if new is None:
            return None
        if old.op == "load":
            return rewrite(call, {id(old): replace(old, buffer=new)})
        return rewrite(call, {id(old): replace(old, args=(old.args[0], new.data, *old.args[2:]))})

    return apply


def _registers(old: Expr, function: Function) -> Buffer | None:
    if old.buffer is None:
        return None
    data = Expr("var", "handle", value="staged", uid=10**6)
    return Buffer("staged", old.dtype, old.buffer.shape, "local", data, old.buffer.strides)


def _other_parameter(old: Expr, function: Function) -> Buffer | None:
    data = old.buffer.data if old.buffer is not None else old.args[1]
    loads = [
        e for s in statements(function.body) for r in expressions(s) for e in postorder([r]) if e.buffer is not None
    ]
    buffers = {b.data.uid: b for b in (*function.buffers, *(e.buffer for e in loads)) if b is not None}
    for buffer in buffers.values():
        if buffer.scope == "global" and buffer.data.uid != data.uid:
            shape = old.buffer.shape if old.buffer is not None else buffer.shape
            return replace(buffer, shape=shape)
    return None


CALLS: dict[str, Change] = {
    "shift base by one": _at_target(lambda e: binary("add", e, integer(1))),
    "shift base back by a row": _at_target(lambda e: binary("sub", e, integer(32))),
    "double a stride": _at_target(_stride),
    "swap neighbours in the destination": _at_target(flipped),
    "swap destination indices": _destination_axes,
    "swap source indices": _source_axes,
    "swap neighbours in the source": _source_index,
    "widen a scalar atomic": _widened,
    "add becomes max": _maximum,
    "drop the memory order": _without_order,
    "redirect to registers": _redirected(_registers),
    "redirect to another parameter": _redirected(_other_parameter),
}
