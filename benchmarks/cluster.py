"""How far a cluster carries: durations of real jobs, and 1 to 1,000 simulated nodes that do them.

`cluster.py record CASE... --toolchains LIST` lowers and judges here, and writes results/cluster.json: seconds of the
processor.
`cluster.py simulate` has 10,000 jobs drawn from these done by nodes that `tlcheck.cluster.placement` gives their next
job, as it does on a cluster. What is not in a job's duration:

- a node installs a toolchain that it lacks, and each of its processors imports it;
- a result takes the link of the machine that asked, and its processor;
- judging follows lowering, on the same node, or at the machine that asked.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path

from tlcheck.cluster.placement import IMPORT, INSTALL, Placement, Waiting
from tlcheck.execute.request import Request
from tlcheck.lower.selection import select
from tlcheck.lower.session import Session, Settings
from tlcheck.verdicts.judge import JudgingProcess

RECORD = Path(__file__).parents[1] / "results" / "cluster.json"
JOBS, PROCESSORS = 10_000, 4
NODES = (1, 3, 10, 30, 100, 300, 1000)
LINK = 125e6  # bytes per second: 1 Gbit/s
COLLECT = 0.004  # seconds that a result costs the machine that asked: to write, hash and keep it
LOCAL = 2  # processors of that machine


@dataclass(frozen=True)
class Recorded:
    """One job: seconds of lowering and of judging, and bytes of its snapshot."""

    what: str
    toolchain: str
    lower: float
    judge: float
    size: int


class Quiet:
    """Tells nobody how far a session is."""

    def stage(self, text: str) -> None: ...

    def total(self, runs: int) -> None: ...

    def done(self, run: object) -> None: ...


def record(cases: Sequence[str], toolchains: Sequence[str]) -> None:
    """Lower and judge one after the other."""
    settings = Settings(jobs=1)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        session, judging = Session(settings, Path(folder), Quiet()), JudgingProcess()
        for lowered in session.lower([replace(s, toolchain=name) for name in toolchains for s in select(cases)]):
            if lowered.snapshot is None:
                continue
            before = spent(judging._process.pid)
            judging.verdicts(lowered.snapshot, Request(), None)
            judged = spent(judging._process.pid) - before
            seconds = sum(taken for phase, taken in lowered.seconds.items() if phase != "import")
            size, run = lowered.snapshot.stat().st_size, lowered.run
            found.append(Recorded(f"{run.case} {run.target}", run.toolchain, round(seconds, 3), round(judged, 3), size))
        judging.kill()
    RECORD.write_text("\n".join(["[", ",\n".join(json.dumps(asdict(each)) for each in found), "]", ""]))


def spent(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Result:
    """What a simulation came to, in seconds."""

    makespan: float
    work: float
    processors: int
    busiest: str

    @property
    def efficiency(self) -> float:
        """The part of the processors' time that is work."""
        return self.work / (self.makespan * self.processors)


class Simulation:
    """Nodes that do jobs. warm: they have all toolchains. remote: judging happens on them."""

    def __init__(self, jobs: Sequence[Recorded], nodes: int, *, warm: bool, remote: bool) -> None:
        self._placement: Placement[Recorded] = Placement()
        self._jobs, self._nodes, self._remote = jobs, nodes, remote
        self._free = [(0.0, number, slot) for number in range(nodes) for slot in range(PROCESSORS)]
        self._ready: dict[tuple[str, str], float] = {}  # when a node has a toolchain
        self._imported: dict[tuple[int, int], str] = {}
        self._link = self._desk = 0.0  # until when they are busy
        self._judges = [0.0] * LOCAL
        releases = {job.toolchain for job in jobs}
        for number in range(nodes):
            self._placement.joins(str(number), releases if warm else ())
            self._ready.update({(str(number), name): 0.0 for name in releases if warm})
        for job in jobs:
            self._placement.add(Waiting(job.toolchain, job.what, job))

    def run(self) -> Result:
        """Do all jobs."""
        work = sum(job.lower + job.judge for job in self._jobs)
        idle: list[tuple[int, int]] = []
        while self._free:
            now, number, slot = heapq.heappop(self._free)
            placed = self._placement.take(str(number))
            if placed is None:
                idle.append((number, slot))
                continue
            self._do(placed, now, number, slot)
        ends = {"nodes": self._end, "link": self._link, "desk": self._desk, "judging here": max(self._judges)}
        makespan = max(ends.values())
        return Result(makespan, work, self._nodes * PROCESSORS, max(ends, key=lambda name: ends[name]))

    _end = 0.0

    def _do(self, placed: Waiting[Recorded], now: float, number: int, slot: int) -> None:
        node, job = str(number), placed.work
        ready = self._ready.setdefault((node, job.toolchain), now + INSTALL)
        now = max(now, ready)
        if self._imported.get((number, slot)) != job.toolchain:
            self._imported[number, slot] = job.toolchain
            now += IMPORT
        end = now + job.lower + (job.judge if self._remote else 0.0)
        self._placement.ended(placed, job.lower)
        self._link = max(self._link, end) + job.size / LINK
        self._desk = max(self._desk, self._link) + COLLECT
        if not self._remote:
            judge = min(range(LOCAL), key=lambda each: self._judges[each])
            self._judges[judge] = max(self._judges[judge], self._desk) + job.judge
        self._end = max(self._end, end)
        heapq.heappush(self._free, (end, number, slot))


def drawn(found: Sequence[Recorded]) -> list[Recorded]:
    """Ten thousand jobs: kernels drawn from the recorded ones, each with every toolchain that is recorded."""
    chance, toolchains = random.Random(0), sorted({job.toolchain for job in found})
    numbers, made = count(), []
    while len(made) < JOBS:
        kernel, number = chance.choice(found), next(numbers)
        made += [replace(kernel, what=f"{kernel.what} {number}", toolchain=name) for name in toolchains]
    return made[:JOBS]


def table(found: Sequence[Recorded]) -> Iterator[str]:
    """The table of docs/performance.md."""
    jobs = drawn(found)
    yield "| nodes | toolchains installed | none installed | judging where it was asked |"
    yield "|---|---|---|---|"
    for nodes in NODES:
        cells = []
        for warm, remote in ((True, True), (False, True), (True, False)):
            result = Simulation(jobs, nodes, warm=warm, remote=remote).run()
            cells.append(f"{result.efficiency:.0%}, {result.makespan:.0f} s ({result.busiest})")
        yield f"| {nodes} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["record", "simulate"])
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--toolchains", default="0.1.15")
    args = parser.parse_args()
    if args.task == "record":
        record(args.cases, args.toolchains.split(","))
        return
    found = [Recorded(**each) for each in json.loads(RECORD.read_text())]
    total = sum(job.lower + job.judge for job in found)
    print(f"{len(found)} jobs recorded, {total:.0f} s, {sum(job.size for job in found) / 1e6:.1f} MB")
    for line in table(found):
        print(line)


if __name__ == "__main__":
    sys.exit(main())
