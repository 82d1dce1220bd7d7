"""The claims of one snapshot: every atomic in the source is proved, refuted (with a witness) or undecided (with the
reason).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tlcheck import reasons
from tlcheck.errors import fault
from tlcheck.lower.runs import release_of
from tlcheck.program.atomics import Site, atomic_name, unread_because
from tlcheck.program.parted_tiles import is_parted_always, parted_tiles, said
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot, evidences, subject
from tlcheck.reasons import UNSAID, Reason
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Expr, Snapshot
from tlcheck.snapshot.text import render_layout
from tlcheck.verdicts import loads_and_stores
from tlcheck.verdicts.claim import (
    PROVED,
    REFUTED,
    UNDECIDED,
    Claim,
    Finding,
    FindingOrigin,
    OriginKind,
    Standing,
    Status,
    Verdict,
)
from tlcheck.verdicts.excerpts import excerpt, source_line
from tlcheck.verdicts.remedies import pass_config
from tlcheck.verdicts.rules.library import unmeasured
from tlcheck.verdicts.rules.rule import Broken, Rule, rules
from tlcheck.witness import Witness


@dataclass(frozen=True, slots=True)
class AtomicReport:
    """All claims of one snapshot. problem: why it counts as not checked, empty if it was. unjudged: atomics that are
    none of them, in words.
    """

    claims: tuple[Claim, ...]
    problem: str = ""
    unjudged: tuple[str, ...] = ()

    def count(self, verdict: str) -> int:
        """Number of claims with a verdict."""
        return sum(1 for claim in self.claims if claim.verdict == verdict)


def judge_atomics(snapshot: Snapshot) -> AtomicReport:
    """Judge every atomic of a snapshot."""
    of = subject(snapshot)
    problem = _problem(of)
    plain = tuple(loads_and_stores.claims(of))
    unjudged = tuple(loads_and_stores.not_judged(of, plain))
    if problem:
        return AtomicReport((), problem, unjudged)
    found = list(evidences(of))
    judged = tuple(_judge(of, group, found) for group in _groups(of.source))
    unread = tuple(_unread(snapshot, call) for call in of.unread)
    return AtomicReport(judged + unread + plain, unjudged=unjudged)


def _unread(snapshot: Snapshot, call: Expr) -> Claim:
    """An atomic among others that were read: without a place and a destination, but not left out."""
    name = atomic_name(call)
    reason = Reason(reasons.UNREAD_ATOMIC, unread_because(call))
    return Claim("atomic", f"? {name}", "?", source_line(snapshot, 0), UNDECIDED, "proof", call=name).because(reason)


def _problem(of: PreparedSnapshot) -> str:
    if Checkpoint.INTENT not in of.programs:
        return "the snapshot does not have the kernel as written (no pass LayoutInference was seen)"
    if not any(name not in (Checkpoint.SOURCE, Checkpoint.INTENT) for name in of.programs):
        return "the snapshot has nothing after the kernel as written"
    if of.unread and not of.source:
        return "none of its atomics could be read"
    if not of.source and of.hides(of.reference):
        return "parts of the kernel were not understood, and there is no atomic in the rest"
    return ""


_HAZARDS = ("TLA010",)  # the sums are right
_KINDS: Mapping[str, OriginKind] = {
    "TLA001": "other-index",
    "TLA002": "illegal",
    "TLA003": "other-operand",
    "TLA004": "illegal",
    "TLA005": "repeated",
    "TLA006": "incomplete",
    "TLA007": "illegal",
    "TLA008": "other-index",
    "TLA011": "other-index",
    "TLA013": "illegal",
}


def _groups(sites: Sequence[Site]) -> list[tuple[Site, ...]]:
    """Sites of one source line are one atomic in the source: newer releases peel loops before LayoutInference."""
    groups: dict[object, list[Site]] = {}
    for site in sites:
        line = site.placed.stmt.line
        key = (line, site.target.root, site.instruction) if line else id(site)
        groups.setdefault(key, []).append(site)
    return [tuple(g) for g in groups.values()]


def _judge(of: PreparedSnapshot, group: Sequence[Site], found: Sequence[Evidence]) -> Claim:
    own = [e for e in found if any(w in group for w in e.match.source)]
    try:
        verdict, reason, finding = _decided(of, own)
    except Exception as error:
        verdict, reason, finding = UNDECIDED, Reason(reasons.INTERNAL, fault(error)), None
    first = group[0]
    parted = _parted(of.snapshot, first.placed.stmt.line) if verdict in (REFUTED, PROVED) else UNSAID
    if parted:
        verdict, reason, finding = UNDECIDED, parted, None
    last = [e for e in own if e.checkpoint == own[-1].checkpoint] if own else []
    return Claim(
        kind="atomic",
        key=f"{first.target.root} {first.operation}",
        buffer=first.target.root,
        source=source_line(of.snapshot, first.placed.stmt.line),
        verdict=verdict,
        basis="proof",
        stages=_stages(own),
        call=first.instruction,
        instructions=tuple(dict.fromkeys(s.instruction for e in last for s in e.match.sites)),
        finding=finding,
        not_source=of.not_source,
    ).because(reason)


def _parted(snapshot: Snapshot, line: int) -> Reason:
    """Say that not all threads reach the tile operator that an atomic of this line is, or is in; empty if all do."""
    source = snapshot.checkpoints.get(Checkpoint.SOURCE)
    if source is None or not line:
        return UNSAID
    found = (tile for tile in parted_tiles(source) if line in tile.lines and is_parted_always(source, tile))
    return next((Reason(reasons.SOURCE_UNCLEAR, said(tile.name, tile.line)) for tile in found), UNSAID)


def _decided(of: PreparedSnapshot, own: Sequence[Evidence]) -> tuple[Verdict, Reason, Finding | None]:
    broken = [(e, rule, b) for e in own for rule in rules() if rule.check and (b := rule.check(of, e)) is not None]
    if broken and _is_mended(own, broken):
        evidence, _, first = broken[0]
        text = f"at {evidence.checkpoint} {first.what}, and at {Checkpoint.DEVICE_TIR} the additions are right again"
        return UNDECIDED, Reason(reasons.NOT_SHOWN, text), None
    finding = _finding(of, broken)
    verdict, reason = _verdict(of, own, finding)
    if finding is None and broken:  # by instructions: the additions are the same, or not followed
        evidence, _, first = broken[0]
        text = f"at {evidence.checkpoint} {first.what}, but no addition was found that shows it"
        return UNDECIDED, Reason(reasons.NOT_SHOWN, text), None
    return verdict, reason, finding


def _is_mended(own: Sequence[Evidence], broken: Sequence[tuple[Evidence, Rule, Broken]]) -> bool:
    """Whether the device gets what is written all the same, such as by a guard that a later pass puts around it."""
    last = [e for e in own if e.checkpoint == Checkpoint.DEVICE_TIR]
    is_right = bool(last) and all(e.status == "same" for e in last)
    return is_right and all(e.checkpoint != Checkpoint.DEVICE_TIR for e, *_ in broken)


def _verdict(of: PreparedSnapshot, own: Sequence[Evidence], finding: Finding | None) -> tuple[Verdict, Reason]:
    """The verdict, and the reason where it is undecided."""
    if finding is not None:
        return REFUTED, UNSAID
    undecided = next((e for e in own if e.status != "same"), None)
    if undecided is not None or not own:
        return UNDECIDED, _reason(undecided)
    if Checkpoint.DEVICE_TIR not in of.programs:
        text = f"the snapshot ends at {own[-1].checkpoint}: later passes are not seen"
        return UNDECIDED, Reason(reasons.INCOMPLETE, text)
    if reason := _unmeasured(of, own):
        return UNDECIDED, reason
    return PROVED, UNSAID


def _unmeasured(of: PreparedSnapshot, own: Sequence[Evidence]) -> Reason:
    """A call of the device library of which it is not known what it does; empty if there is none."""
    for evidence in own:
        for _, made in of.calls(evidence.match.sites, evidence.checkpoint):
            if made.call is not None and made.behaviour is None:
                return unmeasured(of, made.call)
    return UNSAID


def _reason(evidence: Evidence | None) -> Reason:
    if evidence is None:
        return Reason(reasons.INCOMPLETE, "nothing was lowered")
    if evidence.calls:
        text = f"at {evidence.checkpoint} {', '.join(evidence.calls)} adds it, which is not understood"
        return Reason(reasons.UNKNOWN_CALL, text)
    return Reason(evidence.reason.kind, f"at {evidence.checkpoint} {evidence.reason}")


def _stages(own: Sequence[Evidence]) -> tuple[Standing, ...]:
    """The worst status at each checkpoint."""
    order: tuple[Status, ...] = ("same", "undecided", "different")
    worst: dict[str, int] = {}
    for e in own:
        worst[e.checkpoint] = max(worst.get(e.checkpoint, 0), order.index(e.status))
    return tuple(Standing(checkpoint, order[place]) for checkpoint, place in worst.items())


def _finding(of: PreparedSnapshot, broken: Sequence[tuple[Evidence, Rule, Broken]]) -> Finding | None:
    """The first rule that an addition shows to be broken, and the names of the others."""
    shown = [(e, rule, b, b.witness) for e, rule, b in broken if b.witness is not None]
    if not shown:
        return None
    evidence, rule, first, witness = shown[0]
    snapshot, checkpoint = of.snapshot, evidence.checkpoint
    buffer = evidence.match.source[0].target.root
    layout = of.memory.layouts.get(buffer)
    sites = evidence.match.sites or evidence.match.orphans
    stmt = sites[first.site].placed.stmt if first.site < len(sites) else None
    return Finding(
        rule=rule.id,
        name=rule.name,
        title=rule.title,
        others=tuple(dict.fromkeys(r.id for _, r, *_ in shown if r.id != rule.id)),
        checkpoint=checkpoint,
        pass_name="" if first.own else snapshot.pass_at(checkpoint),
        what=first.what,
        witness=witness,
        words=witness.words(buffer),
        advice=first.advice,
        pass_config=pass_config(rule.id, checkpoint, release_of(snapshot.toolchain)),
        layout=render_layout(layout) if layout is not None else "",
        excerpt=excerpt(snapshot, checkpoint, stmt),
        origin=_origin(rule.id, evidence.match.source[0], buffer, witness),
        blame="author" if first.own else "compiler",
        weight="hazard" if rule.id in _HAZARDS else "error",
    )


def _origin(rule: str, site: Site, buffer: str, witness: Witness) -> FindingOrigin:
    """The atomic itself, and the lane or the addition that shows it."""
    line = site.placed.stmt.line
    at = f" at line {line}" if line else ""
    words = f"the atomic of {buffer}{at}: {witness.words(buffer)}"
    return FindingOrigin(_KINDS.get(rule, "other-value"), line, 0, (buffer,), words)
