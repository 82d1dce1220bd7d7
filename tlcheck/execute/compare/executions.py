"""The executions that one request comes to: on all of its inputs, on those that are the author's alone, on others.

What a script passed is the author's word. Where it is not enough to decide, drawn inputs may be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tlcheck import reasons
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.run import execute
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Snapshot

_FURTHER = 2  # executions on inputs of other shapes
_FEW_BLOCKS = 2  # of each of these
_PART = 0.2  # of the seconds, for the inputs that a script passed: where that is not enough, others may need less


def executed(snapshot: Snapshot, request: Request) -> tuple[Execution, Request]:
    """What an execution came to, and the request that it answers.

    Raises UsageError for blocks that are not in the grid.
    """
    done, asked = _first(snapshot, request)
    if not done.is_settled or asked.given is not request.given:
        return done, asked
    also = []
    for other in request.further[:_FURTHER]:
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
        return execute(snapshot, request), request
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


def _others(request: Request) -> Iterator[Request]:
    """Requests for what a script passed alone, and for drawn inputs."""
    own = tuple(seed for seed in request.seeds if not request.drawn.get(seed))
    if own and own != request.seeds:
        yield replace(request, seeds=own)
    yield replace(request, given=None, drawn={}, captured=False, poisoned=frozenset())
