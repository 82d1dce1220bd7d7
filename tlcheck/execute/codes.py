"""Compiled expressions and statements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.frame import Frame
from tlcheck.execute.values import Value

Run = Callable[[Frame], Value]
_KEPT_VALUES = 4096
_KEPT_BYTES = 1 << 23


@dataclass(frozen=True, slots=True, eq=False)
class Code:
    """A compiled expression.

    run: frame -> value. steady: it depends on the launch and on loop variables only; needs: uids of these variables.
    uniform: the value is always one Python scalar.
    """

    run: Run
    needs: frozenset[int] = frozenset()
    steady: bool = False
    uniform: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A compiled statement. leaves: lanes may leave a loop or the kernel in it."""

    run: Callable[[Frame], None]
    leaves: bool = False


def remembered(code: Code) -> Code:
    """The code with its values kept for each value of the loop variables that it depends on."""
    if not code.steady or code.uniform:
        return code
    run, key_of = code.run, sorted(code.needs)
    kept: dict[tuple[Value, ...], Value] = {}
    size = 0
    if not key_of:

        def once(frame: Frame) -> Value:
            if not kept:
                kept[()] = run(frame)
            return kept[()]

        return Code(once, code.needs, True)

    def keep(frame: Frame) -> Value:
        nonlocal size
        key = tuple([frame.variables[uid] for uid in key_of])
        value = kept.get(key)
        if value is None:
            value = run(frame)
            size += value.nbytes if isinstance(value, np.ndarray) else 32
            if size > _KEPT_BYTES or len(kept) > _KEPT_VALUES:
                kept.clear()
                size = 0
            kept[key] = value
        return value

    return Code(keep, code.needs, True)
