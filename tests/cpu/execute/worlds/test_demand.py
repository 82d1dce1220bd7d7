"""Of the kernels before the last one those blocks run whose elements are read later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.compile.test_elementwise import A, B
from tests.cpu.execute.schedule.test_launches import C
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.sources import differing_output
from tlcheck.execute.compile import registry
from tlcheck.execute.compile.extents import interval
from tlcheck.execute.request import Request
from tlcheck.execute.worlds import blocks, demand
from tlcheck.execute.worlds.demand import Demand
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.snapshot.ir import (
    Alloc,
    Block,
    Buffer,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Launch,
    Seq,
    Snapshot,
    Stmt,
    Store,
    Thread,
)

registry.load()
BLOCKS, THREADS = 64, 32


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _var(name: str, uid: int) -> Expr:
    return Expr("var", "int32", (), name, uid)


BX, TX, K = _var("bx", 101), _var("tx", 102), _var("k", 103)
A, B, C = (replace(buffer, shape=(_int(BLOCKS), _int(THREADS))) for buffer in (A, B, C))


def _op(op: str, a: Expr, b: Expr) -> Expr:
    return Expr(op, "int32", (a, b))


def _load(buffer: Buffer, *indices: Expr) -> Expr:
    return Expr("load", "float32", indices, None, 0, buffer)


def _kernel(body: Stmt) -> Stmt:
    return Thread(BX, "blockIdx.x", _int(BLOCKS), Thread(TX, "threadIdx.x", _int(THREADS), body))


def _doubled(row: Expr = BX) -> Stmt:
    value = _load(A, BX, TX)
    return _kernel(Store(B, (row, TX), Expr("add", "float32", (value, value))))


def _moved(row: Expr) -> Stmt:
    return _kernel(Store(C, (BX, TX), _load(B, row, TX)))


def _function(*kernels: Stmt, lowered: bool = False) -> Function:
    parts = tuple(Launch("main", (A.data, B.data, C.data), (), k) for k in kernels) if lowered else kernels
    body = Seq(parts) if lowered else Block("root", Seq(parts))
    return Function("main", (A.data, B.data, C.data), (A, B, C), (), body)


def _needed(*kernels: Stmt, blocks: tuple[int, ...]) -> list[set[int] | None]:
    found = Demand(_function(*kernels), {}).of([(x, 0, 0) for x in blocks])
    return [None if some is None else {x for x, _, _ in some} for some in found]


@pytest.fixture(autouse=True)
def _all_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small kernels are looked at as well, and no blocks run that nobody needs."""
    monkeypatch.setattr(demand, "_FEW", 0)
    monkeypatch.setattr(demand, "chosen", lambda functions, sizes, most: [])


@pytest.mark.parametrize(
    ("row", "wanted"),
    [
        (BX, {3, 5}),
        (_op("sub", _int(BLOCKS - 1), BX), {60, 58}),
        (_op("floordiv", BX, _int(2)), {1, 2}),
        (_op("floormod", BX, _int(4)), {3, 1}),
        (_op("mul", _op("min", BX, _int(4)), _int(2)), {6, 8}),
        (_op("sub", _int(-1), BX), {60, 58}),
    ],
    ids=["its own", "mirrored", "half", "rest", "smaller", "from the end"],
)
def test_blocks_whose_rows_are_read(row: Expr, wanted: set[int]) -> None:
    assert _needed(_doubled(), _moved(row), blocks=(3, 5)) == [wanted]


def test_few_threads_run_all_unless_they_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "_FEW", BLOCKS * THREADS)
    value = Expr("add", "float32", (_load(A, BX, TX), _load(A, BX, TX)))
    long = _kernel(For(K, _int(0), _int(1000), "serial", Store(B, (BX, TX), value)))
    assert _needed(_doubled(), _moved(BX), blocks=(3,)) == [None]
    assert _needed(long, _moved(BX), blocks=(3,)) == [{3}]


def test_every_iteration_of_a_loop_counts() -> None:
    reads = Store(C, (BX, TX), _load(B, _op("add", BX, K), TX))
    looped = _kernel(For(K, _int(0), _int(4), "serial", reads))
    assert _needed(_doubled(), looped, blocks=(8,)) == [{8, 9, 10, 11}]


def test_blocks_are_needed_through_other_kernels() -> None:
    middle = _kernel(Store(B, (BX, TX), _load(B, _op("sub", _int(BLOCKS - 1), BX), TX)))
    assert _needed(_doubled(), middle, _moved(BX), blocks=(3,)) == [{3, 60}, {3}]


def test_a_row_that_is_read_from_memory_may_be_any() -> None:
    gathered = Expr("cast", "int32", (_load(A, BX, TX),))
    assert _needed(_doubled(), _moved(gathered), blocks=(3,)) == [None]


def test_a_place_that_is_read_from_memory_may_be_written_by_any() -> None:
    scattered = Expr("cast", "int32", (_load(A, BX, TX),))
    assert _needed(_doubled(scattered), _moved(BX), blocks=(3,)) == [None]


def _guarded(condition: Expr) -> Stmt:
    """Each block writes rows bx * 4 + k, for k below 16 where it may."""
    store = Store(B, (_op("add", _op("mul", BX, _int(4)), K), TX), _load(A, BX, TX))
    return _kernel(For(K, _int(0), _int(16), "serial", If(condition, store)))


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        (_op("lt", K, _int(4)), {3}),
        (_op("le", K, _int(4)), {2, 3}),
        (_op("gt", _int(4), K), {3}),
        (_op("ge", K, _int(8)), {0, 1}),
        (_op("and", _op("le", _int(4), K), _op("lt", K, _int(8))), {2}),
        (Expr("call", "bool", (_op("lt", K, _int(4)),), "likely"), {3}),
        (_op("lt", _op("mul", K, _int(2)), _int(8)), {0, 1, 2, 3}),
        (_op("or", _op("lt", K, _int(4)), _op("lt", K, _int(2))), {0, 1, 2, 3}),
    ],
    ids=["below", "at most", "above", "at least", "between", "likely", "not of a variable", "either"],
)
def test_a_guard_says_which_rows_are_written(condition: Expr, wanted: set[int]) -> None:
    """Row 12 to 15 by the iterations 12 to 15 of block 0, 8 to 11 of block 1, and so on."""
    reads = _kernel(For(K, _int(0), _int(4), "serial", Store(C, (BX, TX), _load(B, _op("add", _int(12), K), TX))))
    assert _needed(_guarded(condition), reads, blocks=(0,)) == [wanted]


def test_a_guard_holds_in_its_branch_alone() -> None:
    """Not in the other one, nor behind it."""
    below, store = _op("lt", K, _int(4)), Store(B, (_op("add", _op("mul", BX, _int(4)), K), TX), _load(A, BX, TX))
    reads = _kernel(For(K, _int(0), _int(4), "serial", Store(C, (BX, TX), _load(B, _op("add", _int(12), K), TX))))
    nothing = Evaluate(_int(0))
    for body in (If(below, nothing, store), Seq((If(below, nothing), store))):
        writes = _kernel(For(K, _int(0), _int(16), "serial", body))
        assert _needed(writes, reads, blocks=(0,)) == [{0, 1, 2, 3}]


def test_strides_of_compact_rows_say_no_more_than_none() -> None:
    size = _var("n", 104)
    for stride, wanted in ((size, {3}), (_op("mul", size, _int(2)), None)):
        strided = replace(B, shape=(_int(BLOCKS), size), strides=(stride, _int(1)))
        writes = _kernel(Store(strided, (BX, TX), _load(A, BX, TX)))
        reads = _kernel(Store(C, (BX, TX), _load(strided, BX, TX)))
        (found,) = Demand(_function(writes, reads), {"n": THREADS}).of([(3, 0, 0)])
        assert found == (None if wanted is None else [(3, 0, 0)])


def test_another_view_of_a_tensor_may_be_any_part_of_it() -> None:
    flat = replace(B, shape=(_int(BLOCKS * THREADS),))
    read = _kernel(Store(C, (BX, TX), _load(flat, _op("add", _op("mul", BX, _int(THREADS)), TX))))
    assert _needed(_doubled(), read, blocks=(3,)) == [None]


def test_an_address_may_be_that_of_all_elements() -> None:
    address = Expr("call", "handle", (_load(B, BX, TX),), "address_of")
    call = Evaluate(Expr("call", "handle", (_load(C, BX, TX), address), "somewhere"))
    assert _needed(_doubled(), _kernel(call), blocks=(3,)) == [None]


def test_regions_say_what_is_copied() -> None:
    def region(buffer: Buffer, mode: int, row: Expr, rows: int) -> Expr:
        return Expr("call", "handle", (_load(buffer, row, _int(0)), _int(mode), _int(rows), _int(THREADS)), "region")

    rows = _op("mul", BX, _int(2))
    copied = Evaluate(Expr("call", "handle", (region(B, 1, rows, 2), region(C, 2, rows, 2)), "copy"))
    unlike = Evaluate(Expr("call", "handle", (region(B, 1, rows, 1), region(C, 2, rows, 2)), "copy"))
    assert _needed(_doubled(), _kernel(copied), blocks=(3,)) == [{6, 7}]
    assert _needed(_doubled(), _kernel(unlike), blocks=(3,)) == [None]


@pytest.mark.parametrize("op", ["add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max"])
def test_no_value_is_outside_of_its_interval(op: str) -> None:
    x, y = _var("x", 1), _var("y", 2)
    for low, high in ((-7, 5), (0, 9), (3, 4)):
        others = (3,) if "div" in op or "mod" in op else (-2, 3)
        found = interval(_op(op, x, y), {}, {1: (low, high), 2: (others[0], others[-1])})
        values = [_value(op, a, b) for a in range(low, high + 1) for b in range(others[0], others[-1] + 1)]
        if found is not None:
            assert found[0] <= min(values)
            assert max(values) <= found[1]
        assert found is not None or (op.startswith("trunc") and low < 0)


@pytest.mark.parametrize(
    ("low", "high", "other", "expected"), [(0, 0, 1, (1, 1)), (2, 5, 8, (0, 15)), (0, 3, 0, (0, 3)), (-1, 3, 1, None)]
)
def test_an_exclusive_or_has_no_bits_above_its_operands(
    low: int, high: int, other: int, expected: tuple[int, int] | None
) -> None:
    e = Expr("call", "int32", (_var("x", 1), _int(other)), "bitwise_xor")
    assert interval(e, {}, {1: (low, high)}) == expected


def _value(op: str, a: int, b: int) -> int:
    if op.startswith("trunc"):
        return int(np.trunc(a / b)) if op == "truncdiv" else int(np.fmod(a, b))
    named = {"add": a + b, "sub": a - b, "mul": a * b, "min": min(a, b), "max": max(a, b)}
    return named[op] if op in named else a // b if op == "floordiv" else a % b


def test_a_kernel_that_reads_other_rows_as_lowered_is_executed_again_with_all_blocks() -> None:
    """A value that left-out blocks did not write is no finding; one that is wrong with all of them is."""
    other = _op("floormod", _op("add", BX, _int(1)), _int(BLOCKS))
    nothing = Expr("mul", "float32", (_load(B, other, TX), Expr("float", "float32", (), 0.0)))
    harmless = Store(C, (BX, TX), Expr("add", "float32", (_load(B, BX, TX), nothing)))
    written = _function(_doubled(), _moved(BX))
    for later, verdict in ((_moved(BX), "agreed"), (_moved(other), "refuted"), (_kernel(harmless), "agreed")):
        lowered = _function(_doubled(), later, lowered=True)
        checkpoints = {"source": written, "device-tir": lowered}
        found = execute(Snapshot("kernel", "kernel.py", 1, {"tilelang": "0.1.15"}, "sm_90", {}, {}, checkpoints, {}))
        assert {outcome.name: outcome.verdict for outcome in found.outputs} == {"B": "agreed", "C": verdict}


def test_a_block_of_an_earlier_kernel_that_stops_is_named() -> None:
    """Its number is none among the blocks of the last kernel."""
    mirrored = _moved(_op("sub", _int(BLOCKS - 1), BX))
    beyond = _doubled(_op("add", BX, _op("floordiv", BX, _int(BLOCKS - 1))))
    lowered = _function(beyond, mirrored, lowered=True)
    checkpoints = {"source": _function(_doubled(), mirrored), "device-tir": lowered}
    found = execute(Snapshot("kernel", "kernel.py", 1, {"tilelang": "0.1.15"}, "sm_90", {}, {}, checkpoints, {}))
    assert found.illegal is not None
    assert (found.illegal.what, found.illegal.index) == ("access of B out of bounds", (BLOCKS, 0))
    assert found.illegal.block == (BLOCKS - 1, 0, 0)


def test_for_a_race_alone_no_other_blocks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two warps turn a row around in shared memory, without a barrier: the values are right where all move in step."""
    whole = []

    def noted(levels: BothLevels) -> BothLevels:
        whole.append(levels)
        return levels

    monkeypatch.setattr(BothLevels, "with_all_before", noted)
    rows = tuple(replace(b, shape=(_int(BLOCKS), _int(64))) for b in (A, B, C))
    a, b, c = rows
    shared = Buffer("s", "float32", (_int(64),), "shared", Expr("var", "handle", (), "s", 105))
    mirrored = _op("sub", _int(63), TX)

    def kernel(body: Stmt) -> Stmt:
        return Thread(BX, "blockIdx.x", _int(BLOCKS), Thread(TX, "threadIdx.x", _int(64), body))

    doubled = kernel(Store(b, (BX, TX), Expr("add", "float32", (_load(a, BX, TX), _load(a, BX, TX)))))
    stored = Seq((Alloc(shared), Store(shared, (TX,), _load(b, BX, TX)), Store(c, (BX, TX), _load(shared, mirrored))))
    written = replace(_function(doubled, kernel(Store(c, (BX, TX), _load(b, BX, mirrored)))), buffers=rows)
    lowered = replace(_function(doubled, kernel(stored), lowered=True), buffers=rows)
    checkpoints = {"source": written, "device-tir": lowered}
    found = execute(Snapshot("kernel", "kernel.py", 1, {"tilelang": "0.1.15"}, "sm_90", {}, {}, checkpoints, {}))
    assert {outcome.verdict for outcome in found.outputs} == {"agreed"}
    assert [race.buffer for race in found.races] == ["s"]
    assert not whole


def test_what_two_releases_trace_is_compared_in_the_blocks_that_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the earlier kernel the same ones as of the other release, though the blocks of the last one are given."""
    monkeypatch.setattr(blocks, "every", lambda extents: pytest.fail("all blocks run"))

    def traced(last: Stmt) -> Snapshot:
        function = _function(_doubled(), last)
        checkpoints = {"source": function, "device-tir": function}
        return Snapshot("kernel", "kernel.py", 1, {"tilelang": "0.1.15"}, "sm_90", {}, {}, checkpoints, {})

    twice = Expr("mul", "float32", (_load(B, BX, TX), Expr("float", "float32", (), 2.0)))
    again = Expr("add", "float32", (_load(B, BX, TX), _load(B, BX, TX)))
    was, same = (traced(_kernel(Store(C, (BX, TX), value))) for value in (twice, again))
    assert differing_output(was, same, Request()) is None
    found = differing_output(was, traced(_moved(BX)), Request())
    assert found is not None
    assert found[0] == "C"
