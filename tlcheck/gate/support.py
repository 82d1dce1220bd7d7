"""Find what the claims say about a difference: whether what it may have broken still holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlcheck.gate.verdict_outcomes import WORST_FIRST, all_claims
from tlcheck.verdicts.claim import Claim

_KINDS = {"atomic": "additions", "output": "outputs", "order": "order", "legality": "legality"}


def support_in_words(subject: str, before: Sequence[Claim], after: Sequence[Claim]) -> str:
    """`outputs still agreed, order of A_shared still agreed`: of each kind the worst verdict.

    subject: the buffers that a difference is about. Where a kind has claims about these, they count, else all of it.
    """
    said = list(_each(subject.split(", "), all_claims(before), all_claims(after)))
    return ", ".join(said) or "nothing is claimed of it"


def _each(subjects: Sequence[str], before: Sequence[Claim], after: Sequence[Claim]) -> Iterator[str]:
    for kind, noun in _KINDS.items():
        own = {claim.buffer for claim in after if claim.kind == kind} & set(subjects)
        now, was = (_worst(claims, kind, own) for claims in (after, before))
        if now:
            of = f" of {', '.join(sorted(own))}" if own and kind != "output" else ""
            yield f"{noun}{of} {'still ' if now == was else ''}{now}"


def _worst(claims: Sequence[Claim], kind: str, own: set[str]) -> str:
    """The worst verdict of a kind, of these buffers where there are any; empty without one."""
    found = [claim.verdict for claim in claims if claim.kind == kind and (not own or claim.buffer in own)]
    return min(found, key=WORST_FIRST.index, default="")
