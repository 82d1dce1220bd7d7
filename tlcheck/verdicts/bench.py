"""One processor that has kernels tried: warm workers lower them, a warm process judges them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tlcheck.execute.request import Request
from tlcheck.lower.client import Worker
from tlcheck.lower.machines import MachinePool, SnapshotJudge
from tlcheck.lower.runs import release_of
from tlcheck.lower.warm import WarmProcesses
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.judge import judging_process, leave
from tlcheck.verdicts.kept import Verdicts, loads
from tlcheck.worker.jobs import LowerJob
from tlcheck.worker.protocol import Answer, Failure

DIED = Failure("crash", "check", "judging ended: too little memory, or a bug of tlcheck")
_NOT_THERE = Failure("lower", "lower", "not lowered on the cluster")


class KernelBench:
    """A worker for each toolchain and a judging process, which start when they are needed and live as long as this.

    env: variables of the workers. warm: where processes are taken from, and left. cluster: whose nodes lower and judge.
    """

    def __init__(
        self,
        toolchains: Sequence[Toolchain],
        env: Mapping[str, str] | None = None,
        warm: WarmProcesses | None = None,
        cluster: MachinePool | None = None,
    ) -> None:
        self._workers = [Worker(t.python, {**t.env, **(env or {})}, warm=warm) for t in toolchains]
        self._warm, self._cluster = warm, cluster
        self._judge: SnapshotJudge | None = None
        self._started: set[int] = set()
        self._number = 0

    def close(self) -> None:
        """End the processes, also in the middle of their work, or leave those that are idle."""
        if self._judge is not None:
            leave(self._judge, self._warm)
        for side in self._started:
            self._workers[side].close()

    def lowered(self, side: int, job: LowerJob) -> Answer:
        """Lower a kernel with one of the toolchains, which is imported at the first time."""
        self._number += 1
        job = replace(job, number=self._number)
        worker = self._workers[side]
        if self._cluster is not None:
            snapshot = self._cluster.lowered(worker, job)
            Path(job.output).write_bytes(snapshot)
            return Answer({} if snapshot else None, None if snapshot else _NOT_THERE, 0.0, 0.0, "")
        if side not in self._started:
            worker.start()
            self._started.add(side)
        return worker.answer(job)

    def release(self, side: int) -> str:
        """Return TileLang's release as the toolchain itself reports it; empty before it is imported."""
        return release_of(self._workers[side].versions)

    def verdicts(self, snapshot: Path, request: Request) -> Verdicts:
        """Judge a snapshot. The failure is `DIED` where the process died, which is started anew."""
        if self._judge is None:
            self._judge = self._cluster.judge() if self._cluster is not None else judging_process(self._warm)
        try:
            return loads(self._judge.verdicts(snapshot, request, None))
        except (EOFError, OSError):
            self._judge.kill()
            self._judge = None
            return Verdicts(failure=DIED)
