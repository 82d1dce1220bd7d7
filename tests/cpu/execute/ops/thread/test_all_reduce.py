"""tl::AllReduce for several values of a thread, in loops that TileLang leaves parallel, and with NaN."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, region, text, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, For, Seq, Stmt, Store

THREADS = 64


def reduced(operation: str, width: int, batch: int, *workspace: Expr, of: Expr) -> Stmt:
    """A call of run_batch for what an address points to."""
    name = f"tl::AllReduce<tl::{operation}, {width}, 1, 0, tl::NamedBarrier<{THREADS}>, {batch}, {THREADS}>::run_batch"
    return call("call_extern", text(name), of, *workspace)


def address(first: Expr) -> Expr:
    return Expr("call", "handle", (first,), "address_of")


@pytest.mark.parametrize("width", [2, 16, 64])
def test_a_batch_is_reduced_value_by_value(width: int) -> None:
    """Two of the three values of each thread are: by shuffles, and from 64 threads on through shared memory."""
    kernel, a = Kernel(threads=THREADS), np.random.default_rng(0).integers(-9, 9, (THREADS, 3))
    source, target = kernel.tensor("A", "int32", a), kernel.tensor("B", "int32", (THREADS, 3))
    own = kernel.tile("own", "int32", (3,), "local")
    workspace = kernel.tile("workspace", "int32", (2 * THREADS,))
    found = kernel.run(
        *[Store(own, (number(i),), load(source, kernel.tx, i)) for i in range(3)],
        reduced("SumOp", width, 2, address(load(workspace, 0)), of=address(load(own, 0))),
        *[Store(target, (kernel.tx, number(i)), load(own, i)) for i in range(3)],
    )["B"]
    sums = a[:, :2].reshape(-1, width, 2).sum(axis=1).repeat(width, axis=0)
    assert np.array_equal(found, np.concatenate([sums, a[:, 2:]], axis=1))


def test_a_batch_of_pairs() -> None:
    """Values of two numbers each lie side by side, here and in the workspace."""
    kernel, a = Kernel(threads=THREADS), np.random.default_rng(0).integers(-9, 9, (THREADS, 4)) / 2.0
    source, target = kernel.tensor("A", "float16", a), kernel.tensor("B", "float16", (THREADS, 4))
    own, workspace = kernel.tile("own", "float16x2", (2,), "local"), kernel.tile("w", "float16x2", (2 * THREADS,))
    ramps = [Expr("ramp", "int32x2", (number(2 * i), number(1)), 2) for i in range(2)]
    found = kernel.run(
        *[
            Store(own, (number(i),), Expr("load", "float16x2", (kernel.tx, ramps[i]), None, 0, source))
            for i in range(2)
        ],
        reduced("MaxOp_fp16x2", THREADS, 2, address(load(workspace, 0)), of=address(load(own, 0))),
        *[Store(target, (kernel.tx, ramps[i]), load(own, i)) for i in range(2)],
    )["B"]
    assert np.array_equal(found, np.broadcast_to(a.max(axis=0), found.shape))


def test_a_parallel_loop_as_lowered_is_each_threads_own() -> None:
    """T.finalize_reducer leaves a parallel loop around a call in which all threads come together."""
    kernel, a = Kernel(threads=32), np.random.default_rng(0).integers(-9, 9, (32, 2))
    source, target = kernel.tensor("A", "int32", a), kernel.tensor("B", "int32", (2,))
    own, i, j = kernel.tile("own", "int32", (2,), "local"), variable("i"), variable("j")
    name = text("tl::AllReduce<tl::SumOp, 32, 1, 0>::run")
    together = Expr("call", "int32", (name, load(own, j)), "call_extern")

    def body(last: int) -> list[Stmt]:
        return [
            For(i, number(0), number(2), "serial", Store(own, (i,), load(source, kernel.tx, i))),
            For(j, number(0), number(last), "parallel", Store(own, (j,), together)),
            Seq(tuple(Store(target, (number(n),), load(own, n)) for n in range(2))),
        ]

    rows, total = variable("rows"), kernel.tile("total", "int32", (2,))
    one = add(load(total, rows), load(source, i, rows))
    written = [
        call("fill", region(total), number(0)),
        For(
            i, number(0), number(32), "serial", For(rows, number(0), number(2), "parallel", Store(total, (rows,), one))
        ),
        call("copy", region(total), region(target)),
    ]
    outcomes = [execute(kernel.snapshot(written, body(last)), Request()).outputs[0] for last in (2, 1)]
    assert [(o.verdict, o.reason) for o in outcomes] == [("agreed", ""), ("refuted", "")]


@pytest.mark.parametrize(("dtype", "passes"), [("float16", True), ("bfloat16", True), ("float32", False)])
@pytest.mark.parametrize("name", ["max_nan", "min_nan"])
def test_nan_goes_on_in_sixteen_bits(name: str, dtype: str, passes: bool) -> None:
    """__hmax_nan gives NaN of a number and NaN; for other types the library's fast_max takes the number."""
    kernel, a = Kernel(threads=4), np.array([1.0, np.nan, 2.0, np.nan])
    b = np.array([2.0, 3.0, np.nan, np.nan])
    first, second = kernel.tensor("A", dtype, a), kernel.tensor("B", dtype, b)
    target = kernel.tensor("C", dtype, (4,))
    value = Expr("call", dtype, (load(first, kernel.tx), load(second, kernel.tx)), name)
    found = kernel.run(Store(target, (kernel.tx,), value))["C"]
    chosen = (np.maximum if passes else np.fmax) if name == "max_nan" else (np.minimum if passes else np.fmin)
    assert np.array_equal(found, chosen(a, b), equal_nan=True)
