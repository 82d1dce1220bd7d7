"""The report of `tlcheck run --device cpu`: a line for each case, and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from tlcheck import __version__
from tlcheck.report.records import as_json, record
from tlcheck.run.blame import Answer, Blame
from tlcheck.run.device_results import DeviceFinding
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.commands import bisect_of, bisecting
from tlcheck.witness import Element

SCHEMA = 2


@dataclass(frozen=True)
class BlocksReport:
    """A record of how many blocks were executed, of how many there are."""

    executed: int
    of: int


@dataclass(frozen=True)
class WrittenReport:
    """The kernel as written against the reference. findings: the author's.

    reason: why it is undecided or not run; where it races.
    """

    answer: Answer
    reason: str
    findings: tuple[DeviceFinding, ...]


@dataclass(frozen=True)
class LoweredReport:
    """The kernel as lowered against what is written. reason: why it is undecided or not run. refuted: claims."""

    answer: Answer
    reason: str
    refuted: tuple[Claim, ...]


@dataclass(frozen=True)
class CpuCaseReport:
    """One case. versions: of what determines the IR. args: build arguments, as Python literals."""

    case: str
    target: str
    versions: Mapping[str, str]
    args: Mapping[str, str]
    blocks: BlocksReport
    written: WrittenReport
    lowered: LoweredReport


@dataclass(frozen=True)
class CpuReport:
    """Report of `tlcheck run --device cpu --format json`.

    schema: version of this form; it changes when a field changes its meaning or goes away. commit: of the kernels.
    exit_code: of the command. device: always `cpu`.
    """

    schema: int
    tlcheck: str
    commit: str
    exit_code: int
    device: str
    runs: tuple[CpuCaseReport, ...]


def write(console: Console, blames: Sequence[Blame]) -> None:
    """One line for each case, and one for each thing that differs."""
    for blame in blames:
        for line in lines(blame):
            is_wrong = "DIFFERS" in line or "RACES" in line
            console.print(Text(line, "bold red" if is_wrong else ""), soft_wrap=True, highlight=False)


def lines(blame: Blame) -> Iterator[str]:
    """`gemm.py::g sm_90 0.1.15  as written: agrees ...  as lowered: agrees ...`; what differs in lines of its own."""
    run = blame.run
    executed, of = blame.blocks
    blocks = f"  ({executed} of {of} blocks)" if executed != of else ""
    lowered = "" if blame.lowered == "not asked" else f"   as lowered: {_lowered(blame)}"
    yield f"{run.case} {run.target} {run.tilelang}   as written: {_written(blame)}{lowered}{blocks}"
    for found in blame.findings:
        element = next(iter(found.elements), None)
        shown = f"{found.buffer}: {found.message} ({found.inputs})" if found.kind != "race" else found.message
        if element is not None:
            index = ", ".join(map(str, element["index"]))
            shown = f"{found.buffer}[{index}] is {element['got']}, should be {element['expected']}; {shown}"
        yield f"    -> the kernel's author: {shown}"
    if any(found.kind != "race" for found in blame.findings):
        builds = f"TileLang {run.release} builds another kernel from this file"
        yield f"        or {builds}; other releases: {bisect_of(run)}"
    for claim in blame.refuted:
        found_by = claim.finding
        assert found_by is not None
        by = f", {found_by.pass_name}" if found_by.pass_name else f", found at {found_by.checkpoint}"
        yield f"    -> TileLang {run.release}{by}: {found_by.rule} {found_by.name}: {found_by.what}"
        yield f"        {found_by.words}"
        if isinstance(found_by.witness, Element):
            yield from (f"        {line}" for line in found_by.witness.steps)
        if found_by.advice:
            yield f"        to do: {found_by.advice}"
    if blame.refuted:
        yield f"        {bisecting(run)}"


def _written(blame: Blame) -> str:
    if blame.source == "differs":
        return "DIFFERS from the reference"
    if blame.source == "races":
        return _open("RACES", blame.reasons[0])
    return "agrees with the reference" if blame.source == "agrees" else _open(blame.source, blame.reasons[0])


def _lowered(blame: Blame) -> str:
    if blame.lowered == "differs":
        return "DIFFERS from what is written"
    return "agrees with what is written" if blame.lowered == "agrees" else _open(blame.lowered, blame.reasons[1])


def _open(answer: str, reason: str) -> str:
    return f"{answer} ({reason})" if reason else answer


def render(blames: Sequence[Blame], commit: str, exit_code: int) -> str:
    """The report for programs, indented, with a newline at its end."""
    return as_json(CpuReport(SCHEMA, __version__, commit, exit_code, "cpu", tuple(map(_run, blames))))


def _run(blame: Blame) -> CpuCaseReport:
    return record(
        CpuCaseReport,
        blame.run,
        versions=dict(sorted(blame.run.versions.items())),
        blocks=BlocksReport(*blame.blocks),
        written=WrittenReport(blame.source, blame.reasons[0], blame.findings),
        lowered=LoweredReport(blame.lowered, blame.reasons[1], blame.refuted),
    )
