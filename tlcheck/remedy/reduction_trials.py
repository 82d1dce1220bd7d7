"""Whether a text still shows a finding: it is lowered by warm workers and judged, and nothing is imported twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue
from tempfile import mkdtemp

from tlcheck.cache.code import code_of
from tlcheck.cache.store import Cache, key_of
from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.gate.bisect_passes import Guilty, judge_passes
from tlcheck.gate.verdict_outcomes import all_claims
from tlcheck.lower.client import processors
from tlcheck.lower.machines import MachinePool
from tlcheck.lower.runs import Run
from tlcheck.lower.warm import WarmProcesses
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.bench import KernelBench
from tlcheck.verdicts.claim import Claim, kind_of
from tlcheck.verdicts.kept import Verdicts
from tlcheck.verdicts.results import read_snapshot
from tlcheck.worker.jobs import LowerJob

_TIMES_OWN = 4.0  # processor seconds of a candidate's lowering, in times of the kernel's own
_LEAST_SECONDS = 20.0
_ANY = ("", "other-value")  # kinds that do not say how it begins: a smaller kernel may show that


@dataclass(frozen=True)
class WantedFinding:
    """The finding that a smaller kernel has to show as well. kind: how it begins, empty where that is not known.

    also: rules that the kernel breaks besides; a smaller one breaks no others. illegal: what stops the kernel, without
    names and numbers; empty where nothing does.
    """

    rule: str
    kind: str
    also: frozenset[str] = frozenset()
    illegal: str = ""

    @classmethod
    def of(cls, claim: Claim, claims: Sequence[Claim] = ()) -> WantedFinding:
        """Return what a refuted claim is about. claims: all of the kernel."""
        assert claim.finding is not None
        kind = claim.finding.origin.kind if claim.finding.origin is not None else ""
        illegal = _without_names(claim) if kind_of(claim.finding.rule) == "legality" else ""
        return cls(claim.finding.rule, kind, frozenset(_rules(claims)), illegal)

    def is_of(self, claim: Claim) -> bool:
        """Return whether a claim is refuted in the same way."""
        own = self.of(claim) if claim.finding is not None and claim.blames_compiler else None
        if own is None or (own.rule, own.illegal) != (self.rule, self.illegal):
            return False
        return self.kind in _ANY or own.kind == self.kind

    def is_shown(self, found: Verdicts) -> bool:
        """Return whether the compiler is to blame for the same, and the source for nothing."""
        claims = all_claims(found.claims)
        if found.failure is not None or any(c.kind == "source" and c.finding is not None for c in claims):
            return False
        rules = _rules(claims)
        if rules - {self.rule} - self.also or (_of_outputs(self.also) and not _of_outputs(rules)):
            return False
        return any(map(self.is_of, claims))


def _without_names(claim: Claim) -> str:
    """Return what a claim says of a stop: `# threads reach a barrier that counts #`."""
    assert claim.finding is not None
    words = claim.finding.words.partition(", in block ")[0].partition(", in a branch ")[0]
    return re.sub(r"\d+", "#", re.sub(rf"\b{re.escape(claim.buffer)}\b", "_", words) if claim.buffer else words)


def _of_outputs(rules: Iterable[str]) -> bool:
    """Whether an output is wrong, which shows what an order does, and by which pass."""
    return any(kind_of(rule) == "output" for rule in rules)


def _rules(claims: Sequence[Claim]) -> set[str]:
    """The rules by which claims blame the compiler."""
    return {c.finding.rule for c in claims if c.blames_compiler and c.finding is not None}


def is_right(found: Verdicts) -> bool:
    """Return whether a release has a kernel right: something is decided, and nothing refuted."""
    claims = all_claims(found.claims)
    return found.failure is None and any(c.is_clean for c in claims) and not any(c.finding for c in claims)


def name_of(guilty: Guilty) -> str:
    """Return what a pass is called, also where it is none; empty for one that did not run."""
    return "" if not guilty.number else guilty.pass_name or "the code generator"


@dataclass(frozen=True)
class Trials:
    """The trials of each text. name: of the kernel in it. toolchains: the wrong release, then one that is right.

    request: how it is executed. job: what all jobs have in common. seconds: that the kernel itself took to lower.
    cluster: where it is tried, if not on this machine. warm: processes to be used.
    """

    target: WantedFinding
    name: str
    toolchains: tuple[Toolchain, ...]
    request: Request
    job: LowerJob
    cache: Cache
    seconds: float = _LEAST_SECONDS
    cluster: MachinePool | None = None
    warm: WarmProcesses | None = None

    def processors(self, jobs: int | None) -> int:
        """Return how many texts are tried at a time. jobs: that the user wants."""
        return self.cluster.processors if self.cluster is not None else jobs or processors()

    def key(self, text: str) -> str:
        """Under which an answer is kept."""
        packages = [t.name for t in self.toolchains]
        configs = dict(self.job.pass_configs)
        own = (
            self.target.rule,
            self.target.kind,
            self.target.illegal,
            sorted(self.target.also),
            self.name,
            packages,
            self.job.arch,
            configs,
            repr(self.request),
        )
        return key_of(code_of("reduced"), own, text)


class TrialBench:
    """Tries one text after the other, on one processor or on a cluster's nodes."""

    def __init__(self, trials: Trials, folder: Path, env: dict[str, str]) -> None:
        self._trials = trials
        self._file = Path(mkdtemp(dir=folder)) / "kernel.py"
        self._bench = KernelBench(trials.toolchains, env, trials.warm, trials.cluster)

    def close(self) -> None:
        """End the processes, or leave them to others."""
        self._bench.close()

    def shows(self, text: str) -> bool:
        """Return whether the wrong release shows the finding, and the right one nothing."""
        self._file.write_text(text, encoding="utf-8")
        found = self._verdicts(0)
        if found is None or not self._trials.target.is_shown(found):
            return False
        rights = [self._verdicts(side) for side in range(1, len(self._trials.toolchains))]
        return all(right is not None and is_right(right) for right in rights)

    def passes(self, text: str) -> set[str]:
        """Return the passes that are to blame for what the wrong release does to a text."""
        self._file.write_text(text, encoding="utf-8")
        found, snapshot = self._verdicts(0), self._lowered(0, every_pass=True)
        if found is None or snapshot is None:
            return set()
        wrong = [c for c in all_claims(found.claims) if c.blames_compiler]
        run = Run(str(self._file), self._trials.name, self._trials.job.arch, self._trials.toolchains[0].name, {})
        try:
            guilty = judge_passes(run, read_snapshot(snapshot), self._trials.request, wrong).guilty
        except UsageError:  # a pipeline without tiles
            return set()
        return {name_of(g) for g in guilty}

    def _verdicts(self, side: int) -> Verdicts | None:
        """Return the verdicts of the file with one of the toolchains; None where it does not lower."""
        snapshot = self._lowered(side)
        if snapshot is None:
            return None
        request = self._trials.request if side == 0 else replace(self._trials.request, brief=True)
        return self._bench.verdicts(snapshot, request)

    def _lowered(self, side: int, *, every_pass: bool = False) -> Path | None:
        """Lower the file with one of the toolchains."""
        output = self._file.with_name(f"{side}.snapshot.json")
        seconds = max(_LEAST_SECONDS, _TIMES_OWN * self._trials.seconds)
        job = replace(
            self._trials.job,
            file=str(self._file),
            name=self._trials.name,
            output=str(output),
            timeout=seconds,
            every_pass=every_pass,
        )
        return output if self._bench.lowered(side, job).result is not None else None


class Benches:
    """One bench for each processor, for threads that take turns; answers are kept.

    known: how many answers an earlier command had.
    """

    def __init__(self, trials: Trials, count: int, folder: Path, env: dict[str, str]) -> None:
        self.trials, self.tried, self.known = trials, 0, 0
        self._answers: dict[str, bool] = {}
        self._all = [TrialBench(trials, folder, env) for _ in range(count)]
        self._free: SimpleQueue[TrialBench] = SimpleQueue()
        for bench in self._all:
            self._free.put(bench)

    @property
    def count(self) -> int:
        return len(self._all)

    def close(self) -> None:
        for bench in self._all:
            bench.close()

    def shows(self, text: str) -> bool:
        """Return whether a text shows the finding. Any thread may ask."""
        return self._asked(self.trials.key(text), lambda bench: bench.shows(text))

    def blames(self, text: str, pass_name: str) -> bool:
        """Return whether a pass is to blame for what a text shows. Any thread may ask."""
        key = self.trials.key(f"{pass_name}\n{text}")
        return self._asked(key, lambda bench: pass_name in bench.passes(text))

    def _asked(self, key: str, ask: Callable[[TrialBench], bool]) -> bool:
        if key in self._answers:
            return self._answers[key]
        kept = self.trials.cache.get("reductions", key)
        if kept is not None:
            self.known += 1
            return kept == b"1"
        bench = self._free.get()
        try:
            answer = ask(bench)
        finally:
            self._free.put(bench)
        self.tried += 1
        self._answers[key] = answer
        self.trials.cache.put("reductions", key, b"1" if answer else b"0")
        return answer
