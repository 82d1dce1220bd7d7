"""The form of `tlcheck cost --format json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tlcheck import __version__
from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.gate.compiled_cost import CompiledCost, Costed
from tlcheck.report.records import as_json, record

SCHEMA = 1


@dataclass(frozen=True)
class CostRun:
    """One case for one target.

    inputs: what it was executed on: `the case's` or `random` ones. compiled: by nvcc, null without `--compile`.
    """

    case: str
    target: str
    versions: Mapping[str, str]
    inputs: str
    cost: KernelCost
    compiled: CompiledCost | None


@dataclass(frozen=True)
class CostReport:
    """Report of `tlcheck cost --format json`. schema: of this form. tlcheck: its version. exit_code: of the command.

    failures: what was not counted, and why.
    """

    schema: int
    tlcheck: str
    exit_code: int
    runs: tuple[CostRun, ...]
    failures: tuple[str, ...]


def render_json(found: Sequence[Costed], failures: Sequence[str], exit_code: int) -> str:
    """The report as JSON."""
    runs = tuple([record(CostRun, one, one.run, versions=dict(one.run.versions)) for one in found])
    return as_json(CostReport(SCHEMA, __version__, exit_code, runs, tuple(failures)))
