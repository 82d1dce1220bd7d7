"""Results in words, the same in every format for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from tlcheck.scope.claim_scope import ALL
from tlcheck.verdicts.claim import Claim, Kind
from tlcheck.verdicts.results import Result

VERDICTS = ("proved", "agreed", "refuted", "undecided", "expected", "accepted", "warning")
_NOUNS: Mapping[Kind, str] = {
    "atomic": "atomic",
    "output": "output",
    "order": "order claim",
    "legality": "legality claim",
    "source": "source claim",
}


def element_in_words(buffer: str, element: Mapping[str, Any]) -> str:
    """`B[0] is 128, expected 512`."""
    index = ", ".join(map(str, element["index"]))
    return f"{buffer}[{index}] is {element['got']}, expected {element['expected']}"


def counts_in_words(results: Iterable[Result]) -> str:
    """`3 atomics: 2 proved, 1 refuted`; `no claims`."""
    claims = [claim for result in results for claim in result.claims]
    if not claims:
        return "no claims"
    kinds, verdicts = Counter(claim.kind for claim in claims), Counter(claim.counts_as for claim in claims)
    what = ", ".join(plural(kinds[kind], noun) for kind, noun in _NOUNS.items() if kinds[kind])
    return f"{what}: {', '.join(f'{verdicts[verdict]} {verdict}' for verdict in VERDICTS if verdicts[verdict])}"


def silence_in_words(result: Result) -> str:
    """Return why nothing of a kernel is decided; empty where its undecided claims say so, or something is."""
    if not result.is_silent or result.claims:
        return ""
    return "it has no atomic to prove, and no output of it was executed (--quick, or `execute = false`)"


def also_in_words(claim: Claim) -> list[str]:
    """`TLO001 output dQ: dQ[0, 1] is 0.5, expected 2.0`; `output dQ: ...`: each claim that this one explains."""
    return [
        f"{c.finding.rule} {c.kind} {c.buffer}: {c.finding.words}" if c.finding else f"{c.kind} {c.buffer}: {c.coded}"
        for c in claim.also
    ]


def content_in_words(atomic: Claim) -> str:
    """Return what a proved atomic's execution says of what it reads, and of when it does."""
    if atomic.executed is None:
        return "additions proved, content not examined"
    return f"additions proved, content agreed in {atomic.executed.short}"


def plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def clean_in_words(result: Result) -> str:
    """`same results as the source in 3 of 16 blocks, 2 inputs; no races`: of a result in which all is well."""
    outputs = [claim for claim in result.claims if claim.kind == "output" and claim.executed is not None]
    atomics = [claim for claim in result.claims if claim.kind == "atomic" and claim.verdict == "proved"]
    agreed = [claim for claim in result.claims if claim.kind == "atomic" and claim.verdict == "agreed"]
    parts = []
    if outputs and outputs[0].executed is not None:
        ran = outputs[0].executed
        scopes = [c.scope for c in outputs if c.scope is not None]
        blocks, inputs = (
            len(scopes) == len(outputs) and all(reach == ALL for reach in of)
            for of in ([scope.blocks for scope in scopes], [scope.inputs for scope in scopes])
        )
        reach = ran.reaching(all_blocks=blocks, all_inputs=inputs)
        parts.append(f"same results as the source in {reach}")
    if any(claim.kind == "order" for claim in result.claims):
        parts.append("no races")
    if atomics:
        parts.append(f"{plural(len(atomics), 'atomic')} proved")
    if agreed:
        parts.append(f"{plural(len(agreed), 'atomic')} agreed, not proved")
    if not outputs:
        parts.append("no output was compared")
    parts += [result.reference] if result.reference else []
    return "; ".join(parts)
