"""The order of accesses to global memory, and whose fault it is where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import (
    Kernel,
    add,
    call,
    load,
    multiply,
    number,
    parallel,
    region,
    text,
    variable,
)
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.request import Request
from tlcheck.scope.overlaps import shared
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, If, Stmt, Store
from tlcheck.verdicts.execution_claims import own_races

SYNC = call("tvm_storage_sync", text("shared"))
SIZE = 128


def store(target: Buffer, index: Expr | int, value: Expr) -> Store:
    return Store(target, (number(index),), value)


def flipped(thread: Expr, bits: int) -> Expr:
    return Expr("call", "int32", (thread, number(bits)), "bitwise_xor")


def cast(value: Expr) -> Expr:
    return Expr("cast", "float32", (value,))


class Copy:
    """Of 64 threads each writes an element of G, and reads the one of another thread into C."""

    def __init__(self, distance: int, blocks: int = 1) -> None:
        kernel = Kernel(threads=64, blocks=blocks)
        self.kernel, self.tx = kernel, kernel.tx
        self.g, self.c = (kernel.tensor(name, "float32", (SIZE,)) for name in "GC")
        i, j = variable("i"), variable("j")
        first, second = (add(multiply(kernel.bx, 64), v) for v in (i, j))
        read = add(multiply(kernel.bx, 64), flipped(j, distance))
        self.tiles = (
            parallel([64], [i], store(self.g, first, cast(first))),
            parallel([64], [j], store(self.c, second, load(self.g, read))),
        )
        here = add(multiply(kernel.bx, 64), self.tx)
        there = add(multiply(kernel.bx, 64), flipped(self.tx, distance))
        self.write = store(self.g, here, cast(here))
        self.read = store(self.c, here, load(self.g, there))


def found(copy: Copy, written: Sequence[Stmt], lowered: Sequence[Stmt]) -> Execution:
    return execute(copy.kernel.snapshot(written, lowered))


def test_a_read_of_what_another_warp_wrote_needs_a_barrier() -> None:
    copy = Copy(32)
    (race,) = found(copy, copy.tiles, (copy.write, copy.read)).races
    assert (race.buffer, race.missing) == ("G", "a barrier")
    assert (race.first.kind, race.second.kind) == ("write", "read")
    assert race.index == (race.first.thread,) == (race.second.thread ^ 32,)
    right = found(copy, copy.tiles, (copy.write, SYNC, copy.read))
    assert not right.races
    assert right.ordered == {"G": "", "C": ""}
    assert set(right.lawful) == {"G", "C"}


def test_threads_that_are_written_without_a_barrier_are_the_authors() -> None:
    copy = Copy(32)
    execution = found(copy, (copy.write, copy.read), (copy.write, copy.read))
    assert not execution.races
    assert "in the source" in execution.ordered["G"]


def test_a_barrier_of_the_author_that_is_gone_is_not_the_authors_fault() -> None:
    copy = Copy(32)
    (race,) = found(copy, (copy.write, SYNC, copy.read), (copy.write, copy.read)).races
    assert race.buffer == "G"


def test_one_value_from_all_threads_is_no_race_and_different_ones_are() -> None:
    kernel = Kernel(threads=64)
    c = kernel.tensor("C", "float32", (1,))
    one, own = store(c, 0, Expr("float", "float32", (), 1.0)), store(c, 0, cast(kernel.tx))
    assert not execute(kernel.snapshot((one,), (one,))).races
    (race,) = execute(kernel.snapshot((one,), (own,))).races
    assert race.missing == "agreement on the value"
    written_so = execute(kernel.snapshot((own,), (own,)))
    assert not written_so.races
    assert "in the source" in written_so.ordered["C"]


def test_blocks_are_ordered_by_nothing() -> None:
    copy = Copy(32, blocks=2)
    neighbour = add(multiply(Expr("sub", "int32", (number(1), copy.kernel.bx)), 64), copy.tx)
    reads = store(copy.c, add(multiply(copy.kernel.bx, 64), copy.tx), load(copy.g, neighbour))
    races = found(copy, copy.tiles, (copy.write, SYNC, reads)).races
    assert {(race.buffer, race.missing, race.across) for race in races} == {("G", "an order of the blocks", True)}
    assert {race.first.block for race in races} != {race.second.block for race in races}
    own = found(copy, (copy.write, SYNC, reads), (copy.write, SYNC, reads))
    assert not own.races
    assert "blocks race" in own.ordered["G"]


def test_blocks_that_atomics_may_order_are_undecided() -> None:
    copy = Copy(32, blocks=2)
    counter = copy.kernel.tensor("N", "int32", (1,))
    arrive = call("atomic_add_elem_op", Expr("call", "handle", (load(counter, 0),), "address_of"), number(1))
    neighbour = add(multiply(Expr("sub", "int32", (number(1), copy.kernel.bx)), 64), copy.tx)
    reads = store(copy.c, add(multiply(copy.kernel.bx, 64), copy.tx), load(copy.g, neighbour))
    execution = found(copy, copy.tiles, (copy.write, SYNC, arrive, reads))
    assert not execution.races
    assert execution.ordered["G"] == "blocks access it that atomics may order"


@pytest.mark.parametrize(("orders", "may"), [((4,), True), ((3, 2), True), ((3,), False), ((0,), False), ((), False)])
def test_blocks_that_atomics_of_the_author_may_order_are_no_race_of_his(orders: tuple[int, ...], may: bool) -> None:
    """An atomic of both orders, or one that releases and one that acquires. A relaxed one orders nothing.

    Where all blocks run it is known that these atomics, whose values nothing goes by, order nothing.
    """
    copy = Copy(32, blocks=3)
    counter = copy.kernel.tensor("N", "int32", (1,))
    address = Expr("call", "handle", (load(counter, 0),), "address_of")
    arrive = [call("atomic_add_elem_op", address, number(1), number(order)) for order in orders]
    neighbour = add(multiply(Expr("sub", "int32", (number(1), copy.kernel.bx)), 64), copy.tx)
    reads = store(copy.c, add(multiply(copy.kernel.bx, 64), copy.tx), load(copy.g, neighbour))
    body = (copy.write, SYNC, *arrive, SYNC, reads)
    some = Request(blocks=((0, 0, 0), (1, 0, 0)))
    execution = execute(copy.kernel.snapshot(body, body), some)
    assert not execution.races
    assert execution.contested
    own = list(own_races(copy.kernel.snapshot(body, body), execution, some))
    assert [race.who for race in own] == ([] if may else ["blocks"])
    assert ("that atomics may order" in execution.ordered["G"]) == may
    reasons = {o.name: o.reason for o in execution.outputs}
    assert ("blocks access G" if may else "blocks race for G") in reasons["C"]
    copy.kernel.blocks = 2
    ((_, contest), *_) = found(copy, body, body).contested
    assert not contest.atomics


@pytest.mark.parametrize("neighbour", [1, 0])
def test_what_a_thread_of_another_block_wrote_in_the_same_statement_is_not_its_own(neighbour: int) -> None:
    """The first thread of each block writes an element, and reads that of the next block, or its own."""
    kernel = Kernel(threads=64, blocks=2)
    g, c = (kernel.tensor(name, "float32", (2,)) for name in "GC")
    is_first = Expr("lt", "bool", (kernel.tx, number(1)))
    writes = If(is_first, store(g, kernel.bx, cast(add(kernel.bx, 1))), None)
    reads = If(is_first, store(c, kernel.bx, load(g, flipped(kernel.bx, neighbour))), None)
    races = execute(kernel.snapshot((writes, reads), (writes, reads))).contested
    assert {(race.buffer, race.across) for race, _ in races} == ({("G", True)} if neighbour else set())


@pytest.mark.parametrize("used", ["nowhere", "in a guard", "by an atomic"])
def test_what_races_for_itself_alone_leaves_other_outputs_decided(used: str) -> None:
    """Blocks count in N without an atomic, and add to S, which may hang on that count."""
    kernel = Kernel(threads=32, blocks=2)
    n, s = (kernel.tensor(name, "int32", np.zeros(32)) for name in "NS")
    count = load(n, kernel.tx)
    address = Expr("call", "handle", (load(s, kernel.tx),), "address_of")
    adding: Stmt = call("atomic_add_elem_op", address, number(1))
    counting: Stmt = store(n, kernel.tx, add(count, 1))
    if used == "in a guard":
        adding = If(Expr("lt", "bool", (number(-1), count)), adding, None)
    if used == "by an atomic":
        before = Expr("call", "int32", (address, Expr("mul", "int32", (count, number(0)))), "atomic_add_ret_elem_op")
        counting = store(n, kernel.tx, add(add(count, 1), Expr("mul", "int32", (before, number(0)))))
    reasons = {o.name: o.reason for o in execute(kernel.snapshot((counting, adding), (counting, adding))).outputs}
    assert "blocks race for N" in reasons["N"]
    assert ("blocks race for N" in reasons["S"]) == (used != "nowhere")


def _half(copy: Copy, body: Stmt) -> If:
    return If(Expr("lt", "bool", (copy.tx, number(32))), body, None)


def test_a_barrier_that_half_of_the_threads_reach_is_illegal() -> None:
    copy = Copy(16)
    illegal = found(copy, copy.tiles, (copy.write, _half(copy, SYNC), copy.read)).illegal
    assert illegal is not None
    assert "barrier" in str(illegal)
    named = Evaluate(replace(SYNC.value, args=(text("shared"), number(3), number(32))))
    assert found(copy, copy.tiles, (copy.write, SYNC, _half(copy, named), copy.read)).illegal is None


def test_a_vector_at_an_address_that_is_not_aligned_is_illegal() -> None:
    kernel = Kernel(threads=16)
    a, c = (kernel.tensor(name, "float32", (SIZE,)) for name in "AC")
    i = variable("i")
    written = parallel([64], [i], store(c, add(i, 1), cast(i)))
    del a
    for lanes, begin, legal in ((4, 4, True), (4, 1, False), (2, 2, True), (2, 1, False)):
        base = add(multiply(kernel.tx, lanes), begin)
        ramp = Expr("ramp", f"int32x{lanes}", (base, number(1)), lanes)
        value = Expr("broadcast", f"float32x{lanes}", (Expr("float", "float32", (), 1.0),), lanes)
        illegal = execute(kernel.snapshot((written,), (Store(c, (ramp,), value),))).illegal
        assert (illegal is None) == legal, (lanes, begin)
        assert illegal is None or (illegal.buffer == "C" and "no multiple" in str(illegal))


def test_what_no_lane_accesses_is_not_said_to_be_legal() -> None:
    """A block that does nothing has only shown that it does nothing."""
    copy = Copy(32)
    never = Expr("lt", "bool", (copy.kernel.bx, number(0)))
    idle = [If(never, stmt) for stmt in (copy.write, copy.read)]
    assert found(copy, idle, idle).lawful == ()
    assert found(copy, copy.tiles, (copy.write, SYNC, *idle[1:])).lawful == ("G",)


def test_an_asynchronous_copy_that_the_author_does_not_wait_for_is_the_authors() -> None:
    kernel = Kernel(threads=32)
    a, b = kernel.tensor("A", "float32", (32,)), kernel.tensor("B", "float32", (32,))
    tile = kernel.tile("s", "float32", (32,))
    here, there = (Expr("call", "handle", (load(x, kernel.tx),), "address_of") for x in (tile, a))
    begun, wait = call("async_copy", region(a), region(tile)), call("ptx_wait_group", number(0))
    lowered = (
        call("ptx_cp_async", here, there, number(1)),
        call("ptx_commit_group"),
        SYNC,
        store(b, kernel.tx, load(tile, kernel.tx)),
    )
    forgotten = execute(kernel.snapshot((begun, call("copy", region(tile), region(b))), lowered))
    assert not forgotten.races
    assert forgotten.ordered["s"] == "asynchronous copies race for s in the source"
    assert forgotten.outputs[-1].reason.startswith("asynchronous copies race for s")
    lost = execute(kernel.snapshot((begun, wait, call("copy", region(tile), region(b))), lowered))
    assert [race.missing for race in lost.races] == ["a wait for the copy"]
    assert lost.outputs[-1].verdict == "refuted"


def test_a_barrier_for_other_threads_than_reach_it_is_the_authors() -> None:
    kernel = Kernel(threads=64)
    b = kernel.tensor("B", "float32", (64,))
    some = call("tvm_storage_sync", text("shared"), number(1), number(32))
    body = (some, store(b, kernel.tx, cast(kernel.tx)))
    found = execute(kernel.snapshot(body, body))
    assert found.illegal is None
    assert found.outputs[0].reason.endswith("as written, 64 threads reach a barrier that counts 32")
    added = execute(kernel.snapshot(body[1:], body))
    assert str(added.illegal) == "64 threads reach a barrier that counts 32"


def test_code_for_threads_and_a_parallel_loop_take_the_authors_barrier() -> None:
    copy = Copy(32)
    mixed = found(copy, (copy.write, copy.tiles[1]), (copy.write, copy.read))
    assert not mixed.races
    assert mixed.ordered["G"] == "statements that only T.sync_threads orders race for G in the source"
    (race,) = found(copy, (copy.write, SYNC, copy.tiles[1]), (copy.write, copy.read)).races
    assert race.buffer == "G"


@pytest.mark.parametrize("used", [False, True])
def test_a_racy_read_matters_where_its_value_reaches_memory(used: bool) -> None:
    copy = Copy(32)
    register = copy.kernel.tile("r", "float32", (1,), "local")
    racy = store(register, 0, copy.read.value)
    body = (copy.write, racy, store(copy.c, copy.tx, load(register, 0) if used else cast(copy.tx)))
    execution = found(copy, body, body)
    assert bool(execution.contested) == used
    assert not execution.races


@pytest.mark.parametrize("arms", [True, False])
def test_no_barrier_of_tilelang_fits_between_the_arms_of_a_branch(arms: bool) -> None:
    """One warp writes shared memory and another one reads it: at once, or one branch after the other."""
    kernel = Kernel(threads=64)
    shared, c = kernel.tile("s", "float32", (32,)), kernel.tensor("C", "float32", (32,))
    is_first, is_second = (Expr("lt", "bool", pair) for pair in ((kernel.tx, number(32)), (number(31), kernel.tx)))
    place = Expr("sub", "int32", (kernel.tx, number(32)))
    write, read = store(shared, kernel.tx, cast(kernel.tx)), store(c, place, load(shared, place))
    body = (If(is_first, write, read),) if arms else (If(is_first, write, None), If(is_second, read, None))
    execution = execute(kernel.snapshot(body, body))
    assert [contest.who for _, contest in execution.contested] == ["branches that run side by side"] * arms
    assert len(execution.races) == (not arms)


@pytest.mark.parametrize(("second", "races"), [(23, True), (40, False)])
def test_blocks_that_the_cases_inputs_send_to_one_element_race(second: int, races: bool) -> None:
    """Blocks 17 and 23 of 40, neither of which runs where few do. The author counts without atomics."""
    kernel = Kernel(threads=1, blocks=40)
    index, counts = kernel.tensor("I", "int32", (40,)), kernel.tensor("N", "int32", (41,))
    place = load(index, kernel.bx)
    body = store(counts, place, add(load(counts, place), 1))
    sent = np.where(np.arange(40) == 17, second, np.arange(40))
    given = {0: {"I": sent, "N": np.zeros(41, np.int64)}}
    found = execute(kernel.snapshot((body,), (body,)), Request(seeds=(0,), given=given, overlap=shared))
    assert len(found.blocks) == 40
    assert ("blocks race" in found.ordered.get("N", "")) == races


@pytest.mark.parametrize(
    ("users", "handed_on", "is_race"), [("lt", False, False), ("ge", False, True), ("lt", True, True)]
)
def test_a_racy_read_matters_in_threads_that_use_its_value(users: str, handed_on: bool, is_race: bool) -> None:
    """Threads of the second warp read what the first one wrote, and which of them stores it depends on a condition.

    Other threads use the operands of a shuffle.
    """
    copy = Copy(32)
    tx, register, taken = copy.tx, *(copy.kernel.tile(name, "float32", (1,), "local") for name in ("r", "s"))
    mine = store(register, 0, load(copy.g, Expr("floormod", "int32", (tx, number(32)))))
    value = load(register, 0)
    handed = store(taken, 0, Expr("call", "float32", (number(-1), value, number(0), number(32)), "shfl_sync"))
    condition = Expr(users, "bool", (tx, number(32)))
    used = If(condition, store(copy.c, tx, load(taken, 0) if handed_on else value))
    rest = (mine, handed, used) if handed_on else (mine, used)
    execution = found(copy, (copy.write, SYNC, *rest), (copy.write, *rest))
    assert [race.buffer for race in execution.races] == ["G"] * is_race
