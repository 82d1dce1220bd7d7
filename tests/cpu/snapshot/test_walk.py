"""Walking and rebuilding without recursion."""

from __future__ import annotations

import pytest

from tests.cpu.snapshot.recorded import RECORDED, snapshot
from tlcheck.snapshot.ir import Evaluate, Expr, For, If, Seq, Stmt, Store
from tlcheck.snapshot.walk import children, expressions, postorder, rebuild, statements, substitute, with_expressions

X, Y = (Expr("var", "int32", (), name, uid) for uid, name in enumerate("xy", 1))


def number(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def remake(e: Expr, args: tuple[Expr, ...]) -> Expr:
    return Expr(e.op, e.dtype, args, e.value, e.uid, e.buffer, e.annotations)


def test_arguments_come_before_what_has_them_and_each_once() -> None:
    shared = Expr("add", "int32", (X, Y))
    top = Expr("mul", "int32", (shared, shared))
    assert list(postorder([top, X])) == [X, Y, shared, top]


def test_deep_expressions() -> None:
    e = X
    for _ in range(50_000):
        e = Expr("add", "int32", (e, Y))
    assert sum(1 for _ in postorder([e])) == 50_002
    (other,) = substitute([e], {2: X}, remake)
    assert all(part.uid != 2 for part in postorder([other]))


def test_substitution_keeps_what_does_not_change() -> None:
    kept = Expr("add", "int32", (X, number(1)))
    changed = Expr("mul", "int32", (kept, Y))
    (new,) = substitute([changed], {Y.uid: number(7)}, remake)
    assert new.args[0] is kept
    assert new.args[1].value == 7
    assert substitute([kept], {Y.uid: number(7)}, remake)[0] is kept


@pytest.mark.parametrize("name", RECORDED)
def test_rebuilding_without_a_change_gives_the_same_objects(name: str) -> None:
    for function in snapshot(name).checkpoints.values():
        assert rebuild(function.body, lambda _, new: new) is function.body


@pytest.mark.parametrize("name", RECORDED)
def test_statements_keep_their_place_under_other_expressions(name: str) -> None:
    for function in snapshot(name).checkpoints.values():
        for stmt in statements(function.body):
            own = expressions(stmt)
            if own:
                marked = [Expr("cast", e.dtype, (e,)) for e in own]
                assert list(expressions(with_expressions(stmt, marked))) == marked
                assert children(with_expressions(stmt, marked)) == children(stmt)


def test_inner_statements_are_replaced_first_and_the_rest_stays() -> None:
    kept, old = Evaluate(X), Evaluate(Y)
    root = Seq((kept, If(X, For(X, Y, Y, "serial", old), kept)))

    def change(was: Stmt, now: Stmt) -> Stmt:
        return Evaluate(number(5)) if was is old else now

    new = rebuild(root, change)
    values = [s.value.value for s in statements(new) if isinstance(s, Evaluate)]
    assert values == ["x", 5, "x"]
    assert isinstance(new, Seq)
    assert new.body[0] is kept
    assert [s.value.value for s in statements(root) if isinstance(s, Evaluate)] == ["x", "y", "x"]


def test_no_statement_of_the_recorded_kernels_is_skipped() -> None:
    function = snapshot("0.1.15.annotated").checkpoints["device-tir"]
    stored = [s for s in statements(function.body) if isinstance(s, Store)]
    assert {str(s.buffer.data.value) for s in stored} >= {"left", "right", "tile"}
