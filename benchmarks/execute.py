"""`make bench`: what executing kernels costs, against lowering them.

Lowers all cases for two archs (what was kept is taken again, with the seconds that it took), or reads the snapshots
that are named, and executes each kernel in a process of its own. Prints Markdown; docs/performance.md holds a run's.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ARCHS = ("sm_80", "sm_90")
SHOWN = 12  # the heaviest kernels


@dataclass(frozen=True)
class Cost:
    """What one kernel costs, in seconds of processor time; peak in bytes. order: what watching takes of `lowered`."""

    name: str
    statements: int
    written: float
    lowered: float
    order: float
    all: float
    peak: int
    verdicts: str
    lowering: float


def main(arguments: Sequence[str]) -> None:
    costs = list(_costs(arguments))
    print("| kernel | statements | as written | as lowered | of it order | in all | lowering | peak | verdicts |")
    print("|---|---|---|---|---|---|---|---|---|")
    for cost in sorted(costs, key=lambda c: -c.all)[: None if arguments else SHOWN]:
        print(_row(cost))
    for arch in ARCHS:
        mine = [cost for cost in costs if cost.name.endswith(arch)]
        if mine:
            print(_row(_sum(f"sum of {len(mine)}, {arch}", mine)))


def _sum(name: str, costs: Sequence[Cost]) -> Cost:
    columns = "statements written lowered order all lowering".split()
    total = {column: sum(getattr(cost, column) for cost in costs) for column in columns}
    return Cost(name, peak=max(cost.peak for cost in costs), verdicts="", **total)


def _row(cost: Cost) -> str:
    seconds = [f"{s:.2f}" for s in (cost.written, cost.lowered, cost.order, cost.all, cost.lowering)]
    peak = f"{cost.peak / 2**20:.0f} MiB"
    return f"| {cost.name} | {cost.statements} | {' | '.join(seconds)} | {peak} | {cost.verdicts} |"


def _costs(arguments: Sequence[str]) -> Iterator[Cost]:
    for name, file, lowering in _kernels(arguments):
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        child = context.Process(target=_measure, args=(name, file, lowering, theirs))
        child.start()
        theirs.close()
        yield ours.recv()
        child.join()


def _kernels(arguments: Sequence[str]) -> Iterator[tuple[str, Path, float]]:
    """Name, snapshot and seconds of lowering of each kernel; 0 where the snapshot was given."""
    if arguments:
        for argument in map(Path, arguments):
            files = sorted(argument.rglob("*.snapshot.json")) if argument.is_dir() else [argument]
            yield from ((file.name.removesuffix(".snapshot.json"), file, 0.0) for file in files)
        return
    from tlcheck.cli.lowered import session
    from tlcheck.lower.selection import select
    from tlcheck.lower.session import Settings

    with session(Settings(arch=ARCHS)) as opened:
        for done in sorted(opened.lower(select([str(ROOT / "cases")])), key=lambda done: done.run.position):
            if done.snapshot is not None:
                yield f"{done.run.case} {done.run.target}", done.snapshot, done.seconds.get("lower", 0.0)


def _measure(name: str, file: Path, lowering: float, answer: Connection) -> None:
    """Execute a kernel twice, with and without watching the order of accesses."""
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.run import execute
    from tlcheck.snapshot import codec

    levels = {True: 0.0, False: 0.0}
    run = Machine.run

    def timed(machine: Machine) -> None:
        begin, before = time.process_time(), dict(levels)
        try:
            run(machine)
        finally:  # a kernel before the last one is run by the last one
            levels.update(before)
            levels[machine.options.written] += time.process_time() - begin

    Machine.run = timed  # type: ignore[method-assign]
    snapshot = codec.loads(file.read_text(encoding="utf-8"))
    begin = time.process_time()
    done = execute(snapshot)
    total = time.process_time() - begin
    written, lowered = levels[True], levels[False]
    Machine.watched = _unwatched(Machine.watched)  # type: ignore[method-assign]
    execute(snapshot)
    order = lowered - (levels[False] - lowered)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    verdicts = ", ".join(sorted({outcome.verdict for outcome in done.outputs} | {"race" for _ in done.races[:1]}))
    reasons = "; ".join(sorted({outcome.reason for outcome in done.outputs if outcome.reason}))
    verdicts += f" ({reasons})" if reasons else ""
    answer.send(Cost(name, sum(done.statements), written, lowered, order, total, peak, verdicts, lowering))


def _unwatched(watched: Any) -> Any:
    def made(machine: Any, *about: Any) -> Any:
        found, machine.watch = watched(machine, *about), None
        return found

    return made


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from tlcheck.lower.client import ALLOCATOR

    if not ALLOCATOR.items() <= os.environ.items():  # as processes that judge have it
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})
    main(sys.argv[1:])
