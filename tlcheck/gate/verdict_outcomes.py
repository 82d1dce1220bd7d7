"""Find what became of the verdicts of one kernel's claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlcheck.gate.outcome import Outcome
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.results import Result

WORST_FIRST = ("refuted", "undecided", "agreed", "proved")
_OF_LOWERED = ("order", "legality")  # about buffers as lowered: a release may make others of the same kernel
Name = tuple[str, str]


def verdict_outcomes(before: Sequence[Claim], after: Sequence[Claim]) -> Iterator[Outcome]:
    """One for each claim whose verdict changed. A claim is known by its kind, its key and its place among those with
    the same; releases that copy loops before the first checkpoint may have an atomic several times. What another claim
    explains is told with that.
    """
    explained = {id(other) for claim in (*before, *after) for other in claim.also}
    old, new = _keyed(all_claims(before), all_claims(after)), _keyed(all_claims(after), all_claims(before))
    for key in dict.fromkeys([*new, *old]):
        was, now = old.get(key), new.get(key)
        if id(now) in explained or (id(was) in explained and (now is None or now.is_clean)):
            continue
        outcome = _compared(was, now)
        if outcome is not None:
            yield outcome


def all_claims(claims: Sequence[Claim]) -> list[Claim]:
    """Claims, and those that they explain."""
    return [one for claim in claims for one in (claim, *claim.also)]


def wrong_claims(result: Result) -> list[Claim]:
    """Return the claims that blame the compiler, errors before hazards."""
    found = [c for c in all_claims(result.claims) if c.blames_compiler and c.finding is not None]
    return sorted(found, key=lambda c: c.finding is not None and c.finding.weight != "error")


def wrong_claim(result: Result) -> Claim:
    """Return the claim to speak of: the first error that blames the compiler, else the first hazard."""
    return wrong_claims(result)[0]


def _keyed(claims: Sequence[Claim], others: Sequence[Claim]) -> dict[tuple[Name, int], Claim]:
    """Return claims by name and number; where the other side has fewer or more, the worst stands for all."""
    groups, other = _groups(claims), _groups(others)
    found: dict[tuple[Name, int], Claim] = {}
    for name, group in groups.items():
        alike = len(other.get(name, group)) == len(group)
        members = group if alike else [min(group, key=lambda a: WORST_FIRST.index(a.verdict))]
        found.update({(name, number): claim for number, claim in enumerate(members)})
    return found


def _groups(claims: Sequence[Claim]) -> dict[Name, list[Claim]]:
    groups: dict[Name, list[Claim]] = {}
    for claim in claims:
        groups.setdefault((claim.kind, claim.key), []).append(claim)
    return groups


def _compared(old: Claim | None, new: Claim | None) -> Outcome | None:
    if new is None:
        return _gone(old) if old is not None and old.is_clean and old.kind not in _OF_LOWERED else None
    was = old.verdict if old is not None else "not there"
    if new.finding is not None:
        return _refuted(old, new, was)
    if new.verdict == was:
        return None
    if new.verdict == "undecided":
        klass = "weaker" if old is None or old.is_clean else "changed"
        return _outcome(
            klass, "undecided", was, f"undecided: {new.coded}", new, f"undecided now, {_was(old)}", new.reason
        )
    if was in ("refuted", "undecided"):
        kind = old.finding.rule if old is not None and old.finding is not None else "undecided"
        return _outcome("fixed", kind, _was(old), new.verdict, new, f"{new.verdict} now, {_was(old)}")
    if (was, new.verdict, new.kind) == ("proved", "agreed", "atomic"):
        return _outcome("changed", "agreed", was, "agreed", new, "agreed now on what was executed, was proved")
    return None


def _refuted(old: Claim | None, new: Claim, was: str) -> Outcome | None:
    finding = new.finding
    assert finding is not None
    if old is not None and old.finding is not None:
        if old.finding.rule == finding.rule:
            return None
        words = f"refuted by {finding.rule} now, {_was(old)}"
        return _outcome("changed", finding.rule, _was(old), finding.rule, new, words)
    if new.kind == "source":  # the source is the same on both sides: the other one was not seen to have it
        words = f"{finding.what} ({finding.rule} {finding.name}); {_was(old)}"
        return _outcome("changed", finding.rule, was, f"{finding.rule} {finding.name}", new, words)
    expected = "; the case expects it of this release" if new.excuse is not None else ""
    words = f"{finding.what} ({finding.rule} {finding.name}, at {finding.checkpoint}); {_was(old)}{expected}"
    klass = "hazard" if finding.weight == "hazard" else "wrong"
    return _outcome(klass, finding.rule, was, f"{finding.rule} {finding.name}", new, words)


def _gone(old: Claim) -> Outcome:
    words = f"the {old.kind} is no longer seen, it was {old.verdict}"
    return _outcome("weaker", "unseen", old.verdict, "not seen", old, words)


def _was(old: Claim | None) -> str:
    if old is None:
        return "was not there"
    return f"was refuted ({old.finding.rule})" if old.finding is not None else f"was {old.verdict}"


def _outcome(klass: str, kind: str, before: str, after: str, claim: Claim, words: str, detail: str = "") -> Outcome:
    sentence = f"{claim.buffer}: {words}"
    return Outcome(
        klass,
        kind,
        before,
        after,
        sentence,
        claim.buffer,
        claim.source.line,
        detail,
        claim.finding if klass in ("wrong", "hazard") else None,
    )
