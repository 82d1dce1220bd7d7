"""A connection to a Ray cluster, as machines that lower and judge."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import cache
from pathlib import Path

import tlcheck
from tlcheck.cluster.executor import ClusterExecutor, recipe_of
from tlcheck.cluster.folder import Folder
from tlcheck.cluster.judging import ClusterJudge
from tlcheck.cluster.node import Order
from tlcheck.cluster.nodes import RayNodes
from tlcheck.errors import UsageError
from tlcheck.lower.client import Worker
from tlcheck.worker.jobs import Job, LowerJob

_JUDGED = 32  # snapshots at a time, at least
_TRIES = 4  # of a kernel whose node dies, or has no such toolchain
_PATIENCE = 10.0  # seconds for a machine to say that it is there


class RayCluster:
    """A `lower.machines.MachinePool` of nodes."""

    def __init__(self, nodes: RayNodes) -> None:
        self._nodes = nodes

    @property
    def processors(self) -> int:
        """Implement `MachinePool`. Later nodes count too: what is too much waits at the nodes."""
        return max(_JUDGED, sum(self._nodes.present().values()))

    @property
    def place(self) -> str:
        """Implement `MachinePool`."""
        return f" on {self._nodes.joined} nodes ({self._nodes.running} jobs)"

    def executor(self, begins: Callable[[Job], None]) -> ClusterExecutor:
        """Implement `MachinePool`."""
        return ClusterExecutor(self._nodes, begins)

    def judge(self) -> ClusterJudge:
        """Implement `MachinePool`."""
        return ClusterJudge(self._nodes)

    def lowered(self, worker: Worker, job: LowerJob) -> bytes:
        """Implement `MachinePool`. Raises UsageError where no node has the toolchain, or all that lower it die."""
        order = Order((job,), recipe_of(worker), worker.fork, Path(job.file).read_text(encoding="utf-8"))
        unable, why = set[str](), ""
        for _ in range(_TRIES):
            node = self._nodes.free(unable)
            if not node:
                break
            try:
                delivery = self._nodes.do(node, order).result()
            except self._nodes.lost as error:
                self._nodes.leave(node)
                why = str(error).strip().partition("\n")[0]
                continue
            if not delivery.unfit:
                return delivery.outputs[0]
            unable.add(node)
            why = delivery.unfit
        raise UsageError(f"--cluster: no node lowers with {order.recipe.name}: {why}")


@cache
def connected(address: str) -> RayCluster:
    """Connect to `ray://HOST:PORT`, `HOST:PORT` or `auto`, once. Raises UsageError."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise UsageError("--cluster needs Ray: pip install 'tlcheck[cluster]'") from None
    folder = Folder.current()
    _require_listener(address)
    environment = {"py_modules": [str(Path(tlcheck.__file__).parent)], "excludes": ["**/__pycache__"]}
    try:
        ray.init(address=address, runtime_env=environment, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(f"--cluster {address}: {reason} (docs/cluster.md)") from error
    ray._private.worker._worker_logs_enabled = False  # stdout is for reports: Ray says there that a node has died
    return RayCluster(RayNodes(ray, folder))


def _require_listener(address: str) -> None:
    """Raise UsageError where nobody listens: Ray would try again for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not port.isdecimal():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        raise UsageError(f"--cluster {address}: {error.strerror or error} (docs/cluster.md)") from error
