"""Instructions that change no value: register budgets, prefetches, scheduling, fences between proxies.

What fences and arrivals order is the business of the machine's watchers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlcheck.execute.registry import call
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.codes import Run
    from tlcheck.execute.machine import Machine


@call(
    "prefetch_tma_descriptor",
    "ptx_fence_barrier_init",
    "warpgroup_arrive",
    "warpgroup_fence_operand",
)
def hint(e: Expr, machine: Machine) -> Run:
    """Nothing, as far as values go."""
    return lambda frame: 0
