"""Whom to blame for a wrong result, without a GPU: `tlcheck run --device cpu`.

Each case's source and lowered kernel are executed on its own inputs. The source, with floats in their own types, is
compared with the reference: a difference there is its author's. The lowered kernel is compared with the source: a
difference there is TileLang's, and so is an atomic that a proof refutes, since an execution does not ask what the
device's library has. With `--as-written` only the source is executed: an interpreter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tlcheck import exits
from tlcheck.errors import UsageError
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.diagnosis import diagnose
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.interpreter import interpret
from tlcheck.execute.observe.kernel_console import Say
from tlcheck.execute.request import ALL, SOURCE, Request
from tlcheck.execute.schedule.launches import grid
from tlcheck.execute.stops import Illegal, NotModelled, Stopped
from tlcheck.execute.worlds import given
from tlcheck.execute.worlds.blocks import Block
from tlcheck.execute.worlds.inputs import known
from tlcheck.lower.runs import Lowered, Run
from tlcheck.lower.selection import Selection
from tlcheck.program.roles import source_roles
from tlcheck.run import device_results
from tlcheck.run.device_results import DeviceFinding
from tlcheck.run.examination import RunRequest
from tlcheck.run.processes import CopiedProcess
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.resolve import resolve
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.claim import UNDECIDED, Claim
from tlcheck.verdicts.execution_claims import OwnRace, claims_of, own_races
from tlcheck.verdicts.judge import JudgeWatcher, Policy
from tlcheck.worker.gpu.task import InputsTask, ReferTask
from tlcheck.worker.protocol import Failure

_SMALL = 64  # blocks of a grid of which all are compared with the reference
_EQUAL = "inexact-inputs", "unshown"  # kinds of findings where no element differs from the reference
Answer = Literal["agrees", "differs", "races", "undecided", "no reference", "not run", "not asked"]


@dataclass(frozen=True)
class Blame:
    """A record of what is said of one case. source: against the reference; lowered: against the source.

    reasons: why either is undecided or not run, or where it races. findings: the author's, also races. refuted:
    TileLang's claims, those of proofs first. blocks: executed, and of the grid.
    """

    run: Run
    source: Answer
    lowered: Answer
    reasons: tuple[str, str] = ("", "")
    findings: tuple[DeviceFinding, ...] = ()
    refuted: tuple[Claim, ...] = ()
    blocks: tuple[int, int] = (0, 0)


class ReferenceFailedError(UsageError):
    """A case's reference raises, or returns what fits no output. failure: says so, and where."""

    def __init__(self, case: str, failure: Failure) -> None:
        where = f"{failure.where}: " if failure.where else ""
        super().__init__(f"{case}: {where}{failure.message}")
        self.failure = replace(failure, phase="reference", trace="")


def exit_code(blames: Sequence[Blame]) -> int:
    """Return the exit code of what is said of cases."""
    answers = {answer for blame in blames for answer in (blame.source, blame.lowered)}
    return exits.exit_code(
        found=bool({"differs", "races"} & answers), unchecked=bool({"undecided", "not run"} & answers)
    )


def blamed(request: RunRequest, folder: Path, watcher: JudgeWatcher, say: Say | None = None) -> Iterator[Blame]:
    """Execute every case that is selected. Raises UsageError, also for inputs that do not fit the kernel.

    say: what to do with what kernels print, in the source alone; None to execute them as lowered, too.
    """
    groups: dict[str, list[Selection]] = {}
    for selection in request.selections:
        if selection.is_snapshot:
            raise UsageError(f"{selection.path}: --device cpu needs the case's file, for its inputs and reference")
        groups.setdefault(selection.toolchain or request.settings.toolchain, []).append(selection)
    for number, (toolchain, selections) in enumerate(groups.items()):
        own = folder / str(number)
        own.mkdir()
        with checking(replace(request.settings, toolchain=toolchain), Policy(excusing=False), own, watcher) as checks:
            if say is None:
                proved = [
                    (lowered, tuple([claim for claim in result.claims if claim.blames_compiler]))
                    for lowered, result in checks.results(selections)
                ]
            else:
                proved = [(lowered, ()) for lowered in checks.session.lower(selections)]
        with closing(CopiedProcess(resolve(toolchain, request.settings.requirements))) as process:
            for lowered, claims in sorted(proved, key=lambda pair: pair[0].run.position):
                watcher.stage(f"executing {lowered.run.case} {lowered.run.target}")
                yield _blamed(lowered, claims, own, process, request, say)


def against_reference(
    run: Run, snapshot: Snapshot, folder: Path, process: CopiedProcess, request: RunRequest, asked: Request
) -> Blame:
    """Execute a case's source alone, and compare it with its reference; without one nothing is executed.

    asked: its blocks and budget hold for the source, and its seconds for the reference. An output that the kernel
    updates is compared only if all blocks run. Raises UsageError for inputs that do not fit the kernel, and
    ReferenceFailedError.
    """
    return _OneCase(run, snapshot, (), folder, process, request, None, alone=True, asked=asked).blame()


def _blamed(
    lowered: Lowered,
    proved: tuple[Claim, ...],
    folder: Path,
    process: CopiedProcess,
    request: RunRequest,
    say: Say | None,
) -> Blame:
    if lowered.snapshot is None:
        failure = lowered.failure
        reason = f"{failure.phase}: {failure.message}" if failure else "not lowered"
        return Blame(lowered.run, "not run", "not run", (reason, reason))
    snapshot = codec.loads(lowered.snapshot.read_text(encoding="utf-8"))
    alone = say is not None
    return _OneCase(lowered.run, snapshot, proved, folder, process, request, say, alone=alone).blame()


@dataclass(frozen=True)
class _Executed:
    """An execution, its claims, and the races that are the author's own. source: what is compared with the reference.

    stopped: why the source alone did not come to its end.
    """

    execution: Execution
    source: Execution
    claims: tuple[Claim, ...] = ()
    races: tuple[OwnRace, ...] = ()
    stopped: str = ""


class _OneCase:
    """One case on its way: inputs, executions, comparison."""

    def __init__(
        self,
        run: Run,
        snapshot: Snapshot,
        proved: tuple[Claim, ...],
        folder: Path,
        process: CopiedProcess,
        request: RunRequest,
        say: Say | None,
        *,
        alone: bool,
        asked: Request | None = None,
    ) -> None:
        """proved: the claims that proofs refute. folder: of files, for all cases of a toolchain.

        alone: in the source alone; say: for those who want to hear it. asked: blocks and budget; None for all blocks.
        """
        self._asked = asked or Request(ALL)
        self._seconds = asked.budget.seconds if asked is not None else 0.0
        self._run, self._snapshot, self._process, self._request = run, snapshot, process, request
        self._proved, self._say, self._alone = proved, say, alone
        self._function = snapshot.checkpoints[SOURCE]
        buffers = {b.data.uid: b for b in reversed(self._function.buffers)}
        self._parameters = [(str(p.value), buffers.get(p.uid)) for p in self._function.params]
        self._names = tuple([p if b is None else b.name for p, b in self._parameters])
        number = "-".join(map(str, run.position))
        self._folder = folder / f"executed-{number}"
        self._folder.mkdir()

    def blame(self) -> Blame:
        """Execute and compare. Raises UsageError where the case's inputs do not fit."""
        if not self._run.has_inputs:
            on_drawn = [self._executed(Request(ALL, tuple(range(self._request.options.seeds))))]
            return _raced(self._blame(on_drawn), on_drawn)
        with suppress(NotModelled):  # sizes that only the inputs say
            if reason := self._incomparable({}):
                return Blame(self._run, "undecided", "not asked", (reason, ""))
        done = self._process.run(InputsTask(**self._common("inputs")))
        if done.failure is not None:
            if done.failure.kind == "usage":
                raise UsageError(f"{self._run.case}: {done.failure.message}")
            reason = f"{done.failure.phase}: {done.failure.message}"
            lowered: tuple[Answer, str] = ("differs", "") if self._proved else ("not run", reason)
            return Blame(self._run, "not run", lowered[0], (reason, lowered[1]), refuted=self._proved)
        if self._alone and self._say is None and not done.content["reference"]:
            return Blame(self._run, "no reference", "not asked")
        executed = {made["folder"]: self._executed_on(made, done.content) for made in done.content["sets"]}
        blame = self._blame(list(executed.values()))
        return _raced(self._compared(blame, executed) if done.content["reference"] else blame, executed.values())

    def _blame(self, executed: Sequence[_Executed]) -> Blame:
        """Return what the executions say without a reference."""
        claims = [claim for done in executed for claim in done.claims]
        stopped = next((done.stopped for done in executed if done.stopped), "")
        lowered, reason = _judged([*self._proved, *claims]) if not self._alone else ("not asked", "")
        return Blame(
            self._run,
            "undecided" if stopped else "no reference",
            lowered,
            (stopped, reason),
            refuted=(*self._proved, *{(c.kind, c.key): c for c in claims if c.blames_compiler}.values()),
            blocks=(len(executed[0].execution.blocks), executed[0].execution.of),
        )

    def _common(self, kind: str) -> dict[str, Any]:
        """The fields that both tasks have."""
        options = self._request.options
        return {
            "output": str(self._folder / f"{kind}.json"),
            "file": self._run.file,
            "name": self._run.name,
            "args": dict(self._request.settings.args),
            "pythonpath": options.pythonpath,
            "device": "cpu",
            "folder": str(self._folder),
            "seeds": tuple(range(options.seeds)),
            "exact": options.exact,
            "processor": self._seconds,
        }

    def _executed_on(self, made: Mapping[str, Any], said: Mapping[str, Any]) -> _Executed:
        """The kernel on one set of inputs; what it leaves in the source is put beside them."""
        folder = Path(made["folder"])
        try:
            given.require_count(self._function, made["count"])
            arrays = {
                str(p.value): np.load(folder / f"{place}.npy", mmap_mode="r")
                for place, (p, _) in enumerate(given.parameters(self._function))
            }
            sizes = known(self._function, arrays)
            given.require_shapes(self._function, arrays, sizes)
        except UsageError as error:
            raise UsageError(f"{self._run.case}: {said['where']}: {error}") from error
        if self._alone and (reason := self._incomparable(sizes)):
            return _Executed(Execution(()), Execution(()), stopped=reason)
        poisoned = given.poisoned(self._function, said["updates"])
        request = Request(self._blocks(sizes), (0,), self._asked.budget, given={0: arrays}, poisoned=poisoned)
        done = self._executed(request)
        if done.stopped and request.blocks != self._asked.blocks:
            done = self._executed(replace(request, blocks=self._asked.blocks))
        open_, whole = source_roles(self._snapshot).updated, len(done.source.blocks) == done.source.of
        for place, (_, buffer) in enumerate(self._parameters):
            left = done.source.left.get(str(buffer.data.value)) if buffer is not None else None
            if left is not None:
                compared = slice(None if whole or buffer not in open_ else 0)
                np.save(folder / f"{place}.elements.npy", left.elements[compared])
                np.save(folder / f"{place}.values.npy", left.values[compared])
        return done

    def _blocks(self, sizes: Mapping[str, int]) -> int | tuple[Block, ...]:
        """The blocks that are asked for; all of a small grid, of which nobody chose some."""
        asked = self._asked.blocks
        return ALL if isinstance(asked, int) and prod(grid(self._function, sizes)) <= _SMALL else asked

    def _incomparable(self, sizes: Mapping[str, int]) -> str:
        """Return why no output can be compared in the blocks that are asked for: each is a sum over blocks, or may be.

        Raises NotModelled for a grid whose sizes are not known.
        """
        asked, found = self._blocks(sizes), source_roles(self._snapshot)
        of, some = prod(grid(self._function, sizes)), asked if isinstance(asked, int) else len(asked)
        if some >= of or found.unread or not found.updated:
            return ""
        names = ", ".join(b.name for b in found.updated)
        return f"other blocks may add to {names}: comparing with the reference takes all {of} blocks (--blocks all)"

    def _executed(self, request: Request) -> _Executed:
        if not self._alone:
            execution = execute(self._snapshot, request)
            claims = claims_of(self._snapshot, diagnose(self._snapshot, request, execution), request)
            races = tuple(own_races(self._snapshot, execution, request))
            return _Executed(execution, self._in_own_types(request) or execution, claims, races)
        try:
            alone = interpret(self._snapshot, request, self._say)
            return _Executed(alone, alone)
        except Stopped as stopped:
            line = f" (line {stopped.line})" if isinstance(stopped, Illegal) and stopped.line else ""
            return _Executed(Execution(()), Execution(()), stopped=f"{stopped}{line}")

    def _in_own_types(self, request: Request) -> Execution | None:
        """The source, where an overflow is one; None where that takes more than is allowed."""
        if request.given is None:
            return None
        with suppress(Stopped):
            return interpret(self._snapshot, request)
        return None

    def _compared(self, blame: Blame, executed: Mapping[str, _Executed]) -> Blame:
        """Add what the reference says of the source."""
        left = {folder: done.source for folder, done in executed.items() if done.source.left}
        ran = {folder: len(execution.blocks) == execution.of for folder, execution in left.items()}
        if not ran:
            return replace(blame, source="undecided", reasons=(max(blame.reasons), blame.reasons[1]))
        found = source_roles(self._snapshot)
        task = ReferTask(
            **self._common("refer"),
            names=self._names,
            executed=ran,
            poisoned=tuple([b.name for b in found.unread]),
            updated=tuple([b.name for b in found.updated]),
            float_atomics=found.float_atomics,
        )
        done = self._process.run(task)
        trials = done.content.get("trials", ())
        findings = tuple(found for found in device_results.findings_of(trials) if found.kind not in _EQUAL)
        if findings:
            return replace(blame, source="differs", findings=findings)
        if done.failure is not None and done.failure.kind == "usage":
            raise ReferenceFailedError(self._run.case, done.failure)
        if done.failure is not None:
            return replace(blame, source="undecided", reasons=(done.failure.message, blame.reasons[1]))
        return replace(blame, source="agrees")


def _raced(blame: Blame, executed: Iterable[_Executed]) -> Blame:
    """Add what the author has left open."""
    races = dict.fromkeys(race for done in executed for race in done.races)
    if not races:
        return blame
    findings = (*blame.findings, *(DeviceFinding("race", race.buffer, f"{race.words}; {_who(race)}") for race in races))
    if blame.source == "differs":
        return replace(blame, findings=findings)
    lines = ", ".join(f"line {line}" for line in dict.fromkeys(race.line for race in races) if line)
    return replace(blame, source="races", reasons=(lines, blame.reasons[1]), findings=findings)


def _who(race: OwnRace) -> str:
    return f"{race.who} race" + (f" in line {race.line}" if race.line else "")


def _judged(claims: Sequence[Claim]) -> tuple[Answer, str]:
    """Return what the claims of proofs and executions come to, and why it is undecided."""
    if any(claim.blames_compiler for claim in claims):
        return "differs", ""
    undecided = [one.reason for claim in claims for one in (claim, *claim.also) if one.verdict == UNDECIDED]
    if undecided or not claims:
        return "undecided", undecided[0] if undecided else "the kernel writes no output"
    return "agrees", ""
