"""The kernel's use of a tensor limits its integers; numbers are drawn within that."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.arguments import Arguments
from tlcheck.execute.worlds.integer_limits import ElementLimits, limits
from tlcheck.snapshot.ir import Bind, Buffer, Evaluate, Expr, For, Function, If, Seq, Stmt, Store, While

NUMBER = kind_of("int32")


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


def _of(op: str, a: Expr, b: Expr) -> Expr:
    return Expr(op, "bool" if op in ("ge", "lt", "ne") else "int32", (a, b))


Y, K, N = _var("y", 1), _var("k", 2), _var("n", 3)
P = Buffer("P", "int32", (_int(5),), "global", _var("P", 4, "handle"))
L = Buffer("L", "int32", (_int(5),), "global", _var("L", 5, "handle"))
B = Buffer("B", "float32", (_int(100), _int(8)), "global", _var("B", 6, "handle"))
J = Buffer("j", "int32", (_int(1),), "local.var", _var("j", 7, "handle"))
PAGE = Expr("load", "int32", (Y,), buffer=P)
ONE = Expr("float", "float32", (), 1.0)


def _found(*body: Stmt, name: str = "P") -> ElementLimits | None:
    kernel = Function("main", (P.data, L.data, B.data), (P, L, B), (), Seq(body))
    return limits(kernel, {"n": 7}).get(name)


def _row(index: Expr) -> Store:
    return Store(B, (index, _int(0)), ONE)


@pytest.mark.parametrize(
    ("index", "below"),
    [
        (PAGE, 100),
        (Expr("cast", "int64", (PAGE,)), 100),
        (_of("add", PAGE, _int(3)), 97),
        (_of("add", _of("mul", PAGE, _int(32)), K), 4),
        (_of("floordiv", PAGE, _int(2)), 200),
        (_of("floormod", PAGE, _int(7)), None),
    ],
)
def test_a_place_stays_in_its_axis(index: Expr, below: int | None) -> None:
    found = _found(_row(index))
    assert (found.below if found else None) == below
    assert found is None or not found.counts


@pytest.mark.timeout(20)
def test_one_expression_may_stand_in_many() -> None:
    """Each term is the one before it, twice: 2**60 ways lead to the element."""
    total = PAGE
    for _ in range(60):
        total = _of("min", total, total)
    assert _found(_row(total)) == ElementLimits(below=100)


def test_a_place_in_a_variable_is_one() -> None:
    assert _found(Bind(K, PAGE), _row(K)) == ElementLimits(below=100)
    assert _found(Store(J, (_int(0),), PAGE), _row(Expr("load", "int32", (_int(0),), buffer=J))) == ElementLimits(
        below=100
    )


@pytest.mark.parametrize(("tile", "index", "below"), [(1, K, 101), (32, K, 3201), (32, _of("mul", K, _int(32)), 101)])
def test_a_length_leads_its_loop_no_further_than_the_axis(tile: int, index: Expr, below: int) -> None:
    """In pages or tiles as well: a table of 100 pages of 32 rows, or 100 rows of which tiles of 32 are taken."""
    length = Expr("load", "int32", (Y,), buffer=L)
    steps = _of("floordiv", _of("add", length, _int(tile - 1)), _int(tile)) if tile > 1 else length
    assert _found(For(K, _int(0), steps, "serial", _row(index)), name="L") == ElementLimits(below=below, counts=True)


def test_what_is_promised_is_kept() -> None:
    promises = [_of("ge", PAGE, _int(2)), _of("lt", PAGE, N)]
    stmts = [Evaluate(Expr("call", "bool", (e,), "assume")) for e in promises]
    assert _found(*stmts) == ElementLimits(least=2, below=7)
    assert _found(Evaluate(Expr("call", "bool", (Expr("and", "bool", tuple(promises)),), "assume"))) == ElementLimits(
        2, 7
    )


def test_a_kernel_asks_for_none() -> None:
    asked = If(_of("ne", PAGE, _int(-1)), _row(PAGE))
    assert _found(asked) == ElementLimits(below=100, none=True)
    assert _found(If(_of("ne", PAGE, _int(1)), _row(PAGE))) == ElementLimits(below=100)


def test_a_chain_leads_to_the_front() -> None:
    here = Expr("load", "int32", (_int(0),), buffer=J)
    step = Store(J, (_int(0),), Expr("load", "int32", (here,), buffer=P))
    found = _found(Store(J, (_int(0),), Y), While(_of("ge", here, _int(0)), Seq((_row(here), step))))
    assert found == ElementLimits(below=5, none=True, chained=True)
    draw = inputs.Draw(ranges=(("P", 5),), chained=("P",), none=("P",))
    made = inputs.contents("P", NUMBER, draw)(1, np.arange(5))
    assert made is not None
    assert (made < np.arange(5)).all()
    assert made.min() == -1


def test_numbers_are_drawn_within_the_limits() -> None:
    draw = inputs.Draw(ranges=(("P", 1000), ("L", 7)), least=(("L", 2),), places=("P",), none=("P",))
    places, lengths = (inputs.contents(name, NUMBER, draw, {0})(1, np.arange(400)) for name in "PL")
    assert places is not None
    assert lengths is not None
    assert (places.min(), places.max() > 900, places.max() < 1000) == (-1, True, True)
    assert 20 < (places == -1).sum() < 90
    assert sorted(set(lengths.tolist())) == [2, 3, 4, 5, 6]
    first = inputs.contents("L", NUMBER, draw, {0})(0, np.arange(400))
    assert first is not None
    assert first[0] == 2
    assert inputs.Draw(4, ranges=(("P", 1000),)).limit("P") == 4


def test_numbers_that_lead_nowhere_may_be_negative() -> None:
    """Half of A's are, which is stored; none of those of L, which is a length."""
    a, c = (Buffer(n, "int32", (_int(64),), "global", _var(n, u, "handle")) for n, u in (("A", 8), ("C", 9)))
    steps = For(K, _int(0), Expr("load", "int32", (_int(0),), buffer=L), "serial", _row(K))
    sign = Store(c, (_int(0),), _of("floordiv", Expr("load", "int32", (_int(1),), buffer=a), _int(2)))
    kernel = Function("main", (L.data, a.data, B.data, c.data), (L, a, B, c), (), Seq((steps, sign)))
    draws = Arguments(kernel, {}, frozenset(), inputs.USUAL).draws
    assert [draw.signed for draw in draws[:3]] == [("A",), ("A",), ()]
    made = inputs.contents("A", NUMBER, draws[0])
    numbers = [made(seed, np.arange(64)) for seed in (0, 1)]
    assert all(n is not None for n in numbers)
    assert [int(n.min()) for n in numbers if n is not None] == [0, -8]
    while_ = While(_of("lt", Y, _int(1)), sign)
    kernel = Function("main", (L.data, a.data, c.data), (L, a, c), (), while_)
    assert not any(draw.signed for draw in Arguments(kernel, {}, frozenset(), inputs.USUAL).draws)
