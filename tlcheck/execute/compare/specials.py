"""Kernels run with NaN and infinities where their source asks for them, and with integers at the ends of types.

TileLang folds `x != x` to false, and `not (x > 0)` to `x <= 0`: no number tells. Such a kernel runs once more, in one
block, with some elements of its tensors NaN, infinite or -0. So does a kernel that no longer reads a tensor of floats,
as of `x * 0`. Other kernels do not: most are not made for such numbers.

Integers that lead nowhere are taken to the ends of their types, to tell a cast that is missing from one that is there;
of types of 8 bits where the kernel computes with them, so that nothing leaves its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tlcheck.execute.compare import output_outcome as comparison
from tlcheck.execute.compare.output_outcome import Difference
from tlcheck.execute.memory.values import is_poison, kind_of, lanes_of
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds.inputs import Draw
from tlcheck.execute.worlds.integer_limits import limits
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.execute.worlds.offsets import lengths, offsets
from tlcheck.program.observed import counters
from tlcheck.program.roles import roles
from tlcheck.program.wraps import computed, computes_with_casts
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.equality import key_of
from tlcheck.snapshot.ir import Expr, Function, While
from tlcheck.snapshot.operators import OPPOSITE, ORDER, named
from tlcheck.snapshot.walk import expressions, postorder, statements

_SMALL = 8  # bits: sums of such integers stay in 32
_ASKING = ("isnan", "isinf", "isfinite")
_COMPARISONS = named("comparison")


def are_asked_for(levels: BothLevels) -> bool:
    """Whether a kernel is to run with such numbers."""
    return asks(levels.source) or forgets(levels.source, levels.lowered) or bool(_ends(levels))


def asks(function: Function) -> bool:
    """Whether a source asks whether a float is a number: isnan, `x != x`, `x < 1 or x >= 1`, or what a comparison is
    not.
    """
    return any(_asks(e) for s in statements(function.body) for e in postorder(expressions(s)))


def _asks(e: Expr) -> bool:
    if e.op == "call":
        return name_of_call(e).removeprefix("tirx.") in _ASKING
    if e.op == "not":
        return e.args[0].op in _COMPARISONS and "float" in e.args[0].args[0].dtype
    if e.op in ("and", "or"):
        return _are_opposite(*e.args)
    return e.op in _COMPARISONS and "float" in e.args[0].dtype and key_of(e.args[0]) == key_of(e.args[1])


def _are_opposite(one: Expr, other: Expr) -> bool:
    """Whether one of two comparisons of a float holds, whatever number it is."""
    return (
        one.op in ORDER
        and other.op == OPPOSITE[one.op]
        and "float" in one.args[0].dtype
        and all(key_of(a) == key_of(b) for a, b in zip(one.args, other.args, strict=True))
    )


def forgets(source: Function, lowered: Function) -> bool:
    """Whether a lowered kernel no longer reads a tensor of floats: what it is multiplied by is 0, say."""
    named = _named(lowered)
    read = {str(b.data.value) for b in source.buffers if "float" in b.dtype} & _named(source)
    return any(not any(name.startswith(tensor) for name in named) for tensor in read)


def _named(function: Function) -> set[str]:
    """The pointers of what statements read, and all other variables."""
    nodes = postorder(e for s in statements(function.body) for e in expressions(s))
    read = {e if e.buffer is None else e.buffer.data for e in nodes if e.op in ("var", "load")}
    return {str(e.value) for e in read}


def differences(levels: BothLevels, draw: Draw) -> Iterator[tuple[str, Difference, Draw]]:
    """Outputs of which elements are no numbers on one side alone, or other integers, each with the inputs that show it.

    Nothing where a side stops.
    """
    if asks(levels.source) or forgets(levels.source, levels.lowered):
        special = replace(draw, special=True)
        computes = computes_with_casts(levels.source)
        yield from _differences(levels, special, floats=True if computes else None, wide=computes)
        if computes:  # infinite floats become ends of integers, which leave their type: that is the author's
            yield from _differences(levels, replace(special, finite=True), floats=False)
    if ends := _ends(levels):
        found = _differences(levels, replace(draw, ends=ends))
        yield from ((name, replace(difference, ends=True), own) for name, difference, own in found)


def _ends(levels: BothLevels) -> tuple[tuple[str, int], ...]:
    """Tensors of integers that neither lead to elements nor end loops, with the bits of the ends that they may have."""
    function = levels.source
    if any(isinstance(stmt, While) for stmt in statements(function.body)):
        return ()
    leading = {*limits(function, levels.sizes), *offsets(function), *lengths(function), *counters(function)}
    leading |= {str(b.data.value) for b in roles(function).unread}
    found = []
    for buffer in function.buffers:
        name, kind = str(buffer.data.value), kind_of(buffer.dtype)
        if kind.family in ("int", "uint") and kind.bits > 8 and lanes_of(buffer.dtype) == 1 and name not in leading:
            computes, multiplies = computed(function, name)
            if not computes or (kind.bits > 16 and not multiplies):
                found.append((name, _SMALL if computes else kind.bits))
    return tuple(found)


def _differences(
    levels: BothLevels, special: Draw, floats: bool | None = None, wide: bool = False
) -> Iterator[tuple[str, Difference, Draw]]:
    """Outputs that differ with a draw. floats: of these alone, or of integers alone; None for all. wide: with integers
    that do not overflow (`overflows`).
    """
    world = levels.worlds[-1]
    source = levels.source_invocation(special, worlds=[world], wide=wide)
    lowered = levels.lowered_invocation(special, worlds=[world], wide=wide)
    if not _ends_well(source, lowered):
        return
    if special.ends and source.strayed:
        return
    by_chance: list[Invocation] = []  # the source, where integers that nobody has written have other values
    for name in levels.outputs:
        expected, got = source.left[name].outcome(world.seed), comparison.left_of(lowered.left, name, world.seed)
        elements = comparison.union(expected.elements, got.elements)
        initial = source.left[name].initial(world.seed, elements)
        compared = comparison.compare(expected, got, initial, elements)
        if floats not in (None, compared.expected.dtype.kind == "f"):
            continue
        if compared.differs.any():
            if not by_chance:
                by_chance.append(
                    levels.source_invocation(special, levels.in_each_iteration, worlds=[world], chance=True, wide=wide)
                )
                if not _ends_well(*by_chance):
                    return
            others = [other.left[name].outcome(world.seed) for other in by_chance]
            compared = comparison.compare(expected, got, initial, elements, others)
        wrong = compared.differs & _is_of_another_kind(compared.expected, compared.got)
        if wrong.any():
            found = comparison.first(compared, wrong, world.seed, lowered.machine.state.reasons)
            yield name, replace(found, special=True), special


def _ends_well(*invocations: Invocation) -> bool:
    """Run each to its end; whether nothing stops them."""
    try:
        for invocation in invocations:
            invocation.run()
            invocation.machine.rest()
    except Stopped:
        return False
    return True


def _is_of_another_kind(expected: comparison.Mask, got: comparison.Mask) -> comparison.Mask:
    """Whether one of two floats is a number and the other is none, or they are infinite in another way."""
    if expected.dtype.kind != "f":
        return np.ones(len(expected), np.bool_)
    known = ~is_poison(expected) & ~is_poison(got)
    infinite = np.isinf(expected) | np.isinf(got)
    return np.asarray(known & ((np.isnan(expected) != np.isnan(got)) | (infinite & (expected != got))))
