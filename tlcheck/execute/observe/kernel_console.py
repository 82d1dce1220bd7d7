"""Describe what a kernel that is interpreted says: T.print, and `breakpoint()` for a debugger.

Each block speaks for itself. Where its threads have one value it is said once, else for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.events import Observer
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Value, is_poison
from tlcheck.execute.ops.tile.regions import ZERO, Region, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Buffer
from tlcheck.snapshot.walk import allocated

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine

_MOST = 1 << 20  # elements of a tensor that a debugger is given


@dataclass
class _Printed:
    """A buffer of which elements are being printed, one after the other."""

    head: str
    shape: tuple[int, ...]
    values: list[Any] = field(default_factory=list)


Say = Callable[[str], None]  # what to do with a line


class Console(Observer):
    """Takes what the blocks of a machine say, line by line."""

    def __init__(self, machine: Machine, say: Say) -> None:
        self._machine, self._say = machine, say
        self._buffers: dict[str, _Printed] = {}  # by what stands before their elements

    def printed(self, frame: Frame, text: str, value: Value | None) -> None:
        """Say a text, with a value or without."""
        self.ended()
        for world, lanes in _active(frame):
            said = "" if value is None else f" = {_shown(_own(value, frame, world, lanes))}"
            self._say(_head(self._machine, world, text) + said)

    def element_printed(self, frame: Frame, text: str, shape: tuple[int, ...], first: bool, value: Value) -> None:
        """Take an element of a buffer; all are said as one array. first: whether it is the first one."""
        for world, lanes in _active(frame):
            head = _head(self._machine, world, text)
            if first and head in self._buffers:
                self._say_buffer(self._buffers.pop(head))
            printed = self._buffers.setdefault(head, _Printed(head, shape))
            printed.values.append(_own(value, frame, world, lanes))

    def ended(self) -> None:
        """Say the buffers whose elements were printed."""
        for printed in self._buffers.values():
            self._say_buffer(printed)
        self._buffers.clear()

    def breakpoint_reached(self, frame: Frame, place: tuple[str, int], names: Mapping[str, Value]) -> None:
        """Stop at a place in the kernel, in each block that comes there: tiles are arrays, variables numbers there."""
        self.ended()
        machine = self._machine
        file, line = place
        code = compile("\n" * (line - 1) + "breakpoint()\n0", file or "<kernel>", "exec")
        loops = {name: frame.variables[uid] for uid, name in machine.state.loops.items() if uid in frame.variables}
        for world, lanes in _active(frame):
            values = {name: _own(value, frame, world, lanes) for name, value in {**loops, **names}.items()}
            found = {}
            for buffer in (*machine.function.buffers, *allocated(machine.function.body)):
                array = _tile(buffer, machine, frame, world)
                if array is not None:
                    found[buffer.name] = array
            exec(code, {**found, **values, "block": machine.worlds[world].block})

    def _say_buffer(self, printed: _Printed) -> None:
        array = np.stack(np.broadcast_arrays(*printed.values))
        whole = prod(printed.shape) == len(array)
        self._say(f"{printed.head} = {_shown(array.reshape(*printed.shape, *array.shape[1:]) if whole else array)}")


def _active(frame: Frame) -> Iterator[tuple[int, Array]]:
    """Each world in which something is active, with the numbers of its lanes."""
    for world, lanes in enumerate(frame.mask()):
        if lanes.any():
            yield world, np.flatnonzero(lanes)


def _head(machine: Machine, world: int, text: str) -> str:
    return f"block {machine.worlds[world].block}: {text}"


def _own(value: Value, frame: Frame, world: int, lanes: Array) -> Any:
    """The value in one world: a number where its lanes agree, else an array of theirs."""
    if not isinstance(value, np.ndarray):
        return value
    found = np.broadcast_to(value, (*value.shape[:-2], frame.worlds, frame.lanes))[..., world, lanes]
    same = (found == found[..., :1]) | (found != found)
    return found[..., 0].tolist() if same.all() and found.ndim == 1 else found


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, prefix=" ")
    return "poison" if isinstance(value, float) and is_poison(np.array([value])).any() else repr(value)


def _tile(buffer: Buffer, machine: Machine, frame: Frame, world: int) -> Array | None:
    """None for one that is not there yet, or a large tensor."""
    if machine.pointers.root(buffer.data.uid) not in machine.state.memory:
        return None
    try:
        tile = whole(Region(buffer, (ZERO,) * len(buffer.shape), buffer.shape), machine.program())
        if prod(tile.lattice.shape(frame)) > _MOST:
            return None
        array: Array = tile.array(frame)[..., world, :].copy()
    except NotModelled:
        return None
    return array[..., 0] if array.shape[-1] == 1 else array
