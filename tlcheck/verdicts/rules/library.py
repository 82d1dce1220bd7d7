"""Define what the rules about the device library share: the first call of an atomic that does not do what it says."""

from __future__ import annotations

from tlcheck.program.device_library import LibraryCall, device_library
from tlcheck.program.instructions import Instruction
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot, device_of
from tlcheck.reasons import UNMEASURED, Reason
from tlcheck.verdicts.rules.rule import Broken

_OTHER_HEADERS = "the headers of its device library are not those that were measured for TileLang"


def broken_call(subject: PreparedSnapshot, evidence: Evidence, verdict: str) -> Broken | None:
    """The first call with this verdict, in the table's own words and with its PTX: a person can compile and read it."""
    sites = evidence.match.sites
    for number, made in subject.calls(sites, evidence.checkpoint):
        if made.behaviour is not None and made.behaviour.verdict == verdict:
            return Broken(f"{sites[number].instruction} {said(subject, made)}", evidence.first, site=number)
    return None


def said(subject: PreparedSnapshot, made: Instruction) -> str:
    """`(add of 2 float32 by value to float16, global, relaxed), wrong value: ...`, with its PTX."""
    behaviour = made.behaviour
    assert behaviour is not None
    ptx = f" (PTX for {subject.snapshot.target}: {', '.join(behaviour.instructions)})" if behaviour.instructions else ""
    return f"({made.call}), {behaviour.verdict}: {behaviour.detail}{ptx}"


def unmeasured(subject: PreparedSnapshot, call: LibraryCall) -> Reason:
    """Return why it is not known what the library does with a call."""
    device = device_of(subject.snapshot)
    if not device_library().has(device.release, device.headers):
        return Reason(UNMEASURED, f"{call}: {_OTHER_HEADERS} {device.release}; see docs/device-library.md")
    where = f"TileLang {device.release or 'of an unknown release'} on {subject.snapshot.target}"
    return Reason(UNMEASURED, f"what the device library does was not measured: {call}, {where}")
