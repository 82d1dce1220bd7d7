"""Single numbers of four bits in memory: the device library loads their byte, sets four bits, and stores it.

`tl_int4_packed_store` and `tl_fp4_packed_store` of tl_templates/cuda are no atomics: a thread that stores one half of a
byte reads the other.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.addresses import joined
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import store
from tlcheck.execute.events import Observer
from tlcheck.execute.memory.codes import Step
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import kind_of, lanes_of
from tlcheck.snapshot.ir import Store

_BITS = 4


@store
def store_half(stmt: Store, program: KernelProgram) -> Step | None:
    """A store of one number, of which observers are told that it reads the other one of its byte."""
    if kind_of(stmt.buffer.dtype).bits != _BITS or lanes_of(stmt.value.dtype) != 1 or stmt.predicate is not None:
        return None
    if not program.options.is_cuda or not program.observers.hear(Observer.half_read):
        return None
    place, value, state = program.place(stmt.buffer, stmt.indices), program.code(stmt.value), program.state
    *outer, last = map(program.code, stmt.indices)
    other = program.addresses.place(stmt.buffer, [*outer, joined(lambda index: index ^ 1, last)])

    def run(frame: Frame) -> None:
        state.at = stmt
        located, lanes = other.located(frame), frame.mask()
        if program.observers.covers(other):
            inside = lanes if located.outside is None else np.asarray(lanes & ~located.outside)
            program.observers.half_read(other, located.position, inside, state.origin(frame))
        place.store(frame, value.run(frame))

    return Step(run)
