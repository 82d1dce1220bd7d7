"""`make bench`: what executing kernels costs, against lowering them.

For each file of cases/, or those that are named, in turn: its cases are lowered bare (`bare.py`, for sm_80 and sm_90),
then executed, each in a process of its own, with default blocks and inputs, both levels, with order. Seconds of
processor time; the sums are of one interleaved run. Snapshots that are named are executed instead, and once more
without watching the order of accesses. With --scripts (`make examples`) what is named are scripts, such as TileLang's
examples: each kernel that they compile is executed when it has been lowered, and what that took is from its capture,
which has instruments in it but no import and no building. Prints Markdown; results/performance.md holds a run's.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlcheck.execute.request import GivenInputs
    from tlcheck.lower.runs import Lowered
    from tlcheck.toolchain.resolve import Toolchain

ROOT = Path(__file__).resolve().parents[1]
ARCHS = ("sm_80", "sm_90")
SHOWN = 12  # the heaviest kernels
HEAD = "| kernel | statements | as written | as lowered | of it order | in all | lowering | peak | verdicts |"


@dataclass(frozen=True)
class Cost:
    """What one kernel costs, in seconds of processor time; peak in bytes. order: what watching takes of `lowered`.

    all: compiling, comparing and further runs as well.
    """

    name: str
    statements: int
    source: float
    lowered: float
    order: float
    all: float
    peak: int
    verdicts: str
    lowering: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="files of cases (.py), or snapshots and folders of them")
    parser.add_argument("--toolchain", default="pinned", help="that lowers the cases: a release, or `current`")
    parser.add_argument("--scripts", action="store_true", help="the files are scripts, or folders of them")
    args = parser.parse_args()
    cases = [name for name in args.files if name.endswith(".py")]
    by_case = args.scripts or bool(cases) or not args.files
    if args.scripts:
        costs = list(_of_scripts(args.files, args.toolchain))
    else:
        costs = list(
            _of_cases(cases or [str(ROOT / "cases")], args.toolchain) if by_case else _of_snapshots(args.files)
        )
    print(f"{HEAD}\n|---|---|---|---|---|---|---|---|---|")
    for cost in sorted(costs, key=lambda c: -c.all)[: SHOWN if by_case else None]:
        print(_row(cost))
    for arch in (*ARCHS, "") if len(costs) > 1 else ():
        mine = [cost for cost in costs if cost.name.endswith(arch)]
        if mine:
            print(_row(_sum(f"sum of {len(mine)}, {arch or 'all'}", mine)))


def _sum(name: str, costs: Sequence[Cost]) -> Cost:
    columns = "statements source lowered order all lowering".split()
    total = {column: sum(getattr(cost, column) for cost in costs) for column in columns}
    ratio = f"{total['all'] / total['lowering']:.2f} of lowering" if total["lowering"] else ""
    return Cost(name, peak=max(cost.peak for cost in costs), verdicts=ratio, **total)


def _row(cost: Cost) -> str:
    seconds = [f"{s:.2f}" for s in (cost.source, cost.lowered, cost.order, cost.all, cost.lowering)]
    peak = f"{cost.peak / 2**20:.0f} MiB"
    return f"| {cost.name} | {cost.statements} | {' | '.join(seconds)} | {peak} | {cost.verdicts} |"


def _of_snapshots(named: Iterable[str]) -> Iterator[Cost]:
    for argument in map(Path, named):
        for file in sorted(argument.rglob("*.snapshot.json")) if argument.is_dir() else [argument]:
            yield _apart(file.name.removesuffix(".snapshot.json"), file, None, True)


def _of_cases(names: Sequence[str], toolchain: str) -> Iterator[Cost]:
    """Lower everything for its snapshots; then lower bare and execute, one file of cases after the other."""
    from tlcheck.cli.lowered import working
    from tlcheck.lower.selection import select
    from tlcheck.lower.session import Session, Settings
    from tlcheck.toolchain.resolve import resolve

    settings = Settings(toolchain=toolchain, arch=ARCHS, seeds=(0, 1))
    with working() as (folder, watcher):
        lowered = sorted(Session(settings, folder, watcher).lower(select(names)), key=lambda done: done.run.position)
        for file in dict.fromkeys(done.run.file for done in lowered):
            bare = _bare(resolve(toolchain, ()), file)
            for done in (done for done in lowered if done.run.file == file and done.snapshot is not None):
                yield _of_case(done, bare)


def _of_scripts(names: Sequence[str], toolchain: str) -> Iterator[Cost]:
    """Run scripts, and execute each kernel that they compile when it has been lowered."""
    from dataclasses import replace

    from benchmarks.examples import REQUIREMENTS, TIMEOUT
    from tlcheck.cli.lowered import working
    from tlcheck.lower.scripts import Scripts
    from tlcheck.lower.selection import select
    from tlcheck.lower.session import Session, Settings

    settings = Settings(
        toolchain=toolchain,
        arch=ARCHS,
        timeout=TIMEOUT,
        requirements=REQUIREMENTS,
        scripts=Scripts(keep_going=True),
    )
    for name in names:
        with working() as (folder, watcher):
            for done in Session(settings, folder, watcher).lower(select([name])):
                if done.snapshot is not None:
                    kernel = f"{Path(done.run.file).stem}::{done.run.case} {done.run.target}"
                    cost = _apart(kernel, done.snapshot, None, False)
                    yield replace(cost, lowering=done.seconds.get("lower", 0.0))


def _of_case(done: Lowered, bare: Mapping[tuple[str, str], float]) -> Cost:
    from dataclasses import replace

    assert done.snapshot is not None
    name = f"{done.run.case} {done.run.target}"
    cost = _apart(name, done.snapshot, None if done.inputs is None else done.inputs.given, False)
    return replace(cost, lowering=bare[done.run.case.partition("::")[2], done.run.target])


def _bare(toolchain: Toolchain, file: str) -> dict[tuple[str, str], float]:
    """Seconds of lowering by case and arch, in a process that has imported tilelang."""
    from tlcheck.lower.client import SETTINGS

    command = [str(toolchain.python), str(ROOT / "benchmarks" / "bare.py"), ",".join(ARCHS), file]
    env = {**os.environ, **SETTINGS, **toolchain.env}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    return {(case, arch): seconds for case, arch, seconds in rows}


def _apart(name: str, file: Path, inputs: GivenInputs | None, unwatched: bool) -> Cost:
    """Execute a kernel in a process of its own, which has imported everything, as those that judge have."""
    from tlcheck.execute.compare import both_levels  # noqa: F401
    from tlcheck.execute.compile import registry
    from tlcheck.verdicts import judging  # noqa: F401

    registry.load()
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_measure, args=(name, file, inputs, unwatched, theirs))
    child.start()
    theirs.close()
    cost: Cost = ours.recv()
    child.join()
    return cost


def _measure(name: str, file: Path, inputs: GivenInputs | None, unwatched: bool, answer: Connection) -> None:
    """Execute a kernel; unwatched: once more, without watching the order of accesses."""
    from tlcheck.execute.compare.both_levels import execute
    from tlcheck.execute.events import Observer
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.request import Request
    from tlcheck.scope.block_scope import representatives
    from tlcheck.snapshot import codec
    from tlcheck.verdicts.judging import with_given

    levels = {True: 0.0, False: 0.0}
    run = Machine.run

    def timed(machine: Machine, *observers: Observer) -> None:
        begin = time.process_time()
        try:
            run(machine, *observers)
        finally:
            levels[machine.options.source] += time.process_time() - begin

    Machine.run = timed  # type: ignore[method-assign]
    snapshot = codec.loads(file.read_text(encoding="utf-8"))
    request = Request(representatives=representatives)  # as those that judge ask
    request = request if inputs is None else with_given(request, snapshot, inputs)
    begin = time.process_time()
    done = execute(snapshot, request)
    total = time.process_time() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    source, lowered = levels[True], levels[False]
    order = 0.0
    if unwatched:
        Machine.run = lambda machine, *observers: timed(machine)  # type: ignore[method-assign]
        execute(snapshot, request)
        order = lowered - (levels[False] - lowered)
    verdicts = ", ".join(sorted({outcome.verdict for outcome in done.outputs} | {"race" for _ in done.races[:1]}))
    reasons = "; ".join(sorted({outcome.reason for outcome in done.outputs if outcome.reason}))
    verdicts += f" ({reasons})" if reasons else ""
    answer.send(Cost(name, sum(done.statements), source, lowered, order, total, peak, verdicts))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from tlcheck.lower.client import ALLOCATOR

    if not ALLOCATOR.items() <= os.environ.items():  # as processes that judge have it
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})
    main()
