"""What is known without running it: copies that may land at any time, and contents that an earlier run has drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.hardware.snapshots import unpack
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compile import registry
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.pages import PAGE_BITS, Pages
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.execute.observe.watching import Watching
from tlcheck.execute.request import Request
from tlcheck.execute.worlds import batches
from tlcheck.execute.worlds.batches import alike
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.snapshot.ir import Alloc, Buffer, Evaluate, Expr, For, Function, If, Seq, Stmt, Store, Thread

registry.load()
(VARYING,) = unpack(Path(__file__).parents[1] / "varying-start-0.1.15.zip").values()
THREADS = 64


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


TX, BX, STEP = _var("tx", 1), _var("bx", 2), _var("i", 3)
A = Buffer("A", "int32", (_int(THREADS),), "global", _var("A", 4, "handle"))
SHARED = Buffer("s", "int32", (_int(THREADS),), "shared", _var("s", 5, "handle"))
GIVEN = Expr("load", "int32", (TX,), None, 0, A)
BARRIER = Evaluate(Expr("call", "handle", (), "sync_threads"))


def _function(body: Stmt) -> Function:
    inner = Thread(TX, "threadIdx.x", _int(THREADS), Seq((Alloc(SHARED), body)))
    return Function("main", (A.data,), (A,), (), Thread(BX, "blockIdx.x", _int(2), inner))


def _rising(seed: int, numbers: Array) -> Array:
    return THREADS - 1 - numbers if seed else numbers


def _invocation(body: Stmt, *worlds: World, ahead: tuple[World, ...] = ()) -> Invocation:
    tensor = Tensor(kind_of("int32"), THREADS, _rising)
    options = Options(False, plain=False)
    before = [ahead] if ahead else []
    return Invocation(_function(body), [*before, worlds], {"A": tensor}, {}, options)


def _watched(invocation: Invocation) -> Watching:
    watching = Watching(invocation.kernel, frozenset({"A"}))
    invocation.run(watching)
    return watching


@pytest.mark.parametrize(
    "body",
    [
        Store(SHARED, (TX,), GIVEN),
        Store(SHARED, (GIVEN,), TX),
        If(Expr("lt", "bool", (GIVEN, _int(32))), Store(SHARED, (TX,), TX)),
        For(STEP, _int(0), _int(2), "serial", Seq((Store(SHARED, (TX,), GIVEN), BARRIER))),
        Store(A, (TX,), TX),
    ],
)
def test_all_is_settled_where_all_is_in_order(body: Stmt) -> None:
    watching = _watched(_invocation(body, World(0), World(1)))
    assert watching.is_settled
    assert not watching.suspects


@pytest.mark.parametrize("stores", [Store(SHARED, (GIVEN,), TX), Store(A, (GIVEN,), TX)], ids=["shared", "tensor"])
def test_seeds_that_access_other_cells_are_watched(stores: Store) -> None:
    """With the first seed each thread accesses what is its own, with the second one what is another's."""
    body = Seq((Store(SHARED, (TX,), TX), stores))
    assert not _watched(_invocation(body, World(0))).suspects
    assert _watched(_invocation(body, World(0), World(1))).suspects


def test_blocks_of_another_batch_are_watched_too() -> None:
    """Both write the same elements."""
    body = Store(A, (TX,), BX)
    together, alone = (_watched(_invocation(body, World(0), ahead=ahead)) for ahead in ((World(0, (1, 0, 0)),), ()))
    assert together.suspects
    assert not alone.suspects


def test_what_batches_leave_is_what_all_blocks_leave() -> None:
    mine = Store(
        A,
        (
            Expr(
                "add",
                "int32",
                (TX, Expr("mul", "int32", (BX, _int(32)))),
            ),
        ),
        BX,
    )
    body = If(Expr("lt", "bool", (TX, _int(32))), mine)
    one, other = World(0, (0, 0, 0)), World(0, (1, 0, 0))
    together, apart = _invocation(body, one, other), _invocation(body, other, ahead=(one,))
    together.run()
    apart.run()
    for a, b in zip(together.left["A"].outcome(0), apart.left["A"].outcome(0), strict=True):
        np.testing.assert_array_equal(a, b)
    assert apart.left["A"].outcome(0)[1].tolist() == [0] * 32 + [1] * 32


def test_blocks_are_put_together_by_what_they_do(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    even = Expr("floormod", "int32", (BX, _int(2)))
    loop = For(STEP, _int(0), Expr("mul", "int32", (even, _int(5000))), "serial", Store(A, (TX,), TX))
    assert alike(_function(loop), {}, blocks) == [[(0, 0, 0), (2, 0, 0)], [(1, 0, 0)]]
    short = For(STEP, _int(0), Expr("mul", "int32", (even, _int(50))), "serial", Store(A, (TX,), TX))
    assert alike(_function(short), {}, blocks) == [blocks]
    monkeypatch.setattr(batches, "_WORTH", 0)
    quick, plain = execute(VARYING), execute(VARYING, Request(plain=True))
    assert [o.verdict for o in quick.outputs] == [o.verdict for o in plain.outputs] == ["agreed"]
    assert (quick.ordered, quick.lawful) == (plain.ordered, plain.lawful)


PAGE = 1 << PAGE_BITS


def _pages() -> Pages:
    pages = Pages(kind_of("float32"), 4 * PAGE, (0,), lambda seed, numbers: numbers, 1 << 30)
    pages.locate(np.arange(PAGE), pages.kind, 0)
    return pages


def test_contents_are_lent_until_somebody_changes_them() -> None:
    """Neither run sees what the other one writes, or fetches later."""
    first = _pages()
    second = first.afresh((0,))
    assert second is not None
    assert np.shares_memory(first.flat, second.flat)
    one, two = (pages.locate(np.array([5]), pages.kind, 0) for pages in (first, second))
    second.put(two, -1.0, None, second.kind)
    assert (first.take(one, first.kind)[0], second.take(two, second.kind)[0]) == (5.0, -1.0)
    assert second.afresh((0,)) is None
    third = first.afresh((0,))
    assert third is not None
    late, later = (pages.locate(np.array([at]), pages.kind, 0) for pages, at in ((first, PAGE), (third, 2 * PAGE)))
    assert (first.take(late, first.kind)[0], third.take(later, third.kind)[0]) == (PAGE, 2 * PAGE)
