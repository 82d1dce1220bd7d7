"""Nodes without Ray: what becomes of what a node was asked that is gone."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tlcheck.cluster.folder import Folder
from tlcheck.cluster.node import Order
from tlcheck.cluster.nodes import RayNodes
from tlcheck.toolchain.environment import release_recipe

ORDER = Order((), release_recipe("0.1.15"), fork=True)


class GoneError(Exception):
    """A node has died."""


class Actor:
    """Answers what it is asked only when told to."""

    def __init__(self) -> None:
        self.calls: list[Future[Any]] = []

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=self._call)

    def _call(self, *_: object) -> Any:
        self.calls.append(Future())
        return SimpleNamespace(future=lambda: self.calls[-1])


class Ray:
    """As much of Ray as a connection uses; every node's actor is one `Actor`."""

    exceptions = SimpleNamespace(RayError=GoneError, RayTaskError=KeyError)
    util = SimpleNamespace(scheduling_strategies=SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, **__: None))

    def __init__(self) -> None:
        self.actor = Actor()

    def put(self, value: object) -> object:
        return value

    def kill(self, actor: Actor) -> None:
        """A dead node's actor says nothing any more."""

    def remote(self, _: object) -> Any:
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *_: self.actor))


@pytest.fixture
def ray() -> Ray:
    return Ray()


@pytest.fixture
def nodes(ray: Ray) -> RayNodes:
    made = RayNodes(ray, Folder(Path.cwd(), frozenset()))
    made.joins("a", 2)
    ray.actor.calls[0].set_result(["0.1.15"])
    return made


def test_what_a_node_was_asked_ends_when_it_leaves_though_ray_never_says_so(nodes: RayNodes) -> None:
    order, judged = nodes.do("a", ORDER), nodes.judge("a", b"")
    nodes.leave("a")
    assert [type(asked.exception(timeout=0)) for asked in (order, judged)] == [GoneError, GoneError]
    assert nodes._processors == {}


def test_what_ray_says_later_changes_nothing(nodes: RayNodes, ray: Ray) -> None:
    order = nodes.do("a", ORDER)
    nodes.leave("a")
    ray.actor.calls[-1].set_result("an answer")
    assert isinstance(order.exception(timeout=0), GoneError)


def test_the_node_with_least_to_do_is_the_least_busy(nodes: RayNodes, ray: Ray) -> None:
    nodes.joins("b", 2)
    ray.actor.calls[-1].set_result([])
    nodes.do("a", ORDER)
    assert nodes.least_busy() == "b"
    assert nodes.least_busy(near="a") == "a"
    ray.actor.calls[-1].set_result("done")
    assert nodes.least_busy(but={"b"}) == "a"
