"""Rounds of a loop that do the same to the order of accesses are counted: the clocks are what looking leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.cpu.execute.observe.test_settled import BARRIER, SHARED, STEP, THREADS, TX
from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.places import Place
from tlcheck.execute.memory.state import World
from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.clock import EPOCH, Times
from tlcheck.execute.observe.glance import Glance
from tlcheck.execute.observe.recurrence import Recurrence, _Round
from tlcheck.execute.observe.unit_shadow import UnitAccess, Units
from tlcheck.snapshot.ir import Alloc, Buffer, Evaluate, Expr, For, Function, If, Seq, Stmt, Store, Thread
from tlcheck.snapshot.walk import statements

registry.load()
ROUNDS = 40
OTHER = Buffer("t", "int32", (Expr("int", "int32", (), THREADS),), "shared", Expr("var", "handle", (), "t", 6))


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _op(op: str, a: Expr, b: Expr, dtype: str = "int32") -> Expr:
    return Expr(op, dtype, (a, b))


MIRRORED = _op("sub", _int(THREADS - 1), TX)
WRITES = Store(SHARED, (TX,), TX)
READS = Store(OTHER, (TX,), Expr("load", "int32", (MIRRORED,), None, 0, SHARED))
ROUND = (BARRIER, WRITES, BARRIER, READS, BARRIER, Store(OTHER, (MIRRORED,), TX), BARRIER, Store(SHARED, (TX,), TX))


def _at(step: int, stmt: Stmt) -> Stmt:
    return If(_op("eq", STEP, _int(step), "bool"), stmt)


def _warp(number: int, stmt: Stmt) -> Stmt:
    return If(_op("eq", _op("floordiv", TX, _int(32)), _int(number), "bool"), stmt)


def _loop(*body: Stmt, rounds: int = ROUNDS) -> Stmt:
    return For(STEP, _int(0), _int(rounds), "serial", Seq(body))


def _call(name: str, *args: Expr, dtype: str = "handle") -> Expr:
    return Expr("call", dtype, args, name)


RANK = _call("block_rank_in_cluster", dtype="int32")
MEET = Evaluate(_call("cluster_sync"))
THERE = _call("address_of", Expr("load", "int32", (MIRRORED,), None, 0, OTHER))
SENDS = Evaluate(_call("ptx_cluster_store", THERE, TX, _op("sub", _int(1), RANK)))
# Each of two blocks stores in the other one, and reads what it got.
EXCHANGE = (MEET, WRITES, SENDS, MEET, Store(SHARED, (TX,), Expr("load", "int32", (TX,), None, 0, OTHER)))


def _run(*body: Stmt) -> Glance:
    """The kernel in one block, or two of a cluster where they meet; with two inputs."""
    inner = Thread(TX, "threadIdx.x", _int(THREADS), Seq((Alloc(SHARED), Alloc(OTHER), *body)))
    meet = any(isinstance(s, Evaluate) and s.value.value == MEET.value.value for s in statements(inner))
    attrs = (("cluster_dims", "2"),) if meet else ()
    function, options = Function("main", (), (), attrs, inner), Options(False, plain=False)
    blocks = [(0, 0, 0), (1, 0, 0)] if meet else [(0, 0, 0)]
    worlds = tuple(World(seed, block) for seed in (0, 1) for block in blocks)
    machine = Machine(function, (THREADS, 1, 1), worlds, {}, {}, options)
    watch = Glance(machine, frozenset())
    watch.ended = lambda: None  # type: ignore[method-assign]
    machine.run(watch)
    return watch


@pytest.fixture
def moved_on(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """By how many rounds clocks have been moved on."""
    found: list[int] = []
    again = _Round.again

    def noted(self: _Round, times: int, clocks: Glance) -> None:
        found.append(times)
        again(self, times, clocks)

    monkeypatch.setattr(_Round, "again", noted)
    return found


BODIES = {
    "one loop": [_loop(*ROUND)],
    "two loops": [_loop(*ROUND), _loop(*ROUND, BARRIER)],
    "another round in between": [_loop(*ROUND, _at(21, BARRIER))],
    "a part of a round at the end": [_loop(*ROUND), *ROUND[:3]],
    "one warp reads": [_loop(*ROUND, BARRIER, _warp(1, READS))],
    "what came before the loop": [Store(OTHER, (TX,), TX), BARRIER, _loop(*ROUND[:4], *ROUND[:4], BARRIER)],
    "two blocks": [_loop(*EXCHANGE)],
    "two blocks, another round in between": [_loop(*EXCHANGE, _at(21, MEET)), MEET],
}


@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_clocks_are_what_looking_at_every_round_leaves(
    body: list[Stmt], moved_on: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = _run(*body)
    assert counted.is_settled
    assert sum(moved_on) > ROUNDS // 3
    monkeypatch.setattr(Recurrence, "__call__", _carried_out)
    looked = _run(*body)
    assert np.array_equal(counted.own_times(), looked.own_times())
    pairs = zip(counted.times(), looked.times(), strict=True)
    assert all(np.array_equal(mine.array, others.array) for mine, others in pairs)
    assert all(map(np.array_equal, counted.marks(), looked.marks()))


def _carried_out(self: Recurrence, event: object, act: Callable[[], None], *about: object) -> None:
    act()


def test_accesses_recur_though_their_lanes_are_found_anew(moved_on: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    accessed = Units.accessed

    def anew(self: Units, place: Place, position: Array, mask: Array, *about: Any, **by: Any) -> UnitAccess:
        return accessed(self, place, position, mask.copy(), *about, **by)

    monkeypatch.setattr(Units, "accessed", anew)
    assert _run(_loop(*ROUND)).is_settled
    assert sum(moved_on) > ROUNDS // 3


RACES = {
    "in the loop": [_loop(*ROUND, _at(ROUNDS - 3, Store(SHARED, (MIRRORED,), TX)))],
    "after the loop": [_loop(*ROUND), READS],
    "after a part of a round": [_loop(*ROUND), *ROUND[:2], READS],
    "without a barrier in the last rounds": [
        _loop(*ROUND[:6], If(_op("lt", STEP, _int(ROUNDS - 2), "bool"), BARRIER), Store(OTHER, (TX,), STEP))
    ],
    "with a store to another block": [_loop(*EXCHANGE, _at(ROUNDS - 3, SENDS), _at(ROUNDS - 3, READS))],
    "with a store to another block, after the loop": [_loop(*EXCHANGE), SENDS, READS],
    "of two blocks with a barrier of each": [_loop(*EXCHANGE[:3], BARRIER, *EXCHANGE[4:])],
}


@pytest.mark.parametrize("body", RACES.values(), ids=list(RACES))
def test_a_race_beside_rounds_that_are_counted_is_suspected(body: list[Stmt]) -> None:
    assert _run(*body).found


class _Lagging:
    """One warp; a time that lags twenty rounds behind, and one that stays and is later at first."""

    rows = 1

    def __init__(self) -> None:
        self.now: Array = np.array([[21 * EPOCH]])
        self.lags, self.stays = np.array([[EPOCH]]), np.array([[20 * EPOCH]])

    def own_times(self) -> Array:
        return np.asarray(self.now.copy())

    def times(self) -> Iterator[Times]:
        nobody = np.zeros(1, np.int64)
        return iter([Times(self.lags, nobody, nobody), Times(self.stays, nobody, nobody)])

    def marks(self) -> Iterator[Array]:
        return iter(())

    def move(self) -> None:
        self.now += EPOCH
        self.lags += EPOCH


def test_rounds_are_looked_at_until_what_moves_is_later_than_what_stays() -> None:
    """Before, comparing both would come out otherwise in a later round."""
    clocks = _Lagging()
    happens = Recurrence(clocks)
    for _ in range(ROUNDS):
        happens(("move",), clocks.move)
        for event in range(7):
            happens((event,), lambda: None)
    assert 20 * EPOCH < clocks.lags < ROUNDS * EPOCH
    happens.settle()
    assert clocks.lags == (ROUNDS + 1) * EPOCH
