"""What became of the verdicts of one kernel's atomics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlcheck.gate.outcome import Outcome
from tlcheck.verdicts.results import AtomicResult

_WORST_FIRST = ("refuted", "undecided", "proved")
Key = tuple[str, str, int]


def verdict_outcomes(before: Sequence[AtomicResult], after: Sequence[AtomicResult]) -> Iterator[Outcome]:
    """One for each atomic whose verdict changed. An atomic is known by its destination, operation and place among
    those; releases that copy loops before the first checkpoint may have it several times.
    """
    old, new = _keyed(before, after), _keyed(after, before)
    for key in dict.fromkeys([*new, *old]):
        outcome = _compared(old.get(key), new.get(key))
        if outcome is not None:
            yield outcome


def _keyed(atomics: Sequence[AtomicResult], others: Sequence[AtomicResult]) -> dict[Key, AtomicResult]:
    """By destination, operation and number; where the other side has fewer or more, the worst stands for all."""
    groups, other = _groups(atomics), _groups(others)
    found: dict[Key, AtomicResult] = {}
    for (buffer, operation), group in groups.items():
        alike = len(other.get((buffer, operation), group)) == len(group)
        members = group if alike else [min(group, key=lambda a: _WORST_FIRST.index(a.verdict))]
        found.update({(buffer, operation, number): atomic for number, atomic in enumerate(members)})
    return found


def _groups(atomics: Sequence[AtomicResult]) -> dict[tuple[str, str], list[AtomicResult]]:
    groups: dict[tuple[str, str], list[AtomicResult]] = {}
    for atomic in atomics:
        groups.setdefault((atomic.buffer, atomic.operation), []).append(atomic)
    return groups


def _compared(old: AtomicResult | None, new: AtomicResult | None) -> Outcome | None:
    if new is None:
        return _gone(old) if old is not None and old.verdict == "proved" else None
    was = old.verdict if old is not None else "not there"
    if new.finding is not None:
        return _refuted(old, new, was)
    if new.verdict == was:
        return None
    if new.verdict == "undecided":
        klass = "weaker" if was in ("proved", "not there") else "changed"
        return _outcome(
            klass, "undecided", was, f"undecided: {new.reason}", new, f"undecided now, {_was(old)}", new.reason
        )
    if was in ("refuted", "undecided"):
        kind = old.finding.rule if old is not None and old.finding is not None else "undecided"
        return _outcome("fixed", kind, _was(old), "proved", new, f"proved now, {_was(old)}")
    return None


def _refuted(old: AtomicResult | None, new: AtomicResult, was: str) -> Outcome | None:
    finding = new.finding
    assert finding is not None
    if old is not None and old.finding is not None:
        if old.finding.rule == finding.rule:
            return None
        words = f"refuted by {finding.rule} now, {_was(old)}"
        return _outcome("changed", finding.rule, _was(old), finding.rule, new, words)
    expected = "; the case expects it of this release" if new.excuse is not None else ""
    words = f"{finding.what} ({finding.rule} {finding.name}, at {finding.checkpoint}); {_was(old)}{expected}"
    return _outcome("wrong", finding.rule, was, f"{finding.rule} {finding.name}", new, words)


def _gone(old: AtomicResult) -> Outcome:
    return _outcome("weaker", "unseen", "proved", "not seen", old, "the atomic is no longer seen, it was proved")


def _was(old: AtomicResult | None) -> str:
    if old is None:
        return "was not there"
    return f"was refuted ({old.finding.rule})" if old.finding is not None else f"was {old.verdict}"


def _outcome(
    klass: str, kind: str, before: str, after: str, atomic: AtomicResult, words: str, detail: str = ""
) -> Outcome:
    sentence = f"{atomic.buffer}: {words}"
    return Outcome(
        klass,
        kind,
        before,
        after,
        sentence,
        atomic.buffer,
        atomic.source.number,
        detail,
        atomic.finding if klass == "wrong" else None,
    )
