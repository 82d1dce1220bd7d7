"""Compiled expressions and statements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.growth import ITSELF, Growths, cycle
from tlcheck.execute.memory.values import Value

Computation = Callable[[Frame], Value]
Key = tuple[Value, ...]
_KEPT_VALUES = 4096
_KEPT_BYTES = 1 << 23


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """A compiled expression.

    run: frame -> value. steady: it depends on the launch and on loop variables only; needs: uids of these variables.
    uniform: the value is always one Python scalar. growths: how it changes with such a variable, where that is known.
    """

    run: Computation
    needs: frozenset[int] = frozenset()
    steady: bool = False
    uniform: bool = False
    growths: Growths = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A compiled statement. leaves: lanes may leave a loop or the kernel in it."""

    run: Callable[[Frame], None]
    leaves: bool = False


def counter(uid: int) -> Code:
    """The code of a loop's variable, which is the same in all lanes."""
    return Code(lambda frame: frame.variables[uid], frozenset((uid,)), True, True, {uid: ITSELF})


def key_for(codes: Sequence[Code]) -> Callable[[Frame], Key]:
    """Return what tells the values of codes apart: the loop variables that they need, or where in a cycle these are."""
    needs = sorted(frozenset().union(*(code.needs for code in codes)))
    cycles = [cycle([code.growths.get(uid) for code in codes if uid in code.needs]) for uid in needs]
    if not needs:
        return lambda frame: ()
    if not any(cycles):
        return lambda frame: tuple([frame.variables[uid] for uid in needs])
    parts = list(zip(needs, cycles, strict=True))

    def key(frame: Frame) -> Key:
        variables = frame.variables
        return tuple([variables[uid] % turn if turn else variables[uid] for uid, turn in parts])

    return key


def remembered(code: Code) -> Code:
    """The code with its values kept for each value of the loop variables that it depends on."""
    if not code.steady or code.uniform:
        return code
    run, key_of = code.run, key_for([code])
    kept: dict[Key, Value] = {}
    size = 0
    if not code.needs:

        def once(frame: Frame) -> Value:
            if not kept:
                kept[()] = run(frame)
            return kept[()]

        return Code(once, code.needs, True, growths=code.growths)

    def keep(frame: Frame) -> Value:
        nonlocal size
        key = key_of(frame)
        value = kept.get(key)
        if value is None:
            value = run(frame)
            size += value.nbytes if isinstance(value, np.ndarray) else 32
            if size > _KEPT_BYTES or len(kept) > _KEPT_VALUES:
                kept.clear()
                size = 0
            kept[key] = value
        return value

    return Code(keep, code.needs, True, growths=code.growths)
