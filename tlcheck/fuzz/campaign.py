"""A campaign: kernels are made, lowered and judged on all processors, until the time is over or the user ends it."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tlcheck.execute.request import Request
from tlcheck.execute.worlds.budget import Budget
from tlcheck.fuzz.bench import FuzzBench, Judged
from tlcheck.fuzz.campaign_folder import CampaignFolder, Found
from tlcheck.fuzz.constructs import constructs
from tlcheck.fuzz.known import known
from tlcheck.fuzz.making import FuzzedKernel, make
from tlcheck.fuzz.outcome import KernelOutcome, Symptom, outcome, plain
from tlcheck.fuzz.seeds import SeedKernel
from tlcheck.toolchain.resolve import Toolchain

# A first look: two sets of inputs, few blocks, and no more work than a small kernel takes.
_BUDGET = Budget(statements=200_000, bytes=1 << 29, seconds=20.0, work=1 << 22)
REQUEST = Request(seeds=(0, 1), budget=_BUDGET, brief=True)
_EPOCH = 200  # kernels, after which the weights are looked at again
_PAUSE = 10.0  # seconds between writes of the state
_LEAST, _MOST = 0.5, 4.0  # weights


@dataclass(frozen=True)
class CampaignPlan:
    """Kernels to fuzz, and where. against: a release that has to be right, for a finding to count. kept: the folder
    for snapshots of kernels that count; None for none. pass_configs: over those of the kernels."""

    toolchain: Toolchain
    archs: tuple[str, ...]
    seeds: Sequence[SeedKernel] = ()
    against: Toolchain | None = None
    kept: Path | None = None
    pass_configs: Mapping[str, str] = field(default_factory=dict)
    request: Request = REQUEST


@dataclass
class Campaign:
    """One run of a plan. told: hears of each kernel, from several threads, one at a time."""

    plan: CampaignPlan
    folder: CampaignFolder
    jobs: int
    told: Callable[[CampaignFolder], None] = lambda folder: None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)
    _weights: dict[str, float] = field(default_factory=dict)
    _saved: float = 0.0

    def stop(self) -> None:
        """Have every thread end after the kernel that it is at."""
        self._ended.set()

    def run(self, seconds: float) -> None:
        """Fuzz for so long."""
        end = time.monotonic() + seconds
        self._weigh()
        problems: list[BaseException] = []
        with tempfile.TemporaryDirectory(prefix="tlcheck-fuzz-", ignore_cleanup_errors=True) as folder:
            threads = [
                threading.Thread(target=self._work, args=(Path(folder), end, problems)) for _ in range(self.jobs)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(1.0)  # so that a signal is handled
        self.folder.save()
        if problems:
            raise problems[0]

    def _work(self, folder: Path, end: float, problems: list[BaseException]) -> None:
        """Do a thread's work. An error in one thread ends all."""
        how = self.plan.request, self.plan.pass_configs
        bench = FuzzBench(self.plan.toolchain, folder, *how)
        other = FuzzBench(self.plan.against, folder, *how) if self.plan.against is not None else None
        try:
            while time.monotonic() < end and not self._ended.is_set():
                number, kernel = self._next()
                arch = self.plan.archs[number % len(self.plan.archs)]
                kept = self.plan.kept / f"{number:06}.snapshot.json" if self.plan.kept is not None else None
                judged = bench.judged(kernel.text, kernel.name, arch, kept)
                found = outcome(judged, kernel.text)
                if kept is not None and found.sort not in ("agreed", "refuted"):
                    kept.unlink(missing_ok=True)
                before = ""
                if other is not None and found.sort == "refuted":
                    before = outcome(other.judged(kernel.text, kernel.name, arch), kernel.text).sort
                with self._lock:
                    self._record(kernel, arch, judged, found, before)
        except BaseException as problem:
            problems.append(problem)
            self._ended.set()
        finally:
            bench.close()
            if other is not None:
                other.close()

    def _next(self) -> tuple[int, FuzzedKernel]:
        with self._lock:
            number = self.folder.state.next
            if number % _EPOCH == 0:
                self._weigh()
            self.folder.state.next += 1
            weights = self._weights
        return number, make(number, self.plan.seeds, weights)

    def _weigh(self) -> None:
        """Draw more often what seldom is in kernels that count."""
        drawn = self.folder.state.drawn
        usual = sorted(drawn.values())[len(drawn) // 2] if drawn else 0
        self._weights = {
            name: round(min(_MOST, max(_LEAST, (usual / count) ** 0.5)), 3) for name, count in drawn.items() if usual
        }
        self.folder.weigh(self._weights)

    def _record(self, kernel: FuzzedKernel, arch: str, judged: Judged, found: KernelOutcome, before: str) -> None:
        state = self.folder.state
        state.sorts[found.sort] += 1
        self.folder.log(kernel.number, arch, found.sort, kernel.made, found.what, round(judged.seconds, 2))
        state.lowering += judged.lowering
        state.seconds += judged.seconds
        if found.sort in ("agreed", "refuted", "undecided"):
            state.reached.update(constructs(kernel.text))
            state.calls.update(judged.calls)
            state.drawn.update(kernel.drawn)
        if found.sort not in ("agreed", "refuted"):
            state.reasons[f"{found.sort}: {plain(found.what)}"] += 1
        each = zip(found.symptoms, found.says, strict=True)
        names = [known(shows, says, kernel.text, judged.release) for shows, says in each]
        self.folder.meet(dict.fromkeys(filter(None, names)), kernel.number, kernel.text)
        if found.sort in ("refuted", "crashed", "failed"):
            self._keep(kernel, arch, found, next(iter(names), ""), before)
        if time.monotonic() - self._saved > _PAUSE:
            self.folder.save()
            self._saved = time.monotonic()
        self.told(self.folder)

    def _keep(self, kernel: FuzzedKernel, arch: str, found: KernelOutcome, name: str, before: str) -> None:
        """Keep what shows in a way of its own. name: as which it is known, empty for none."""
        shows = found.symptoms[0] if found.symptoms else Symptom(found.sort, "", "", plain(found.what))
        alike = self.folder.alike(shows, name)
        if alike is not None:
            alike.count += 1
            return
        state = self.folder.state
        place = f"{len(state.found) + 1:04}-{shows.rule}-{arch}"
        made = Found(
            place, found.sort, shows, found.what, kernel.number, arch, kernel.name, kernel.made, kernel.changes,
            found.symptoms[1:], name, against=before,
        )  # fmt: skip
        self.folder.add(made, kernel.text)
