"""How far a cluster carries: durations of real jobs, and 1 to 1,000 simulated nodes that do them.

`cluster.py record CASE... --toolchains LIST` lowers and judges here, and writes into results/cluster.json: seconds of
the processor.
`cluster.py costs --cluster ADDRESS` writes into results/cluster-costs.json what a result costs the machine that asks,
and what an import takes. The node does one kernel, and says of a thousand others at once what it said of that one.
`cluster.py simulate` has 10,000 jobs drawn from these done by nodes that `tlcheck.cluster.placement` gives their next
job, as it does on a cluster. What is not in a job's duration:

- a node installs a toolchain that it lacks, and imports it, for all of its processors;
- a result takes the link of the machine that asked, and its processor;
- judging follows lowering, on the same node, or at the machine that asked.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import select
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from threading import Lock

from tlcheck.cli.main import main as tlcheck
from tlcheck.cluster import nodes as cluster_nodes
from tlcheck.cluster.node import Arrays, Delivery, Node, Order
from tlcheck.cluster.paths import MachinePaths
from tlcheck.cluster.placement import INSTALL, Placement, QueuedJob
from tlcheck.execute.request import GivenInputs, Request
from tlcheck.files import cache_root
from tlcheck.lower.client import Worker, processors
from tlcheck.lower.executor import LocalExecutor
from tlcheck.lower.runs import Lowered
from tlcheck.lower.scripts import Scripts
from tlcheck.lower.selection import select as selected
from tlcheck.lower.session import Session, Settings
from tlcheck.toolchain.environment import Recipe, find, release_recipe
from tlcheck.verdicts.judge import JudgingProcess
from tlcheck.worker.jobs import CaptureJob, Job, LowerJob, name_of
from tlcheck.worker.protocol import Answer

RESULTS = Path(__file__).parents[1] / "results"
RECORD, EXAMPLES, COSTS = (RESULTS / f"cluster{name}.json" for name in ("", "-examples", "-costs"))
JOBS, PROCESSORS = 10_000, 4
NODES = (1, 3, 10, 30, 100, 300, 1000)
LINK = 125e6  # bytes per second: 1 Gbit/s
LOCAL = 2  # processors of that machine
FEW, MANY = 100, 1100  # kernels of the two matrices whose difference is what a result costs
WIDE = 400  # processors that the node says it has
KERNEL = """import tilelang
import tilelang.language as T
from tlcheck.case import Case

@tilelang.jit
def product(n=256):
    @T.prim_func
    def main(A: T.Tensor((n, n), "float16"), B: T.Tensor((n, n), "float16"), C: T.Tensor((n, n), "float16")):
        with T.Kernel(n // 64, n // 64, threads=128) as (bx, by):
            a, b = T.alloc_shared((64, 32), "float16"), T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            T.clear(c)
            for k in T.Pipelined(n // 32, num_stages=2):
                T.copy(A[by * 64, k * 32], a)
                T.copy(B[k * 32, bx * 64], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 64, bx * 64])
    return main

"""

Key = tuple[str, str, str]  # file, kernel (empty for a script), arch


@dataclass(frozen=True)
class Recorded:
    """One job: seconds of lowering and of judging, bytes of its snapshots, and how many kernels it has.

    Where judging takes none, lowering has both.
    """

    what: str
    toolchain: str
    lower: float
    judge: float
    size: int
    results: int = 1


@dataclass(frozen=True)
class Costs:
    """What was measured of one cluster.

    collect: seconds of the processor that a result costs the machine that asked, to read, hash, keep and report it,
    Ray's calls included; the mean of so many jobs. begin: the same for a command of one file. imports: seconds to
    import tilelang, of the processor.
    """

    collect: float
    begin: float
    imports: float
    jobs: int


ASSUMED = Costs(0.004, 0.0, 6.0, 0)  # until a cluster was measured that had little else to do


class Quiet:
    """Tells nobody how far a session is."""

    def stage(self, text: str) -> None: ...

    def total(self, runs: int) -> None: ...

    def done(self, run: object) -> None: ...


class Clock(LocalExecutor):
    """An executor that keeps the seconds of the processor that each job took."""

    def __init__(self, parallel: int) -> None:
        super().__init__(parallel)
        self.seconds: dict[Key, float] = {}

    def answers(self) -> Iterator[tuple[Job, Answer]]:
        for job, answer in super().answers():
            if isinstance(job, (LowerJob, CaptureJob)) and answer.failure is None:
                self.seconds[job.file, name_of(job), job.arch] = answer.cpu
            yield job, answer


class Timed(Session):
    """A session whose executor has a clock."""

    def _open_executor(self) -> Clock:
        self.clock = Clock(self.settings.jobs or processors())
        return self.clock


def record(cases: Sequence[str], toolchains: Sequence[str], jobs: int) -> None:
    """Lower with each toolchain and judge, `jobs` at a time. A script is one job, with all of its kernels."""
    found = {(each.what, each.toolchain): each for each in recorded()}
    for toolchain in toolchains:
        settings = Settings(toolchain, jobs=jobs, arch=("sm_80", "sm_90"), scripts=Scripts(), cache=False)
        with tempfile.TemporaryDirectory() as folder, Pool(jobs) as judges:
            session = Timed(settings, Path(folder), Quiet())
            lowered = [one for one in session.lower(selected(cases)) if one.snapshot is not None]
            judged = list(judges.pool.map(judges.seconds, lowered))
            took: dict[Key, Recorded] = {}
            for one, seconds in zip(lowered, judged, strict=True):
                run = one.run
                keys = (run.file, run.name, run.target), (run.file, "", run.target)
                key = next((key for key in keys if key in session.clock.seconds), None)
                if key is None:  # of a script that came to no end
                    continue
                lower = round(session.clock.seconds[key], 3)
                now = took.get(key) or Recorded(" ".join(key), toolchain, lower, 0.0, 0, 0)
                size = one.snapshot.stat().st_size if one.snapshot else 0
                judge = round(now.judge + seconds, 3)
                took[key] = replace(now, judge=judge, size=now.size + size, results=now.results + 1)
            found.update({(each.what, each.toolchain): each for each in took.values()})
        lines = [json.dumps(asdict(found[key])) for key in sorted(found)]
        RECORD.write_text("\n".join(["[", ",\n".join(lines), "]", ""]))


def recorded(file: Path = RECORD) -> list[Recorded]:
    """The jobs that were recorded."""
    return [Recorded(**each) for each in json.loads(file.read_text())] if file.exists() else []


class Echo(Node):
    """A node that says the same of all kernels for an arch, at once. It lowers and judges the first one.

    A snapshot that is known would not be judged, so each has another end.
    """

    def __init__(self, packed: bytes, asker: MachinePaths) -> None:
        super().__init__(packed, asker)
        self._one_at_a_time, self._numbers = Lock(), count()
        self._lowered: Delivery | None = None
        self._verdicts = b""

    def do(self, order: Order) -> Delivery:
        if order.jobs[0].task == "discover":
            return super().do(order)
        with self._one_at_a_time:
            if self._lowered is None:
                self._lowered = super().do(replace(order, jobs=order.jobs[:1]))
        said, (snapshot,) = self._lowered, self._lowered.written
        ends = [f"{next(self._numbers):032b}".translate({48: " ", 49: "\t"}).encode() for _ in order.jobs]
        return replace(said, answers=said.answers * len(order.jobs), written=tuple(snapshot + end for end in ends))

    def judge(self, snapshot: bytes, request: Request | None, inputs: GivenInputs | None, arrays: Arrays) -> bytes:
        with self._one_at_a_time:
            self._verdicts = self._verdicts or super().judge(snapshot, request, inputs, arrays)
        return self._verdicts


def costs(toolchain: str, address: str) -> None:
    """Measure what a result costs the machine that asks, and what an import takes."""
    imports = importing(release_recipe(toolchain))
    cluster_nodes.Node = Echo  # type: ignore[misc]
    present = cluster_nodes.RayNodes.present
    cluster_nodes.RayNodes.present = lambda self: dict.fromkeys(present(self), WIDE)  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("toolchains", "torch"):
            Path(folder, name).symlink_to(cache_root() / name)
        os.environ["TLCHECK_CACHE"] = folder
        os.environ.pop("TLCHECK_NO_CACHE", None)
        project = Path(folder, "project")
        project.mkdir()
        for number in (1, FEW, MANY):
            cases = "".join(f"case_{each} = Case(product)\n" for each in range(number))
            Path(project, f"of_{number}.py").write_text(KERNEL + cases)
        os.chdir(project)
        begin, few, many = (driven(f"of_{number}.py", toolchain, address) for number in (1, FEW, MANY))
    collect = (many - few) / (MANY - FEW)
    found = Costs(round(collect, 5), round(begin, 2), round(imports, 2), MANY - FEW)
    COSTS.write_text(json.dumps(asdict(found)) + "\n")


def driven(file: str, toolchain: str, address: str) -> float:
    """Have a cluster do a matrix; the seconds of the processor that it costs this process."""
    command = ["matrix", file, "--toolchains", toolchain, "--arch", "sm_80", "--cluster", address]
    before = time.process_time()
    tlcheck([*command, "--format", "json", "-o", f"{file}.json"])
    return time.process_time() - before


def importing(recipe: Recipe) -> float:
    """Seconds of the processor until a worker of a toolchain takes jobs: the least of three."""
    made = find(recipe)
    assert made is not None, f"{recipe.name} is not installed"
    return min(started(Worker(made.python, made.worker_env())) for _ in range(3))


def started(worker: Worker) -> float:
    """Start a worker; the seconds of the processor that it takes."""
    worker.start()
    while not worker.versions:
        select.select([worker], [], [])
        worker.receive()
    assert worker._process is not None
    took = spent(worker._process.pid)
    worker.close()
    return took


class Pool:
    """Judging processes, one for each thread."""

    def __init__(self, parallel: int) -> None:
        self.pool, self._idle = ThreadPoolExecutor(parallel), SimpleQueue[JudgingProcess]()
        for _ in range(parallel):
            self._idle.put(JudgingProcess())

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        while not self._idle.empty():
            self._idle.get().kill()
        self.pool.shutdown()

    def seconds(self, lowered: Lowered) -> float:
        """Judge a snapshot; the seconds of the processor that it takes."""
        assert lowered.snapshot is not None
        judging = self._idle.get()
        before = spent(judging._process.pid)
        judging.verdicts(lowered.snapshot, Request(), None)
        after = spent(judging._process.pid)
        self._idle.put(judging)
        return after - before


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

    def __init__(self, jobs: Sequence[Recorded], costs: Costs, nodes: int, *, warm: bool, remote: bool) -> None:
        self._placement: Placement[Recorded] = Placement()
        self._jobs, self._costs, self._nodes, self._remote = jobs, costs, nodes, remote
        self._free = [(0.0, number, slot) for number in range(nodes) for slot in range(PROCESSORS)]
        self._ready: dict[tuple[str, str], float] = {}  # when a node has a toolchain
        self._imported: dict[tuple[str, str], float] = {}  # when a node has a toolchain imported
        self._results: list[tuple[float, Recorded]] = []  # when each is there
        self._link = self._desk = 0.0  # until when they are busy
        self._judges = [0.0] * LOCAL
        releases = {job.toolchain for job in jobs}
        for number in range(nodes):
            self._placement.joins(str(number), releases if warm else ())
            self._ready.update({(str(number), name): 0.0 for name in releases if warm})
        for job in jobs:
            self._placement.add(QueuedJob(job.toolchain, job.what, job))

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
        for end, job in sorted(self._results, key=lambda result: result[0]):
            self._collect(end, job)
        ends = {
            "nodes": max(end for end, _ in self._results),
            "link": self._link,
            "desk": self._desk,
            "judging here": max(self._judges),
        }
        makespan = max(ends.values())
        late = makespan > 1.01 * ends["nodes"]  # else it is over as soon as the last result has been taken
        busiest = max(ends, key=lambda name: ends[name]) if late else "nodes"
        return Result(makespan, work, self._nodes * PROCESSORS, busiest)

    def _do(self, placed: QueuedJob[Recorded], now: float, number: int, slot: int) -> None:
        node, job = str(number), placed.work
        ready = self._ready.setdefault((node, job.toolchain), now + INSTALL)
        now = max(now, self._imported.setdefault((node, job.toolchain), max(now, ready) + self._costs.imports))
        end = now + job.lower + (job.judge if self._remote else 0.0)
        self._placement.ended(placed, job.lower)
        self._results.append((end, job))
        heapq.heappush(self._free, (end, number, slot))

    def _collect(self, end: float, job: Recorded) -> None:
        """Have the machine that asked take a job's results, after those that were there before."""
        self._link = max(self._link, end) + job.size / LINK
        self._desk = max(self._desk, self._link) + self._costs.collect * job.results
        if not self._remote:
            first = min(range(LOCAL), key=lambda each: self._judges[each])
            self._judges[first] = max(self._judges[first], self._desk) + job.judge


def drawn(found: Sequence[Recorded]) -> list[Recorded]:
    """Ten thousand jobs: kernels drawn from the recorded ones, each with every toolchain that is recorded."""
    chance, toolchains = random.Random(0), sorted({job.toolchain for job in found})
    numbers, made = count(), []
    while len(made) < JOBS:
        kernel, number = chance.choice(found), next(numbers)
        made += [replace(kernel, what=f"{kernel.what} {number}", toolchain=name) for name in toolchains]
    return made[:JOBS]


def table(found: Sequence[Recorded], costs: Costs) -> Iterator[str]:
    """A table of results/performance.md."""
    jobs, told_apart = drawn(found), any(job.judge for job in found)
    ways = {"toolchains installed": (True, True), "none installed": (False, True)}
    if told_apart:
        ways["judging where it was asked"] = (True, False)
    yield f"| nodes | {' | '.join(ways)} |"
    yield "|---" * (len(ways) + 1) + "|"
    for nodes in NODES:
        cells = []
        for warm, remote in ways.values():
            result = Simulation(jobs, costs, nodes, warm=warm, remote=remote).run()
            cells.append(f"{result.efficiency:.0%}, {result.makespan:.0f} s ({result.busiest})")
        yield f"| {nodes} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["record", "costs", "simulate"])
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--toolchains", default="0.1.15")
    parser.add_argument("--jobs", type=int, default=processors())
    parser.add_argument("--cluster", default="auto")
    args = parser.parse_args()
    if args.task == "record":
        record(args.cases, args.toolchains.split(","), args.jobs)
    elif args.task == "costs":
        costs(args.toolchains.split(",")[-1], args.cluster)
    else:
        simulate()


def simulate() -> None:
    """Print the tables of results/performance.md."""
    costs = Costs(**json.loads(COSTS.read_text())) if COSTS.exists() else ASSUMED
    print(costs)
    for file in (RECORD, EXAMPLES):
        found = recorded(file)
        total, size = sum(job.lower + job.judge for job in found), sum(job.size for job in found) / 1e6
        print(f"{file.name}: {len(found)} jobs, {total:.0f} s, {size:.1f} MB")
        for line in table(found, costs):
            print(line)


if __name__ == "__main__":
    main()
