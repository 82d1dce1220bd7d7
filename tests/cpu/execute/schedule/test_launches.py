"""Several kernels in one function: the later one reads what all blocks of the earlier one wrote."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.compile.test_elementwise import BX, ROWS, THREADS, TX, A, B
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compile import registry
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.execute.schedule.launches import kernels, threads_of
from tlcheck.execute.stops import NotModelled
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.snapshot.ir import (
    Alloc,
    Block,
    Buffer,
    Expr,
    For,
    Function,
    If,
    Launch,
    Seq,
    Snapshot,
    Stmt,
    Store,
    Thread,
)

registry.load()


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


C = Buffer("C", "float32", (_int(ROWS), _int(THREADS)), "global", Expr("var", "handle", (), "C", 9))


def _load(buffer: Buffer, *indices: Expr) -> Expr:
    return Expr("load", "float32", indices, None, 0, buffer)


def _kernel(body: Stmt, threads: int = THREADS) -> Stmt:
    return Thread(BX, "blockIdx.x", _int(ROWS), Thread(TX, "threadIdx.x", _int(threads), body))


FIRST = _kernel(Store(B, (BX, TX), Expr("add", "float32", (_load(A, BX, TX), _load(A, BX, TX)))))
MIRRORED = Expr("sub", "int32", (_int(ROWS - 1), BX))
SECOND = _kernel(Store(C, (BX, TX), _load(B, MIRRORED, TX)), THREADS // 2)


def _function(body: Stmt) -> Function:
    return Function("main", (A.data, B.data, C.data), (A, B, C), (), body)


def _launch(body: Stmt) -> Launch:
    return Launch("main_kernel", (A.data, B.data, C.data), (), body)


def _inputs(seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(ROWS * THREADS)


def _run(function: Function, block: int, source: bool) -> Invocation:
    size, kind = ROWS * THREADS, kind_of("float32")
    tensors = {name: Tensor(kind, size, lambda seed, numbers: None) for name in "BC"}
    tensors["A"] = Tensor(kind, size, lambda seed, numbers: _inputs(seed)[numbers])
    worlds = [World(seed, (block, 0, 0)) for seed in (0, 1)]
    invocation = Invocation(function, [worlds], tensors, {}, Options(source))
    invocation.run()
    return invocation


@pytest.mark.parametrize(
    ("body", "source"),
    [(Seq((_launch(FIRST), _launch(SECOND))), False), (Block("root", Seq((FIRST, SECOND))), True)],
    ids=["as lowered", "as source"],
)
def test_the_second_reads_what_any_block_of_the_first_wrote(body: Stmt, source: bool) -> None:
    """Block 1 alone of the second kernel reads row 2 of what the first one wrote; all of that is there."""
    invocation = _run(_function(body), 1, source)
    for seed in (0, 1):
        doubled = 2 * _inputs(seed).reshape(ROWS, THREADS)
        indices, values = invocation.left["B"].outcome(seed)
        assert indices.tolist() == list(range(ROWS * THREADS))
        np.testing.assert_array_equal(values, doubled.reshape(-1))
        indices, values = invocation.left["C"].outcome(seed)
        assert indices.tolist() == list(range(THREADS, THREADS + THREADS // 2))
        np.testing.assert_array_equal(values, doubled[2, : THREADS // 2])


def test_the_second_reads_a_tensor_that_the_function_declares() -> None:
    doubled = Expr("add", "float32", (_load(A, BX, TX), _load(A, BX, TX)))
    own = Buffer("W", "float32", (_int(ROWS), _int(THREADS)), "global", Expr("var", "handle", (), "W", 11))
    first, second = _kernel(Store(own, (BX, TX), doubled)), _kernel(Store(C, (BX, TX), _load(own, MIRRORED, TX)))
    source = _function(Block("root", Seq((Alloc(own), first, second))))
    lowered = Function("main", (A.data, own.data, C.data), (A, own, C), (), Seq((_launch(first), _launch(second))))
    checkpoints = {"source": source, "device-tir": lowered}
    found = execute(Snapshot("kernel", "kernel.py", 1, {"tilelang": "0.1.15"}, "sm_90", {}, {}, checkpoints, {}))
    assert {outcome.name: outcome.verdict for outcome in found.outputs} == {"C": "agreed"}


def test_threads_are_those_of_the_last_kernel() -> None:
    assert threads_of(_function(Seq((_launch(FIRST), _launch(SECOND))))) == (THREADS // 2, 1, 1)


def test_a_single_kernel_is_the_function_itself() -> None:
    function = _function(Block("root", FIRST))
    assert kernels(function) == (function,)


def test_memory_between_kernels_is_not_modelled() -> None:
    between = Alloc(Buffer("W", "float32", (_int(4),), "shared", Expr("var", "handle", (), "W", 11)))
    with pytest.raises(NotModelled, match="Alloc between kernels"):
        kernels(_function(Seq((FIRST, between, SECOND))))


STEP = Expr("var", "int32", (), "step", 12)


def test_a_loop_launches_its_kernel_again_and_again() -> None:
    """Each of three launches adds its number to B; the last one runs in one block, those before it in all."""
    added = Expr("add", "float32", (_load(B, BX, TX), Expr("cast", "float32", (STEP,))))
    loop = For(STEP, _int(1), _int(3), "serial", _kernel(Store(B, (BX, TX), added)))
    assert len(kernels(_function(Seq((FIRST, loop))))) == 4
    invocation = _run(_function(Seq((FIRST, loop))), 1, source=True)
    for seed in (0, 1):
        row = invocation.left["B"].outcome(seed)[1].reshape(ROWS, THREADS)
        doubled = 2 * _inputs(seed).reshape(ROWS, THREADS)
        np.testing.assert_allclose(row[1], doubled[1] + 1 + 2 + 3)
        np.testing.assert_allclose(row[0], doubled[0] + 1 + 2)


@pytest.mark.parametrize("extent", [_int(65), Expr("var", "int32", (), "n", 13)])
def test_a_loop_of_unknown_or_many_launches_is_not_modelled(extent: Expr) -> None:
    with pytest.raises(NotModelled, match="launch"):
        kernels(_function(For(STEP, _int(0), extent, "serial", FIRST)))


def test_a_kernel_that_depends_on_a_condition_is_not_modelled() -> None:
    with pytest.raises(NotModelled, match="condition"):
        kernels(_function(Seq((FIRST, If(Expr("bool", "bool", (), True), SECOND)))))
