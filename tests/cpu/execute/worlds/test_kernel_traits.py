"""Test what a kernel has of instructions, as far as executing it depends on that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, buffer, call, load, number, variable
from tlcheck.execute.worlds.kernel_traits import has_copies, has_integers, meets_all
from tlcheck.snapshot.ir import Evaluate, Expr, Function, Store

SHARED, GLOBAL = (buffer(f"B_{scope}", "float16", (64,), scope) for scope in ("shared.dyn", "global"))
AT = [call("address_of", load(b, 0)).value for b in (SHARED, GLOBAL)]


def _kernel(*statements: Evaluate | Store) -> Function:
    return Kernel().function(*statements)


@pytest.mark.parametrize(
    ("statement", "has"),
    [
        (call("ptx_cp_async", *AT, number(8)), True),
        (call("tma_load", *AT, load(SHARED, 0), number(128), number(0)), True),
        (call("tma_store", AT[1], AT[0], number(128), number(0), number(0)), False),  # from shared memory
        (call("ptx_wgmma_ss"), False),
        (call("ptx_commit_group"), False),
    ],
)
def test_copies_into_shared_memory_that_may_come_late(statement: Evaluate, has: bool) -> None:
    assert has_copies(_kernel(statement)) == has


@pytest.mark.parametrize(
    ("value", "has"),
    [
        (call("shfl_xor_sync", number(-1), number(1), number(2)).value, True),
        (call("warp_reduce_max", number(1)).value, True),  # of lanes that take no part, too
        (call("tl_shuffle_elect", number(64)).value, False),  # a shuffle by its name alone
        (call("ballot_sync", number(-1), number(1)).value, False),
        (variable("n"), False),
    ],
)
def test_integers_of_other_lanes(value: Expr, has: bool) -> None:
    kernel = Kernel()
    out = kernel.tensor("B", "int32", (32,))
    assert has_integers(kernel.function(Store(out, (kernel.tx,), replace(value, dtype="int32")))) == has


@pytest.mark.parametrize(
    ("dtype", "value", "has"),
    [
        ("int32", load(SHARED, 0), True),
        ("float32", load(SHARED, 0), False),
        ("int32", Expr("float", "float32", (), 1.0), False),  # which is set
    ],
)
def test_integers_to_which_a_float_is_added(dtype: str, value: Expr, has: bool) -> None:
    kernel = Kernel()
    where = Expr("call", "handle", (load(kernel.tensor("B", dtype, (32,)), kernel.tx),), "address_of")
    assert has_integers(kernel.function(call("atomic_add_elem_op", where, value))) == has


@pytest.mark.parametrize(
    ("dtype", "scope", "has"),
    [("uint64", "shared.dyn", True), ("uint64", "shared.barrier", False), ("uint64", "shared.cluster_barrier", False)],
)
def test_integers_of_an_mbarrier_are_read_by_nobody(dtype: str, scope: str, has: bool) -> None:
    kernel = Kernel()
    kernel.tile("t", dtype, (4,), scope)
    assert has_integers(kernel.function()) == has


def test_blocks_that_meet() -> None:
    assert meets_all(_kernel(call("sync_grid")))
    assert not meets_all(_kernel(call("tvm_storage_sync", Expr("str", "", value="shared"))))
