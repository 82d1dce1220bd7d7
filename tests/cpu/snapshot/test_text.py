"""Text to read: the structure of expressions, names that stay, and a line for every statement."""

from __future__ import annotations

import random
import types
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, reject, settings
from hypothesis.strategies import randoms

from tests.cpu.snapshot.recorded import ERAS, RECORDED, snapshot
from tlcheck.snapshot.expression_text import render_expression
from tlcheck.snapshot.ir import (
    Alloc,
    Assert,
    Attr,
    Bind,
    Block,
    Buffer,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Launch,
    Layout,
    Seq,
    Stmt,
    Store,
    Thread,
    Unknown,
    While,
)
from tlcheck.snapshot.text import render, render_layout
from tlcheck.snapshot.walk import statements

PYTHON: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "floormod": lambda a, b: a % b,
    "min": min,
    "max": max,
    "eq": lambda a, b: a == b,
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "and": lambda a, b: a and b,
    "or": lambda a, b: a or b,
}
ARITHMETIC = ("add", "sub", "mul", "floordiv", "floormod", "min", "max")


def var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


def number(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def call(name: str, *args: Expr) -> Expr:
    return Expr("call", "int32", args, name)


def binary(op: str, a: Expr, b: Expr) -> Expr:
    return Expr(op, "bool" if op in ("eq", "lt", "ge", "and", "or") else "int32", (a, b))


def shown(e: Expr) -> str:
    return render_expression(e, lambda v: str(v.value), lambda load: str(load.value))


def lines(*body: Stmt) -> list[str]:
    """The text of a function's body, without its indentation."""
    return [line[4:] for line in render(Function("f", (), (), (), Seq(body))).lines[1:]]


# Expressions


def random_expression(rng: random.Random, depth: int, boolean: bool = False) -> Expr:
    if depth == 0 and not boolean:
        return rng.choice([var("x", 1), var("y", 2), number(rng.randrange(-4, 9))])
    if boolean and depth > 1 and rng.random() < 0.6:
        op = rng.choice(["and", "or", "not"])
        args = [random_expression(rng, depth - 1, boolean=True) for _ in range(1 if op == "not" else 2)]
        return Expr(op, "bool", tuple(args))
    op = rng.choice(["eq", "lt", "ge"]) if boolean else rng.choice(ARITHMETIC)
    return binary(op, *(random_expression(rng, max(depth - rng.randrange(1, 3), 0)) for _ in range(2)))


def value_of(e: Expr, names: dict[str, int]) -> int:
    if e.op == "var":
        return names[str(e.value)]
    if e.op == "int":
        return int(e.value or 0)
    args = [value_of(a, names) for a in e.args]
    return not args[0] if e.op == "not" else PYTHON[e.op](*args)


@pytest.mark.parametrize("boolean", [False, True])
@settings(max_examples=150)
@given(rng=randoms(use_true_random=False))
def test_the_text_of_an_expression_means_what_the_expression_means(rng: random.Random, boolean: bool) -> None:
    script = types.SimpleNamespace(min=min, max=max)
    e = random_expression(rng, 5, boolean)
    names = {"x": rng.randrange(-50, 50), "y": rng.randrange(1, 50)}
    try:
        expected = value_of(e, names)
    except ZeroDivisionError:
        reject()
    assert eval(shown(e), {"T": script}, names) == expected, shown(e)


@pytest.mark.parametrize(
    ("e", "text"),
    [
        (binary("add", binary("add", var("a", 1), var("b", 2)), var("c", 3)), "a + b + c"),
        (binary("add", var("a", 1), binary("add", var("b", 2), var("c", 3))), "a + (b + c)"),
        (binary("mul", binary("add", var("a", 1), var("b", 2)), number(4)), "(a + b) * 4"),
        (binary("lt", binary("add", var("a", 1), number(1)), var("b", 2)), "a + 1 < b"),
        (binary("eq", binary("lt", var("a", 1), var("b", 2)), var("c", 3)), "(a < b) == c"),
        (Expr("not", "bool", (binary("lt", var("a", 1), var("b", 2)),)), "not a < b"),
        (Expr("truncdiv", "int32", (var("a", 1), number(2))), "T.truncdiv(a, 2)"),
        (Expr("cast", "float16", (var("a", 1),)), 'T.Cast("float16", a)'),
        (Expr("broadcast", "int32x4", (var("a", 1),), 4), "T.Broadcast(a, 4)"),
        (Expr("ramp", "int32x4", (var("a", 1), number(2)), 4), "T.Ramp(a, 2, 4)"),
        (Expr("select", "int32", (var("c", 1), var("a", 2), number(0))), "T.Select(c, a, 0)"),
        (Expr("float", "float16", (), 0.5), "T.float16(0.5)"),
        (Expr("int", "bool", (), 1), "True"),
        (Expr("str", "handle", (), 'a "b"'), '"a \\"b\\""'),
        (Expr("call", "float32", (var("a", 1),), "call_extern"), 'T.call_extern("float32", a)'),
        (Expr("call", "handle", (), "copy", annotations=(("use_tma", "1"),)), "T.copy(use_tma=1)"),
        (Expr("unknown", "", (var("a", 1),), "Hologram"), 'T.unknown("Hologram", a)'),
        (Expr("let", "int32", (var("a", 1), var("b", 2), var("a", 1))), "T.Let(a, b, a)"),
        (Expr("shuffle", "int32x2", (var("a", 1), var("b", 2), var("c", 3)), 2), "T.Shuffle([a, b], [c])"),
        (Expr("predicated", "float32", (var("a", 1), var("b", 2))), "T.predicated(a, b)"),
    ],
)
def test_expressions(e: Expr, text: str) -> None:
    assert shown(e) == text


# Layouts


def test_a_layout_in_words() -> None:
    i, j = var("i", 1), var("j", 2)
    index = (binary("floordiv", i, number(8)), binary("floormod", j, number(2)))
    assert render_layout(Layout((i, j), (number(64), number(64)), index), "dQ") == "dQ: (i, j) -> (i // 8, j % 2)"


def test_a_fragment_in_words() -> None:
    i, rep = var("i", 1), var("rep", 2)
    thread = binary("add", binary("mul", rep, number(32)), binary("floordiv", i, number(4)))
    fragment = Layout((i,), (number(128),), (binary("floormod", i, number(4)),), thread, rep, 2, 128)
    words = "(i) -> thread rep * 32 + i // 4, local i % 4, from thread 128 on, 2 replicas"
    assert render_layout(fragment) == words


# Names


def loop(name: str, uid: int, *body: Stmt) -> For:
    return For(var(name, uid), number(0), number(4), "serial", Seq(body))


def use(name: str, uid: int) -> Evaluate:
    return Evaluate(call("use", var(name, uid)))


def test_loops_beside_each_other_share_a_name_and_nested_ones_do_not() -> None:
    body = [loop("i", 1, use("i", 1), loop("i", 2, use("i", 1), use("i", 2))), loop("i", 3, use("i", 3))]
    assert lines(*body) == [
        "for i in T.serial(4):",
        "    T.use(i)",
        "    for i_1 in T.serial(4):",
        "        T.use(i)",
        "        T.use(i_1)",
        "for i in T.serial(4):",
        "    T.use(i)",
    ]


def test_one_more_loop_renames_nothing() -> None:
    body = [loop("i", 1, use("i", 1)), loop("k", 2, loop("i", 3, use("i", 3)))]
    before, after = lines(*body), lines(loop("i", 9, use("i", 9)), *body)
    assert after[2:] == before


def test_a_binding_ends_with_its_sequence() -> None:
    bound = [Bind(var("p", 1), number(1)), use("p", 1)]
    assert lines(Seq(tuple(bound)), Bind(var("p", 2), number(2)), use("p", 2)) == [
        "p = 1",
        "T.use(p)",
        "p = 2",
        "T.use(p)",
    ]


def test_variables_that_nothing_declares_have_one_name_everywhere() -> None:
    assert lines(use("n", 1), loop("n", 2, use("n", 1), use("n", 2)), use("n", 1)) == [
        "T.use(n)",
        "for n_1 in T.serial(4):",
        "    T.use(n)",
        "    T.use(n_1)",
        "T.use(n)",
    ]


def buffer(dtype: str, *shape: Expr) -> Buffer:
    return Buffer("A", dtype, shape, "global", var("A", 1, "handle"))


def test_buffers_over_one_memory_are_told_apart_where_it_matters() -> None:
    whole, flat, bytes_ = (
        buffer("float32", number(4), number(8)),
        buffer("float32", number(32)),
        buffer("uint8", number(9)),
    )
    made_up = buffer("float32", binary("add", var("i", 5), number(1)))
    zero = number(0)
    body = [
        Store(whole, (zero, zero), zero),
        Store(flat, (zero,), zero),
        Store(bytes_, (zero,), zero),
        Evaluate(call("address_of", Expr("load", "float32", (var("i", 5),), buffer=made_up))),
    ]
    text = render(Function("f", (whole.data,), (whole,), (), Seq(tuple(body)))).lines
    assert text == (
        'def f(A: T.Buffer([4, 8], "float32")):',
        '    A.1 = T.Buffer([9], "uint8")',
        "    A[0, 0] = 0",
        "    A[0] = 0",
        "    A.1[0] = 0",
        "    T.address_of(A[i])",
    )


# Statements


def test_every_statement_in_its_form() -> None:
    condition = binary("lt", var("x", 1), number(3))
    scratch = Buffer("s", "float16", (number(8),), "shared", var("s", 2, "handle"))
    body: list[Stmt] = [
        Alloc(scratch),
        If(condition, use("x", 1), If(condition, use("x", 1), use("x", 1))),
        While(condition, use("x", 1)),
        For(var("i", 3), number(2), number(4), "unrolled", use("i", 3), (("num_stages", "2"),)),
        For(var("i", 4), var("x", 1), number(4), "vectorized", use("i", 4)),
        Store(scratch, (Expr("ramp", "int32x4", (var("x", 1), number(1)), 4),), number(0)),
        Store(scratch, (number(1),), number(0), condition),
        Assert(condition, "too many"),
        Launch("f_kernel", (), (), use("x", 1)),
        Attr("async_scope", number(1), use("x", 1)),
        Attr("tl.assume", condition, use("x", 1)),
        Attr("pragma_unroll_explicit", number(0), use("x", 1)),
        Block("block", use("x", 1)),
        Unknown("Teleport", (use("x", 1),)),
        Unknown("Nothing"),
        Seq(()),
    ]
    assert lines(*body) == [
        's = T.alloc_buffer([8], "float16", scope="shared")',
        "if x < 3:",
        "    T.use(x)",
        "elif x < 3:",
        "    T.use(x)",
        "else:",
        "    T.use(x)",
        "while x < 3:",
        "    T.use(x)",
        "for i in T.unroll(2, 6, num_stages=2):",
        "    T.use(i)",
        "for i in T.vectorized(x, x + 4):",
        "    T.use(i)",
        "s[x:x + 4] = 0",
        "s[1] = 0 where x < 3",
        'assert x < 3, "too many"',
        "T.use(x)",
        'with T.attr("async_scope", 1):',
        "    T.use(x)",
        "T.assume(x < 3)",
        "T.use(x)",
        "T.use(x)",
        "T.use(x)",
        "with T.unknown('Teleport'):",
        "    T.use(x)",
        "T.unknown('Nothing')",
        "pass",
    ]


@pytest.mark.parametrize("name", RECORDED)
def test_every_statement_has_its_line(name: str) -> None:
    for function in snapshot(name).checkpoints.values():
        text = render(function)
        for stmt in statements(function.body):
            line = text.lines[text.line_of(stmt) - 1]
            if isinstance(stmt, Thread):
                assert stmt.tag in line
            elif isinstance(stmt, For):
                assert line.lstrip().startswith("for ")
            elif isinstance(stmt, Store):
                assert f"{stmt.buffer.data.value}" in line
                assert " = " in line
            elif isinstance(stmt, Alloc):
                assert stmt.buffer.scope in line
        lines_of_leaves = [text.line_of(s) for s in statements(function.body) if isinstance(s, (Store, Evaluate))]
        assert lines_of_leaves == sorted(lines_of_leaves)


def test_a_statement_of_another_function_has_no_line() -> None:
    function = Function("f", (), (), (), use("x", 1))
    assert render(function).line_of(use("x", 1)) == 0
    assert str(render(function)) == "def f():\n    T.use(x)\n"


@pytest.mark.parametrize("release", ERAS)
def test_the_text_does_not_depend_on_uids(release: str) -> None:
    function = snapshot(f"{release}.histogram").checkpoints["tile-ops"]
    assert render(replace(function)).lines == render(function).lines
