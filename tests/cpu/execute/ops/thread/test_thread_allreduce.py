"""T.tvm_thread_allreduce against NumPy, for axes of the block and conditions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Array, Kernel, flag, load, number, random, variable
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Attr, Evaluate, Expr, For, Seq, Store

THREADS = 12


def reducer(op: str, neutral: int) -> tuple[Expr, ...]:
    left, right = variable("x"), variable("y")
    return left, right, Expr(op, "int32", (left, right)), number(neutral)


def combined(op: str, neutral: int, condition: Expr | None = None, said: bool = True) -> Array:
    kernel, a = Kernel(threads=THREADS), random("int32", THREADS)
    source, target = kernel.tensor("A", "int32", a), kernel.tensor("B", "int32", (THREADS,))
    result = kernel.tile("r", "int32", (1,), "local")
    holds = condition if condition is not None else flag(True)
    if condition is not None:
        holds = Expr("lt", "bool", (kernel.tx, condition))
    args = (number(1), load(source, kernel.tx), holds, load(result, 0), kernel.tx)
    reduce = Evaluate(Expr("call", "handle", args, "tvm_thread_allreduce"))
    scope = Attr("reduce_scope", number(0), reduce, reducer(op, neutral) if said else ())
    return kernel.run(scope, Store(target, (kernel.tx,), load(result, 0)))["B"]


@pytest.mark.parametrize(("op", "neutral", "expected"), [("add", 0, np.add), ("max", -(2**31), np.maximum)])
def test_all_threads_have_the_combination(op: str, neutral: int, expected: np.ufunc) -> None:
    a = random("int32", THREADS)
    assert (combined(op, neutral) == expected.reduce(a, dtype=np.int32)).all()


def test_threads_for_which_the_condition_fails_add_nothing() -> None:
    a = random("int32", THREADS)
    assert (combined("add", 0, number(5)) == a[:5].sum(dtype=np.int32)).all()


def test_without_a_reducer_it_is_not_modelled() -> None:
    with pytest.raises(NotModelled, match="does not say"):
        combined("add", 0, said=False)


def test_threads_come_together_in_each_iteration_of_a_parallel_loop() -> None:
    kernel, a, i = Kernel(threads=THREADS), random("int32", THREADS), variable("i")
    source, target = kernel.tensor("A", "int32", a), kernel.tensor("B", "int32", (3, THREADS))
    result = kernel.tile("r", "int32", (1,), "local")
    args = (number(1), Expr("mul", "int32", (load(source, kernel.tx), i)), flag(True), load(result, 0), kernel.tx)
    reduce = Attr(
        "reduce_scope", number(0), Evaluate(Expr("call", "handle", args, "tvm_thread_allreduce")), reducer("add", 0)
    )
    store = Store(target, (i, kernel.tx), load(result, 0))
    found = kernel.run(For(i, number(0), number(3), "parallel", Seq((reduce, store))))["B"]
    assert (found == np.arange(3, dtype=np.int32)[:, None] * a.sum(dtype=np.int32)).all()
