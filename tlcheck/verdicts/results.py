"""What checking found, as plain data for the reports: no snapshot stays in memory for it."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.lower.runs import Lowered, Run, release_of
from tlcheck.prove.difference import Witness
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot
from tlcheck.snapshot.text import render, render_layout
from tlcheck.verdicts.check import Atomic, Finding, Report, check
from tlcheck.verdicts.remedies import pass_config
from tlcheck.worker.protocol import Failure

_BEFORE, _AFTER = 2, 1  # lines of TIR shown around an atomic


@dataclass(frozen=True, slots=True)
class Excuse:
    """Why a finding or failure is shown but not counted against the kernel. kind: `expected` or `accepted`."""

    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A line of the user's file, and the one above; empty if the file cannot be read.

    exact: whether it is the atomic's, else it is where the kernel begins.
    """

    file: str
    number: int
    exact: bool
    text: str = ""
    above: str = ""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a function's text from number `first` on, of which `marked` holds the atomic."""

    first: int
    marked: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FindingResult:
    """A finding with its texts. layout: index map of the destination, empty without one.

    pass_config: the `PassConfigKey` that avoids it, empty if none is known to.
    """

    rule: str
    name: str
    title: str
    checkpoint: str
    pass_name: str
    what: str
    witness: Witness
    advice: str
    also: tuple[str, ...]
    pass_config: str
    layout: str
    excerpt: Excerpt | None


@dataclass(frozen=True, slots=True)
class AtomicResult:
    """An atomic as written. right_from: the first later release without what refutes it, if the case says so."""

    buffer: str
    call: str
    operation: str
    source: SourceLine
    verdict: str
    reason: str
    checkpoints: tuple[tuple[str, str], ...]
    instructions: tuple[str, ...]
    finding: FindingResult | None
    excuse: Excuse | None = None
    right_from: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One run: its atomics, or why it was not checked (`failure`, with its `excuse`).

    saved: the snapshot's file, where the user gave that. broken: expectations that no longer hold, in words.
    notes: anything else to know.
    """

    run: Run
    atomics: tuple[AtomicResult, ...] = ()
    failure: Failure | None = None
    excuse: Excuse | None = None
    saved: str = ""
    pass_configs: Mapping[str, str] | None = None
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def count(self, verdict: str) -> int:
        """Number of atomics with this verdict; refuted ones with an excuse are `expected` or `accepted` instead."""
        return sum(1 for a in self.atomics if (a.excuse.kind if a.excuse else a.verdict) == verdict)


def exit_code(results: Iterable[Result], *, strict: bool) -> int:
    """2 if what was asked for is not there, 1 if something is wrong, 3 if something was not checked, else 0.

    strict: an undecided atomic is wrong too.
    """
    everything = list(results)
    failures = [r.failure for r in everything if r.failure is not None and r.excuse is None]
    if any(failure.kind == "usage" for failure in failures):
        return 2
    if any(r.count("refuted") or r.broken or (strict and r.count("undecided")) for r in everything):
        return 1
    return 3 if failures else 0


def read_snapshot(file: Path) -> Snapshot:
    """A snapshot that the user saved. Raises UsageError."""
    try:
        return codec.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: {error}") from error


def result_of(lowered: Lowered) -> Result:
    """Check the snapshot of a run."""
    if lowered.snapshot is None:
        return Result(lowered.run, failure=lowered.failure)
    snapshot = codec.loads(lowered.snapshot.read_text(encoding="utf-8"))
    return replace(judged(lowered.run, snapshot), notes=notes_of(lowered))


def notes_of(lowered: Lowered) -> tuple[str, ...]:
    """What there is to say of a lowering that made a snapshot."""
    return tuple(f"no checkpoint {name}: {why}" for name, why in lowered.unsaved.items())


def saved_result(file: Path, snapshot: Snapshot, position: int) -> Result:
    """Check a snapshot that the user saved; what a case expects is not in it."""
    release = snapshot.toolchain.get("tilelang", "")
    run = Run(
        snapshot.file, snapshot.case, snapshot.target, release, snapshot.toolchain, snapshot.args, (), (position,)
    )
    return replace(judged(run, snapshot), saved=str(file))


def judged(run: Run, snapshot: Snapshot) -> Result:
    """Check a snapshot. A fault of tlcheck's own is this run's failure: the others go on."""
    try:
        report = check(snapshot)
    except Exception as error:
        return Result(run, failure=internal_failure(error), pass_configs=snapshot.pass_configs)
    if report.problem:
        return Result(run, failure=Failure("check", "check", report.problem), pass_configs=snapshot.pass_configs)
    atomics = tuple(_atomic(report, a) for a in report.atomics)
    return with_lines(Result(run, atomics, pass_configs=snapshot.pass_configs))


def with_lines(result: Result) -> Result:
    """With the lines of the user's files as they are now."""
    files = {atomic.source.file for atomic in result.atomics}
    lines = {file: _read_lines(file) for file in files}
    return replace(result, atomics=tuple(_with_line(atomic, lines[atomic.source.file]) for atomic in result.atomics))


def _with_line(atomic: AtomicResult, lines: Sequence[str]) -> AtomicResult:
    number = atomic.source.number
    text, above = (lines[n - 1].strip() if 0 < n <= len(lines) else "" for n in (number, number - 1))
    return replace(atomic, source=replace(atomic.source, text=text, above=above))


def internal_failure(error: Exception) -> Failure:
    """A fault of tlcheck's own as the failure of one run."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(frame.filename).name}:{frame.lineno}"
    message = f"tlcheck itself failed: {type(error).__name__}: {error}"
    return Failure("internal", "check", message, "a bug: please report it with the snapshot (--save DIR)", where)


def _read_lines(file: str) -> Sequence[str]:
    try:
        return Path(file).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ()


def _atomic(report: Report, atomic: Atomic) -> AtomicResult:
    snapshot = report.snapshot
    source = SourceLine(snapshot.file, atomic.line or snapshot.line, bool(atomic.line))
    finding = _finding(snapshot, atomic, atomic.finding) if atomic.finding else None
    return AtomicResult(
        atomic.buffer,
        atomic.call,
        atomic.operation,
        source,
        atomic.verdict,
        atomic.reason,
        atomic.checkpoints,
        atomic.instructions,
        finding,
    )


def _finding(snapshot: Snapshot, atomic: Atomic, found: Finding) -> FindingResult:
    rule = found.rule
    layout = render_layout(found.layout) if found.layout is not None else ""
    return FindingResult(
        rule.id,
        rule.name,
        rule.title,
        found.checkpoint,
        found.pass_name,
        found.what,
        found.witness,
        found.advice,
        found.also,
        pass_config(rule.id, found.checkpoint, release_of(snapshot.toolchain)),
        layout,
        _excerpt(snapshot, found),
    )


def _excerpt(snapshot: Snapshot, found: Finding) -> Excerpt | None:
    if found.stmt is None:
        return None
    text = render(snapshot.checkpoints[found.checkpoint])
    number = text.line_of(found.stmt)
    if not number:
        return None
    first = max(1, number - _BEFORE)
    return Excerpt(first, number, text.lines[first - 1 : number + _AFTER])
