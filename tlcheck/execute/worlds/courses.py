"""The sizes that a kernel is executed with: the same ones, whatever blocks, seeds and checkpoint a request names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from tlcheck.execute.request import SOURCE, Request
from tlcheck.execute.stops import Stopped, Unkept
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.snapshot.ir import Snapshot

_OTHER_SIZES = 16  # tried where a promise does not hold
_LARGER = (1024, 4096)  # sizes tried where the usual ones leave something out


def levels_of(snapshot: Snapshot, request: Request) -> BothLevels:
    """Both levels of a request, on a course that is the same whatever blocks, seeds and checkpoint it names.

    Raises Stopped for what cannot be executed, and UsageError for blocks that are not in the grid.
    """
    if request.course is not None or request.given is not None or not _has_courses(snapshot):
        return BothLevels(snapshot, request)
    default = Request()
    usual = replace(request, blocks=default.blocks, seeds=default.seeds)
    # the levels with the sizes that let the source do most, the smallest of them
    found = _keeping(snapshot, usual)
    for size in _LARGER if inputs.symbols(snapshot.checkpoints[SOURCE]) else ():
        if not found.source_run[0].untried:
            break
        with suppress(Stopped):
            larger = BothLevels(snapshot, replace(usual, course=inputs.Course((size,))))
            found = min(found, larger, key=lambda levels: len(levels.source_run[0].untried))
    return found if usual == request else BothLevels(snapshot, replace(request, course=found.course))


def _has_courses(snapshot: Snapshot) -> bool:
    """Whether sizes or integers are to be chosen."""
    function = snapshot.checkpoints.get(SOURCE)
    return function is not None and bool(inputs.symbols(function) or inputs.integers(function))


def _keeping(snapshot: Snapshot, request: Request) -> BothLevels:
    """The levels with the first sizes for which all holds that the kernel promises on its way. Raises Stopped."""
    first = BothLevels(snapshot, request)
    try:
        _ = first.source_run
    except Stopped as stopped:
        found = next(_with_other_sizes(snapshot, request), None) if isinstance(stopped.__cause__, Unkept) else None
        if found is None:
            raise
        return found
    return first


def _with_other_sizes(snapshot: Snapshot, request: Request) -> Iterator[BothLevels]:
    """BothLevels with further sizes, of which the source comes to its end."""
    for passed in range(1, _OTHER_SIZES):
        with suppress(Stopped):
            levels = BothLevels(snapshot, replace(request, course=inputs.Course(passed=passed)))
            _ = levels.source_run
            yield levels


def course_of(snapshot: Snapshot, request: Request) -> inputs.Course | None:
    """The course that a request takes, for others that are to take the same; None where there is nothing to choose."""
    with suppress(Stopped):
        return levels_of(snapshot, request).course if request.given is None and _has_courses(snapshot) else None
    return None
