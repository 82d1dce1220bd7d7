"""A barrier of the whole block in a branch: all of its threads have to take it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, buffer, call, flag, load, number, region, text, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, For, If, Seq, Stmt, Store

THREADS = 64
BARRIER = call("tvm_storage_sync", text("shared"))
LEAVE = call("thread_return")
HALF = Expr("float", "float32", value=0.5)
EXCHANGES = "shfl_xor_sync", "any_sync", "match_any_sync", "match_all_sync"
WORKSPACE = buffer("w", "int32", (2 * THREADS,), "shared")


def less(value: Expr, limit: int) -> Expr:
    return Expr("lt", "bool", (value, number(limit)))


def _executed(below: int, blocks: int = 1, own: bool = False, otherwise: tuple[Evaluate, ...] = ()) -> Execution:
    """Threads below a number change an element twice, in a loop, as lowered with a barrier between.

    own: as written, too. otherwise: what the other threads do.
    """
    kernel = Kernel(threads=THREADS, blocks=blocks)
    out, tile = kernel.tensor("B", "int32", (THREADS,)), kernel.tile("s", "int32", (THREADS,), "shared")
    first = Expr("lt", "bool", (kernel.bx, number(1)))
    taken = Expr("and", "bool", (first, Expr("lt", "bool", (kernel.tx, number(below)))))

    def body(*between: Stmt) -> list[Stmt]:
        stores = [Store(tile, (kernel.tx,), add(kernel.tx, n)) for n in range(2)]
        branch = If(taken, Seq((stores[0], *between, stores[1])), Seq(otherwise) if between and otherwise else None)
        loop = For(variable("i"), number(0), number(3), "serial", branch)
        return [Store(tile, (kernel.tx,), number(0)), loop, Store(out, (kernel.tx,), load(tile, kernel.tx))]

    return execute(kernel.snapshot(body(*([BARRIER] if own else [])), body(BARRIER)))


@pytest.mark.parametrize("below", [16, 32])
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_barrier_that_some_threads_pass_by_is_illegal(below: int, blocks: int) -> None:
    """Half a warp or a whole one; a block that takes the branch beside one that does not."""
    illegal = _executed(below, blocks).illegal
    said = f"{below} threads reach a barrier that counts 64, in a branch that the others do not take"
    assert illegal is not None
    assert (illegal.what, illegal.world, illegal.stmt) == (said, 0, BARRIER)


def test_a_barrier_that_all_threads_reach_is_legal() -> None:
    assert _executed(THREADS).illegal is None
    assert _executed(32, otherwise=(BARRIER,)).illegal is None


def test_a_barrier_that_the_author_put_there_is_the_authors() -> None:
    found = _executed(32, own=True)
    assert found.illegal is None
    assert found.outputs[0].verdict == "undecided"
    assert "the author's" in found.outputs[0].reason
    assert "as written, 32 threads reach a barrier that counts 64" in found.outputs[0].reason


def test_threads_that_have_left_the_kernel_are_not_known_to_count() -> None:
    found = _executed(32, otherwise=(LEAVE,))
    assert found.illegal is None
    assert found.outputs[0].reason == "threads that wait for each other in a divergent branch"


def _of_both_sides(value: Callable[[int], Expr]) -> Execution:
    """Each half of a block stores a value that it computes in its own side of a branch. value: by its first thread."""
    kernel = Kernel(threads=2 * THREADS)
    out = kernel.tensor("B", "int32", (2 * THREADS,))
    kernel.tiles.append(WORKSPACE)
    sides = [Store(out, (kernel.tx,), value(first)) for first in (0, THREADS)]
    branch = If(Expr("lt", "bool", (kernel.tx, number(THREADS))), *sides)
    return execute(kernel.snapshot([Store(out, (kernel.tx,), number(THREADS))], [branch]))


def test_the_barriers_of_a_reduction_in_both_sides_of_a_branch_are_the_same_ones() -> None:
    def reduced(first: int) -> Expr:
        name = text(f"tl::AllReduce<tl::SumOp, {THREADS}, 1, {first}>::run")
        workspace = call("address_of", load(WORKSPACE, first)).value
        return replace(call("call_extern", name, number(1), workspace).value, dtype="int32")

    found = _of_both_sides(reduced)
    assert found.illegal is None
    assert [o.verdict for o in found.outputs] == ["agreed"]


def test_a_count_over_threads_of_both_sides_is_not_modelled() -> None:
    found = _of_both_sides(lambda first: replace(call("syncthreads_count", number(1)).value, dtype="int32"))
    assert found.illegal is None
    assert found.outputs[0].reason == "syncthreads_count by threads that do not move together"


def _repaired() -> Execution:
    """Threads below 32 write to a tile, and a barrier of the author's follows in their branch; then all read it."""
    kernel = Kernel(threads=THREADS)
    out, tile = kernel.tensor("B", "int32", (THREADS,)), kernel.tile("s", "int32", (THREADS,), "shared")

    def body(barrier: Stmt) -> list[Stmt]:
        stores = [Store(tile, (add(kernel.tx, half),), add(kernel.tx, half)) for half in (0, 32)]
        branch = If(Expr("lt", "bool", (kernel.tx, number(32))), Seq((*stores, barrier)), None)
        other = Expr("sub", "int32", (number(THREADS - 1), kernel.tx))
        return [branch, Store(out, (kernel.tx,), load(tile, other))]

    return execute(
        kernel.snapshot(body(BARRIER), body(call("tvm_storage_sync", text("shared"), number(3), number(32))))
    )


def test_a_race_around_a_barrier_that_the_author_put_in_a_branch_is_the_authors() -> None:
    """TileLang makes a barrier of 32 threads of it: 64 threads read what these have written."""
    found = _repaired()
    assert found.races == ()
    (fault,) = found.faults
    assert (fault.problem, fault.open, fault.warning) == ("source-barrier", "", "")
    assert fault.reasons == {found.ordered["s"]}
    assert found.ordered["s"].startswith("the author's: as written, deadlock: waits at barrier 0 for 64 threads")


def _partly_reduced(taking_part: int, *after: Stmt) -> Execution:
    """The first threads of a warp are reduced by shuffles, and all store what they have."""
    kernel = Kernel(threads=THREADS)
    out, own = kernel.tensor("B", "int32", (THREADS,)), kernel.tile("own", "int32", (1,), "local")
    name = text("tl::AllReduce<tl::SumOp, 16, 1, 0>::run")
    total = replace(call("call_extern", name, load(own, 0)).value, dtype="int32")
    first, stored = Store(own, (number(0),), number(1)), Store(out, (kernel.tx,), load(own, 0))
    summed = If(Expr("lt", "bool", (kernel.tx, number(taking_part))), Store(own, (number(0),), total))
    known = If(Expr("lt", "bool", (kernel.tx, number(taking_part))), Store(own, (number(0),), number(16)))
    return execute(kernel.snapshot([first, known, stored], [first, summed, *after, stored]))


def test_a_barrier_never_lets_go_where_the_rest_of_a_warp_waits_in_a_shuffle() -> None:
    """An H200 hangs: the shuffles of tl::AllReduce name all lanes of the warp."""
    found = _partly_reduced(48, BARRIER)
    assert str(found.illegal) == "deadlock: waits at a barrier while its warp waits for it in a shuffle"
    assert found.illegal is not None
    assert found.illegal.lane == 48


@pytest.mark.parametrize(
    ("condition", "open_faults"),
    [
        pytest.param(lambda k, a: less(k.tx, 48), [False], id="of threads"),
        pytest.param(lambda k, a: less(load(a, k.tx), 48), [True], id="of what each thread reads"),
        pytest.param(lambda k, a: less(k.bx, 48), [], id="of blocks"),
    ],
)
def test_a_reduction_in_a_branch_of_some_threads_is_the_authors(
    condition: Callable[[Kernel, Buffer], Expr], open_faults: list[bool]
) -> None:
    """The lanes that are absent as lowered are those that the author sent elsewhere."""
    kernel = Kernel(threads=THREADS)
    out, given = kernel.tensor("B", "int32", (THREADS,)), kernel.tensor("A", "int32", np.arange(THREADS))
    own, tile = kernel.tile("own", "int32", (1,), "local"), kernel.tile("t", "int32", (1, 1), "shared")
    name = text("tl::AllReduce<tl::SumOp, 16, 1, 0>::run")
    total = replace(call("call_extern", name, load(own, 0)).value, dtype="int32")
    row = kernel.tile("r", "int32", (1,), "shared")
    reduced = call("reduce", region(tile), region(row), text("sum"), number(1), flag(True))
    first, stored = Store(own, (number(0),), number(1)), Store(out, (kernel.tx,), number(1))
    summed = If(less(kernel.tx, 48), Store(own, (number(0),), total))
    source = [Store(tile, (number(0), number(0)), number(1)), If(condition(kernel, given), reduced), stored]
    found = execute(kernel.snapshot(source, [first, summed, BARRIER, stored]))
    assert [bool(f.open) for f in found.faults if f.problem == "source-barrier"] == open_faults
    assert (found.illegal is None) == bool(open_faults)


@pytest.mark.parametrize(
    ("taking_part", "after"),
    [pytest.param(32, (BARRIER,), id="a whole warp"), pytest.param(48, (), id="the rest ends")],
)
def test_a_shuffle_ends_where_all_of_its_warp_come_or_have_ended(taking_part: int, after: tuple[Stmt, ...]) -> None:
    found = _partly_reduced(taking_part, *after)
    assert found.illegal is None
    assert [o.verdict for o in found.outputs] == ["agreed"]


def _exchanged(
    condition: Callable[[Kernel, Buffer], Expr], name: str, *, mask: int = 0xFFFFFFFF, arch: str = "sm_90"
) -> Execution:
    """Threads of a branch exchange values as the author wrote it, and all meet at a barrier behind it."""
    kernel = Kernel(threads=THREADS)
    out, given = kernel.tensor("B", "int32", (THREADS,)), kernel.tensor("A", "float32", (THREADS,))
    own, lanes = kernel.tile("own", "int32", (1,), "local"), Expr("int", "uint32", value=mask)
    distance = [number(1)] if name == "shfl_xor_sync" else []
    exchange = Store(own, (number(0),), replace(call(name, lanes, load(own, 0), *distance).value, dtype="int32"))
    stored = Store(out, (kernel.tx,), load(own, 0))
    body = [Store(own, (number(0),), kernel.tx), If(condition(kernel, given), exchange), BARRIER, stored]
    return execute(replace(kernel.snapshot(body, body), target=arch))


@pytest.mark.parametrize("name", EXCHANGES)
@pytest.mark.parametrize(
    ("condition", "is_open"),
    [
        pytest.param(lambda k, a: less(k.tx, 48), False, id="of threads"),
        pytest.param(lambda k, a: Expr("lt", "bool", (load(a, k.tx), HALF)), True, id="of what each thread reads"),
    ],
)
def test_a_shuffle_of_the_authors_that_part_of_a_warp_executes_is_the_authors(
    condition: Callable[[Kernel, Buffer], Expr], is_open: bool, name: str
) -> None:
    found = _exchanged(condition, name)
    assert [(f.problem, bool(f.open)) for f in found.faults] == [("source-barrier", is_open)]
    assert found.faults[0].what.endswith("stands in a branch that some threads of the block do not take")
    assert [o.verdict for o in found.outputs] == ["undecided"]


@pytest.mark.parametrize(
    ("condition", "mask", "arch"),
    [
        pytest.param(lambda k, a: less(k.tx, 32), 0xFFFFFFFF, "sm_90", id="whole warps"),
        pytest.param(lambda k, a: less(k.tx, 48), 0xFFFF, "sm_90", id="a mask that names fewer"),
        pytest.param(lambda k, a: less(k.tx, 48), 0xFFFFFFFF, "gfx942", id="waves do not wait"),
    ],
)
@pytest.mark.parametrize("name", EXCHANGES)
def test_a_shuffle_of_the_lanes_that_it_names_ends(
    condition: Callable[[Kernel, Buffer], Expr], mask: int, arch: str, name: str
) -> None:
    found = _exchanged(condition, name, mask=mask, arch=arch)
    assert found.faults == ()
    assert [o.verdict for o in found.outputs] == ["agreed"]


def test_a_reduction_over_threads_that_do_not_move_together_reads_the_others_cells() -> None:
    """A barrier of 64 threads parts a block of 128; its sum goes through shared memory."""
    kernel = Kernel(threads=2 * THREADS)
    out = kernel.tensor("B", "int32", (2 * THREADS,))
    kernel.tiles.append(WORKSPACE)
    name = text(f"tl::AllReduce<tl::SumOp, {2 * THREADS}, 1, 0, tl::NamedBarrier<{2 * THREADS}>>::run")
    workspace = call("address_of", load(WORKSPACE, 0)).value
    total = replace(call("call_extern", name, add(kernel.tx, 1), workspace).value, dtype="int32")
    some = If(less(kernel.tx, THREADS), call("tvm_storage_sync", text("shared"), number(3), number(THREADS)), None)
    expected = number(sum(range(1, 2 * THREADS + 1)))
    found = execute(kernel.snapshot([Store(out, (kernel.tx,), expected)], [some, Store(out, (kernel.tx,), total)]))
    assert found.illegal is None
    assert [(o.verdict, o.reason) for o in found.outputs] == [("agreed", "")]


@pytest.mark.parametrize("puts", [True, False])
def test_a_race_of_the_authors_is_told_beside_a_barrier_in_a_branch(puts: bool) -> None:
    """Iterations read what others store: the barrier that TileLang puts between these is for the race alone.

    puts: otherwise the kernel tells TileLang to put no barriers, and what waits does so for something else.
    """
    kernel = Kernel(threads=THREADS)
    out, tile = kernel.tensor("B", "int32", (THREADS,)), kernel.tile("s", "int32", (THREADS,), "shared")

    def store(i: Expr) -> Store:
        return Store(tile, (i,), add(load(tile, Expr("sub", "int32", (number(31), i))), i), line=7)

    clear, last = Store(tile, (kernel.tx,), number(0)), Store(out, (kernel.tx,), load(tile, kernel.tx))
    i = variable("i")
    loop = For(i, number(0), number(32), "parallel", store(i))
    branch = If(less(kernel.tx, 32), Seq((BARRIER, store(kernel.tx))), None)
    configs = {} if puts else {"tl.disable_thread_storage_sync": "True"}
    found = execute(replace(kernel.snapshot([clear, loop, last], [clear, branch, last]), pass_configs=configs))
    assert found.illegal is not None
    assert found.illegal.stmt == BARRIER
    assert [(fault.problem, fault.buffer) for fault in found.faults] == [("source-race", "s")] * puts
