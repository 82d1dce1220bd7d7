"""A glance says where accesses may not be ordered; who watches nothing else finds all that there is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.cpu.execute.observe.test_settled import BARRIER, BX, SHARED, THREADS, TX, A
from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.observe.authors import Author
from tlcheck.execute.observe.order import HappensBefore
from tlcheck.execute.observe.races import Access
from tlcheck.execute.observe.suspects import Suspects
from tlcheck.execute.observe.watching import Watching
from tlcheck.snapshot.ir import Alloc, Expr, Function, If, Seq, Stmt, Store, Thread

registry.load()


def _op(op: str, left: Expr, right: Expr, dtype: str = "int32") -> Expr:
    return Expr(op, dtype, (left, right))


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


MIRRORED = _op("sub", _int(THREADS - 1), TX)
WARP = _op("floordiv", TX, _int(32))
FIRST = _op("lt", TX, _int(32), "bool")
LAST = _op("add", _op("mul", WARP, _int(32)), _int(31))  # of a warp
READ = Store(A, (TX,), Expr("load", "int32", (MIRRORED,), None, 0, SHARED))
RACES: dict[str, tuple[list[Stmt], list[str]]] = {
    "a read": ([Store(SHARED, (TX,), TX), READ], ["write read"]),
    "writes, of which the first ones change nothing": (
        [Store(SHARED, (TX,), WARP), Store(SHARED, (MIRRORED,), _int(1))],
        ["write write"],
    ),
    "one statement": ([Store(SHARED, (WARP,), TX)], ["write write"]),
    "one statement, of a tensor": ([Store(A, (WARP,), TX)], ["write write"]),
    "the last cells alone": (
        [Store(SHARED, (TX,), TX), If(FIRST, Store(SHARED, (_op("add", TX, _int(32)),), TX))],
        ["write write"],
    ),
    "blocks": ([Store(A, (TX,), _op("add", TX, BX))], ["write write"]),
    "a tensor": (
        [Store(A, (TX,), TX), Store(SHARED, (TX,), Expr("load", "int32", (MIRRORED,), None, 0, A))],
        ["write read", "write read"],
    ),
    "what the warp reads, by the last thread that does": (
        [
            Store(SHARED, (TX,), TX),
            BARRIER,
            Store(A, (TX,), Expr("load", "int32", (LAST,), None, 0, SHARED)),
            If(Expr("eq", "bool", (LAST, TX)), Store(SHARED, (LAST,), _int(-1))),
        ],
        ["read write"],
    ),
    "nothing": ([Store(SHARED, (TX,), TX), BARRIER, READ], []),
    "nothing but what is there": ([Store(SHARED, (TX,), _int(1)), Store(SHARED, (MIRRORED,), _int(1))], []),
}


@pytest.mark.parametrize(("body", "races"), RACES.values(), ids=list(RACES))
def test_who_watches_what_is_suspected_finds_all_races(body: Sequence[Stmt], races: Sequence[str]) -> None:
    everywhere, there = _watched(body, None), _watched(body, _suspects(body))
    assert [f"{race.first.kind} {race.second.kind}" for race in everywhere.races.values()] == races
    assert _words(there) == _words(everywhere)
    assert there.buffers == everywhere.buffers


def test_the_rest_is_not_looked_at() -> None:
    """As if it were in order: the last warp reads the first half, the last half is suspected."""
    body = Store(SHARED, (TX,), TX), If(_op("ge", TX, _int(32), "bool"), READ)
    assert _watched(body, None).races
    assert not _watched(body, _suspects(RACES["the last cells alone"][0])).races


def _suspects(body: Sequence[Stmt]) -> Suspects:
    quick = _machine(body, plain=False)
    watching = Watching(quick.function, frozenset("A"))
    quick.run(*watching(quick))
    return watching.suspects


def _machine(body: Sequence[Stmt], *, plain: bool, source: bool = False) -> Machine:
    inner = Thread(TX, "threadIdx.x", _int(THREADS), Seq((Alloc(SHARED), *body)))
    function = Function("main", (A.data,), (A,), (), Thread(BX, "blockIdx.x", _int(2), inner))
    tensors = {"A": Tensor(kind_of("int32"), THREADS, lambda seed, elements: np.zeros(len(elements), np.int32))}
    worlds = World(0, (0, 0, 0)), World(0, (1, 0, 0))
    return Machine(function, (THREADS, 1, 1), worlds, tensors, {}, Options(source, plain=plain))


def _watched(body: Sequence[Stmt], suspects: Suspects | None) -> HappensBefore:
    machine = _machine(body, plain=True)
    watching = Watching(machine.function, frozenset("A"), suspects=suspects)
    machine.run(*watching(machine))
    return watching.watches[0]


def _words(watch: HappensBefore) -> list[object]:
    return [(r.buffer, r.index, r.missing, _access(r.first), _access(r.second)) for r in watch.races.values()]


def _access(access: Access) -> object:
    return access.kind, access.block, access.thread


OF_A = Store(A, (TX,), _op("add", Expr("load", "int32", (MIRRORED,), None, 0, A), _int(1)))
OF_BOTH: dict[str, list[Stmt]] = {
    "in one statement": [OF_A, Store(SHARED, (WARP,), TX)],
    "statements on end": [Store(A, (TX,), TX), Store(A, (MIRRORED,), TX)],
    "another one between, which needs a barrier": [
        Store(A, (TX,), TX),
        Store(SHARED, (TX,), TX),
        Store(A, (MIRRORED,), TX),
    ],
}


@pytest.mark.parametrize("body", OF_BOTH.values(), ids=list(OF_BOTH))
def test_an_author_who_is_asked_about_one_buffer_says_the_same_of_it(body: Sequence[Stmt]) -> None:
    every = _contested(body, None)
    for name in ("A", "s"):
        there = {who: {n: line for n, line in lines.items() if n == name} for who, lines in every.items()}
        assert _contested(body, frozenset({name})) == there


def _contested(body: Sequence[Stmt], about: frozenset[str] | None) -> dict[str, dict[str, int]]:
    machine = _machine(body, plain=True, source=True)
    watch = Author(machine, frozenset({"A", "s"}), about)
    machine.run(watch)
    contested = watch.contested | {"between": watch.between}
    return {who: {name: clash.line for name, clash in found.items()} for who, found in contested.items()}
