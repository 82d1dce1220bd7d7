"""What the rules about the device library share: the first call of an atomic that does not do what it says."""

from __future__ import annotations

from tlcheck.program.instructions import Instruction
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule import Broken


def broken_call(subject: PreparedSnapshot, evidence: Evidence, verdict: str) -> Broken | None:
    """The first call with this verdict, in the table's own words and with its PTX: a person can compile and read it."""
    sites = evidence.match.sites
    for number, made in subject.calls(sites, evidence.checkpoint):
        if made.behaviour is not None and made.behaviour.verdict == verdict:
            return Broken(f"{sites[number].instruction} {_said(subject, made)}", evidence.first, site=number)
    return None


def _said(subject: PreparedSnapshot, made: Instruction) -> str:
    behaviour = made.behaviour
    assert behaviour is not None
    ptx = f" (PTX for {subject.snapshot.target}: {', '.join(behaviour.instructions)})" if behaviour.instructions else ""
    return f"({made.call}), {behaviour.verdict}: {behaviour.detail}{ptx}"
