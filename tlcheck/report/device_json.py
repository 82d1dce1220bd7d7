"""The report of `tlcheck run` for programs: everything measured, and where and when. Its classes are its form, as in
`check_json`; what a process on the device has told stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tlcheck import __version__
from tlcheck.report.records import ClocksReport, as_json, record
from tlcheck.run.device_results import DeviceFinding, DeviceResult, Timing
from tlcheck.run.examination import Examination
from tlcheck.run.sanitizer import Sanitized
from tlcheck.verdicts.claim import Claim

SCHEMA = 2


@dataclass(frozen=True)
class GpuCaseReport:
    """One case on the GPU. versions: of what determines the IR. args: build arguments, as Python literals.

    status: `passed`, `failed` or `not run`, with its reason. excused: why a failure is expected. source: whether what
    ran is what was checked: `same`, `different` (with the first lines of the difference) or `unknown`. refuted: the
    claims that are refuted in the same code. unrefuted: where none is, who has looked, and what they leave open.
    seconds: by phase. trials: numbers of each set of inputs.
    """

    case: str
    target: str
    versions: Mapping[str, str]
    args: Mapping[str, str]
    status: str
    reason: str
    excused: str
    findings: tuple[DeviceFinding, ...]
    source: str
    difference: tuple[str, ...]
    refuted: tuple[Claim, ...]
    unrefuted: str
    sanitized: tuple[Sanitized, ...]
    timing: Timing | None
    seconds: Mapping[str, float]
    trials: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class ExaminationReport:
    """All cases with one toolchain. device: what torch says of the GPU. passed_over: files without a case for it."""

    toolchain: str
    device: Mapping[str, Any]
    clocks: ClocksReport
    date: str
    passed_over: int
    runs: tuple[GpuCaseReport, ...]


@dataclass(frozen=True)
class GpuReport:
    """Report of `tlcheck run --format json`.

    schema: version of this form; it changes when a field changes its meaning or goes away. commit: of the kernels.
    exit_code: of the command. notes: what else there is to say. examinations: one for each toolchain.
    """

    schema: int
    tlcheck: str
    commit: str
    exit_code: int
    notes: tuple[str, ...]
    examinations: tuple[ExaminationReport, ...]


def render(examinations: Sequence[Examination], commit: str, notes: Sequence[str], exit_code: int) -> str:
    """The whole report, indented, with a newline at its end."""
    found = tuple(_examination(examination) for examination in examinations)
    return as_json(GpuReport(SCHEMA, __version__, commit, exit_code, tuple(notes), found))


def _examination(examination: Examination) -> ExaminationReport:
    clocks, runs = ClocksReport(*examination.clocks), tuple(map(_run, examination.results))
    return record(ExaminationReport, examination, clocks=clocks, runs=runs)


def _run(result: DeviceResult) -> GpuCaseReport:
    return record(GpuCaseReport, result, result.run, versions=dict(sorted(result.run.versions.items())))
