"""Threads that store single numbers of four bits: the device library stores their byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, multiply, text
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.observe.races import HALVES, Race
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Stmt, Store

THREADS = 32
BARRIER = call("tvm_storage_sync", text("shared"))


def races(dtype: str, each: int, arch: str = "sm_90", size: int = 2 * THREADS) -> list[Race]:
    """Each thread copies one number of two, `each` elements after that of the one before, and stores it once more."""
    kernel = Kernel(threads=THREADS)
    a, out = kernel.tensor("A", dtype, (size,)), kernel.tensor("B", dtype, (size,))
    shared = kernel.tile("s", dtype, (size,), "shared")
    at = multiply(kernel.tx, each)
    body: list[Stmt] = [Store(shared, (at,), load(a, at)), BARRIER, Store(out, (at,), load(shared, at))]
    found = replace(kernel.snapshot(tuple(body), tuple(body)), target=arch)
    return list(execute(found, Request()).races)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn"])
def test_halves_of_a_byte_that_two_threads_store_race(dtype: str) -> None:
    found = races(dtype, each=1)
    assert [(race.buffer, race.missing, race.first.kind, race.second.kind) for race in found] == [
        ("s", HALVES, "write", "write"),
        ("B", HALVES, "write", "write"),
    ]
    assert {abs(race.first.thread - race.second.thread) for race in found} == {1}


def test_a_thread_may_have_a_byte_of_its_own() -> None:
    assert races("int4", each=2) == races("int8", each=1) == []
