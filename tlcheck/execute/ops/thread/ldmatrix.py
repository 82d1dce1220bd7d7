"""ldmatrix: a warp loads 8x8 matrices of 16-bit units from shared memory (PTX 9.7.14.5.15).

The threads 8 i .. 8 i + 7 point to the rows of matrix i, 16 bytes each. Thread t gets, as its register i, the units
2 (t % 4) and 2 (t % 4) + 1 of row t / 4; transposed, the units t / 4 of the rows 2 (t % 4) and 2 (t % 4) + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Kind, Value
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP


@call("ptx_ldmatrix", formula=True)
def ldmatrix(e: Expr, program: KernelProgram) -> Computation:
    """(transposed, number, source, destination), or in old releases (transposed, number, ".b16", destination, its
    offset in elements, source, its offset).
    """
    transposed, number = bool(e.args[0].value), int(e.args[1].value or 0)
    if number not in (1, 2, 4):
        raise NotModelled(f"ptx_ldmatrix of {number} matrices")
    source, to, offset, more = _operands(e)
    kind = program.addresses.kind(source)
    if transposed and kind.bits != 16:
        return _transposed_octets(e, program, kind)
    units = _fragment(kind, transposed, number)
    rows = program.pointer(source, 128 // kind.bits, more, arranged(units, program))
    rows.aligned = 16
    target = program.pointer(to, len(units[0]), offset)
    if target.kind.bits != kind.bits or (program.options.field is not None and target.kind != kind):
        raise NotModelled("ptx_ldmatrix into elements of another width")
    return _loading(rows, target)


def _loading(rows: BufferElement, target: BufferElement) -> Computation:
    def run(frame: Frame) -> Value:
        target.store(frame, rows.load(frame))
        return 0

    return run


def _operands(e: Expr) -> tuple[Expr, Expr, Expr | None, Expr | None]:
    """Source, destination, and the offsets of destination and source."""
    if len(e.args) == 4:
        return e.args[2], e.args[3], None, None
    if len(e.args) == 7 and e.args[2].value == ".b16":
        return e.args[5], e.args[3], e.args[4], e.args[6]
    raise NotModelled(f"ptx_ldmatrix with {len(e.args)} arguments")


def _fragment(kind: Kind, transposed: bool, number: int) -> tuple[Array, Array]:
    """Return which element of which thread's row each element of a thread is; (elements, 32)."""
    per = max(1, 32 // kind.bits)  # elements in a register
    matrix, unit, thread = np.ogrid[:number, :per, :WARP]
    if transposed:
        element, row = thread // 4 + 0 * unit, 2 * (thread % 4) + unit
    else:
        element, row = per * (thread % 4) + unit, thread // 4 + 0 * unit
    shape = (number, per, WARP)
    elements = np.broadcast_to(element, shape).reshape(-1, WARP)
    threads = np.broadcast_to(8 * matrix + row, shape).reshape(-1, WARP)
    return elements, threads


def arranged(units: tuple[Array, Array], program: KernelProgram) -> Any:
    """Give each thread the elements `units` of rows (elements, worlds, threads) that its warp's threads point to."""
    elements, threads = units
    if program.state.threads % WARP:
        raise NotModelled("warp instruction in a block of incomplete warps")
    warps = program.state.threads // WARP
    lanes = (np.arange(warps)[:, None] * WARP + threads[:, None, :]).reshape(len(threads), 1, -1)
    which = np.tile(elements, warps).reshape(len(elements), 1, -1)
    worlds = np.arange(len(program.state.worlds)).reshape(1, -1, 1)

    def arrange(rows: Any) -> Array:
        shape = (np.shape(rows)[0], len(program.state.worlds), program.state.threads)
        found: Array = np.broadcast_to(rows, shape)[which, worlds, lanes]
        return found

    return arrange


def _transposed_octets(e: Expr, program: KernelProgram, kind: Kind) -> Computation:
    """Transposed 8-bit elements move in pairs with the instruction; old releases load them one by one instead."""
    raise NotModelled(f"transposed ptx_ldmatrix of {kind.name}")
