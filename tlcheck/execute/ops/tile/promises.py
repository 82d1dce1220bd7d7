"""T.assume and T.device_assert: what the author says must hold (TileLang, language/builtin.py).

Inputs for which it does not hold say nothing of the kernel: the execution stops there.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.stops import Unkept
from tlcheck.snapshot.ir import Expr


@call("assume", "device_assert", "device_assert_with_msg", formula=True)
def promise(e: Expr, program: KernelProgram) -> Computation:
    """The condition holds in all active lanes. Raises Unkept where it does not."""
    condition, stmt = program.code(e.args[0]), program.state.at
    line = program.state.line

    def run(frame: Frame) -> int:
        broken = frame.mask() & ~np.asarray(condition.run(frame), np.bool_)
        if broken.any():
            *_, world, lane = np.argwhere(broken)[0].tolist()
            raise Unkept(f"T.{e.value} does not hold", line, world, lane, stmt=stmt)
        return 0

    return run
