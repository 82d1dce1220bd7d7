"""Whole kernels whose blocks act on one another: executed to the end, and with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.mutations.tools import binary, called, integer, rewrite, with_argument, with_statement
from tests.fixtures.index import FOLDER
from tlcheck.execute.compare import apart
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.observe.watching import Watching
from tlcheck.execute.request import ALL, Request
from tlcheck.execute.worlds.budget import Budget
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Bind, Evaluate, Expr, For, Seq, Snapshot, Stmt
from tlcheck.snapshot.walk import expressions, postorder, statements, with_expressions

Change = Callable[[Stmt], Stmt]


def fixture(name: str) -> Snapshot:
    return codec.loads((FOLDER / "clusters" / f"{name}-0.1.15.snapshot.json").read_text(encoding="utf-8"))


def changed(kernel: str, name: str, number: int, change: Change) -> Execution:
    """The kernel with the `number`-th call of a name changed, executed."""
    snapshot = fixture(kernel)
    lowered = snapshot.checkpoints["device-tir"]
    at = [stmt for stmt in statements(lowered.body) if called(stmt) == name][number]
    now = with_statement(lowered, at, change)
    return execute(replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": now}), Request(blocks=1))


def gone(stmt: Stmt) -> Stmt:
    return Seq(())


def other(at: int, value: int) -> Change:
    return lambda stmt: with_argument(stmt, at, lambda e: integer(value))


def synchronizing(scope: str) -> Change:
    """The statement becomes a barrier of a scope."""

    def change(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Evaluate)
        text = Expr("str", "handle", value=scope)
        return replace(stmt, value=replace(stmt.value, value="tvm_storage_sync", args=(text,)))

    return change


def verdicts(found: Execution) -> set[str]:
    return {outcome.verdict for outcome in found.outputs}


@pytest.mark.parametrize("name", ["stores", "copies", "multicast", "ranked", "two_blocks", "taken"])
def test_a_kernel_is_executed_to_the_end(name: str) -> None:
    found = execute(fixture(name), Request(blocks=1))
    assert verdicts(found) == {"agreed"}
    assert not found.races
    assert found.illegal is None
    assert len(found.blocks) % (2 if name in ("two_blocks", "taken") else 4) == 0, "a part of a cluster ran"


@pytest.mark.parametrize("name", ["stores", "copies", "multicast", "ranked", "two_blocks", "taken", "said"])
def test_a_kernel_without_a_race_runs_quickly_alone(name: str) -> None:
    levels = BothLevels(fixture(name), Request(blocks=1))
    invocation = levels.lowered_invocation(levels.source_run[1])
    watching = Watching(invocation.kernel, frozenset(levels.outputs))
    invocation.run(watching)
    assert not levels.plain
    assert not watching.suspects
    assert watching.is_settled


def test_a_barrier_of_the_block_is_no_barrier_of_the_cluster() -> None:
    """The two differ in the scope alone once they are lowered."""
    found = changed("stores", "cluster_sync", 1, synchronizing("shared.dyn"))
    assert any(race.buffer == "other" and race.missing == "a barrier of the cluster" for race in found.races)
    assert all(race.across for race in found.races)


def test_the_scope_of_a_barrier_says_that_it_is_the_clusters() -> None:
    found = changed("stores", "cluster_sync", 1, synchronizing("cluster"))
    assert verdicts(found) == {"agreed"}
    assert not found.races


def test_a_wait_for_what_another_block_sends_is_needed() -> None:
    found = changed("copies", "mbarrier_wait_parity", 0, gone)
    assert ("other", "a wait for the copy") in {(race.buffer, race.missing) for race in found.races}


def test_a_barrier_of_another_block_has_to_be_there() -> None:
    """The first barrier of the cluster stands between the making of mbarriers and the first use by others."""
    snapshot = fixture("multicast")
    lowered = snapshot.checkpoints["device-tir"]
    for stmt in [s for s in statements(lowered.body) if called(s) in ("tvm_storage_sync", "cluster_sync")][:2]:
        lowered = with_statement(lowered, stmt, synchronizing("shared.dyn"))
    found = execute(replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": lowered}), Request(blocks=1))
    assert any(race.buffer in ("come", "read") and race.across for race in found.races) or found.illegal is not None


@pytest.mark.parametrize(
    ("kernel", "name", "number"),
    [
        ("copies", "tma_store_cluster", 0),
        ("multicast", "ptx_arrive_cluster_barrier", 0),
        ("multicast", "tma_load_multicast", 0),
    ],
)
def test_what_no_block_sends_is_waited_for_in_vain(kernel: str, name: str, number: int) -> None:
    found = changed(kernel, name, number, gone)
    assert found.illegal is not None
    assert str(found.illegal).startswith("deadlock: waits at")


def test_a_store_to_another_block_is_noticed() -> None:
    assert verdicts(changed("stores", "ptx_cluster_store", 0, other(2, 0))) == {"refuted"}


def test_a_block_that_the_cluster_has_not_is_illegal() -> None:
    found = changed("stores", "ptx_cluster_store", 0, other(2, 4))
    assert found.illegal is not None
    assert str(found.illegal) == "block 4 of a cluster of 4"


def test_blocks_that_get_a_multicast_are_those_of_its_mask() -> None:
    assert "refuted" in verdicts(changed("multicast", "tma_load_multicast", 0, other(3, 0b0111)))


def test_arriving_twice_without_a_wait_is_illegal() -> None:
    found = changed("ranked", "cluster_wait", 0, lambda stmt: changed_name(stmt, "cluster_arrive"))
    assert found.illegal is not None
    assert "arrives at barrier.cluster again" in str(found.illegal)


def test_a_wait_without_an_arrival_is_illegal() -> None:
    found = changed("ranked", "cluster_arrive", 0, gone)
    assert found.illegal is not None
    assert "has not arrived" in str(found.illegal)


def changed_name(stmt: Stmt, name: str) -> Stmt:
    assert isinstance(stmt, Evaluate)
    return replace(stmt, value=replace(stmt.value, value=name))


def test_half_of_the_columns_are_the_other_blocks() -> None:
    """The offset of B's descriptor moves both halves."""
    assert "refuted" in verdicts(changed("two_blocks", "ptx_tcgen05_mma_ss", 0, other(4, 16)))


def test_a_product_of_one_block_in_a_kernel_of_pairs_is_illegal() -> None:
    found = changed("two_blocks", "ptx_tcgen05_mma_ss", 0, other(14, 0))
    assert found.illegal is not None
    assert "cta_group::1 in a kernel with ptx_init_tensor_memory of cta_group::2" in str(found.illegal)


def test_a_commit_to_one_of_two_blocks_is_noticed() -> None:
    def alone(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Evaluate)
        return replace(stmt, value=replace(stmt.value, annotations=()))

    found = changed("two_blocks", "tcgen05_mma_arrive", 0, alone)
    assert found.illegal is not None


def test_a_cluster_takes_over_others_one_after_the_other() -> None:
    found = execute(fixture("taken"), Request(blocks=1))
    assert verdicts(found) == {"agreed"}
    assert not found.races
    (output,) = found.outputs
    assert output.name == "B"


def test_a_response_that_is_asked_for_while_others_read_the_last_one_is_a_race() -> None:
    """As in the first form of TileLang's example of a persistent product (pull request 2423)."""
    found = changed("taken", "cluster_sync", 0, gone)
    assert {race.buffer for race in found.races} == {"response"}
    assert "a barrier of the cluster" in {race.missing for race in found.races}


def test_a_response_comes_after_what_its_asker_waited_for() -> None:
    """The second block's warps are ordered by the first one's request alone (the form after pull request 2423)."""
    found = execute(fixture("said"), Request(blocks=1))
    assert verdicts(found) == {"agreed"}
    assert not found.races


def test_a_request_that_waits_for_nobody_orders_nothing() -> None:
    found = changed("said", "mbarrier_wait_parity", 0, gone)
    assert {race.buffer for race in found.races} >= {"said"} or found.illegal is not None


def test_a_response_that_is_not_waited_for_is_noticed() -> None:
    found = changed("taken", "mbarrier_wait_parity", 0, gone)
    assert verdicts(found) != {"agreed"}


def test_bytes_of_a_response_that_nobody_announces_are_waited_for_in_vain() -> None:
    found = changed("taken", "ptx_arrive_barrier_expect_tx", 0, other(1, 32))
    assert found.illegal is not None
    assert str(found.illegal).startswith("deadlock: waits at come[0]")


def numbered_by_threads(step: int) -> Execution:
    """Two blocks whose product names its mbarrier by a number that each thread computes, `step` x its own more."""
    snapshot = fixture("two_blocks")
    source = snapshot.checkpoints["source"]
    every = list(statements(source.body))
    thread = next(s.var for s in every if isinstance(s, Bind) and s.var.value == "thread")
    product = next(s for s in every if called(s) == "tcgen05_gemm")
    named = next(
        e for e in postorder(expressions(product)) if e.buffer is not None and e.buffer.scope.endswith("barrier")
    )
    odd = binary("floormod", thread, integer(2))
    more = binary("add", named.args[0], binary("mul", odd, integer(step)))
    now = with_statement(
        source,
        product,
        lambda stmt: with_expressions(
            stmt, [rewrite(e, {id(named): replace(named, args=(more,))}) for e in expressions(stmt)]
        ),
    )
    return execute(replace(snapshot, checkpoints={**snapshot.checkpoints, "source": now}), Request(blocks=1))


def test_an_mbarrier_of_a_product_may_have_a_number_that_threads_compute() -> None:
    assert verdicts(numbered_by_threads(0)) == {"agreed"}


def test_a_product_names_one_mbarrier() -> None:
    (output,) = numbered_by_threads(1).outputs
    assert (output.verdict, output.reason) == ("undecided", "the number of an mbarrier differs between threads")


@pytest.mark.parametrize(("kept", "missing"), [(True, set()), (False, {"a barrier of the cluster"})])
def test_a_pair_frees_tensor_memory_when_both_blocks_have_allocated_it(kept: bool, missing: set[str]) -> None:
    """Nothing is multiplied, so that blocks do not wait for each other before the barrier of the cluster."""
    snapshot = fixture("two_blocks")
    lowered = snapshot.checkpoints["device-tir"]
    unwanted = ["mbarrier_wait_parity", "tcgen05_mma_arrive", *([] if kept else ["cluster_sync"])]
    for stmt in list(statements(lowered.body)):
        if isinstance(stmt, For) or called(stmt) in unwanted:
            lowered = with_statement(lowered, stmt, gone)
    now = replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": lowered})
    found = execute(now, Request(blocks=1))
    assert {race.missing for race in found.races if race.buffer == "sums"} == missing


def test_of_clusters_with_loops_that_end_when_they_end_the_first_and_the_last_run() -> None:
    """The first with the first inputs and the last with the last: each may do many tiles."""
    worlds = BothLevels(fixture("taken"), Request()).worlds
    assert [(world.seed, world.block[0]) for world in worlds] == [(0, 0), (0, 1), (1, 14), (1, 15)]
    assert len(BothLevels(fixture("two_blocks"), Request()).worlds) == 2 * 2


def test_a_product_of_two_blocks_of_integers_is_exact() -> None:
    text = (FOLDER / "clusters" / "two_blocks-0.1.15.snapshot.json").read_text(encoding="utf-8")
    snapshot = codec.loads(text.replace('"bfloat16"', '"int8"').replace('"float32"', '"int32"'))
    names = {buffer.name: str(buffer.data.value) for buffer in snapshot.checkpoints["source"].buffers}
    rng = np.random.default_rng(0)
    a, b = rng.integers(-128, 128, (256, 192), np.int8), rng.integers(-128, 128, (192, 128), np.int8)
    given = {0: {names["A"]: a, names["B"]: b, names["C"]: np.zeros((256, 128), np.int32)}}
    levels = BothLevels(snapshot, Request(blocks=ALL, seeds=(0,), given=given, plain=True))
    found = levels.source_run[0].left[names["C"]].outcome(0).values
    assert np.array_equal(found.reshape(256, 128), a.astype(np.int64) @ b)


@pytest.mark.parametrize(("less", "worlds"), [(0, 4), (1, 2)])
def test_with_much_work_fewer_clusters_run(less: int, worlds: int) -> None:
    """A statement of a cluster, which may have to run plainly, counts four times."""
    snapshot = fixture("two_blocks")
    every = BothLevels(snapshot, Request())
    budget = Budget(work=4 * every.choice.work(every.worlds) - less)
    assert len(BothLevels(snapshot, Request(budget=budget)).worlds) == worlds


def test_blocks_of_a_cluster_do_not_run_apart() -> None:
    """Each cluster by itself, then each of its inputs, then nothing is left to be tried."""
    levels = BothLevels(fixture("taken"), Request())
    assert [request.blocks for request in apart.requests(levels)] == [((0, 0, 0),), ((14, 0, 0),)]
    (first, second) = apart.requests(BothLevels(fixture("two_blocks"), Request()))
    assert (first.seeds, second.seeds) == ((0,), (1,))
    assert not apart.requests(BothLevels(fixture("two_blocks"), first))


@pytest.mark.parametrize("name", ["mbarrier_expect_tx", "tcgen05_mma_arrive"])
def test_arms_of_a_chain_of_branches_do_not_wait_for_each_other(name: str) -> None:
    """Threads that neither arm of `elif` concerns go on to the wait behind the chain: nobody is left to end it."""
    assert str(changed("two_blocks", name, 0, gone).illegal).startswith("deadlock: waits at ")


@pytest.mark.parametrize(("written", "settled"), [("C", True), ("A", False)])
def test_a_kernel_without_a_race_need_not_run_again_with_early_copies(written: str, settled: bool) -> None:
    """Unless a copy reads a tensor that the kernel writes: what it gets depends on when it lands."""
    levels = BothLevels(fixture("two_blocks"), Request(blocks=1))
    invocation = levels.lowered_invocation(levels.source_run[1])
    watching = Watching(invocation.kernel, frozenset((written,)))
    invocation.run(watching)
    assert watching.is_settled == settled
