"""Tile operators that only some threads of the block reach as written: TileLang is not to blame for what they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, parallel, region, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.snapshot.ir import Evaluate, Expr, For, If, Seq, Stmt, Store

THREADS = 64


def _compared(op: str, a: Expr | int, b: int) -> Expr:
    return Expr(op, "bool", (number(a), number(b)))


def _executed(
    under: str,
    *,
    tile: str = "fill",
    scope: str = "shared.dyn",
    wrong: bool = True,
    waits: bool = False,
    strays: bool = False,
) -> Execution:
    """A tile of zeros goes to B, to which an operator under some condition adds 3.

    wrong: all of B is 1 as lowered. waits: a barrier in the place of the branch, which threads miss, is lowered.
    strays: what the operator becomes leaves its tile.
    """
    kernel = Kernel(threads=THREADS)
    a, b = kernel.tensor("A", "int32", (THREADS,)), kernel.tensor("B", "int32", (THREADS,))
    s, i, k = kernel.tile("s", "int32", (THREADS,), scope), variable("i"), variable("k")
    warp = Expr("floordiv", "int32", (kernel.tx, number(32)))
    tiles: dict[str, Stmt] = {
        "fill": call("fill", region(s), number(3)),
        "parallel": parallel((THREADS,), (i,), Store(s, (i,), add(load(s, i), 3))),
        "stores": Store(s, (kernel.tx,), number(3)),
    }
    conditions = {
        "even": _compared("eq", Expr("floormod", "int32", (kernel.tx, number(2))), 0),
        "few": _compared("lt", kernel.tx, 7),
        "warp": _compared("lt", kernel.tx, 32),
        "second": Expr("and", "bool", (_compared("ge", kernel.tx, 32), _compared("lt", kernel.tx, 64))),
        "divided": _compared("eq", warp, 1),
        "input": _compared("gt", load(a, kernel.tx), 0),
        "alike": _compared("gt", load(a, 0), 0),
    }
    inner = tiles[tile]
    loops = {"loop": Expr("sub", "int32", (number(3), kernel.tx)), "shifted": number(3)}
    written: Stmt = (
        If(conditions[under], inner) if under in conditions else For(k, kernel.tx, loops[under], "serial", inner)
    )
    clear, out = call("fill", region(s), number(0)), call("copy", region(s), region(b))
    lowered: list[Stmt] = [Store(b, (kernel.tx,), number(1 if wrong else 3))]
    if waits:
        barrier = Evaluate(call("tvm_storage_sync", Expr("str", "", (), "shared")).value, line=0)
        lowered = [If(conditions[under], barrier), *lowered]
    if strays:
        lowered = [If(conditions[under], Store(s, (add(kernel.tx, THREADS),), number(3))), *lowered]
    body = [clear, written, out] if scope != "local" else [written, Store(b, (kernel.tx,), load(s, 0))]
    return execute(kernel.snapshot(body, [Seq(tuple(lowered))]))


def _told(found: Execution) -> tuple[list[str], list[str]]:
    """The verdicts on B, and what the author has done."""
    faults: Sequence[str] = [fault.what for fault in found.faults if fault.problem == "source-part" and not fault.open]
    return [o.verdict for o in found.outputs if o.name == "B"], list(faults)


def test_what_single_threads_do_not_do_is_the_authors() -> None:
    told = "T.fill is done by all threads of the block together, and 32 of 64 threads reach it"
    assert _told(_executed("even")) == (["undecided"], [told])
    assert _told(_executed("even", tile="parallel"))[1] == [told.replace("fill", "Parallel")]


def test_a_loop_that_begins_elsewhere_in_each_thread_is_the_authors() -> None:
    told = "T.fill is done by all threads of the block together, and 1 of 64 threads reach it"
    assert _told(_executed("loop")) == (["undecided"], [told])


def test_what_an_operator_of_single_threads_accesses_is_the_authors() -> None:
    found = _executed("even", strays=True)
    assert found.illegal is None
    assert _told(found)[1] == ["T.fill is done by all threads of the block together, and 32 of 64 threads reach it"]
    assert _executed("warp", strays=True).illegal is not None


@pytest.mark.parametrize("under", ["few", "divided", "input", "shifted"])
def test_what_may_be_meant_or_depends_on_inputs_is_nobodys(under: str) -> None:
    """Few threads that TileLang knows of, a warp that it does not know of, inputs that were drawn, a loop that all
    threads run three times.
    """
    assert _told(_executed(under)) == (["undecided"], [])


@pytest.mark.parametrize("under", ["warp", "second", "alike"])
def test_a_warp_group_by_hand_is_tilelangs(under: str) -> None:
    assert _told(_executed(under)) == (["refuted"], [])


def test_a_fragment_of_a_warp_that_others_read_is_nobodys() -> None:
    assert _told(_executed("warp", scope="local.fragment")) == (["undecided"], [])


def test_a_store_of_each_thread_is_tilelangs() -> None:
    assert _told(_executed("even", tile="stores")) == (["refuted"], [])


def test_an_output_that_agrees_is_right() -> None:
    kernel = Kernel(threads=THREADS)
    b, s = kernel.tensor("B", "int32", (THREADS,)), kernel.tile("s", "int32", (THREADS,))
    half = If(_compared("lt", Expr("floormod", "int32", (kernel.tx, number(2))), 1), call("fill", region(s), number(3)))
    lowered = Store(b, (kernel.tx,), number(3))
    found = execute(
        kernel.snapshot([call("fill", region(s), number(0)), half, call("copy", region(s), region(b))], [lowered])
    )
    assert _told(found) == (["agreed"], [])


def test_a_barrier_that_threads_miss_there_is_the_authors() -> None:
    found = _executed("even", waits=True)
    assert found.illegal is None
    assert _told(found) == (["undecided"], _told(_executed("even"))[1])
    assert _executed("warp", waits=True).illegal is not None


@pytest.mark.parametrize("under", ["even", "warp"])
def test_the_order_of_accesses_that_such_an_operator_makes_is_not_known(under: str) -> None:
    """As lowered nothing orders what the threads of a branch write and what others read."""
    kernel = Kernel(threads=THREADS)
    b, s = kernel.tensor("B", "int32", (THREADS,)), kernel.tile("s", "int32", (THREADS,))
    even = _compared("eq", Expr("floormod", "int32", (kernel.tx, number(2))), 0)
    holds = even if under == "even" else _compared("lt", kernel.tx, 32)
    fill, barrier = (
        replace(call("fill", region(s), number(3)), line=4),
        call("tvm_storage_sync", Expr("str", "", (), "shared")),
    )
    mirror = Expr("sub", "int32", (number(THREADS - 1), kernel.tx))
    lowered = [
        Store(s, (kernel.tx,), number(0)),
        barrier,
        If(holds, Store(s, (kernel.tx,), number(3), line=4)),
        Store(b, (kernel.tx,), load(s, mirror), line=5),
    ]
    written = [call("fill", region(s), number(0)), If(holds, fill), replace(call("copy", region(s), region(b)), line=5)]
    found = execute(kernel.snapshot(written, lowered))
    reason = "as written, not all threads of the block reach T.fill (line 4)"
    assert (len(found.races), found.ordered["s"]) == ((0, reason) if under == "even" else (1, ""))
    assert _told(found)[1] == (
        ["T.fill is done by all threads of the block together, and 32 of 64 threads reach it"]
        if under == "even"
        else []
    )


def _left(op: str, under: str, *, steps: int = 0, later: bool = False) -> Execution:
    """Threads leave before T.fill: the kernel, or a loop of some steps. later: they do so behind it, in each step."""
    kernel = Kernel(threads=THREADS)
    b, s, k = kernel.tensor("B", "int32", (THREADS,)), kernel.tile("s", "int32", (THREADS,)), variable("k")
    a = kernel.tensor("A", "int32", (THREADS,))
    leave = {
        "odd": If(_compared("eq", Expr("floormod", "int32", (kernel.tx, number(2))), 1), call(op)),
        "warp": If(_compared("ge", kernel.tx, 32), call(op)),
        "block": If(_compared("ge", kernel.bx, 0), call(op)),
        "input": If(_compared("gt", load(a, kernel.tx), 0), call(op)),
    }[under]
    own = Store(b, (kernel.tx,), load(s, kernel.tx))
    parts: list[Stmt] = [call("fill", region(s), number(3)), own]
    body: Stmt = Seq((*parts, leave) if later else (leave, *parts))
    body = For(k, number(0), number(steps), "serial", body) if steps else body
    return execute(kernel.snapshot([call("fill", region(s), number(0)), body], [Store(b, (kernel.tx,), number(1))]))


@pytest.mark.parametrize(("op", "steps"), [("thread_return", 0), ("loop_break", 3), ("loop_continue", 3)])
def test_what_threads_that_left_do_not_do_is_the_authors(op: str, steps: int) -> None:
    told = "T.fill is done by all threads of the block together, and 32 of 64 threads reach it"
    assert _told(_left(op, "odd", steps=steps)) == (["undecided"], [told])
    assert _told(_left(op, "warp", steps=steps)) == (["undecided"], [])
    assert _told(_left(op, "input", steps=steps)) == (["undecided"], [])


@pytest.mark.parametrize(("op", "told"), [("thread_return", 1), ("loop_break", 1), ("loop_continue", 0)])
def test_threads_that_leave_a_loop_miss_its_later_steps(op: str, told: int) -> None:
    found = _told(_left(op, "odd", steps=3, later=True))
    assert (found[0], len(found[1])) == (["undecided"] if told else ["refuted"], told)


def test_a_block_that_leaves_as_a_whole_is_tilelangs() -> None:
    assert _told(_left("thread_return", "block", steps=3, later=True)) == (["refuted"], [])


@pytest.mark.parametrize("op", ["loop_break", "loop_continue", "thread_return"])
def test_a_barrier_that_threads_have_left_before_is_the_authors(op: str) -> None:
    """A barrier counts no threads that have left the kernel, but those that have left a loop."""
    kernel = Kernel(threads=THREADS)
    b, k = kernel.tensor("B", "int32", (THREADS,)), variable("k")
    odd = _compared("eq", Expr("floormod", "int32", (kernel.tx, number(2))), 1)
    barrier = replace(call("tvm_storage_sync", Expr("str", "", (), "shared")), line=4)
    loop = For(k, number(0), number(3), "serial", Seq((If(odd, call(op)), barrier)))
    body = [Store(b, (kernel.tx,), number(1)), loop]
    found = execute(kernel.snapshot(body, body))
    told = [] if op == "thread_return" else ["some threads of the block leave the loop before T.sync_threads"]
    assert [(fault.what, fault.line) for fault in found.faults if not fault.open] == [(what, 4) for what in told]
    assert found.illegal is None
