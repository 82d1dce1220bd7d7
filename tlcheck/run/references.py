"""The source of each checked case against the case's reference, for `tlcheck check`.

TileLang may compile exactly what is written, and what is written may not be what was meant. The source is executed on
the case's own inputs, in as many blocks as `check` executes. An answer is kept for as long as everything that the
case's functions read is as it was.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from tlcheck.cache.code import code_of
from tlcheck.cache.store import Cache, key_of
from tlcheck.errors import UsageError
from tlcheck.execute.request import SOURCE, Request
from tlcheck.lower.client import environment
from tlcheck.lower.dependencies import Present
from tlcheck.lower.runs import Lowered
from tlcheck.lower.session import Settings, Watcher
from tlcheck.program.lines import line_of_use
from tlcheck.run.blame import Blame, ReferenceFailedError, against_reference
from tlcheck.run.device_results import DeviceFinding
from tlcheck.run.examination import RunRequest
from tlcheck.run.processes import CopiedProcess, EndedProcess
from tlcheck.run.suite import DeviceOptions
from tlcheck.snapshot.ir import Snapshot
from tlcheck.snapshot.text import render
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.claim import REFUTED, Claim, Finding
from tlcheck.verdicts.commands import run_of
from tlcheck.verdicts.excerpts import source_line
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.results import Result, read_snapshot
from tlcheck.verdicts.rules.rule import rule_of
from tlcheck.witness import Accesses, Act, Element, Witness
from tlcheck.worker.dependencies import Dependencies
from tlcheck.worker.gpu.task import Task
from tlcheck.worker.protocol import Failure

_SECONDS = 20.0  # of the processor, for one source and for its reference
_PROBLEM = "source-reference"
_ADVICE = "mend the kernel or the reference; if another release agrees, TileLang's front end is to blame"
_STATES = 4  # of its files for which an answer is kept


@dataclass(frozen=True)
class ReferenceAnswer:
    """A record of what the reference says of a source. answer: `agrees`, `differs` or `undecided`; why: it is
    undecided.

    finding: the first difference. blocks: executed, and of the grid. failure: the reference is of no use, and why.
    """

    answer: str
    why: str = ""
    finding: DeviceFinding | None = None
    blocks: tuple[int, int] = (0, 0)
    failure: Failure | None = None

    @property
    def words(self) -> str:
        """`agrees with the reference`, with the blocks where not all ran; empty for another answer."""
        ran, of = self.blocks
        some = f" in {ran} of {of} blocks" if ran < of else ""
        return f"agrees with the reference{some}" if self.answer == "agrees" else ""


@dataclass(frozen=True)
class _KeptAnswer:
    """An answer, and what the processes read that gave it."""

    read: tuple[Dependencies, ...]
    answer: ReferenceAnswer


@dataclass(frozen=True)
class ReferenceCheck:
    """The way in which sources are compared. request: blocks that are executed, and the budget. folder: of files."""

    settings: Settings
    policy: Policy
    request: Request
    cache: Cache
    folder: Path
    watcher: Watcher

    def compared(self, found: Sequence[tuple[Lowered, Result]]) -> list[Result]:
        """The results; those of cases with a reference that are not wrong otherwise, with what it says."""
        results = {number: result for number, (_, result) in enumerate(found)}
        wanted = [number for number, (lowered, result) in enumerate(found) if _is_wanted(lowered, result)]
        for toolchain in dict.fromkeys(found[number][0].run.toolchain for number in wanted):
            resolved = resolve(toolchain, self.settings.requirements)
            present = Present(environment(resolved.env))
            known: dict[tuple[str, ...], ReferenceAnswer] = {}
            with closing(_ReadingProcess(resolved)) as process:
                for number in wanted:
                    lowered, result = found[number]
                    if lowered.run.toolchain == toolchain:
                        assert lowered.snapshot is not None
                        snapshot = read_snapshot(lowered.snapshot)
                        key = (lowered.run.case, *map(str, render(snapshot.checkpoints[SOURCE]).lines))
                        if key not in known:
                            known[key] = self._answer(lowered, snapshot, process, present)
                        results[number] = self._said(result, snapshot, known[key])
        return [results[number] for number in range(len(found))]

    def _answer(
        self, lowered: Lowered, snapshot: Snapshot, process: _ReadingProcess, present: Present
    ) -> ReferenceAnswer:
        """The kept answer, or one that is made now."""
        run = lowered.run
        said = (
            dict(self.settings.args),
            self.settings.pythonpath,
            os.path.realpath(run.file),
            run.name,
            str(Path.cwd()),
        )
        key = key_of(code_of("reference"), lowered.hash, repr(self.request), *said)
        content = self.cache.get("references", key)
        kept = () if content is None else msgspec.json.decode(content, type=tuple[_KeptAnswer, ...])
        for one in kept:
            if all(present.has(read) for read in one.read):
                return one.answer
        self.watcher.stage(f"comparing {run.case} with its reference")
        process.read = []
        answer = self._made(lowered, snapshot, process)
        read = tuple([each for each in process.read if each is not None])
        if read and (
            answer.answer == "undecided" or len(read) == len(process.read)
        ):  # a task that is killed tells none
            self.cache.put("references", key, msgspec.json.encode((_KeptAnswer(read, answer), *kept)[:_STATES]))
        return answer

    def _made(self, lowered: Lowered, snapshot: Snapshot, process: CopiedProcess) -> ReferenceAnswer:
        budget = self.request.budget
        asked = replace(self.request, budget=replace(budget, seconds=min(budget.seconds, _SECONDS)))
        request = RunRequest((), self.settings, DeviceOptions(pythonpath=self.settings.pythonpath))
        try:
            blame = against_reference(lowered.run, snapshot, self.folder, process, request, asked)
        except ReferenceFailedError as problem:
            return ReferenceAnswer("undecided", failure=problem.failure)
        except UsageError as error:
            return ReferenceAnswer("undecided", str(error))
        return _answer_of(blame)

    def _said(self, result: Result, snapshot: Snapshot, answer: ReferenceAnswer) -> Result:
        """The result with what the reference says: a claim where it differs, a note where nobody knows.

        A reference that raises is the failure of the case.
        """
        if answer.failure is not None:
            return replace(result, failure=answer.failure)
        if answer.finding is None:
            command = f"`{run_of(result.run)}`"
            notes = () if answer.words else (f"not compared with the reference ({command}): {answer.why}",)
            return replace(result, reference=answer.words, notes=(*result.notes, *notes))
        claim = _claim(snapshot, answer.finding)
        settled = self.policy.apply(replace(result, claims=(claim,), notes=(), broken=()))
        broken = tuple([words for words in result.broken if words in settled.broken])
        return replace(result, claims=(*settled.claims, *result.claims), broken=broken)


class _ReadingProcess(CopiedProcess):
    """A process that keeps what its tasks read; None for a task of which that is not known."""

    read: list[Dependencies | None]

    def run(self, task: Task) -> EndedProcess:
        done = super().run(task)
        fields = done.content.get("dependencies")
        self.read.append(msgspec.convert(fields, Dependencies) if fields else None)
        return done


def _is_wanted(lowered: Lowered, result: Result) -> bool:
    """Whether a case's source may be all that is wrong: what is refuted otherwise is to be mended first."""
    run = lowered.run
    wrong = any(claim.verdict == REFUTED and claim.excuse is None for claim in result.claims)
    return run.has_inputs and run.has_reference and lowered.snapshot is not None and not result.failure and not wrong


def _answer_of(blame: Blame) -> ReferenceAnswer:
    if blame.source in ("agrees", "differs"):
        return ReferenceAnswer(blame.source, "", next(iter(blame.findings), None), blame.blocks)
    return ReferenceAnswer("undecided", blame.reasons[0] or blame.source)


def _claim(snapshot: Snapshot, found: DeviceFinding) -> Claim:
    """The claim that an output of the source has the reference's values, refuted."""
    rule, source = rule_of(_PROBLEM), snapshot.checkpoints[SOURCE]
    what = f"{found.buffer} differs from the reference: {found.message}"
    witness: Witness = Accesses((), Act(what, (), at=SOURCE))
    if found.elements:
        first = found.elements[0]
        witness = Element(tuple(first["index"]), str(first["got"]), str(first["expected"]), found.inputs)
    words = witness.words(found.buffer) if found.elements else what
    name = next((str(b.data.value) for b in source.buffers if b.name == found.buffer), "")
    place = source_line(snapshot, line_of_use(source, name, writes=True))
    finding = Finding(
        rule.id, rule.name, rule.title, (), SOURCE, "", what, witness, words, advice=_ADVICE, blame="author"
    )
    return Claim("source", f"{rule.id} {found.buffer}", found.buffer, place, REFUTED, "execution", finding=finding)
