"""Nodes that are no processes: what an executor asks of them, and what becomes of jobs whose node is gone."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest

from tlcheck.cluster import executor as executors
from tlcheck.cluster.executor import ClusterExecutor
from tlcheck.cluster.folder import Folder
from tlcheck.cluster.node import Delivery, Order
from tlcheck.errors import UsageError
from tlcheck.lower.client import Worker
from tlcheck.toolchain.environment import release_recipe
from tlcheck.worker.jobs import LowerJob, name_of
from tlcheck.worker.protocol import Answer

NEW = "0.1.15"
UNABLE = UsageError("cannot import tilelang")


class GoneError(Exception):
    """A node has died."""


class Nodes:
    """Stands for a `RayNodes`: nodes that answer at once. dying: the jobs that take their node along.

    unable: how many orders end before tilelang is imported, with this error.
    """

    def __init__(
        self, names: Sequence[str], dying: Sequence[str] = (), unable: int = 0, error: Exception = UNABLE
    ) -> None:
        self.folder, self.running, self.lost = Folder(Path.cwd(), frozenset()), 0, GoneError
        self._names, self._dying, self._unable, self._error = names, dying, unable, error
        self.orders: list[list[str]] = []

    def present(self) -> dict[str, int]:
        return dict.fromkeys(self._names, 1)

    def joins(self, node: str, processors: int) -> Future[Sequence[str]]:
        return ended([NEW])

    def leave(self, node: str) -> None: ...

    def leave_all(self) -> None: ...

    def do(self, node: str, order: Order) -> Future[Any]:
        names = [name_of(job) for job in order.jobs]
        self.orders.append(names)
        if len(self.orders) <= self._unable:
            return ended(self._error)
        if set(names) & set(self._dying):
            return ended(GoneError(node))
        answers = tuple(Answer({"name": name}, None, 0.0, 0.1, "") for name in names)
        return ended(Delivery("host", answers, (b"",) * len(names), {"tilelang": NEW}))


def ended(result: object) -> Future[Any]:
    made: Future[Any] = Future()
    made.set_exception(result) if isinstance(result, Exception) else made.set_result(result)
    return made


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "recipe_of", lambda worker: release_recipe(NEW))
    monkeypatch.setattr(executors, "_PAUSE", 0.0)
    monkeypatch.setattr(executors, "_LOOK", 0.0)
    monkeypatch.setattr(executors, "_TICK", 0.01)


def answers(nodes: Nodes, names: Sequence[str]) -> dict[str, Answer]:
    worker = Worker(Path("python"), {})
    with ClusterExecutor(cast(Any, nodes), lambda job: None) as executor:
        for number, name in enumerate(names):
            executor.add(worker, LowerJob("k.py", name, output="", number=number))
        return {name_of(job): answer for job, answer in executor.answers()}


def test_small_kernels_of_a_file_share_an_order() -> None:
    nodes, names = Nodes(["a", "b"]), [f"k{n}" for n in range(40)]
    found = answers(nodes, names)
    assert {name: answer.result for name, answer in found.items()} == {name: {"name": name} for name in names}
    assert max(map(len, nodes.orders)) > 4
    assert len(nodes.orders[-1]) == 1  # nobody waits at the end for one who has several


def test_what_a_dead_node_was_at_is_done_again_alone() -> None:
    nodes, names = Nodes(["a", "b"], dying=["k3"]), [f"k{n}" for n in range(40)]
    found = answers(nodes, names)
    assert sorted(found) == sorted(names)
    failed = {name: answer.failure for name, answer in found.items() if answer.failure is not None}
    assert [*failed] == ["k3"]
    assert "4 times no node came to the end of it" in str(failed["k3"])
    assert sum("k3" in order for order in nodes.orders) == 4
    assert sum(order == ["k3"] for order in nodes.orders) == 3


@pytest.mark.parametrize("error", [UNABLE, FileNotFoundError(2, "No such file or directory")])
def test_a_worker_that_ended_with_its_node_is_no_toolchain_that_cannot_be_imported(error: Exception) -> None:
    names = [f"k{n}" for n in range(40)]
    found = answers(Nodes(["a", "b"], unable=2, error=error), names)
    assert sorted(found) == sorted(names)
    assert all(answer.failure is None for answer in found.values())


def test_one_that_no_node_imports_is_said() -> None:
    with pytest.raises(UsageError, match="cannot import tilelang"):
        answers(Nodes(["a", "b"], unable=1000), ["k"])


class Leaving(Nodes):
    """A node that can have no toolchain, and one that goes with its first order and is back after a while."""

    def __init__(self) -> None:
        super().__init__(["unfit", "leaving"])
        self._looks = self._away = 0

    def present(self) -> dict[str, int]:
        self._looks += 1
        return {"unfit": 1} if self._looks < self._away else {"unfit": 1, "leaving": 1}

    def do(self, node: str, order: Order) -> Future[Any]:
        if node == "unfit":
            return ended(Delivery("host", unfit="cannot install"))
        if not self._away:
            self._away = self._looks + 20
            return ended(GoneError(node))
        return super().do(node, order)


def test_a_node_may_come_back_that_has_a_toolchain_which_no_other_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answers(Leaving(), ["k"])["k"].failure is None
    monkeypatch.setattr(executors, "_REJOIN", -1.0)
    with pytest.raises(UsageError, match="no node can have toolchain"):
        answers(Leaving(), ["k"])
