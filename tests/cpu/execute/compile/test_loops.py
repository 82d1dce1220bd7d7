"""Loops: bounds from memory, which TIR reads once and CUDA before each iteration, and their variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.checking import executed
from tests.cpu.execute.ops.tile.building import Kernel, add, buffer, call, load, number, variable, whole_pointer
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Buffer, Expr, For, If, Seq, Stmt, Store

SUM = [0, 1, 3, 6, 10, 15, 21, 28] * 4  # of k + 1, where the length is read once: 0 to 7


def _kernel(scope: str = "local") -> tuple[Kernel, Buffer, Buffer]:
    """32 threads; lengths, sums, and where a thread's length is kept."""
    made = Kernel(threads=32)
    return made, made.tensor("L", "int32", np.arange(32) % 8), made.tile("n", "int32", [1], scope)


def _loop(made: Kernel, total: Buffer, start: Expr, extent: Expr, *then: Stmt) -> For:
    k = variable("k")
    adding = Store(total, (made.tx,), add(load(total, made.tx), add(k, 1)))
    return For(k, start, extent, "serial", Seq((adding, *then)))


def _less(place: Expr, by: int = 1) -> Store:
    assert place.buffer is not None
    return Store(place.buffer, place.args, add(place, -by))


@pytest.mark.parametrize("moves", [True, False])
def test_a_body_that_changes_the_length_of_its_loop_ends_it_on_the_device(moves: bool) -> None:
    made, lengths, n = _kernel()
    total = made.tensor("S", "int32", [32])
    other = made.tile("m", "int32", [1], "local")
    first = [Store(t, (number(0),), load(lengths, made.tx)) for t in (n, other)]
    zero = Store(total, (made.tx,), number(0))
    loop = _loop(made, total, number(0), load(n, 0), _less(load(n if moves else other, 0)))
    body = (*first, zero, loop)
    (outcome,) = execute(made.snapshot(body, body), _on_lengths()).outputs
    assert outcome.verdict == ("refuted" if moves else "agreed")
    assert made.run(*body)["S"].tolist() == SUM


def _on_lengths() -> Request:
    return Request(seeds=(0,), given={0: {"L": np.arange(32) % 8, "S": np.zeros(32)}})


def test_the_checkpoints_between_are_tir() -> None:
    """No pass is named for that reason."""
    made, lengths, n = _kernel()
    total = made.tensor("S", "int32", [32])
    body = (
        Store(n, (number(0),), load(lengths, made.tx)),
        Store(total, (made.tx,), number(0)),
        _loop(made, total, number(0), load(n, 0), _less(load(n, 0))),
    )
    snapshot = made.snapshot(body, body)
    source, lowered = snapshot.checkpoints["source"], snapshot.checkpoints["device-tir"]
    between = {"source": source, "type-cast": lowered, "device-tir": lowered}
    snapshot = replace(snapshot, checkpoints=between, passes={"device-tir": "tl.Last"})
    (found,) = [c.finding for c in executed(snapshot, _on_lengths()) if c.finding is not None]
    assert found.what == "S is wrong: CUDA reads the end of loop k anew in each iteration"
    assert (found.checkpoint, found.pass_name) == ("device-tir", "")


def test_both_bounds_are_read_once_as_written() -> None:
    """The body changes the lower bound in the memory that it was read from."""
    made, lengths, n = _kernel()
    total = made.tensor("S", "int32", [32])
    start = load(n, 0)
    loop = _loop(made, total, start, Expr("sub", "int32", (number(8), start)), _less(start, 3))
    body = Store(n, (number(0),), load(lengths, made.tx)), Store(total, (made.tx,), number(0)), loop
    assert made.run(*body)["S"].tolist() == [36 - s for s in SUM]


def test_a_tensor_that_the_kernel_adds_to_is_read_anew_as_well() -> None:
    made = Kernel(threads=32)
    length, total = (made.tensor(name, "int32", np.zeros(32)) for name in "LS")
    body = _loop(made, total, number(0), load(length, made.tx), _less(load(length, made.tx)))
    verdicts = {o.name: o.verdict for o in execute(made.snapshot([body], [body]), _on_lengths()).outputs}
    assert verdicts == {"L": "refuted", "S": "refuted"}


def test_what_no_body_can_change_is_read_once() -> None:
    """A conditional expression is a variable before the loop, a tensor that the kernel does not write never changes."""
    made, lengths, n = _kernel()
    total = made.tensor("S", "int32", [32])
    first = Store(n, (number(0),), load(lengths, made.tx)), Store(total, (made.tx,), number(0))
    positive = Expr("lt", "bool", (number(0), load(n, 0)))
    chosen = Expr("call", "int32", (positive, load(n, 0), number(0)), "if_then_else")
    for extent in (chosen, load(lengths, made.tx)):
        body = *first, _loop(made, total, number(0), extent, _less(load(n, 0)))
        (outcome,) = execute(made.snapshot(body, body), _on_lengths()).outputs
        assert outcome.verdict == "agreed"


def test_threads_begin_and_end_where_their_own_bounds_are() -> None:
    """As lowered by CUDA from L to 8, but for thread 3, which ends its loop at the second iteration."""
    made, lengths, n = _kernel()
    total = made.tensor("S", "int32", [32])
    end = made.tile("end", "int32", [1], "local")
    first = [Store(n, (number(0),), load(lengths, made.tx)), Store(end, (number(0),), number(8))]
    is_third = Expr("eq", "bool", (made.tx, number(3)))
    stop = If(is_third, Store(end, (number(0),), number(5)), None)
    extent = Expr("sub", "int32", (load(end, 0), load(n, 0)))
    zero = Store(total, (made.tx,), number(0))
    lowered = (*first, zero, _loop(made, total, load(n, 0), extent, stop))
    until = Expr("select", "int32", (is_third, number(5), number(8)))
    written = (*first, zero, _loop(made, total, load(n, 0), Expr("sub", "int32", (until, load(n, 0)))))
    (outcome,) = execute(made.snapshot(written, lowered), _on_lengths()).outputs
    assert outcome.verdict == "agreed"


def test_a_variable_that_is_used_outside_of_its_loop_is_named() -> None:
    """CUDA says that it is undefined. Whether the code was made for the loop makes no difference."""
    made = Kernel(threads=32)
    total = made.tensor("S", "int32", [32])
    k = variable("k")
    last = Store(total, (add(made.tx, k),), Expr("floormod", "int32", (k, number(2))))
    loop = For(k, number(0), number(1), "serial", last)
    for lowered in ([loop, last], [If(Expr("lt", "bool", (made.tx, number(8))), Seq((loop, last)), None)]):
        (outcome,) = execute(made.snapshot([loop], lowered)).outputs
        assert outcome.reason == "variable k without a value"


@pytest.mark.parametrize("gathered", [False, True])
def test_what_an_address_in_a_loop_says_of_a_tensor_needs_no_value(gathered: bool) -> None:
    """A tensor is known by the first address in it: as long as that, with the variables of its loop, which may not have
    begun, and with what is loaded there, from memory that was merged into other memory since (0.1.9)."""
    made = Kernel(threads=32)
    total = made.tensor("S", "int32", [64], [64])
    k = variable("k")
    at = add(Expr("mul", "int32", (k, number(32))), made.tx)
    seen = replace(total, shape=(add(load(buffer("merged", "int32", [8], "shared.dyn"), k) if gathered else at, 1),))
    address = Expr("call", "handle", (load(seen, at),), "address_of")
    loop = For(k, number(0), number(2), "serial", call("atomic_add_elem_op", address, number(1)))
    body = call("atomic_add_elem_op", whole_pointer(total, made.tx), number(1)), loop
    snapshot = made.snapshot(body, body)
    lowered = replace(snapshot.checkpoints["device-tir"], buffers=())
    snapshot = replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": lowered})
    (outcome,) = execute(snapshot, Request(seeds=(0,), given={0: {"S": np.zeros(64)}})).outputs
    assert (outcome.verdict, outcome.reason) == ("agreed", "")
