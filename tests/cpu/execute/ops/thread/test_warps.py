"""Shuffles and votes where a block ends with a partial warp, against the manual's words."""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.snapshot.ir import Buffer, Expr, Function, If, Seq, Stmt, Store, Thread

registry.load()
THREADS = 48


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


TX = Expr("var", "int32", (), "tx", 1)
OUT = Buffer("OUT", "uint32", (_int(THREADS),), "global", Expr("var", "handle", (), "OUT", 2))


def _call(name: str, *args: Expr) -> Expr:
    return Expr("call", "uint32", args, name)


def _run(value: Expr, active: int = THREADS) -> Array:
    """Return what each thread stores; threads from `active` on do nothing."""
    store: Stmt = Store(OUT, (TX,), value)
    body = If(Expr("lt", "bool", (TX, _int(active))), Seq((store,)))
    function = Function("main", (OUT.data,), (OUT,), (), Thread(TX, "threadIdx.x", _int(THREADS), body))
    tensors = {"OUT": Tensor(kind_of("uint32"), THREADS, lambda seed, numbers: np.zeros(len(numbers), np.uint32))}
    machine = Machine(function, (THREADS, 1, 1), [World(0)], tensors, {}, Options(source=False))
    machine.run()
    values: Array = machine.pages("OUT").flat[:THREADS]
    return values


def test_active_lanes_of_a_partial_warp() -> None:
    """The second warp has 16 threads, of which 8 are active."""
    found = _run(_call("__activemask"), 40)
    assert found[:32].tolist() == [0xFFFFFFFF] * 32
    assert found[32:40].tolist() == [0xFF] * 8
    assert found[40:].tolist() == [0] * 8


def test_shuffle_down_in_a_partial_warp() -> None:
    """A thread gets the value of the one 8 lanes on, its own at the end of a segment of 16."""
    mask = Expr("int", "uint32", (), 0xFFFFFFFF)
    found = _run(_call("__shfl_down_sync", mask, Expr("cast", "uint32", (TX,)), _int(8), _int(16)))
    threads = np.arange(THREADS)
    assert found.tolist() == np.where(threads % 16 < 8, threads + 8, threads).tolist()


def test_a_lane_that_is_not_there_gives_poison() -> None:
    """In the second warp lanes 8 on read from threads that the block does not have."""
    mask = Expr("int", "uint32", (), 0xFFFFFFFF)
    found = _run(_call("__shfl_down_sync", mask, Expr("cast", "uint32", (TX,)), _int(8), _int(32)))
    assert found[32:40].tolist() == list(range(40, 48))
    assert not np.isin(found[40:], np.arange(THREADS)).any()


def test_numbers_of_lane_warp_and_group() -> None:
    """In warps of 32, and in warps of 8 of which two are a group."""
    threads = np.arange(THREADS)
    for name, args, expected in (
        ("get_lane_idx", (), threads % 32),
        ("get_warp_idx", (), threads // 32),
        ("get_warp_idx_sync", (8,), threads // 8),
        ("get_warp_group_idx", (), threads // 128),
        ("get_warp_group_idx", (8, 2), threads // 16),
    ):
        assert _run(_call(name, *map(_int, args))).tolist() == expected.tolist(), name


def test_votes_of_the_block() -> None:
    """Every thread has the same answer; a condition that fails in one thread fails for all of them."""
    first, known = Expr("lt", "bool", (TX, _int(THREADS - 1))), Expr("lt", "bool", (TX, _int(THREADS)))
    assert _run(_call("syncthreads_and", known)).tolist() == [1] * THREADS
    assert _run(_call("syncthreads_and", first)).tolist() == [0] * THREADS
    assert _run(_call("syncthreads_or", first)).tolist() == [1] * THREADS
    assert _run(_call("syncthreads_count", first)).tolist() == [THREADS - 1] * THREADS
