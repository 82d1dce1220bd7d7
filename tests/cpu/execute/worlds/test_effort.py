"""A kernel takes at least so much to execute."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, number, variable
from tlcheck.execute.worlds.effort import is_open, statements_needed
from tlcheck.snapshot.ir import Expr, For, Function, If, Seq


def _looping(leave: str) -> Function:
    """A loop of 100 steps with one of 10 steps in it, in which threads may leave something."""
    kernel = Kernel()
    inner = Seq((If(Expr("eq", "bool", (kernel.tx, number(1))), call(leave)), call("work")))
    outer = For(
        variable("k"), number(0), number(100), "serial", For(variable("l"), number(0), number(10), "serial", inner)
    )
    return kernel.function(outer)


@pytest.mark.parametrize(("leave", "least"), [("loop_continue", 2000), ("loop_break", 200), ("thread_return", 2)])
def test_a_loop_that_threads_may_leave_counts_once(leave: str, least: int) -> None:
    function = _looping(leave)
    assert statements_needed(function, {}) == least
    assert is_open(function) == (leave != "loop_continue")
