"""Promises of the author: they say which inputs there are, and nothing at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlcheck.execute.registry import call
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.codes import Run
    from tlcheck.execute.machine import Machine


@call("assume")
def assume(e: Expr, machine: Machine) -> Run:
    """T.assume(condition): whoever chooses inputs has to keep it."""
    return lambda frame: 0
