"""ds_read_b64_tr: lanes read 8 bytes of LDS each, and get them transposed among 16 lanes (CDNA4 ISA, "LDS").

16 lanes read a matrix of 16 columns, whose rows are 2 bytes (tr_b16) or 1 byte (tr_b8) an element: 4 or 2 neighbouring
lanes have a row. Lane l gets column l % 16, the first row first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Kind, Value, kind_of
from tlcheck.execute.ops.thread.wide import reshaped
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr

_OCTETS = 8  # that a lane reads
_LANES = 16  # that exchange what they have read


def _transposed(bits: int) -> Callable[[Expr, KernelProgram], Computation]:
    """(address in LDS): two words of 32 bits. bits: of an element of the matrix."""
    units = kind_of(f"uint{bits}")

    def handler(e: Expr, program: KernelProgram) -> Computation:
        if program.iterating:
            raise NotModelled(f"{e.value} in T.Parallel")
        if program.state.threads % _LANES:
            raise NotModelled(f"{e.value} in a block of incomplete waves")
        kind, word = program.addresses.kind(e.args[0]), kind_of(e.dtype)
        place = program.pointer(e.args[0], _OCTETS * 8 // kind.bits)
        place.aligned = _OCTETS
        if not place.shared:
            raise NotModelled(f"{e.value} of {place.name}, which is not in LDS")

        def run(frame: Frame) -> Value:
            if frame.active is not None and not frame.mask().all():
                raise NotModelled(f"{e.value} by some lanes of a wave")
            found = _words(np.asarray(place.load(frame)), kind, units, frame)
            return reshaped(exchanged(found), units, word)

        return run

    return handler


def _words(values: Array, kind: Kind, units: Kind, frame: Frame) -> Array:
    """Return what lanes have read, (units, worlds, lanes)."""
    values = values if values.ndim > 2 else values[None]
    return reshaped(np.broadcast_to(values, (len(values), frame.worlds, frame.lanes)), kind, units)


def exchanged(rows: Array) -> Array:
    """Columns (units, worlds, lanes) of what the lanes of each sixteen have read."""
    each, worlds, lanes = rows.shape
    matrix = np.moveaxis(rows, 0, -1).reshape(worlds, -1, each, _LANES)  # lane by lane: row after row of 16 columns
    return np.moveaxis(matrix, 2, 0).reshape(each, worlds, lanes)


for _bits in (16, 8):
    call(f"ds_read_tr{_bits}_b64")(_transposed(_bits))
