"""The bisecting report for programs: its classes are its form, from which `schemas` makes the JSON Schema."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from tlcheck import __version__
from tlcheck.gate.bisect import RIGHT, BisectRow, Point
from tlcheck.gate.bisect_passes import Passes
from tlcheck.gate.compared_passes import ComparedPasses
from tlcheck.gate.source_reference import SourceAnswer
from tlcheck.report.bisect_report import Bisected
from tlcheck.report.records import as_json, record
from tlcheck.verdicts.claim import Claim

SCHEMA = 2
_NAMES = {"pass_name": "pass", "name": "pass", "old": "from", "new": "to", "first_side": "from", "second_side": "to"}


class FindingReport(msgspec.Struct, frozen=True, rename=_NAMES):
    """A refuted claim. pass: the one after which the checkpoint was taken. witness: in words."""

    buffer: str
    file: str
    line: int
    rule: str
    checkpoint: str
    pass_name: str
    what: str
    witness: str


@dataclass(frozen=True)
class FailureReport:
    """The reason why a kernel was not lowered or checked."""

    phase: str
    message: str


@dataclass(frozen=True)
class PointReport:
    """A record of how a kernel fared `at` a release, or after a pass, which is named with its number.

    state: `right`, `wrong`, `undecided`, `fails` or `absent`. findings: where it is wrong. failure: null where it has
    none. as_written: how the kernel before the first pass compares with the case's reference, null where it was not.
    agreed: whether what is right agrees in what was executed, and is not all proved. executed: else by proofs
    alone.
    """

    at: str
    state: str
    findings: tuple[FindingReport, ...]
    failure: FailureReport | None
    as_written: SourceAnswer | None
    agreed: bool
    executed: bool


class TransitionReport(msgspec.Struct, frozen=True, rename=_NAMES):
    """Two neighbours, `before` and `after`, and their states, which differ."""

    before: str
    after: str
    first_side: str
    second_side: str


class GuiltyReport(msgspec.Struct, frozen=True, rename=_NAMES):
    """The first pass after which a claim is wrong, and the claim's finding. number: its place in the pipeline. pass:
    empty where no pass is to blame: the CUDA computes something else than the last TIR says.

    notes: what else there is to say of the pass. tir: lines before and after it, as a diff.
    """

    number: int
    pass_name: str
    finding: FindingReport
    notes: tuple[str, ...]
    tir: tuple[str, ...]


@dataclass(frozen=True)
class BisectedRow:
    """One case for one target: its points in order.

    toolchain: the release whose passes, or with which pass configurations, they are; null where they are releases.
    guilty: only of passes.
    """

    case: str
    target: str
    toolchain: str | None
    points: tuple[PointReport, ...]
    transitions: tuple[TransitionReport, ...]
    guilty: tuple[GuiltyReport, ...]


class FirstPass(msgspec.Struct, frozen=True, rename=_NAMES):
    """The pass since which two compilers differ, and its number with either of them; null where one does not have it.

    pass: empty for the kernel before the first pass.
    """

    name: str
    old: int | None
    new: int | None


class ComparedReport(msgspec.Struct, frozen=True, rename=_NAMES):
    """One case with two compilers. first: null where the last TIR is the same. tir: both sides after it, as a diff."""

    case: str
    target: str
    first_side: str
    second_side: str
    first: FirstPass | None
    tir: tuple[str, ...]
    rows: tuple[BisectedRow, ...]


@dataclass(frozen=True)
class BisectReport:
    """Report of `tlcheck bisect --format json`.

    schema: of this form. tlcheck: its version. exit_code: of the command. rows: of releases, or of the passes or pass
    configurations of one. compared: where two compilers are compared pass by pass. remarks: on scripts.
    """

    schema: int
    tlcheck: str
    exit_code: int
    rows: tuple[BisectedRow, ...]
    compared: tuple[ComparedReport, ...]
    remarks: tuple[str, ...]


def render(found: Bisected, exit_code: int) -> str:
    """The whole report, indented, with a newline at its end."""
    rows = (*map(_row, found.rows), *map(_row, found.configs), *map(_passes, found.passes))
    return as_json(BisectReport(SCHEMA, __version__, exit_code, rows, tuple(map(_two, found.compared)), found.remarks))


def _passes(found: Passes) -> BisectedRow:
    guilty = [GuiltyReport(g.number, g.pass_name, _finding(g.claim), g.notes, g.difference) for g in found.guilty]
    return _row(found.row, tuple(guilty))


def _row(row: BisectRow, guilty: tuple[GuiltyReport, ...] = ()) -> BisectedRow:
    transitions = (TransitionReport(a.at, b.at, a.state, b.state) for a, b in row.transitions)
    points = tuple(map(_point, row.points))
    return BisectedRow(row.case, row.target, row.release or None, points, tuple(transitions), guilty)


def _point(point: Point) -> PointReport:
    failure = point.result.failure if point.result is not None else None
    told = msgspec.convert(failure, FailureReport | None, from_attributes=True)
    agreed = point.agreed and point.state == RIGHT
    findings = tuple(map(_finding, point.wrong))
    return PointReport(point.at, point.state, findings, told, point.source_answer, agreed, point.executed)


def _finding(claim: Claim) -> FindingReport:
    found = claim.finding
    assert found is not None
    return record(FindingReport, found, claim.source, buffer=claim.buffer, witness=found.words)


def _two(compared: ComparedPasses) -> ComparedReport:
    first = msgspec.convert(compared.first, FirstPass | None, from_attributes=True)
    sides = compared.case, compared.target, compared.old, compared.new
    return ComparedReport(*sides, first, compared.difference, tuple(map(_passes, compared.judged)))
