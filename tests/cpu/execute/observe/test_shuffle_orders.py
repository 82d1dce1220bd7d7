"""A shuffle orders what one lane reads before what another one writes, if the value reaches the write; nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, buffer, call, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.snapshot.ir import Alloc, Bind, Buffer, Expr, If, Stmt, Store

RIGHT, UNORDERED, OPEN = set[tuple[str, str]](), {("s", "a barrier")}, {("s", "a shuffle that waits for what is read")}


class Lanes:
    """Registers and statements of a warp: each lane reads its element of `s`, and writes the one of its neighbour."""

    def __init__(self, kernel: Kernel) -> None:
        self.tx, self.s = kernel.tx, kernel.tile("s", "int32", (64,))
        self.x, self.y = buffer("x", "int32", (1,), "local.var"), buffer("y", "int32", (1,), "local.var")
        self.count = buffer("count", "int32", (1,), "local.var")
        self.pair = buffer("pair", "int32", (2,), "local")
        self.got = Expr("var", "int32", (), "got", 902)
        self.read = Store(self.x, (number(0),), load(self.s, self.tx))

    def shuffled(self, of: Expr, mask: int = 0xFFFFFFFF) -> Stmt:
        lanes = Expr("int", "uint32", (), mask)
        return Bind(self.got, Expr("call", "int32", (lanes, of, number(3), number(32)), "shfl_sync"))

    def write(self, value: Expr | int) -> Stmt:
        neighbour = Expr("floormod", "int32", (add(self.tx, 1), number(64)))
        return Store(self.s, (neighbour,), number(value))

    def given(self, to: Buffer, value: Expr | int, at: int = 0) -> Stmt:
        return Store(to, (number(at),), number(value))

    def below(self, one: Expr, other: Expr | int, then: Stmt) -> Stmt:
        return If(Expr("lt", "bool", (one, number(other))), then)


def _through_the_value(k: Lanes) -> tuple[Stmt, ...]:
    return k.read, k.shuffled(load(k.x, 0)), k.write(k.got)


def _through_conditions(k: Lanes) -> tuple[Stmt, ...]:
    """As a count of larger values is made."""
    larger = k.below(load(k.y, 0), load(k.x, 0), k.given(k.y, load(k.x, 0)))
    count = k.below(load(k.y, 0), k.got, k.given(k.count, 1))
    chosen = k.below(load(k.count, 0), 1, k.write(7))
    return k.given(k.y, 0), k.given(k.count, 0), k.read, larger, k.shuffled(load(k.y, 0)), count, chosen


def _through_an_element(k: Lanes) -> tuple[Stmt, ...]:
    kept = Store(k.pair, (number(1),), load(k.s, k.tx))
    return kept, k.given(k.pair, 5), k.shuffled(load(k.pair, 1)), k.write(k.got)


def _of_another_element(k: Lanes) -> tuple[Stmt, ...]:
    kept = Store(k.pair, (number(1),), load(k.s, k.tx))
    return k.given(k.pair, 5), kept, k.shuffled(load(k.pair, 0)), k.write(add(k.got, load(k.pair, 1)))


def _overwritten(k: Lanes) -> tuple[Stmt, ...]:
    other = k.given(k.y, load(k.x, 0)), k.given(k.x, 5)
    return k.read, *other, k.shuffled(load(k.x, 0)), k.write(add(k.got, load(k.y, 0)))


def _that_the_write_does_not_need(k: Lanes) -> tuple[Stmt, ...]:
    return k.read, k.shuffled(load(k.x, 0)), k.write(7), k.given(k.y, k.got)


def _of_half_the_lanes(k: Lanes) -> tuple[Stmt, ...]:
    return k.read, k.shuffled(load(k.x, 0), 0xFFFF), k.write(k.got)


def _before_the_read(k: Lanes) -> tuple[Stmt, ...]:
    return k.given(k.x, 3), k.shuffled(load(k.x, 0)), k.read, k.write(add(k.got, load(k.x, 0)))


def _after_a_write(k: Lanes) -> tuple[Stmt, ...]:
    return k.given(k.x, k.tx), k.write(load(k.x, 0)), k.shuffled(load(k.x, 0)), k.given(k.y, k.got), k.read


def _scan(k: Lanes) -> Stmt:
    address = Expr("call", "handle", (load(k.s, 0),), "address_of")
    name = Expr("str", "handle", (), "tl::CumSum1D<32, true>::run")
    return call("call_extern", name, address, address, number(32))


def _scanned_if(k: Lanes) -> tuple[Stmt, ...]:
    """The first element is the sum of all once the scan has stored it."""
    return (k.below(load(k.s, 0), 5, _scan(k)),)


def _read_and_scanned(k: Lanes) -> tuple[Stmt, ...]:
    return k.given(k.x, load(k.s, 0)), _scan(k)


@pytest.mark.parametrize(
    ("made", "raced"),
    [
        (_scanned_if, RIGHT),
        (_read_and_scanned, OPEN),
        (_through_the_value, RIGHT),
        (_through_conditions, RIGHT),
        (_through_an_element, RIGHT),
        (_of_another_element, OPEN),
        (_overwritten, OPEN),
        (_that_the_write_does_not_need, OPEN),
        (_of_half_the_lanes, UNORDERED),
        (_before_the_read, UNORDERED),
        (_after_a_write, UNORDERED),
    ],
)
def test_what_a_shuffle_orders(made: Callable[[Lanes], tuple[Stmt, ...]], raced: set[tuple[str, str]]) -> None:
    _races(made, raced, 32)


@pytest.mark.parametrize("made", [_through_the_value, _scanned_if])
def test_it_orders_no_other_warp(made: Callable[[Lanes], tuple[Stmt, ...]]) -> None:
    _races(made, UNORDERED, 64)


def _races(made: Callable[[Lanes], tuple[Stmt, ...]], raced: set[tuple[str, str]], threads: int) -> None:
    kernel = Kernel(threads=threads)
    out, k = kernel.tensor("B", "int32", (64,)), Lanes(kernel)
    first = k.below(k.tx, 32, Store(k.s, (k.tx,), add(k.tx, 1)))
    barrier = call("tvm_storage_sync", Expr("str", "handle", (), "shared"))
    end = (barrier, Store(out, (k.tx,), add(load(k.s, k.tx), load(k.x, 0))))
    begin = (*(Alloc(b) for b in (k.x, k.y, k.count, k.pair)), first, k.given(k.x, 0), barrier)
    found = execute(kernel.snapshot((*begin, *made(k), *end), (*begin, *made(k), *end)))
    assert {(race.buffer, race.missing) for race in found.races} == (set() if raced == OPEN else raced)
    assert (found.ordered["s"].kind.code == "U042") == (raced == OPEN)


def _neighbours() -> tuple[Kernel, Lanes, Store, Store]:
    """A kernel of one warp, and two stores: each lane reads its neighbour's element; each adds to its own."""
    kernel = Kernel(threads=32)
    out, k = kernel.tensor("B", "int32", (32,)), Lanes(kernel)
    neighbour = Expr("floormod", "int32", (add(kernel.tx, 1), number(32)))
    read = Store(out, (kernel.tx,), load(k.s, neighbour))
    more = Store(k.s, (kernel.tx,), add(load(k.s, kernel.tx), 1))
    return kernel, k, read, more


def test_a_race_within_a_warp_names_the_read_of_another_lane() -> None:
    """Each lane reads its neighbour's element, and then adds to its own: the last read is not what races."""
    kernel, k, read, more = _neighbours()
    barrier = call("tvm_storage_sync", Expr("str", "handle", (), "shared"))
    body = (Store(k.s, (kernel.tx,), kernel.tx), barrier, read, more)
    (race,) = execute(kernel.snapshot(body, body)).races
    assert (race.first.origin.stmt, race.second.origin.stmt) == (read, more)


def test_a_race_of_a_statement_with_itself_is_told_beside_one_with_another_read() -> None:
    """All lanes count in one element, in another epoch than that in which they read those of their neighbours."""
    kernel, k, read, more = _neighbours()
    counts = Store(k.s, (number(40),), add(load(k.s, 40), 1))
    barrier = call("tvm_storage_sync", Expr("str", "handle", (), "shared"))
    body = (Store(k.s, (kernel.tx,), kernel.tx), k.given(k.s, 1, 40), barrier, read, more, barrier, counts)
    races = [race for race, _ in execute(kernel.snapshot(body, body)).contested]
    assert [race.first.origin.stmt for race in races if race.second.origin.stmt is counts] == [counts]
