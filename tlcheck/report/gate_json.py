"""The gate's result for programs: its classes are its form, as in `check_json`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tlcheck import __version__
from tlcheck.facts import Facts
from tlcheck.gate.device_run import DeviceRun, FoundDevice
from tlcheck.gate.gate import Gate
from tlcheck.gate.groups import DifferenceGroup, groups
from tlcheck.gate.nvcc import CompiledCuda
from tlcheck.gate.words import verdict_in_words
from tlcheck.report.records import ClocksReport, LoweredWith, as_json, record
from tlcheck.run.device_results import DeviceFinding
from tlcheck.verdicts.claim import Claim
from tlcheck.worker.protocol import Failure

SCHEMA = 2
_NAMES = {"klass": "class", "old": "from", "new": "to", "compiled": "nvcc"}


class DeviceReport(msgspec.Struct, frozen=True):
    """A record of what a GPU shows of one kernel. status: `passed`, `failed` or `not run`, with its reason.

    inputs: how many sets. error: the largest relative one; null where it is no number. source: whether what ran is what
    was checked: `same`, `different` (with the first lines of the difference) or `unknown`.
    """

    status: str
    reason: str
    inputs: int
    error: float | None
    source: str
    difference: tuple[str, ...]
    findings: tuple[DeviceFinding, ...]


class SideReport(msgspec.Struct, frozen=True, rename=_NAMES):
    """One toolchain's result. expected: the case expects the failure. seconds: of processor time for lowering; 0 where
    unknown. facts: null where it did not lower. device, nvcc: null where that was not asked for.
    """

    failure: Failure | None
    expected: bool
    seconds: float
    claims: tuple[Claim, ...]
    facts: Facts | None
    device: DeviceReport | None
    compiled: CompiledCuda | None


class OutcomeReport(msgspec.Struct, frozen=True, rename=_NAMES):
    """One difference. id: what an acceptance names. subject: a buffer, or empty. words: the whole sentence.

    line: in the kernel's file. rule: that refutes a claim now. accepted: the project's reason; null if it has none.
    claims: what the claims say about it, such as `outputs still agreed`; empty where it is about a claim itself.
    """

    id: str
    klass: str
    kind: str
    subject: str
    before: str
    after: str
    words: str
    line: int
    detail: str
    rule: str | None
    accepted: str | None
    claims: str


class ComparisonReport(msgspec.Struct, frozen=True, rename=_NAMES):
    """One case for one target. source: the file that lines are of. captured: whether a script compiles it.

    klass: the worst of its outcomes that are not accepted. before, after: null where the file does not declare the case
    for that toolchain.
    """

    case: str
    file: str
    source: str
    captured: bool
    name: str
    target: str
    klass: str
    outcomes: tuple[OutcomeReport, ...]
    before: SideReport | None
    after: SideReport | None


class MemberReport(msgspec.Struct, frozen=True):
    """A kernel that has a group's difference, at a buffer or nowhere in particular."""

    case: str
    target: str
    subject: str


class GroupReport(msgspec.Struct, frozen=True, rename=_NAMES):
    """One difference and everything that has it."""

    klass: str
    kind: str
    before: str
    after: str
    accepted: str | None
    members: tuple[MemberReport, ...]


class FoundReport(msgspec.Struct, frozen=True):
    """The GPU as one toolchain's torch sees it, or why there is none."""

    gpu: Mapping[str, Any] | None
    missing: str | None


class DeviceRunReport(msgspec.Struct, frozen=True, rename=_NAMES):
    """A record of how kernels were run. commit: of the kernels. limit: seconds for each."""

    date: str
    commit: str
    clocks: ClocksReport
    seeds: int
    repeats: int
    exact: bool
    limit: float
    old: FoundReport
    new: FoundReport


class GateReport(msgspec.Struct, frozen=True, rename=_NAMES):
    """Report of `tlcheck gate --format json`.

    schema: version of this form; it changes when a field changes its meaning or goes away. exit_code: 1 a class that
    fails was found, 3 something was not checked, 0 clean. verdict: one line. failing: the classes that fail. nvcc: the
    version that compiled; null if none did. summary: number of comparisons with each class. groups: by class from the
    worst on, then by size. comparisons: in the order of files, their cases and targets.
    """

    schema: int
    tlcheck: str
    exit_code: int
    verdict: str
    failing: tuple[str, ...]
    old: LoweredWith
    new: LoweredWith
    nvcc: str | None
    device: DeviceRunReport | None
    summary: Mapping[str, int]
    notes: tuple[str, ...]
    groups: tuple[GroupReport, ...]
    comparisons: tuple[ComparisonReport, ...]


def render(gate: Gate) -> str:
    """The whole report, indented, with a newline at its end."""
    before, after = (dict(sorted(versions.items())) for versions in gate.versions)
    report = record(
        GateReport,
        gate,
        schema=SCHEMA,
        tlcheck=__version__,
        verdict=verdict_in_words(gate),
        old=LoweredWith(gate.before, before),
        new=LoweredWith(gate.after, after),
        nvcc=gate.compiler or None,
        device=_device_run(gate.device) if gate.device is not None else None,
        summary=gate.counts(),
        groups=tuple(map(_group, groups(gate.comparisons))),
        comparisons=msgspec.convert(gate.comparisons, tuple[ComparisonReport, ...], from_attributes=True),
    )
    return as_json(report)


def _group(group: DifferenceGroup) -> GroupReport:
    return record(GroupReport, group, members=tuple(record(MemberReport, *member) for member in group.members))


def _device_run(run: DeviceRun) -> DeviceRunReport:
    clocks, old, new = ClocksReport(*run.clocks), _found(run.before), _found(run.after)
    return record(DeviceRunReport, run, run.wanted.options, clocks=clocks, old=old, new=new)


def _found(found: FoundDevice) -> FoundReport:
    return FoundReport(found.device or None, found.missing or None)
