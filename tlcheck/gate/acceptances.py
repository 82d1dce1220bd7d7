"""Differences that a project accepts, in the file that `tlcheck check` reads too.

The id of an entry is a class (`slower-risk`), a class and what differs (`slower-risk/atomic`), or the rule that refutes
an atomic (`TLA001`); its releases are those of the new toolchain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tlcheck.gate.classes import CLASSES
from tlcheck.gate.outcome import Comparison, Outcome
from tlcheck.verdicts.acceptance import Acceptance, Acceptances


def accepted(compared: Comparison, acceptances: Acceptances, versions: Mapping[str, str]) -> Comparison:
    """With the reasons for what is accepted. versions: of the new toolchain."""
    ours = [entry for entry in acceptances.entries if _concerns(entry, compared, acceptances, versions)]
    return replace(compared, outcomes=tuple(_settled(outcome, ours) for outcome in compared.outcomes))


def unused(comparisons: Sequence[Comparison], acceptances: Acceptances, versions: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each entry of the gate's that is about a case that was compared, and matches nothing."""
    for entry in acceptances.entries:
        if entry.id.partition("/")[0] not in CLASSES:
            continue
        ours = [compared for compared in comparisons if _concerns(entry, compared, acceptances, versions)]
        if ours and not any(_names(entry, outcome) for compared in ours for outcome in compared.outcomes):
            yield f"acceptance of {entry.id} in {entry.case} ({entry.releases}) matches nothing: remove it"


def _concerns(entry: Acceptance, compared: Comparison, acceptances: Acceptances, versions: Mapping[str, str]) -> bool:
    """A case that is gone is known from before."""
    side = compared.after or compared.before
    if side is None or not versions:
        return False
    run = replace(side.result.run, name=compared.name, versions=versions)
    return entry.concerns(run, acceptances.folder)


def _settled(outcome: Outcome, ours: Sequence[Acceptance]) -> Outcome:
    reason = next((entry.reason for entry in ours if _names(entry, outcome)), "")
    return replace(outcome, accepted=reason) if reason else outcome


def _names(entry: Acceptance, outcome: Outcome) -> bool:
    rule = outcome.finding.rule if outcome.finding is not None else None
    return entry.id in (outcome.klass, outcome.id, rule)
