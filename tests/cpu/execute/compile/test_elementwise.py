"""Elementwise kernels at both levels, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.execute.stops import Illegal, NotModelled
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, For, Function, If, Seq, Stmt, Store, Thread

registry.load()

THREADS, ROWS = 32, 4


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


A = Buffer("A", "float32", (_int(ROWS), _int(THREADS)), "global", _var("A", 1, "handle"))
B = Buffer("B", "float32", (_int(ROWS), _int(THREADS)), "global", _var("B", 2, "handle"))
BX, TX, STEP, J = _var("bx", 3), _var("tx", 4), _var("i", 5), _var("j", 6)


def _inputs(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(ROWS * THREADS)


def _run(body: Stmt, written: bool) -> Machine:
    """Run over all rows as blocks, for two seeds."""
    function = Function("main", (A.data, B.data), (A, B), (), Thread(BX, "blockIdx.x", _int(ROWS), body))
    size, kind = ROWS * THREADS, kind_of("float32")
    tensors = {
        "A": Tensor(kind, size, lambda seed, numbers: _inputs(seed)[numbers]),
        "B": Tensor(kind, size, lambda seed, numbers: None),
    }
    worlds = [World(seed, (row, 0, 0)) for seed in (0, 1) for row in range(ROWS)]
    machine = Machine(function, (THREADS, 1, 1), worlds, tensors, {}, Options(written))
    machine.run()
    return machine


def _double(index: Expr) -> Store:
    load = Expr("load", "float32", (BX, index), None, 0, A)
    return Store(B, (BX, index), Expr("add", "float32", (load, load)))


def _threads(body: Stmt) -> Stmt:
    return Thread(TX, "threadIdx.x", _int(THREADS), body)


@pytest.mark.parametrize(
    ("body", "written"),
    [
        (For(J, _int(0), _int(THREADS), "parallel", _double(J)), True),
        (For(J, _int(0), _int(THREADS), "serial", _double(J)), True),
        (_threads(_double(TX)), True),
        (_threads(_double(TX)), False),
    ],
    ids=["parallel", "serial", "threads as written", "threads as lowered"],
)
def test_all_elements(body: Stmt, written: bool) -> None:
    """Every element of every row is twice that of A, for each seed."""
    pages = _run(body, written).pages("B")
    for seed in (0, 1):
        indices, values = pages.outcome(seed)
        assert indices.tolist() == list(range(ROWS * THREADS))
        np.testing.assert_array_equal(values, 2 * _inputs(seed))


def test_divergent_lanes() -> None:
    """Only the lanes for which the condition holds store, in each world."""
    condition = Expr("lt", "bool", (TX, Expr("mul", "int32", (BX, _int(3)))))
    indices, values = _run(_threads(If(condition, _double(TX))), False).pages("B").outcome(1)
    expected = [row * THREADS + t for row in range(ROWS) for t in range(3 * row)]
    assert indices.tolist() == expected
    np.testing.assert_array_equal(values, 2 * _inputs(1)[expected])


def test_break_leaves_the_loop_of_its_lanes() -> None:
    """A lane that breaks at i == tx has stored for 0 .. tx - 1."""
    leave = If(Expr("eq", "bool", (STEP, TX)), Evaluate(Expr("call", "handle", (), "loop_break")))
    body = For(
        STEP, _int(0), _int(THREADS), "serial", Seq((leave, Store(B, (BX, TX), Expr("cast", "float32", (STEP,)))))
    )
    indices, values = _run(_threads(body), False).pages("B").outcome(0)
    assert indices.tolist() == [row * THREADS + t for row in range(ROWS) for t in range(1, THREADS)]
    np.testing.assert_array_equal(values, [t - 1 for _ in range(ROWS) for t in range(1, THREADS)])


def test_outside_as_written_and_as_lowered() -> None:
    """Out of bounds of a global tensor: guarded as written, forbidden as lowered."""
    beyond = Expr("add", "int32", (TX, _int(1)))
    indices, _ = _run(_threads(_double(beyond)), True).pages("B").outcome(0)
    assert indices.tolist() == [row * THREADS + t for row in range(ROWS) for t in range(1, THREADS)]
    with pytest.raises(Illegal, match="A out of bounds"):
        _run(_threads(_double(beyond)), False)


def test_unknown_call_is_named() -> None:
    with pytest.raises(NotModelled, match="teleport"):
        _run(_threads(Evaluate(Expr("call", "handle", (), "teleport"))), False)
