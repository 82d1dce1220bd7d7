"""The form of `tlcheck fix --format json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlcheck import __version__
from tlcheck.remedy.search import Workarounds
from tlcheck.report.fix_text import paste
from tlcheck.report.records import as_json, record
from tlcheck.verdicts.results import Result

SCHEMA = 1


@dataclass(frozen=True)
class TriedChange:
    """One change. kind: `pass config`, `argument` or `release`. outcome: see `tlcheck.remedy.search.Attempt`.

    left: buffers of which some claim is undecided, or wrong in the kernel itself, as without the change. paste: the
    line that makes the change.
    """

    kind: str
    change: str
    outcome: str
    proved: bool
    costs: tuple[str, ...]
    left: tuple[str, ...]
    paste: str


@dataclass(frozen=True)
class FixedKernel:
    """One case for one target that a release has wrong. interrupted: whether the user ended the search."""

    case: str
    target: str
    release: str
    interrupted: bool
    tried: tuple[TriedChange, ...]


@dataclass(frozen=True)
class FixReport:
    """Report of `tlcheck fix --format json`. schema: of this form. tlcheck: its version. exit_code: of the command.

    checked: kernels in all.
    """

    schema: int
    tlcheck: str
    exit_code: int
    checked: int
    kernels: tuple[FixedKernel, ...]


def render(results: Sequence[Result], found: Sequence[Workarounds], exit_code: int) -> str:
    """The report as JSON."""
    return as_json(FixReport(SCHEMA, __version__, exit_code, len(results), tuple(map(_kernel, found))))


def _kernel(found: Workarounds) -> FixedKernel:
    result = found.kernel.result
    tried = tuple(
        record(TriedChange, trial, trial.change, change=trial.change.words, paste=paste(trial.change, result))
        for trial in found.trials
    )
    return record(FixedKernel, found, result.run, tried=tried)
