"""Observers are told which ways a run takes, where numbers in memory steer its branches and loops."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.observe.test_sides import barrier
from tests.cpu.execute.ops.tile.building import Kernel, load, number, variable
from tlcheck.execute.events import Observer, Side
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.observe.untried_ways import UntriedWays
from tlcheck.snapshot.ir import Expr, For, If, Seq, Stmt, Store, While

THREADS = 64


class Turns(Observer):
    """Notes the first warp of each side that runs, none outside of branches, and those that store meanwhile."""

    def __init__(self) -> None:
        self.heard: list[int | str | None] = []

    def covers(self, place: object) -> bool:
        return True

    def write(self, *about: object) -> None:
        self.heard.append("write")

    def turned(self, side: Side | None) -> None:
        self.heard.append(None if side is None else int(side.warps[0]))


def run(kernel: Kernel, body: Stmt, observer: Observer, numbers: list[int]) -> None:
    tensors = {
        name: Tensor(kind_of("int32"), len(numbers), lambda seed, at: np.array(numbers)[at]) for name in ("A", "B")
    }
    Machine(kernel.function(body), (THREADS, 1, 1), [World(0)], tensors, {}, Options(source=True)).run(observer)


@pytest.mark.parametrize(
    ("first", "untried"), [(0, {20, 30}), (1, {10, 30}), (3, {10, 30}), (4, {10})], ids=["other", "one", "few", "many"]
)
def test_sides_that_do_not_run_and_loops_that_end_early_are_untried(first: int, untried: set[int]) -> None:
    kernel, ways = Kernel(threads=THREADS), UntriedWays()
    a, b = kernel.tensor("A", "int32", [THREADS]), kernel.tensor("B", "int32", [THREADS])
    steering = load(a, 0)

    def stored(line: int) -> Stmt:
        return Store(b, (kernel.tx,), number(1), line=line)

    branch = If(Expr("gt", "bool", (steering, number(0))), stored(20), stored(10))
    loop = For(variable("k"), number(0), steering, "serial", stored(30))
    run(kernel, Seq((branch, loop)), ways, [first] * THREADS)
    assert set(ways.untried.values()) == untried


def test_what_threads_alone_decide_is_no_way_of_a_run() -> None:
    kernel, ways = Kernel(threads=THREADS), UntriedWays()
    b = kernel.tensor("B", "int32", [THREADS])
    run(kernel, If(Expr("lt", "bool", (kernel.tx, number(0))), Store(b, (kernel.tx,), number(1))), ways, [0])
    assert ways.untried == {}


def test_a_while_loop_is_never_untried() -> None:
    kernel, ways = Kernel(threads=THREADS), UntriedWays()
    a, b = kernel.tensor("A", "int32", [THREADS]), kernel.tensor("B", "int32", [THREADS])
    loop = While(Expr("gt", "bool", (load(a, 0), number(0))), Store(b, (kernel.tx,), number(1)))
    run(kernel, loop, ways, [0] * THREADS)
    assert ways.untried == {}


def test_sides_that_run_beside_one_another_take_turns() -> None:
    kernel, turns = Kernel(threads=THREADS), Turns()
    b = kernel.tensor("B", "int32", [THREADS])
    store = Store(b, (kernel.tx,), number(1))
    sides = Seq((store, barrier(THREADS, 1), store))
    run(kernel, Seq((If(Expr("lt", "bool", (kernel.tx, number(32))), sides, sides), store)), turns, [0] * THREADS)
    # the first side waits for the second one; what follows the branch is a part of both
    assert turns.heard == [0, "write", 1, "write", "write", "write", 0, "write", "write", None]
