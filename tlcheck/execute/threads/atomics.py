"""Atomic read-modify-writes by threads: atom and red (PTX 9.7.13.6), TileLang's atomic.h.

Lanes act in the order of their threads. A vector form acts on neighbouring elements, one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.frame import Frame
from tlcheck.execute.places import Place
from tlcheck.execute.registry import call
from tlcheck.execute.values import Array
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.codes import Run
    from tlcheck.execute.machine import Machine

_COMBINE: dict[str, np.ufunc] = {"add": np.add, "max": np.maximum, "min": np.minimum}


def _lanes(frame: Frame, *values: Any) -> list[Array]:
    """Values as (vector lanes, worlds, lanes), then flat without lanes that are not active; vector lanes last."""
    shape = np.broadcast_shapes((1, frame.worlds, frame.lanes), *[np.shape(v) for v in values])
    chosen = np.broadcast_to(frame.mask(), shape[-2:])
    return [np.moveaxis(np.broadcast_to(v, shape), 0, -1)[chosen].reshape(-1) for v in values]


def update(place: Place, frame: Frame, value: Any, combine: np.ufunc) -> None:
    """Combine values into memory, once for each active lane."""
    position, mask = place.position(frame)
    with frame.narrowed(mask):
        where, values = _lanes(frame, place.memory.flat_position(position), value)
    place.memory.accumulate(where, values, combine, place.kind)


def _family(operation: str) -> Callable[[Expr, Machine], Run]:
    def handler(e: Expr, machine: Machine) -> Run:
        place, value = machine.pointer(e.args[0]), machine.code(e.args[1])
        combine = _COMBINE[operation]

        def run(frame: Frame) -> int:
            update(place, frame, value.run(frame), combine)
            return 0

        return run

    handler.__doc__ = f"{operation}: the element becomes {operation} of itself and the value."
    return handler


for _name in _COMBINE:
    call(f"atomic_{_name}_elem_op")(_family(_name))
