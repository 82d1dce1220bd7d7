"""Instructions in the facts: every name of one is counted, not only the usual one."""

from __future__ import annotations

import pytest

from tests.cpu.facts.test_async_copies import SHARED, address, lowered, number
from tlcheck.facts.extract import facts_of
from tlcheck.snapshot.ir import Evaluate, Expr, If, Stmt


def call(name: str, *args: Expr) -> Expr:
    return Expr("call", "handle", args, name)


def text(value: str) -> Expr:
    return Expr("str", "", value=value)


BARRIER = Expr("load", "uint64", (number(0),), buffer=SHARED)


def _syncs(*calls: Expr) -> dict[str, int]:
    found = facts_of(lowered("0.1.15", [Evaluate(e) for e in calls])).syncs
    return {sync.name: sync.count.number for sync in found}


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("mbarrier arrive", ("ptx_arrive_barrier", "mbarrier_arrive", "mbarrier_arrive_expect_tx")),
        ("mbarrier arrive", ("ptx_arrive_barrier_expect_tx", "ptx_cp_async_barrier", "ptx_cp_async_barrier_noinc")),
        ("mbarrier wait", ("mbarrier_wait_parity",)),
        ("wgmma wait", ("warpgroup_wait", "wait_wgmma")),
        ("TMA store wait", ("tma_store_wait",)),
        ("proxy fence", ("fence_proxy_async",)),
        ("barrier", ("sync_threads", "tvm_storage_sync", "syncthreads_or")),
        ("cp.async wait for all but 0 groups", ("ptx_wait_all", "cp_async_wait_all")),
    ],
)
def test_synchronization_is_counted_under_each_of_its_names(name: str, calls: tuple[str, ...]) -> None:
    args = {"tvm_storage_sync": (text("shared"),), "sync_threads": ()}
    plain = "wait_all" in calls[0] or name == "proxy fence"
    made = [call(c, *args.get(c, () if plain else (BARRIER, number(1)))) for c in calls]
    if name == "barrier":
        made[-1] = call("syncthreads_or", number(1))
    assert _syncs(*made) == {name: len(calls)}


def test_a_barrier_of_some_threads_says_how_many() -> None:
    by_scope = call("tvm_storage_sync", text("shared"), number(3), number(128))
    assert _syncs(by_scope, call("sync_threads_partial", number(3), number(128))) == {"barrier of 128 threads": 2}


def test_a_barrier_within_a_warp_is_none_of_the_block() -> None:
    others = ("sync_warp", "named_barrier_arrive", "ptx_fence_barrier_init", "mbarrier_expect_tx")
    warp = call("tvm_storage_sync", text("warp"))
    assert _syncs(warp, *(call(name, BARRIER, number(1)) for name in others)) == {}


@pytest.mark.parametrize(
    ("name", "group"), [("ptx_mma", 32), ("ptx_mma_sp", 32), ("ptx_wgmma_ss", 128), ("ptx_wgmma_sp_rs", 128)]
)
def test_products_of_tensor_cores_are_counted_by_warp_or_warpgroup(name: str, group: int) -> None:
    snapshot = lowered("0.1.15", [Evaluate(call(name, text("m16n8k16"), text("row"), text("fp16")))])
    facts = facts_of(snapshot)
    (found,) = facts.instructions
    assert found.name == f"{name.removeprefix('ptx_').replace('_', ' ')} m16n8k16 fp16"
    assert found.count.number == -(-facts.threads // group)


@pytest.mark.parametrize(
    ("name", "descriptor", "end", "words"),
    [
        ("ptx_tcgen05_mma_ss", 136316048, (1, 0), "ss m128n128 fp16 fp32 ws"),
        ("ptx_tcgen05_mma_ts", 136316032, (1,), "ts m128n128 fp16 fp16 cta_group::2"),
        ("ptx_tcgen05_mma_ss", None, (0, 0), "ss m?n? fp16 ?"),
    ],
)
def test_a_product_in_tensor_memory_is_named_by_its_descriptor(
    name: str, descriptor: int | None, end: tuple[int, ...], words: str
) -> None:
    """(type of A, A, its offset, B, its offset, sums, their offset, descriptor, whether it adds, four masks, forms)."""
    word = Expr("var", "uint32", value="word", uid=90_111) if descriptor is None else number(descriptor)
    args = (text("fp16"), *[number(0)] * 6, word, *[number(0)] * 5, *map(number, end))
    facts = facts_of(lowered("0.1.15", [Evaluate(call(name, *args))]))
    assert [i.name for i in facts.instructions] == [f"tcgen05 mma {words}"]


@pytest.mark.parametrize("release", ["old", "new"])
def test_what_ldmatrix_reads_is_shared_memory_in_both_forms(release: str) -> None:
    target = Expr("var", "handle", value="r", uid=90_110)
    forms = {
        "new": (number(0), number(4), address(SHARED), target),
        "old": (number(0), number(4), text(".b16"), target, number(0), address(SHARED), number(0)),
    }
    facts = facts_of(lowered("0.1.15", [Evaluate(call("ptx_ldmatrix", *forms[release]))]))
    assert [(a.buffer, a.operation, a.instruction) for a in facts.accesses] == [("s", "read", "ldmatrix x4")]


@pytest.mark.parametrize("name", ["tl_shuffle_elect", "shuffle_elect"])
def test_an_elected_thread_runs_its_branch_alone(name: str) -> None:
    body: Stmt = Evaluate(call("fence_proxy_async"))
    elected = Expr("call", "bool", (number(0),), name)
    copy = Evaluate(call("ptx_cp_async", address(SHARED), address(SHARED), number(8)))
    facts = facts_of(lowered("0.1.15", [If(elected, copy, None), body]))
    assert [a.count.number for a in facts.accesses] == [1]
