"""stmatrix: a warp stores 8x8 matrices of 16-bit units to shared memory, as ldmatrix loads them (PTX 9.7.14.5.16).

pack_b16 puts two 16-bit values into one register. Here a register of such a pair is two values.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, LastMask
from tlcheck.execute.memory.values import Value, kind_of, stretched
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP


@call("ptx_stmatrix", formula=True)
def stmatrix(e: Expr, program: KernelProgram) -> Computation:
    """(transposed, number of matrices, row address of each thread, a register for each matrix[, shape])."""
    transposed, number = bool(e.args[0].value), int(e.args[1].value or 0)
    if any(a.value != "m8n8" for a in e.args[3 + number :]) or program.state.threads % WARP:
        raise NotModelled("ptx_stmatrix of another form")
    pairs = [_pair(a, program) for a in e.args[3 : 3 + number]]
    rows = program.pointer(e.args[2], 8)
    rows.aligned = 16
    others = [part for a in e.args[3 : 3 + number] for part in a.args if kind_of(part.dtype) != rows.kind]
    if rows.kind.bits != 16 or (program.options.field is not None and others):
        raise NotModelled(f"ptx_stmatrix of {rows.kind.name}")
    matrix, unit, thread = np.ogrid[:number, :2, :WARP]
    if transposed:
        row, column = 2 * (thread % 4) + unit, thread // 4
    else:
        row, column = thread // 4, 2 * (thread % 4) + unit
    source_lane = np.broadcast_to(8 * matrix + row, (number, 2, WARP))
    element = np.broadcast_to(column, (number, 2, WARP))
    pointing, last = np.arange(program.state.threads) % WARP < 8 * number, LastMask()

    def run(frame: Frame) -> Value:
        shape = (frame.worlds, frame.lanes)
        values = np.array([[stretched(np.asarray(v.run(frame)), shape) for v in pair] for pair in pairs])
        warps = values.reshape(number, 2, frame.worlds, -1, WARP)
        tile = np.zeros((8, *warps.shape[2:]), values.dtype)
        tile[element, :, :, source_lane] = warps.transpose(0, 1, 4, 2, 3)
        with frame.narrowed(last.of(frame.among(np.broadcast_to(pointing, shape)))):  # who points to rows
            rows.store(frame, tile.reshape(8, *shape))
        return 0

    return run


def _pair(e: Expr, program: KernelProgram) -> tuple[Code, Code]:
    """The two elements of a register."""
    if e.op != "call" or e.value != "pack_b16":
        raise NotModelled(f"ptx_stmatrix of {e.value or e.op}")
    return program.code(e.args[0]), program.code(e.args[1])
