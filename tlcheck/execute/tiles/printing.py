"""T.print: calls of the device library's debug_print_* (TileLang, language/print_op.py). Nothing is printed yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlcheck.execute.codes import Run
from tlcheck.execute.registry import extern
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.machine import Machine


@extern("debug_print_buffer_value", "debug_print_msg", "debug_print_var")
def printed(e: Expr, machine: Machine) -> Run:
    """Nothing happens to values."""
    return lambda frame: 0
