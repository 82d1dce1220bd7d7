"""Is what a finding claims true? Its witness looked up among the additions that the oracle finds."""

from __future__ import annotations

from collections import Counter
from math import prod

from tests.cpu.prove.oracle import Kernel
from tests.cpu.prove.oracle_run import Addition
from tests.cpu.prove.oracle_text import evaluate
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.claim import Claim, Finding
from tlcheck.witness import Addition as Witness

FOOTPRINT = frozenset(("TLA001", "TLA002", "TLA003", "TLA005", "TLA006", "TLA007"))


def untrue(snapshot: Snapshot, atomic: Claim) -> str:
    """Return what of a footprint rule's finding is not so; empty if all is. Raises UnsupportedError.

    What memory holds may decide whether a lane runs: it is enough that the finding is true of some content.
    """
    found = [_untrue(snapshot, atomic, content) for content in (None, 1)]
    return min(found, key=len)


def _untrue(snapshot: Snapshot, atomic: Claim, content: int | None) -> str:
    finding = atomic.finding
    assert finding is not None
    assert isinstance(finding.witness, Witness)
    instance = finding.witness.instance
    kernel = Kernel(snapshot, {n: v for n, v in instance.items() if not n.startswith("blockIdx")}, content)
    block = {tag: instance.get(tag, 0) for tag in kernel.blocks()[0]}
    want = [a for a in kernel.additions("intent", block) if a.root == atomic.buffer]
    have = [a for a in kernel.additions(finding.checkpoint, block) if a.root == atomic.buffer]
    capacity = prod(evaluate(e, kernel.sizes) for e in kernel.declared[atomic.buffer].shape)
    if not kernel.differs(finding.checkpoint, atomic.buffer, block):
        return "nothing differs in the witness's block"
    return _wrong(finding, finding.witness, want, have, capacity)


def _wrong(finding: Finding, w: Witness, want: list[Addition], have: list[Addition], capacity: int) -> str:
    meant = [a for a in want if (a.offset, a.element) == (w.intended, w.element)]
    lane = w.lane or 0
    made = [a for a in have if (a.offset, a.thread, a.lane) == (w.written, w.thread, lane)]
    made = [a for a in made if (a.width > 1) == (w.lane is not None)]
    if w.intended is not None and not meant:
        return f"{w.element} is not meant for {w.intended}"
    if w.written is not None and not made:
        return f"thread {w.thread}, lane {w.lane} does not write {w.written}"
    return _against(finding.rule, w, want, have, capacity)


def _against(rule: str, w: Witness, want: list[Addition], have: list[Addition], capacity: int) -> str:
    intended, actual = Counter(a.key for a in want), Counter(a.key for a in have)
    missing = {str(key) for key in intended - actual}
    extra = {str(key) for key in actual - intended}
    if rule == "TLA006" and not any(a.offset == w.intended and str(a.key) in missing for a in want):
        return f"{w.intended} gets all that is meant for it"
    if rule in ("TLA001", "TLA003", "TLA005") and not any(a.offset == w.written and str(a.key) in extra for a in have):
        return f"{w.written} gets nothing that is not meant for it"
    if rule in ("TLA001", "TLA003") and w.intended == w.written:
        return "it is written where it is meant to be"
    if rule == "TLA007" and (w.written is None or 0 <= w.written < capacity):
        return f"{w.written} is within {capacity} elements"
    if rule == "TLA002" and not any(a.offset == w.written and a.lane == 0 and a.offset % a.width for a in have):
        return f"{w.written} is aligned"
    return ""
