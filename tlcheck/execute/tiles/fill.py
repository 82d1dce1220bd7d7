"""T.fill and T.clear: every element of a region gets one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlcheck.execute.frame import Frame
from tlcheck.execute.regions import Region
from tlcheck.execute.registry import call
from tlcheck.execute.values import converted, kind_of
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.codes import Run
    from tlcheck.execute.machine import Machine


@call("fill")
def fill(e: Expr, machine: Machine) -> Run:
    """fill(region, value): the value is cast to the dtype of the buffer (TileLang, T.fill; T.clear fills with 0)."""
    target, value = Region(e.args[0], machine), machine.code(e.args[1])
    source, exact = kind_of(e.args[1].dtype), machine.options.exact

    def run(frame: Frame) -> int:
        found = machine.per_world(value.run(frame), "the value of T.fill")
        target.write(frame, converted(found, source, target.kind, exact))
        return 0

    return run
