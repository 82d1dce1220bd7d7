"""The nodes of a Ray cluster: which there are, what each is asked, and what becomes of that when one goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Any

from tlcheck.cluster.folder import Folder
from tlcheck.cluster.node import Delivery, Node, Order
from tlcheck.cluster.paths import MachinePaths
from tlcheck.worker.jobs import output_of

_PAUSE = 5.0  # seconds before nodes are asked again where none takes part


class RayNodes:
    """The nodes that this process is connected to. They get this tlcheck, and the user's folder.

    On each node an actor (`node.Node`) does what this process asks for; it starts when it is asked for the first time.
    """

    def __init__(self, ray: Any, folder: Folder) -> None:
        self._ray = ray
        self.folder = folder
        self._packed = ray.put(folder.packed())
        self._inputs: dict[str, tuple[str, Order]] = {}  # that stay on a node, by file: that node, and how to make them
        self.running = 0  # jobs
        self.lost = ray.exceptions.RayError  # but for what a task itself raised
        # Of what is below. Ray's own thread takes it, which says that something has ended: who has it asks Ray nothing.
        self._lock = Lock()
        self._actors: dict[str, Any] = {}  # by the node's id
        self._processors: dict[str, int] = {}  # of those that have answered
        self._silent: set[str] = set()  # that could not answer
        self._open: dict[str, set[Future[Any]]] = {}  # what a node was asked and has not answered

    def present(self) -> Mapping[str, int]:
        """The nodes that are there now, by id, with their processors."""
        found = {n["NodeID"]: int(n["Resources"].get("CPU", 0)) for n in self._ray.nodes() if n["Alive"]}
        return {node: processors for node, processors in found.items() if processors}

    def joins(self, node: str, processors: int) -> Future[Sequence[str]]:
        """Have a node take part; the toolchains that it has."""
        with self._lock:
            known = node in self._actors and node not in self._silent
        if not known:
            self.leave(node)
            affinity = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
            # It takes no processor from Ray's account: several commands may have one on the same node.
            options = {"num_cpus": 0, "max_concurrency": processors, "scheduling_strategy": affinity}
            actor = self._ray.remote(Node).options(**options).remote(self._packed, MachinePaths.here(self.folder.path))
            with self._lock:
                self._actors.setdefault(node, actor)
        installed: Future[Sequence[str]] = self._asked(node, "installed")
        installed.add_done_callback(lambda _: self._has_answered(node, processors, installed))
        return installed

    def _has_answered(self, node: str, processors: int, installed: Future[Sequence[str]]) -> None:
        with self._lock:
            if installed.exception() is not None:
                self._silent.add(node)
            elif node in self._actors:
                self._processors[node] = processors

    def leave(self, node: str) -> None:
        """Have a node take part no more; what it is at ends with an error."""
        with self._lock:
            actor = self._actors.pop(node, None)
            self._processors.pop(node, None)
            asked = self._open.pop(node, set())
            self._silent.discard(node)
        if actor is not None:
            self._ray.kill(actor)
        for one in asked:  # Ray may never say so where the whole node has died
            one.set_exception(self.lost(f"node {node} has left"))

    def leave_all(self) -> None:
        """Have all nodes end what they are at."""
        for node in [*self._actors]:
            self.leave(node)

    def stay(self, node: str, order: Order) -> None:
        """Know that the inputs which an order makes are on a node."""
        self._inputs[output_of(order.jobs[0])] = node, order

    def inputs(self, file: str) -> tuple[str, Order] | None:
        """The node that has inputs, which may be gone, and how to make them; None for a file that is here."""
        return self._inputs.get(file)

    @property
    def joined(self) -> int:
        """Return how many nodes take part."""
        return len(self._processors)

    def least_busy(self, but: Collection[str] = (), near: str = "") -> str:
        """The node that has least to do; empty where none takes part, and then those that are there are asked to.

        but: those that cannot do it. near: one that is worth waiting for until each of its processors has done a task.
        """
        with self._lock:
            if free := self._processors.keys() - but:
                waiting = {node: len(self._open.get(node, ())) / self._processors[node] for node in free}
                return min(free, key=lambda node: waiting[node] - (node == near))
        for node, processors in self.present().items():
            self.joins(node, processors)
        return ""

    def free(self, unable: Collection[str] = (), near: str = "", ended: Callable[[], bool] = lambda: False) -> str:
        """Wait for a node that takes part; empty where all that are there are unable, or the work has ended."""
        while not ended() and not (unable and set(unable) >= self.present().keys()):
            if node := self.least_busy(unable, near):
                return node
            time.sleep(_PAUSE)
        return ""

    def do(self, node: str, order: Order) -> Future[Delivery]:
        """Have a node do jobs."""
        return self._asked(node, "do", order)

    def judge(self, node: str, *args: Any) -> Future[bytes]:
        """Have a node judge a snapshot."""
        return self._asked(node, "judge", *args)

    def _asked(self, node: str, what: str, *args: Any) -> Future[Any]:
        """Ask a node's actor. It ends with what the actor raised, or with `lost` where that is gone."""
        asked: Future[Any] = Future()
        with self._lock:
            actor = self._actors.get(node)
            if actor is not None:
                self._open.setdefault(node, set()).add(asked)
        if actor is None:
            asked.set_exception(self.lost(f"node {node} has left"))
            return asked
        getattr(actor, what).remote(*args).future().add_done_callback(lambda done: self._ended(node, done, asked))
        return asked

    def _ended(self, node: str, done: Future[Any], asked: Future[Any]) -> None:
        with self._lock:
            if asked not in self._open.get(node, ()):  # the node has left, and whoever asked knows it
                return
            self._open[node].remove(asked)
        error = done.exception()
        if isinstance(error, self._ray.exceptions.RayTaskError):
            error = error.cause or error
        if error is None:
            asked.set_result(done.result())
        else:
            asked.set_exception(error)
