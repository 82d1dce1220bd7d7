"""The report for programs: its classes are its form, from which `schemas` makes the JSON Schema. Equal runs give equal
bytes, but for the seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tlcheck import __version__
from tlcheck.report.records import LoweredWith, as_json, record
from tlcheck.verdicts.claim import Claim, Excuse
from tlcheck.verdicts.results import Result, codes_of
from tlcheck.worker.protocol import Failure

SCHEMA = 2


@dataclass(frozen=True)
class RunReport:
    """One case for one target with one toolchain.

    case: `FILE::NAME`; the file alone if it could not be imported. file: as the user named it. target: `sm_90`; empty
    if the file could not be imported. snapshot: the saved one that was checked, else null. args: build arguments, as
    Python literals. pass_configs: the kernel's own. checked: false if there is a failure: then nothing is known of it.
    decided: false where there are claims and none of them is decided. excuse: of the failure. unexpectedly_fine:
    expectations that no longer hold, in words. reference: whether the source agrees with the case's reference, in
    words; empty where that is not known. claims: in program order; what one of them explains stands under it. seconds:
    that lowering and judging took; 0 where an earlier command did both.
    """

    case: str
    file: str
    name: str
    target: str
    snapshot: str | None
    toolchain: LoweredWith
    args: Mapping[str, str]
    pass_configs: Mapping[str, str]
    checked: bool
    decided: bool
    failure: Failure | None
    excuse: Excuse | None
    unexpectedly_fine: tuple[str, ...]
    notes: tuple[str, ...]
    reference: str
    claims: tuple[Claim, ...]
    seconds: float


@dataclass(frozen=True)
class CheckSummary:
    """Counts over all runs; the verdicts add up to `claims`.

    refuted: neither expected, accepted nor a warning. expected: refuted as the case expects. accepted: by the project.
    warnings: what the author may not have meant, which `--strict` counts.
    not_checked: runs with a failure that the case does not expect; expected_errors: with one that it does.
    not_decided: runs with claims of which none is decided. unexpectedly_fine: expectations that no longer hold. codes:
    undecided claims by the code of their reason, see docs/reasons.md.
    """

    cases: int
    runs: int
    claims: int
    proved: int
    agreed: int
    refuted: int
    undecided: int
    expected: int
    accepted: int
    warnings: int
    not_checked: int
    expected_errors: int
    not_decided: int
    unexpectedly_fine: int
    codes: Mapping[str, int]


@dataclass(frozen=True)
class CheckReport:
    """Report of `tlcheck check --format json`.

    schema: version of this form; it changes when a field changes its meaning or goes away. exit_code: of the command.
    notes: what else there is to say of the whole. runs: in the order in which they were named; within a file in the
    order of its cases, then of targets.
    """

    schema: int
    tlcheck: str
    exit_code: int
    summary: CheckSummary
    notes: tuple[str, ...]
    runs: tuple[RunReport, ...]


def render(results: list[Result], notes: list[str], exit_code: int) -> str:
    """The whole report, indented, with a newline at its end."""
    runs = tuple(_run(result) for result in results)
    return as_json(CheckReport(SCHEMA, __version__, exit_code, _summary(results), tuple(notes), runs))


def _summary(results: list[Result]) -> CheckSummary:
    failures = [result for result in results if result.failure is not None]
    excused = sum(result.excuse is not None for result in failures)

    def count(verdict: str) -> int:
        return sum(result.count(verdict) for result in results)

    return CheckSummary(
        cases=len({(result.run.case, result.saved) for result in results}),
        runs=len(results),
        claims=sum(len(result.claims) for result in results),
        proved=count("proved"),
        agreed=count("agreed"),
        refuted=count("refuted"),
        undecided=count("undecided"),
        expected=count("expected"),
        accepted=count("accepted"),
        warnings=count("warning"),
        not_checked=len(failures) - excused,
        expected_errors=excused,
        not_decided=sum(result.is_silent for result in results),
        unexpectedly_fine=sum(len(result.broken) for result in results),
        codes=codes_of(results),
    )


def _run(result: Result) -> RunReport:
    run = result.run
    return record(
        RunReport,
        result,
        run,
        snapshot=result.saved or None,
        toolchain=LoweredWith(run.toolchain, dict(sorted(run.versions.items()))),
        pass_configs=result.pass_configs or {},
        checked=result.failure is None,
        decided=result.failure is None and not result.is_silent,
        unexpectedly_fine=result.broken,
        seconds=round(result.seconds, 2),
    )
