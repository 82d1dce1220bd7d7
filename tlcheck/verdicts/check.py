"""The verdicts of one snapshot: every atomic as written is proved, refuted (with a witness) or undecided (with the
reason).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlcheck.program.atomics import Site, atomic_name
from tlcheck.prove.difference import Witness
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import LOWERED, Subject, evidences, subject
from tlcheck.snapshot.ir import Expr, Layout, Snapshot, Stmt
from tlcheck.verdicts.rules.rule import Broken, Rule, rules

LAST = LOWERED[-1]
PROVED, REFUTED, UNDECIDED = "proved", "refuted", "undecided"


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """One rule broken at one atomic, at the earliest checkpoint and by the most basic rule; `also` names the others.

    pass_name: the pass after which the checkpoint was taken. stmt: the atomic there, for the TIR line; None where it
    is gone.
    layout: the destination's, if it has one.
    """

    rule: Rule
    checkpoint: str
    pass_name: str
    what: str
    witness: Witness
    advice: str
    also: tuple[str, ...]
    stmt: Stmt | None
    layout: Layout | None


@dataclass(frozen=True, slots=True, eq=False)
class Atomic:
    """An atomic as written, and its verdict.

    buffer: the destination. call: its spelling in the kernel. line: in the kernel's file, 0 if unknown.
    checkpoints: how it fared at each: `same`, `different` or `undecided`. instructions: what it became at the last one.
    """

    buffer: str
    call: str
    operation: str
    line: int
    verdict: str
    reason: str
    finding: Finding | None
    checkpoints: tuple[tuple[str, str], ...]
    instructions: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """All atomics of one snapshot. problem: why it counts as not checked, empty if it was."""

    snapshot: Snapshot
    atomics: tuple[Atomic, ...]
    problem: str = ""

    def count(self, verdict: str) -> int:
        """Number of atomics with a verdict."""
        return sum(1 for a in self.atomics if a.verdict == verdict)


def check(snapshot: Snapshot) -> Report:
    """Judge every atomic of a snapshot."""
    of = subject(snapshot)
    problem = _problem(of)
    if problem:
        return Report(snapshot, (), problem)
    found = list(evidences(of))
    judged = tuple(_judge(of, group, found) for group in _groups(of.written))
    return Report(snapshot, judged + tuple(_unread(call) for call in of.found["intent"].unread))


def _unread(call: Expr) -> Atomic:
    """An atomic among others that were read: without a place and a destination, but not left out."""
    name = atomic_name(call)
    return Atomic("?", name, "", 0, UNDECIDED, f"the arguments of {name} are not understood", None, (), ())


def _problem(of: Subject) -> str:
    if "intent" not in of.programs:
        return "the snapshot does not have the kernel as written (no pass LayoutInference was seen)"
    if len(of.programs) == 1:
        return "the snapshot has nothing after the kernel as written"
    if of.unread and not of.written:
        return "none of its atomics could be read"
    if not of.written and of.opaque("intent"):
        return "parts of the kernel were not understood, and there is no atomic in the rest"
    return ""


def _groups(written: Sequence[Site]) -> list[tuple[Site, ...]]:
    """Sites of one source line are one atomic as written: newer releases peel loops before LayoutInference."""
    groups: dict[object, list[Site]] = {}
    for site in written:
        line = site.placed.stmt.line
        key = (line, site.target.root, site.instruction) if line else id(site)
        groups.setdefault(key, []).append(site)
    return [tuple(g) for g in groups.values()]


def _judge(of: Subject, group: Sequence[Site], found: Sequence[Evidence]) -> Atomic:
    own = [e for e in found if any(w in group for w in e.match.written)]
    finding = _finding(of, own)
    undecided = next((e for e in own if e.status != "same"), None)
    if finding is not None:
        verdict, reason = REFUTED, ""
    elif undecided is not None or not own:
        verdict, reason = UNDECIDED, _reason(undecided)
    elif LAST not in of.programs:
        verdict, reason = UNDECIDED, f"the snapshot ends at {own[-1].checkpoint}: later passes are not seen"
    else:
        verdict, reason = PROVED, ""
    last = [e for e in own if e.checkpoint == own[-1].checkpoint] if own else []
    return Atomic(
        group[0].target.root,
        group[0].instruction,
        group[0].operation,
        group[0].placed.stmt.line,
        verdict,
        reason,
        finding,
        _statuses(own),
        tuple(dict.fromkeys(s.instruction for e in last for s in e.match.sites)),
    )


def _reason(evidence: Evidence | None) -> str:
    if evidence is None:
        return "nothing was lowered"
    if evidence.calls:
        return f"at {evidence.checkpoint} {', '.join(evidence.calls)} adds it, which is not understood"
    return f"at {evidence.checkpoint} {evidence.reason}"


def _statuses(own: Sequence[Evidence]) -> tuple[tuple[str, str], ...]:
    """The worst status at each checkpoint."""
    order = ("same", "undecided", "different")
    worst: dict[str, str] = {}
    for e in own:
        worst[e.checkpoint] = max(worst.get(e.checkpoint, "same"), e.status, key=order.index)
    return tuple(worst.items())


def _finding(of: Subject, own: Sequence[Evidence]) -> Finding | None:
    broken = [(e, rule, b) for e in own for rule in rules() if (b := rule.check(of, e)) is not None]
    if not broken:
        return None
    evidence, rule, first = broken[0]
    also = tuple(dict.fromkeys(r.id for _, r, _ in broken if r.id != rule.id))
    return Finding(
        rule,
        evidence.checkpoint,
        of.snapshot.passes.get(evidence.checkpoint, ""),
        first.what,
        first.witness,
        first.advice,
        also,
        _statement(evidence, first),
        of.memory.layouts.get(evidence.match.written[0].target.root),
    )


def _statement(evidence: Evidence, broken: Broken) -> Stmt | None:
    sites = evidence.match.sites or evidence.match.orphans
    number = broken.witness.site
    return sites[number].placed.stmt if number < len(sites) else None
