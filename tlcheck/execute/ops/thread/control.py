"""Leaving loops and the kernel: T.loop_break, T.continue, T.thread_return; launch indices.

TIR's `break` and `continue` act on the innermost loop, as C's do; a thread that returned takes no part in anything.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.signatures.control import thread_axis
from tlcheck.snapshot.ir import Expr


def _gone(frame: Frame, before: Mask | None) -> Mask:
    """`before` with the active lanes, which are active no more."""
    leaving = frame.mask()
    frame.active = np.zeros((1, 1), np.bool_)
    return leaving if before is None else before | leaving


@call("loop_break", "break_loop", formula=True)
def loop_break(e: Expr, program: KernelProgram) -> Computation:
    """The active lanes leave the innermost loop."""

    def run(frame: Frame) -> int:
        frame.broken = _gone(frame, frame.broken)
        return 0

    return run


@call("loop_continue", "continue_loop", formula=True)
def loop_continue(e: Expr, program: KernelProgram) -> Computation:
    """The active lanes go on with the next iteration of the innermost loop."""

    def run(frame: Frame) -> int:
        frame.skipped = _gone(frame, frame.skipped)
        return 0

    return run


@call("thread_return", formula=True)
def thread_return(e: Expr, program: KernelProgram) -> Computation:
    """The active lanes leave the kernel."""

    def run(frame: Frame) -> int:
        frame.ended = _gone(frame, frame.ended)
        return 0

    return run


@call("launch_thread_idx", formula=True)
def launch_thread_idx(e: Expr, program: KernelProgram) -> Code:
    """threadIdx.x, .y or .z by number, as the kernel's frontend asks for it."""
    axis = thread_axis(e)
    assert isinstance(axis, int)
    index = program.thread_index(axis)
    return Code(lambda frame: index, frozenset(), True, not isinstance(index, np.ndarray))
