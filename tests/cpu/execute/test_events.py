"""Events go to those observers that define them, and to nobody else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from tests.cpu.execute.compile.test_elementwise import THREADS, TX, A, B
from tlcheck.execute.events import Observer, Observers
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import kind_of
from tlcheck.snapshot.ir import Alloc, Buffer, Evaluate, Expr, Function, Seq, Store, Thread

LANES = np.ones((1, 2), np.bool_)
SHARED = Buffer("s", "float32", (Expr("int", "int32", (), THREADS),), "shared", Expr("var", "handle", (), "s", 51))


class Counting(Observer):
    """Counts barriers, and accesses to the places of one name."""

    def __init__(self, name: str = "") -> None:
        self.heard: list[str] = []
        self._name = name

    def covers(self, place: Place) -> bool:
        return place.name == self._name

    def read(self, place: Place, *about: Any, **more: Any) -> None:
        self.heard.append(f"read {place.name}")

    def write(self, place: Place, *about: Any) -> None:
        self.heard.append(f"write {place.name}")

    def barrier(self, mask: Mask) -> None:
        self.heard.append("barrier")


def _place(name: str) -> Place:
    return cast(Place, SimpleNamespace(name=name))


def test_nobody_is_told_nothing() -> None:
    nobody = Observers()
    assert not nobody.hear(Observer.covers, Observer.barrier)
    assert not nobody.covers(_place("s"))
    nobody.barrier(LANES)
    nobody.bulk_load_issued(_place("s"), 0, LANES, LANES, cast(Any, None), "key", coming=None)


def test_an_event_goes_to_those_that_define_it() -> None:
    one = Counting()
    observers = Observers(Observer(), one)
    assert observers.hear(Observer.barrier)
    assert observers.hear(Observer.proxy_fence, Observer.barrier)
    assert not observers.hear(Observer.proxy_fence)
    observers.barrier(LANES)
    observers.proxy_fence(LANES)
    assert one.heard == ["barrier"]


def test_of_several_those_are_told_of_an_access_that_cover_its_place() -> None:
    one, other = Counting("s"), Counting("t")
    observers = Observers(one, other)
    assert observers.covers(_place("t"))
    assert not observers.covers(_place("u"))
    observers.write(_place("s"), 0, LANES, cast(Any, None), 0)
    observers.barrier(LANES)
    assert (one.heard, other.heard) == (["write s", "barrier"], ["barrier"])


def test_a_run_publishes_what_happens() -> None:
    indices = Expr("int", "int32", (), 0), TX
    barrier = Evaluate(Expr("call", "int32", (Expr("str", "handle", (), "shared"),), "tvm_storage_sync"))
    stored = Store(SHARED, (TX,), Expr("load", "float32", indices, buffer=A))
    body = Seq((Alloc(SHARED), stored, barrier, Store(B, indices, Expr("load", "float32", (TX,), buffer=SHARED))))
    threads = Expr("int", "int32", (), THREADS)
    function = Function("main", (A.data, B.data), (A, B), (), Thread(TX, "threadIdx.x", threads, body))
    tensor = Tensor(kind_of("float32"), 4 * THREADS, lambda seed, numbers: np.zeros(len(numbers)))
    one, other = Counting("s"), Counting("B")
    tensors = {"A": tensor, "B": tensor}
    Machine(function, (THREADS, 1, 1), [World(0)], tensors, {}, Options(source=False)).run(one, other)
    assert one.heard == ["write s", "barrier", "read s"]
    assert other.heard == ["barrier", "write B"]
