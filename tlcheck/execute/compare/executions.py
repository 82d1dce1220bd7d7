"""The executions that one request comes to: on all of its inputs, on those that are the author's alone, on others.

What a script passed is the author's word. Where it is not enough to decide, drawn inputs may be; where drawn indices
race because two are equal, others are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from tlcheck import reasons
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.faults import RACE, Fault
from tlcheck.execute.request import SOURCE, Request
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.execute.worlds.inputs import Course
from tlcheck.execute.worlds.sizes import others
from tlcheck.snapshot.ir import Snapshot, Store
from tlcheck.snapshot.walk import postorder
from tlcheck.targets.lookup import target

_FURTHER = 2  # executions on inputs of other shapes
_FEW_BLOCKS = 2  # of each of these
_PART = 0.2  # of the seconds, for the inputs that a script passed: where that is not enough, others may need less


def executed(snapshot: Snapshot, request: Request) -> tuple[Execution, Request]:
    """Return what an execution came to, and the request that it answers.

    Raises UsageError for blocks that are not in the grid.
    """
    done, asked = _first(snapshot, request)
    if not done.is_settled or asked.given is not request.given:
        return done, asked
    also = []
    for other in request.further[:_FURTHER] if asked.given is not None else _of_other_sizes(snapshot, asked, done):
        blocks = min(_FEW_BLOCKS, other.blocks) if isinstance(other.blocks, int) else other.blocks
        few = replace(other, seeds=other.seeds[:1], blocks=blocks, cost=False)
        found = execute(snapshot, few)
        if not found.is_clean or (few.is_own and found.is_refuted):
            return found, few
        if found.is_settled:
            also.append(found.sizes)
    return replace(done, also=tuple(also)), asked


def _first(snapshot: Snapshot, request: Request) -> tuple[Execution, Request]:
    """The execution on the inputs of the request, or on fewer or others where that decides more."""
    if not request.captured:
        done = execute(snapshot, request)
        return (done, request) if request.given is not None else _without_races(snapshot, request, done)
    less = replace(request.budget, seconds=_PART * request.budget.seconds)
    done = execute(snapshot, replace(request, budget=less))
    if done.is_settled or not done.is_clean or (request.is_own and done.is_refuted):
        return done, request
    tried = [(done, request)]
    for other in _others(request):
        if any(outcome.reason.code == reasons.OUT_OF_MEMORY.code for outcome in tried[-1][0].outputs):
            break
        tried.append((execute(snapshot, other), other))
        found = tried[-1][0]
        accuses = not found.is_clean and (other.captured or not any(each.blocks for each, _ in tried[:-1]))
        if found.is_settled or accuses or (other.is_own and found.is_refuted):
            return tried[-1]
    if tried[-1][1].given is None and any(each.blocks for each, _ in tried[:-1]):
        tried.pop()  # what the script excludes is no accusation
    return max(tried, key=lambda pair: sum(outcome.verdict == "agreed" for outcome in pair[0].outputs))


def _of_other_sizes(snapshot: Snapshot, request: Request, done: Execution) -> Iterator[Request]:
    """Requests for other sizes than those that were drawn."""
    if isinstance(request.blocks, int) and SOURCE in snapshot.checkpoints:
        most = target(snapshot.target).limits.grid
        for chosen in others(snapshot.checkpoints[SOURCE], dict(done.sizes), most):
            less = replace(request.budget, seconds=_PART * request.budget.seconds)
            yield replace(request, course=Course(named=tuple(chosen.items())), budget=less)


def _without_races(snapshot: Snapshot, request: Request, done: Execution) -> tuple[Execution, Request]:
    """The execution, or one in which no two indices are equal: where equal ones race, callers pass none.

    It counts only if all agrees: what is wrong there may come of numbers that no caller passes either.
    """
    racing = [fault for fault in done.faults if fault.problem == RACE and fault.open]
    if not racing or not all(map(_is_scattered, racing)) or not done.is_clean or done.is_refuted:
        return done, request
    with suppress(Stopped):
        levels = levels_of(snapshot, request)
        draw = levels.distinct(levels.source_run[1])
        if draw.distinct:
            other = replace(request, course=replace(levels.course, draw=draw))
            found = execute(snapshot, other)
            if found.is_settled:
                return found, other
    return done, request


def _is_scattered(race: Fault) -> bool:
    """Whether a statement races with itself for what it only writes: one that counts is meant to meet itself."""
    stmts = {access.origin.stmt for access in (race.first, race.second) if access is not None}
    if len(stmts) != 1:
        return False
    (stmt,) = stmts
    if not isinstance(stmt, Store):
        return False
    return all(e.buffer is None or e.buffer.data.uid != stmt.buffer.data.uid for e in postorder([stmt.value]))


def _others(request: Request) -> Iterator[Request]:
    """Requests for what a script passed alone, and for drawn inputs."""
    own = tuple(seed for seed in request.seeds if not request.drawn.get(seed))
    if own and own != request.seeds:
        yield replace(request, seeds=own)
    yield replace(request, given=None, drawn={}, captured=False, poisoned=frozenset())
