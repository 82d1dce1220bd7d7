"""A Ray cluster that does jobs and judges snapshots."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import tlcheck
from tlcheck.cluster import node as remote
from tlcheck.cluster.crew import NodeCrew
from tlcheck.cluster.judging import NodeJudge
from tlcheck.errors import UsageError
from tlcheck.worker.protocol import Job

_JUDGED = 32  # snapshots at a time, at least
# What of the user's folder does not travel. Ray leaves out what git ignores, too.
_EXCLUDED = [".git", ".venv", "venv", "**/__pycache__", ".*_cache"]


class RayCluster:
    """A cluster that this process is connected to. Its nodes get this tlcheck, and the current folder.

    snapshots: a file here -> the node that wrote it, and a reference to the same content there.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self.folder = str(Path.cwd())
        self.running = 0  # jobs
        self.snapshots: dict[str, tuple[str, Any]] = {}
        self.lost = ray.exceptions.RayError  # but for what a task itself raised
        self._tasks = {function: ray.remote(function) for function in (remote.do, remote.judge, remote.installed)}

    @property
    def processors(self) -> int:
        """Of `MachinePool`. Later nodes count too: what is too much waits at the nodes."""
        return max(_JUDGED, sum(self.nodes().values()))

    def nodes(self) -> Mapping[str, int]:
        """The nodes that are there now, by id, with their processors."""
        found = {n["NodeID"]: int(n["Resources"].get("CPU", 0)) for n in self._ray.nodes() if n["Alive"]}
        return {node: processors for node, processors in found.items() if processors}

    @property
    def place(self) -> str:
        """Of `MachinePool`."""
        return f" on {len(self.nodes())} nodes ({self.running} jobs)"

    def crew(self, begins: Callable[[Job], None]) -> NodeCrew:
        """Of `MachinePool`."""
        return NodeCrew(self, begins)

    def judging(self) -> NodeJudge:
        """Of `MachinePool`."""
        return NodeJudge(self)

    def installed(self, node: str) -> Sequence[str]:
        """The toolchains that a node has; none of one that is gone at once."""
        try:
            found: Sequence[str] = self.result(self._task(remote.installed, node).remote())
        except self.lost:
            return ()
        return found

    def do(self, node: str, order: remote.Order) -> tuple[Any, Any]:
        """Have a node do a job; references to the delivery and to what is written."""
        delivery, written = self._task(remote.do, node, num_returns=2).remote(order)
        return delivery, written

    def judge(self, node: str, *args: Any) -> Any:
        """Have a snapshot judged, on that node if it is still there; a reference to the verdicts."""
        return self._task(remote.judge, node, soft=True).remote(*args)

    def _task(self, function: Callable[..., Any], node: str, *, soft: bool = False, num_returns: int = 1) -> Any:
        """A task of Ray for a node. soft: another node may do it, and do it again."""
        affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        return self._tasks[function].options(
            scheduling_strategy=affinity(node, soft=soft) if node else "DEFAULT",
            max_retries=3 if soft else 0,
            num_returns=num_returns,
            num_cpus=0 if function is remote.installed else 1,  # that is asked of busy nodes, too
        )

    def wait(self, references: list[Any], seconds: float) -> list[Any]:
        """Those that are there, at least one if that does not take longer."""
        if not references:
            return []
        found: list[Any] = self._ray.wait(references, num_returns=len(references), timeout=0)[0]
        return found or self._ray.wait(references, timeout=seconds)[0]

    def result(self, reference: Any) -> Any:
        """What a task returned. Raises what it raised, and `lost` where it did not come to its end."""
        try:
            return self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause or error from None

    def cancel(self, reference: Any) -> None:
        """End a task."""
        self._ray.cancel(reference, force=True)


@cache
def connected(address: str) -> RayCluster:
    """Connect to `ray://HOST:PORT`, `HOST:PORT` or `auto`, once. Raises UsageError."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.util.scheduling_strategies
    except ImportError:
        raise UsageError("--cluster needs Ray: pip install 'tlcheck[cluster]'") from None
    environment = {
        "working_dir": str(Path.cwd()),
        "excludes": _EXCLUDED,
        "py_modules": [str(Path(tlcheck.__file__).parent)],
    }
    try:
        ray.init(address=address, runtime_env=environment, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UsageError(f"--cluster {address}: {reason} (docs/cluster.md)") from error
    ray._private.worker._worker_logs_enabled = False  # stdout is for reports: Ray says there that a node has died
    return RayCluster(ray)
