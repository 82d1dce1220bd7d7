"""Changes are tried until one makes all claims agree: the smallest of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp

from tlcheck.facts.changes import changes as fact_changes
from tlcheck.facts.extract import facts_of
from tlcheck.gate.verdict_outcomes import all_claims
from tlcheck.lower.runs import Lowered, Run
from tlcheck.lower.session import Settings
from tlcheck.program.launch import requests
from tlcheck.remedy import kernel_changes as tried
from tlcheck.remedy.configs import selection_of
from tlcheck.remedy.kernel_changes import KernelChange
from tlcheck.snapshot import codec
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.neighbours import installed_around
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.claim import PROVED, REFUTED, UNDECIDED, Claim
from tlcheck.verdicts.judge import JudgeWatcher, Policy
from tlcheck.verdicts.results import Result, read_snapshot
from tlcheck.verdicts.words import plural
from tlcheck.worker.protocol import PASS_CONFIG

MENDS, ALIKE, WRONG, OPEN, FAILS, ABSENT = "mends", "alike", "wrong", "open", "fails", "absent"
_COSTS = 3  # changes of facts that are told
_Doubt = tuple[str, str, str]
_FEW = 8  # changes at a time that need one worker: it takes seconds to start


@dataclass(frozen=True)
class Attempt:
    """A change and what came of it.

    outcome: `mends`; `alike`, it lowers to the same; `wrong`; `open`, not everything is decided; `fails`, it does not
    lower; `absent`, the release does not know it. proved: whether all claims are. costs: what it costs, in words.
    left: buffers of which the kernel says the same as without the change: undecided, or wrong in the kernel itself.
    """

    change: KernelChange
    outcome: str
    proved: bool = False
    costs: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class WrongKernel:
    """A kernel as it is: its result and its snapshot."""

    result: Result
    snapshot: Snapshot

    @property
    def run(self) -> Run:
        return self.result.run

    @property
    def unmendable(self) -> frozenset[_Doubt]:
        """Return what no change needs to settle: undecided for a reason that it may not touch, or wrong in the kernel
        itself.

        What is undecided for another reason with a change is news: an output may be so because of what was wrong.
        """
        return frozenset(_doubt(c) for c in all_claims(self.result.claims) if _is_open(c))


@dataclass
class Workarounds:
    """A record of what was tried of a kernel until now. interrupted: whether the user ended it."""

    kernel: WrongKernel
    trials: list[Attempt] = field(default_factory=list)
    interrupted: bool = False

    @property
    def found(self) -> list[Attempt]:
        return [trial for trial in self.trials if trial.outcome == MENDS]


@dataclass(frozen=True)
class WorkaroundSearch:
    """A search for workarounds. everything: all changes of each kind, not only up to the first that mends.

    policy: how kernels are executed. folder: of files. stoppable: takes what ends the work where the user ends the
    command; stopped: whether they did. whole: looks at a change in the kernel that this one was made of: one that does
    not mend it is no workaround. None where there is no such kernel.
    """

    settings: Settings
    policy: Policy
    folder: Path
    watcher: JudgeWatcher
    everything: bool = False
    stoppable: Callable[[Callable[[], None]], None] = lambda stop: None
    stopped: Callable[[], bool] = lambda: False
    whole: Callable[[KernelChange], Attempt] | None = None

    def attempt(self, wrong: WrongKernel, change: KernelChange) -> Attempt:
        """Look at one change; it is open where the user has ended the command."""
        return self._judged(wrong, [change], brief=False).get(change, Attempt(change, OPEN))

    def search(self, wrong: WrongKernel) -> Workarounds:
        """Try one pass configuration, then a build argument, another release, and at last two pass configurations."""
        found = Workarounds(wrong)
        findings = [
            claim.finding for claim in all_claims(wrong.result.claims) if claim.blames_compiler and claim.finding
        ]
        guilty_pass = next((finding.pass_name for finding in findings if finding.pass_name), "")
        rules = {finding.rule for finding in findings}
        likely, others = tried.pass_configs(wrong.result.pass_configs or {}, guilty_pass, rules)
        singles = [*likely, *others]
        older, newer = installed_around(wrong.run.toolchain, wrong.run.release, self.settings.requirements)
        self._try(found, likely, are_likely=True)
        self._try(found, others)
        self._try(found, tried.arguments(wrong.run))
        for releases in (newer, older):
            self._try(found, [KernelChange(tried.RELEASE, release=release) for release in releases])
        effective = [t.change for t in found.trials if t.change in singles and t.outcome in (WRONG, OPEN)]
        self._try(found, tried.pairs(effective))
        self.watcher.goal("")
        found.interrupted = self.stopped()
        return found

    def _try(self, found: Workarounds, wanted: Sequence[KernelChange], *, are_likely: bool = False) -> None:
        """Try changes of one kind, in their order, a few at a time; none where smaller ones do.

        What is likely to help is executed once, as usual; others briefly first.
        """
        if found.found and not self.everything:
            return
        few = 1 if any(change.release for change in wanted) else _FEW
        for begin in range(0, len(wanted), few):
            if self.stopped():
                return
            some = wanted[begin : begin + few]
            best = f"{found.found[-1].change.words} helps" if found.found else "nothing helps yet"
            self.watcher.goal(f"{plural(len(wanted) - begin, some[0].kind)} left, {best}")
            new = self._trials(found.kernel, some, briefly=not are_likely)
            found.trials += new
            if found.found and not self.everything:
                return

    def _trials(self, wrong: WrongKernel, wanted: Sequence[KernelChange], *, briefly: bool) -> list[Attempt]:
        """Lower and judge the kernel with each change. briefly: at first, and as usual where nothing is refuted."""
        brief = self._judged(wrong, wanted, brief=briefly)
        hopeful = [change for change, trial in brief.items() if briefly and trial.outcome == MENDS]
        sure = self._judged(wrong, hopeful, brief=False) if hopeful else {}
        trials = [sure.get(change) or brief[change] for change in wanted if change in brief]
        return [self._as_a_whole(trial) for trial in trials]

    def _as_a_whole(self, trial: Attempt) -> Attempt:
        """The attempt; where it mends this kernel alone, with the outcome of the whole one."""
        if self.whole is None or trial.outcome != MENDS:
            return trial
        outcome = self.whole(trial.change).outcome
        return trial if outcome == MENDS else replace(trial, outcome=outcome)

    def _judged(
        self, wrong: WrongKernel, wanted: Sequence[KernelChange], *, brief: bool
    ) -> Mapping[KernelChange, Attempt]:
        request = self.policy.execute
        policy = Policy(excusing=False, execute=None if request is None else replace(request, brief=brief))
        by_place = dict(enumerate(wanted))
        trials: dict[KernelChange, Attempt] = {}

        def lowered_otherwise(found: Iterator[Lowered]) -> Iterator[Lowered]:
            """Yield what is worth judging."""
            for one in found:
                change = by_place[one.run.position[0]]
                if one.is_interrupted:
                    continue
                if one.snapshot is None:
                    known = one.failure is None or one.failure.kind != PASS_CONFIG
                    trials[change] = Attempt(change, FAILS if known else ABSENT)
                elif not change.release and _is_alike(read_snapshot(one.snapshot), wrong.snapshot):
                    trials[change] = Attempt(change, ALIKE)
                else:
                    yield one

        selections = [selection_of(wrong.run, change) for change in wanted]
        with checking(self.settings, policy, Path(mkdtemp(dir=self.folder)), self.watcher) as checks:
            self.stoppable(checks.stop)
            for lowered, result in checks.judge.each(lowered_otherwise(checks.session.lower(selections))):
                change = by_place[lowered.run.position[0]]
                if not result.is_interrupted and lowered.snapshot is not None:
                    trials[change] = _trial(change, result, wrong, lowered.snapshot)
        return trials


def _trial(change: KernelChange, result: Result, before: WrongKernel, after: Path) -> Attempt:
    claims = [claim for claim in all_claims(result.claims) if claim.kind != "source" or claim.verdict == REFUTED]
    left = [claim for claim in claims if _is_open(claim) and _doubt(claim) in before.unmendable]
    settled = [claim for claim in claims if claim not in left]
    if result.failure is None and any(claim.verdict == REFUTED for claim in settled):
        return Attempt(change, WRONG)
    if result.failure is not None or not settled or any(claim.verdict == UNDECIDED for claim in settled):
        return Attempt(change, OPEN)
    proved = all(claim.verdict == PROVED for claim in claims)
    names = tuple(dict.fromkeys(claim.buffer for claim in left))
    return Attempt(change, MENDS, proved, _costs(before.snapshot, read_snapshot(after)), names)


def _is_open(claim: Claim) -> bool:
    """Whether a claim is undecided, or refuted because of the kernel itself."""
    return claim.verdict == UNDECIDED or (claim.verdict == REFUTED and not claim.blames_compiler)


def _doubt(claim: Claim) -> _Doubt:
    """A claim that is not clean, by its kind and key, and the reason or the rule."""
    return claim.kind, claim.key, claim.finding.rule if claim.finding is not None else claim.code


def _is_alike(one: Snapshot, other: Snapshot) -> bool:
    """Whether two snapshots hold the same code, whatever pass configurations they name."""
    return codec.dumps(replace(one, pass_configs={})) == codec.dumps(replace(other, pass_configs={}))


def _costs(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """Shared memory of a block, and what may make it slower."""
    old, new = _shared(before), _shared(after)
    memory = [] if old == new else [f"shared memory {old / 1024:.4g} -> {new / 1024:.4g} KiB"]
    slower = [change.words for change in fact_changes(facts_of(before), facts_of(after)) if change.slower]
    return (*memory, *slower[:_COSTS])


def _shared(snapshot: Snapshot) -> int:
    """Bytes of shared memory that a block asks for, as far as they are constant."""
    lowered = snapshot.checkpoints[Checkpoint.DEVICE_TIR]
    asked = requests(lowered, lambda e: e.value if isinstance(e.value, int) else None)
    return max((request.shared for request in asked), default=0)
