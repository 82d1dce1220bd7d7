"""Barriers of the source that some threads of the block miss: what TileLang makes of them, and what they leave open.

TileLang makes a barrier of one in a branch for which only the threads of the branch wait, and puts none of its own
beside it. Accesses that race around it are the author's.
"""

from __future__ import annotations

from dataclasses import replace

from tlcheck import reasons
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.faults import Faults
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.observe.attribution import Attributed
from tlcheck.execute.observe.races import A_BARRIER, Race
from tlcheck.execute.stops import Illegal
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.reasons import UNSAID, Reason
from tlcheck.signatures.barriers import is_sync_threads
from tlcheck.snapshot.ir import Evaluate, Function, Stmt
from tlcheck.snapshot.walk import statements


def said_of(missed: Illegal | None) -> Reason:
    """The reason that threads of the source miss a barrier; empty where none do."""
    if missed is None:
        return UNSAID
    where = f" (line {missed.line})" if missed.line else ""
    return Reason(reasons.SOURCE_STOPS, f"the author's: as written, {missed}{where}")


def where_endless(done: Execution, levels: BothLevels) -> Execution:
    """The execution; where larger numbers would lead further, and there into a wait without an end, nothing agreed."""
    if not done.is_settled or (endless := levels.endless) is None:
        return done
    faults, reason = Faults(levels.source, levels.sizes, 0, levels.request.is_own), said_of(endless)
    fault = faults.of_illegal(endless, endless.block, reason, hangs=True)
    outputs = tuple([OutputOutcome(outcome.name, "undecided", reason) for outcome in done.outputs])
    return replace(done, outputs=outputs, faults=done.faults if fault is None else (*done.faults, fault), formulas=None)


def without_own(whose: Attributed, lowered: Function, missed: Illegal | None) -> Attributed:
    """The races without those between which such a barrier stands: nothing is known of the order there."""
    if missed is None:
        return whose
    own = [race for race in whose.races if race.missing == A_BARRIER and _has_part_between(lowered, race)]
    ordered = {**whose.ordered, **{race.name: said_of(missed) for race in own}}
    return replace(whose, ordered=ordered, races=tuple([race for race in whose.races if race not in own]))


def _has_part_between(lowered: Function, race: Race) -> bool:
    """Whether a barrier of some threads of the block stands between two accesses, or before the next iteration's."""
    places = {id(stmt): place for place, stmt in enumerate(statements(lowered.body))}
    first, second = (places.get(id(access.origin.stmt), -1) for access in (race.first, race.second))
    parts = [places[id(stmt)] for stmt in statements(lowered.body) if _is_of_some(stmt)]
    if first < second:
        return any(first < part < second for part in parts)
    return any(part > first or part < second for part in parts)


def _is_of_some(stmt: Stmt) -> bool:
    """Whether a statement is a barrier that says how many threads it counts."""
    if not isinstance(stmt, Evaluate) or not is_sync_threads(stmt.value):
        return False
    return sum(argument.op == "int" for argument in stmt.value.args) == 2
