"""Find what is known of one atomic at one checkpoint: the same additions as intended, others (with a witness), or
undecided (and why).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from tlcheck import reasons
from tlcheck.program.matching import Match
from tlcheck.program.walk import Program
from tlcheck.prove.difference import FootprintDifference
from tlcheck.prove.fingerprints import UndecidedError
from tlcheck.prove.instances import first_of, refute
from tlcheck.prove.plans import CHANGED, Comparison, plans
from tlcheck.prove.read_times import retimed
from tlcheck.prove.stores import UnreadableError
from tlcheck.reasons import UNSAID, Reason
from tlcheck.witness import Addition

_ANOTHER_FORM = Reason(
    reasons.OTHER_FORM, "its additions have another form, and no instance was found that shows a wrong one"
)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """status: `same`, `different` (then `difference` holds a witness) or `undecided` (then `reason` says why).

    calls, stored: where the atomic has no counterpart, what else newly reaches its destination.
    scopes: memory of each orphan of the match. compared: what it is about, None where rules can say nothing of it.
    """

    checkpoint: str
    match: Match
    status: str
    difference: FootprintDifference | None = None
    reason: Reason = UNSAID
    calls: tuple[str, ...] = ()
    stored: bool = False
    scopes: tuple[str, ...] = ()
    compared: Comparison | None = None

    @property
    def first(self) -> Addition | None:
        """The first addition in the source, for rules about instructions; few ask for it."""
        return None if self.compared is None else first_of(self.compared)


def evidence(comparison: Comparison) -> Evidence:
    """Compare the sites of one match with what was written, in the simplest way that decides."""
    found, stage = comparison.match, comparison.stage
    if not found.sites:
        scopes = tuple(o.target.buffer.scope or _scope(stage.program, o.target.root) for o in found.orphans)
        reason = Reason(reasons.NO_COUNTERPART, "it has no counterpart here")
        return Evidence(stage.checkpoint, found, "undecided", None, reason, scopes=scopes, compared=comparison)
    late = retimed(comparison)
    doubt = stage.doubt or (Reason(reasons.TIMING, late) if late else UNSAID)
    if doubt:
        return Evidence(stage.checkpoint, found, "undecided", None, doubt, compared=comparison)
    doubts: list[Reason] = []
    shown: FootprintDifference | None = None
    refuted = cache(lambda: refute(comparison))  # it depends on no plan
    for plan in plans(comparison):
        try:
            if plan.holds():
                return Evidence(stage.checkpoint, found, "same", compared=comparison)
            if plan.is_shortcut:
                continue
            doubts.append(_ANOTHER_FORM)
            shown = refuted()
        except (UndecidedError, UnreadableError) as error:
            doubts += [] if plan.is_shortcut else [error.reason]
        if shown is not None:
            return Evidence(stage.checkpoint, found, "different", shown, compared=comparison)
    try:
        shown = refuted()
    except UndecidedError as error:
        doubts.insert(0, error.reason)
    if shown is None:
        reason = next((r for r in doubts if r != CHANGED), Reason(reasons.OTHER_FORM, CHANGED))
        return Evidence(stage.checkpoint, found, "undecided", None, reason)
    return Evidence(stage.checkpoint, found, "different", shown, compared=comparison)


def at(found: Evidence, checkpoint: str) -> Evidence:
    """The same evidence at another checkpoint, whose function is equal."""
    compared = found.compared
    if compared is not None:
        compared = replace(compared, stage=replace(compared.stage, checkpoint=checkpoint))
    return replace(found, checkpoint=checkpoint, compared=compared)


def _scope(program: Program, root: str) -> str:
    buffer = program.buffers.get(root)
    return buffer.scope if buffer is not None else ""
