"""T.copy: a region into another one, element by element, with a cast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlcheck.execute.frame import Frame
from tlcheck.execute.reasons import NotModelled
from tlcheck.execute.regions import Region
from tlcheck.execute.registry import call
from tlcheck.execute.values import converted
from tlcheck.snapshot.ir import Expr

if TYPE_CHECKING:
    from tlcheck.execute.codes import Run
    from tlcheck.execute.machine import Machine


@call("copy")
def copy(e: Expr, machine: Machine) -> Run:
    """copy(source, destination): dimensions of extent 1 aside, both have the same extents (TileLang, T.copy).

    Elements outside of a global source are 0; those outside of a global destination are not written.
    """
    source, target = Region(e.args[0], machine), Region(e.args[1], machine)
    if source.squeezed != target.squeezed:
        raise NotModelled("copy between regions of other extents")
    exact = machine.options.exact

    def run(frame: Frame) -> int:
        found = source.read(frame).reshape(*target.extents, frame.worlds)
        target.write(frame, converted(found, source.kind, target.kind, exact))
        return 0

    return run
