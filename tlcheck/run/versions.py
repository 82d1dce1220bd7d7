"""The times of the same cases with two toolchains, which take turns on one device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

from tlcheck.lower.runs import Run
from tlcheck.lower.session import Watcher
from tlcheck.run.processes import EndedProcess, Pool
from tlcheck.run.statistics import TimeChange, change
from tlcheck.run.suite import DeviceCase
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.gpu.task import Rounds, TimeTask

ROUNDS = 10


@dataclass(frozen=True)
class TimedPair:
    """One case with both toolchains, or the reason why it could not be timed."""

    run: Run
    change: TimeChange | None
    reason: str = ""


@dataclass(frozen=True)
class Versions:
    """Compares times. old, new: toolchains. jobs: cases at a time that compile; one pair is timed at a time."""

    old: Toolchain
    new: Toolchain
    folder: Path
    jobs: int
    limit: float
    pythonpath: tuple[str, ...] = ()
    pass_configs: Mapping[str, str] = field(default_factory=dict)

    def compare(self, subjects: Sequence[DeviceCase], watcher: Watcher) -> Iterator[TimedPair]:
        """One for each, in order of completion."""
        watcher.total(len(subjects))
        executor = ThreadPoolExecutor(self.jobs)
        try:
            for future in as_completed([executor.submit(self._compare, subject) for subject in subjects]):
                done = future.result()
                watcher.done(done.run)
                yield done
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    def _compare(self, subject: DeviceCase) -> TimedPair:
        turns = self.folder / f"turns-{'-'.join(map(str, subject.run.position))}"
        turns.write_text("0")
        pools = [Pool(toolchain, 1, self.folder) for toolchain in (self.old, self.new)]
        found: dict[int, EndedProcess] = {}
        with ThreadPoolExecutor(2) as both:
            waiting = [both.submit(_only, pool, self._task(subject, turns, p)) for p, pool in enumerate(pools)]
            for future in as_completed(waiting):
                found[waiting.index(future)] = done = future.result()
                if done.failure is not None:
                    turns.with_suffix(".ended").touch()  # the other one would wait for its turn
        names = (self.old.name, self.new.name)
        for place, done in sorted(found.items()):
            if done.failure is not None:
                return TimedPair(subject.run, None, f"{names[place]}: {done.failure.phase}: {done.failure.message}")
        old, new = (found[place].content["timing"]["times"][""]["rounds"] for place in (0, 1))
        return TimedPair(subject.run, change(old, new))

    def _task(self, subject: DeviceCase, turns: Path, place: int) -> TimeTask:
        run = subject.run
        return TimeTask(
            output=f"{turns}-{place}.json",
            file=run.file,
            name=run.name,
            args=dict(subject.args),
            pythonpath=self.pythonpath,
            pass_configs=self.pass_configs,
            lock=str(self.folder / "gpu.lock") if place == 0 else "",  # the first holds it for both
            limit=self.limit,
            rounds=Rounds(str(turns), place, ROUNDS),
        )


def _only(pool: Pool, task: TimeTask) -> EndedProcess:
    (done,) = pool.run([task])
    return done
