"""Sizes and integers are drawn so that a kernel goes everywhere it can go, as far as some do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, multiply, number, variable
from tests.cpu.mutations.lowered import lowered_mutants
from tests.fixtures.index import FOLDER
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.execute.worlds.courses import course_of
from tlcheck.snapshot.codec import loads
from tlcheck.snapshot.ir import Expr, For, If, Seq, Snapshot, Store

RAGGED = loads((FOLDER / "era/loop_ragged_pipelined-0.1.15.snapshot.json").read_text())


@pytest.mark.parametrize("name", ["delete mbarrier_wait_parity 0", "delete ptx_arrive_barrier_expect_tx 0"])
def test_a_loop_whose_length_is_read_from_memory_runs_often_enough_for_its_pipeline(name: str) -> None:
    """Each number below 8 would end it before the steady part of its pipeline begins."""
    assert execute(RAGGED).is_clean
    mutant = next(m for m in lowered_mutants(RAGGED.checkpoints["device-tir"]) if m.name == name)
    changed = replace(RAGGED, checkpoints={**RAGGED.checkpoints, "device-tir": mutant.function})
    assert not execute(changed).is_clean


def test_other_blocks_and_seeds_take_the_same_course() -> None:
    """A witness of one block is looked at with that block alone."""
    everywhere = course_of(RAGGED, Request())
    assert everywhere is not None
    assert everywhere.draw is not None
    assert everywhere.draw.limit("L", seed=0) == 8
    assert everywhere.draw.limit("L", seed=1) > 60
    assert course_of(RAGGED, Request(blocks=((0, 0, 0),), seeds=(7,))) == everywhere


def sum_of_squares(of_large: int) -> Snapshot:
    """B is 1 where the squares of A come to more than 2000; as lowered it is `of_large` there."""
    kernel, n, i = Kernel(threads=1), variable("n"), variable("i")
    a, b = kernel.tensor("A", "float32", [], [n]), kernel.tensor("B", "float32", [1])
    total = kernel.tile("total", "float32", [1], "local")
    square = replace(multiply(load(a, i), load(a, i)), dtype="float32")
    more = Expr("add", "float32", (load(total, 0), square))
    floating = [Expr("float", "float32", (), value) for value in (0.0, 1.0, float(of_large))]
    begin, add = Store(total, (number(0),), floating[0]), Store(total, (number(0),), more)
    exceeds = Expr("lt", "bool", (Expr("float", "float32", (), 2000.0), load(total, 0)))
    small, right, lowered = (Store(b, (number(0),), value) for value in floating)
    adding = For(i, number(0), n, "serial", add)
    return kernel.snapshot([begin, adding, If(exceeds, right, small)], [begin, adding, If(exceeds, lowered, small)])


def test_what_no_number_reaches_is_said() -> None:
    """Numbers of tensors that the case gives are not drawn."""
    snapshot = replace(RAGGED, case="")
    arrays = {"A": np.ones((64, 32)), "L": np.full(5, 16), "B": np.zeros((64, 32))}
    assert execute(snapshot, Request(given={0: arrays, 1: arrays})).unreached == (579,)


def test_sizes_grow_where_the_usual_ones_leave_a_branch_out() -> None:
    found = execute(sum_of_squares(2), Request(seeds=(0,)))
    assert found.sizes == (("n", 1024),)
    (outcome,) = found.outputs
    assert outcome.difference is not None
    assert (outcome.difference.expected, outcome.difference.got) == ("1.0", "2.0")


def mean_of_some(lowered: float) -> Snapshot:
    """B is 0 / 0 unless the index in I is 0."""
    kernel = Kernel(threads=1)
    index, b = kernel.tensor("I", "int32", [1]), kernel.tensor("B", "float32", [1])
    count = kernel.tile("count", "float32", [1], "local")
    zero, one = Expr("float", "float32", (), 0.0), Expr("float", "float32", (), 1.0)
    counting = If(Expr("lt", "bool", (load(index, 0), number(1))), Store(count, (number(0),), one))

    def body(value: Expr) -> list[Store | If]:
        mean = Expr("div", "float32", (Expr("mul", "float32", (load(count, 0), value)), load(count, 0)))
        return [Store(count, (number(0),), zero), counting, Store(b, (number(0),), mean)]

    return kernel.snapshot(body(one), body(Expr("float", "float32", (), lowered)))


def test_integers_are_drawn_until_outputs_have_numbers() -> None:
    """Another index leaves NaN on both sides, and nothing to compare."""
    verdicts = [execute(mean_of_some(value), Request()).outputs[0].verdict for value in (1.0, 2.0)]
    assert verdicts == ["agreed", "refuted"]


def packed_pairs(lowered: int) -> Snapshot:
    """B counts the numbers of A that are not 0; there must be one of four at most. lowered: what it adds for each."""
    kernel, i = Kernel(threads=1), variable("i")
    a, b = kernel.tensor("A", "float32", [64]), kernel.tensor("B", "int32", [16])
    kept = kernel.tile("kept", "int32", [2], "local")
    group = Expr("div", "int32", (i, number(4)))
    there = Expr("ne", "bool", (load(a, i), Expr("float", "float32", (), 0.0)))

    def body(each: int) -> list[Store | For]:
        first = If(
            Expr("eq", "bool", (Expr("mod", "int32", (i, number(4))), number(0))), Store(kept, (number(0),), number(0))
        )
        count = Expr("add", "int32", (load(kept, 0), number(each)))
        within = Store(kept, (Expr("mul", "int32", (load(kept, 0), number(2))),), load(kept, 0))  # in bounds below 1
        found = If(there, Seq((within, Store(kept, (number(0),), count))))
        return [For(i, number(0), number(64), "serial", Seq((first, found, Store(b, (group,), load(kept, 0)))))]

    return kernel.snapshot(body(1), body(lowered))


def test_a_kernel_that_packs_numbers_gets_few_of_them() -> None:
    """A group of four that has two numbers is out of bounds."""
    found = [execute(packed_pairs(each)).outputs[0] for each in (1, 2)]
    assert [outcome.verdict for outcome in found] == ["agreed", "refuted"]


def _with_a_promise(of_thread: int) -> Snapshot:
    """64 threads write A[first + thread]; T.assume says of each that first + thread * `of_thread` lies within A."""
    kernel, n, first = Kernel(threads=64), variable("n"), variable("first")
    a = kernel.tensor("A", "float32", [], [n])
    within = Expr("lt", "bool", (Expr("add", "int32", (first, multiply(kernel.tx, of_thread))), n))
    body = [call("assume", within), Store(a, (add(first, kernel.tx),), Expr("float", "float32", (), 1.0))]
    snapshot = kernel.snapshot(body, body)
    taking = {
        name: replace(function, params=(*function.params, first)) for name, function in snapshot.checkpoints.items()
    }
    return replace(snapshot, checkpoints=taking)


@pytest.mark.parametrize(("of_thread", "sizes"), [(1, {"n": 64, "first": 0}), (3, {"n": 256, "first": 1})])
def test_sizes_keep_what_is_promised_of_indices(of_thread: int, sizes: dict[str, int]) -> None:
    found = execute(_with_a_promise(of_thread))
    assert dict(found.sizes) == sizes
    assert [outcome.verdict for outcome in found.outputs] == ["agreed"]
    alone = execute(_with_a_promise(of_thread), Request(blocks=((0, 0, 0),), seeds=(1,)))
    assert alone.sizes == found.sizes


def test_a_promise_that_no_size_keeps_is_the_authors() -> None:
    (outcome,) = execute(_with_a_promise(1000)).outputs
    assert (outcome.verdict, outcome.reason) == (
        "undecided",
        "the author's, on all inputs tried: as written, T.assume does not hold",
    )
