"""Blocks that did not run do what one that ran does, or the first thing that tells them apart is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tlcheck.execute.worlds.blocks import Block
from tlcheck.scope.block_scope import limit_of, representatives
from tlcheck.scope.claim_scope import Limit
from tlcheck.snapshot.ir import Alloc, Bind, Buffer, Evaluate, Expr, For, Function, If, Seq, Stmt, Store, Thread

BLOCKS, THREADS = 64, 32
RAN: tuple[Block, ...] = ((0, 0, 0), (32, 0, 0), (63, 0, 0))
FAR = 1 << 22  # elements from one block to the next, at which the last one is beyond int32


def _int(value: int, dtype: str = "int32") -> Expr:
    return Expr("int", dtype, (), value)


def _var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


def _op(op: str, a: Expr, b: Expr | int, dtype: str = "int32") -> Expr:
    return Expr(op, dtype, (a, b if isinstance(b, Expr) else _int(b, a.dtype)))


def _buffer(name: str, uid: int, dtype: str = "float32", size: int = BLOCKS * THREADS) -> Buffer:
    return Buffer(name, dtype, (_int(size),), "global", _var(name, uid, "handle"))


BX, TX = _var("bx", 1), _var("tx", 2)
A, C, AT = _buffer("A", 11), _buffer("C", 12), _buffer("AT", 13, "int32")
S = replace(_buffer("S", 14), scope="shared")


def _load(buffer: Buffer, index: Expr) -> Expr:
    return Expr("load", buffer.dtype, (index,), None, 0, buffer)


def _place(block: Expr = BX) -> Expr:
    return _op("add", _op("mul", block, THREADS), TX)


def _kernel(*body: Stmt, blocks: int = BLOCKS, buffers: tuple[Buffer, ...] = (A, C, AT)) -> Function:
    inner = Thread(TX, "threadIdx.x", _int(THREADS), Seq(body))
    return Function("main", (), buffers, (), Thread(BX, "blockIdx.x", _int(blocks), inner))


def _copy(read: Expr, write: Expr | None = None) -> Store:
    return Store(C, (write or _place(),), _load(A, read), line=7)


COPY = _kernel(_copy(_place()))


def _at_32_and_63(block: Expr) -> Expr:
    """A number that is 0 in the blocks that ran only."""
    return _op("mul", block, _op("mul", _op("sub", block, 32), _op("sub", block, 63)))


def test_a_copy_is_the_same_in_all_blocks() -> None:
    assert limit_of(COPY, COPY, {}, RAN) is None
    assert limit_of(COPY, COPY, {}, RAN[:1]) is None


@pytest.mark.parametrize(
    "block",
    [
        _op("add", BX, _at_32_and_63(BX)),
        _op("floormod", BX, 7),
        _op("floordiv", BX, 2),
        _op("min", BX, 40),
        Expr("select", "int32", (_op("eq", BX, 5, "bool"), _int(0), BX)),
        Expr("cast", "int32", (Expr("cast", "int8", (_op("mul", BX, 5),)),)),
        Expr("call", "int32", (BX,), "unknown_number"),
    ],
    ids=lambda e: e.value or e.op,
)
@pytest.mark.parametrize("lowered", [True, False])
def test_an_offset_that_is_right_in_some_blocks_only_is_told(block: Expr, lowered: bool) -> None:
    other = _kernel(_copy(_place(block)))
    found = limit_of(*((COPY, other) if lowered else (other, COPY)), {}, RAN[:1])
    assert found is not None
    assert found.line == 7


@pytest.mark.parametrize(
    "condition",
    [
        _op("eq", BX, 5, "bool"),
        _op("lt", _op("floormod", BX, 8), 3, "bool"),
        _op("ne", _at_32_and_63(BX), 0, "bool"),
        _op("lt", TX, BX, "bool"),
    ],
)
def test_a_condition_that_depends_on_the_block_is_told(condition: Expr) -> None:
    guarded = _kernel(If(condition, _copy(_place()), line=6))
    assert limit_of(COPY, guarded, {}, RAN[:2]) == Limit("blocks", "a condition depends on the block", 6)


def test_a_guard_that_no_block_fails_is_none() -> None:
    guard = _op("lt", _place(), BLOCKS * THREADS, "bool")
    assert limit_of(COPY, _kernel(If(guard, _copy(_place()))), {}, RAN[:1]) is None


def test_a_tail_is_a_class_of_its_own() -> None:
    guard = _op("lt", _place(), BLOCKS * THREADS - 5, "bool")
    tail = _kernel(If(guard, _copy(_place()), line=6))
    assert limit_of(tail, tail, {}, RAN) is None
    assert limit_of(tail, tail, {}, RAN[:2]) == Limit("blocks", "a condition depends on the block", 6)
    assert representatives(tail, tail, {}, RAN) == [RAN[0], RAN[2]]


def test_one_block_of_each_class_stands_for_the_others() -> None:
    """Each stands for itself if two may write one element."""
    same = _kernel(_copy(_place(), TX))
    assert representatives(COPY, COPY, {}, RAN) == [RAN[0]]
    assert representatives(COPY, _kernel(_copy(_place(_op("floormod", BX, 7)))), {}, RAN) == [*RAN]
    assert representatives(same, same, {}, RAN) == RAN


def test_a_block_that_leaves_the_tensor_is_told() -> None:
    beyond = _kernel(_copy(_op("add", _place(), 5)))
    found = limit_of(beyond, beyond, {}, RAN[:2])
    assert found == Limit("blocks", "whether an index of A is in bounds depends on the block", 7)


def test_an_index_that_wraps_in_large_blocks_is_told() -> None:
    a, c = (_buffer(b.name, b.data.uid, size=1024 * FAR) for b in (A, C))
    wide, narrow = (
        _kernel(Store(c, (at,), _load(a, at), line=7), blocks=1024, buffers=(a, c))
        for at in (
            _op("add", _op("mul", Expr("cast", dtype, (BX,)), FAR, dtype), Expr("cast", dtype, (TX,)), dtype)
            for dtype in ("int64", "int32")
        )
    )
    assert limit_of(wide, wide, {}, RAN) is None
    assert limit_of(wide, narrow, {}, RAN) is not None


def test_two_parts_of_one_tensor_are_told_unless_they_stay_side_by_side() -> None:
    def sum_of(second: Expr) -> Function:
        return _kernel(Store(C, (_place(),), _op("add", _load(A, _place()), _load(A, second), "float32"), line=7))

    beside = sum_of(_place(_op("floormod", _op("add", BX, 1), BLOCKS)))
    apart = sum_of(_place(_op("floormod", _op("mul", BX, 5), BLOCKS)))
    assert limit_of(beside, beside, {}, RAN) is None
    assert limit_of(apart, apart, {}, RAN) == Limit(
        "blocks", "which part of A is accessed beside another part depends on the block", 7
    )


def test_a_gather_is_at_the_blocks_own_indices() -> None:
    gather = _kernel(_copy(_load(AT, _place())))
    assert limit_of(gather, gather, {}, RAN) is None
    assert limit_of(gather, _kernel(_copy(_load(AT, _place(_op("floordiv", BX, 2))))), {}, RAN) is not None


@pytest.mark.parametrize("write", [TX, _place(_op("floordiv", BX, 2)), _op("add", _op("mul", BX, 8), TX)])
def test_blocks_that_may_write_one_element_are_told(write: Expr) -> None:
    same = _kernel(_copy(_place(), write))
    assert limit_of(same, same, {}, RAN) == Limit("blocks", "two blocks may write one element of C")


def test_a_block_that_reads_what_another_one_writes_is_told() -> None:
    shifted = _place(_op("floormod", _op("add", BX, 1), BLOCKS))
    reads = _kernel(Store(C, (_place(),), _load(C, shifted)))
    assert limit_of(reads, reads, {}, RAN) == Limit("blocks", "two blocks may write one element of C")
    assert limit_of(COPY, _kernel(Store(C, (_place(),), _load(C, _place()))), {}, RAN) is not None


@pytest.mark.parametrize(
    "stmt",
    [
        Store(S, (_op("floormod", BX, 8),), _load(A, _place()), line=3),
        Store(C, (_place(),), Expr("cast", "float32", (BX,)), line=3),
        Bind(_var("p", 9, "handle"), Expr("call", "handle", (_load(A, BX),), "address_of")),
        Evaluate(Expr("call", "handle", (), "cluster_sync")),
        Evaluate(Expr("call", "handle", (), "clc_try_cancel")),
        Alloc(_buffer("workspace", 15)),
        Evaluate(Expr("call", "handle", (Expr("call", "handle", (_load(A, BX),), "address_of"),), "unknown"), line=3),
    ],
)
def test_what_depends_on_the_block_in_another_way_is_told(stmt: Stmt) -> None:
    other = _kernel(stmt, _copy(_place()))
    assert limit_of(other, other, {}, RAN) is not None


def test_a_name_for_a_blocks_place_is_seen_through() -> None:
    start = _var("start", 9)
    named = _kernel(Bind(start, _op("mul", BX, THREADS)), _copy(_op("add", start, TX)))
    assert limit_of(COPY, named, {}, RAN) is None
    other = _kernel(Bind(start, _op("mul", BX, 2 * THREADS)), _copy(_op("floordiv", start, 4)))
    assert limit_of(COPY, other, {}, RAN) is not None


def test_a_condition_that_threads_decide_differently_in_each_block_is_told() -> None:
    guarded = _kernel(If(_op("lt", TX, _op("sub", BX, 40), "bool"), _copy(_place()), line=6))
    assert limit_of(guarded, guarded, {}, ((0, 0, 0), (50, 0, 0))) == Limit(
        "blocks", "a condition depends on the block", 6
    )


@pytest.mark.parametrize("last", [60, 61, 62, 63])
def test_a_function_that_is_not_computed_is_another_number_in_each_block(last: int) -> None:
    half = Expr("mul", "float32", (Expr("cast", "float32", (BX,)), Expr("float", "float32", (), 0.5)))
    index = Expr("cast", "int32", (half,))
    other = _kernel(Store(S, (index,), _load(A, _place()), line=3), _copy(_place()))
    assert limit_of(other, other, {}, [(x, 0, 0) for x in range(BLOCKS) if x != last]) is not None


def test_a_name_that_is_bound_again_stands_for_its_last_value() -> None:
    name = _var("v", 20)
    index = _op("sub", _op("floordiv", name, 2), BX)
    alike, other = (Store(S, (index,), _load(A, _place()), line=line) for line in (3, 4))
    first = Bind(name, _op("mul", BX, 2))
    assert limit_of(COPY, _kernel(first, alike, _copy(_place())), {}, RAN[:1]) is None
    for again in (_op("mul", BX, 3), _int(0)):
        found = limit_of(COPY, _kernel(first, alike, Bind(name, again), other, _copy(_place())), {}, RAN[:1])
        assert found == Limit("blocks", "an index of S depends on the block", 4)


def test_a_name_is_what_it_was_bound_to_when_its_parts_are_bound_again() -> None:
    name, part = _var("v", 20), _var("w", 21)
    body = Bind(part, BX), Bind(name, _op("mul", part, THREADS)), Bind(part, _int(0))
    assert limit_of(COPY, _kernel(*body, _copy(_op("add", name, TX))), {}, RAN[:1]) is None


def test_a_loop_over_the_variable_of_another_loop_has_its_own_extent() -> None:
    i = _var("i", 20)
    start = _op("mul", BX, 2)
    index = _op("sub", _op("floormod", _op("add", start, i), 2 * BLOCKS), start)
    body = Store(S, (index,), _load(A, _place()))
    short, long = (For(i, _int(0), _int(extent), "serial", body, line=line) for line, extent in ((3, 2), (4, 64)))
    assert limit_of(COPY, _kernel(short, _copy(_place())), {}, RAN[:1]) is None
    found = limit_of(COPY, _kernel(short, long, _copy(_place())), {}, RAN[:1])
    assert found == Limit("blocks", "an index of S depends on the block", 4)


def test_an_access_of_256_bits_that_leaves_the_tensor_is_told() -> None:
    address = Expr("call", "handle", (_load(A, _op("add", _op("mul", BX, THREADS), THREADS - 4)),), "address_of")
    wide = Evaluate(Expr("call", "float32x8", (address,), "ldg256"), line=3)
    found = limit_of(COPY, _kernel(wide, _copy(_place())), {}, RAN[:1])
    assert found == Limit("blocks", "whether an index of A is in bounds depends on the block", 3)


def test_an_access_is_as_wide_as_its_instruction() -> None:
    """cp.async copies up to 16 bytes, which are the last ones of a tensor."""
    last = _op("add", _op("mul", BX, THREADS), THREADS - 4)
    address = Expr("call", "handle", (_load(A, last),), "address_of")
    to = Expr("call", "handle", (_load(S, TX),), "address_of")
    copy = Evaluate(Expr("call", "handle", (to, address, _int(16)), "ptx_cp_async"), line=3)
    assert limit_of(COPY, _kernel(copy, _copy(_place())), {}, RAN[:1]) is None
    beyond = Expr("call", "handle", (_load(A, _op("add", last, 1)),), "address_of")
    copy = Evaluate(Expr("call", "handle", (to, beyond, _int(16)), "ptx_cp_async"), line=3)
    told = Limit("blocks", "whether an index of A is in bounds depends on the block", 3)
    assert limit_of(COPY, _kernel(copy, _copy(_place())), {}, RAN[:1]) == told


def test_a_guard_on_a_variable_that_is_bound_again_keeps_nothing_in_bounds() -> None:
    i = _var("i", 20)
    place = _op("add", _op("mul", BX, 40), i)
    store = Store(AT, (place,), _int(1), line=3)
    again = Seq((Bind(i, TX), If(_op("lt", place, 2048, "bool"), Seq((Bind(i, _op("add", TX, 0)), store)))))
    beyond = Limit("blocks", "whether an index of AT is in bounds depends on the block", 3)
    for body, expected in ((again, beyond), (Seq((Bind(i, TX), If(_op("lt", place, 2048, "bool"), store))), None)):
        kernel = _kernel(body, _copy(_place()))
        found = limit_of(kernel, kernel, {}, tuple((n, 0, 0) for n in (0, *range(51, 63))))
        assert (found if found is not None and "bounds" in found.reason else None) == expected


def test_a_size_that_is_known_guards_as_a_number() -> None:
    n = _var("n", 30)
    dynamic = Buffer("D", "int32", (n,), "global", _var("D", 31, "handle"))
    place = _op("add", _op("mul", BX, 40), TX)
    half = _op("add", _op("mul", BX, 20), _op("floordiv", TX, 2))
    for end, expected in (
        (_op("floordiv", n, 2), None),
        (n, "whether an index of D is in bounds depends on the block"),
    ):
        body = If(_op("lt", half, end, "bool"), Store(dynamic, (place,), _int(1), line=3))
        kernel = _kernel(body, _copy(_place()), buffers=(A, C, dynamic))
        found = limit_of(kernel, kernel, {"n": 2048}, tuple((at, 0, 0) for at in (0, *range(51, 63))))
        assert (found if found is not None and "bounds" in found.reason else None) == (
            None if expected is None else Limit("blocks", expected, 3)
        )


def _added(to: Expr, name: str = "atomic_add_elem_op") -> Evaluate:
    address = Expr("call", "handle", (_load(C, to),), "address_of")
    return Evaluate(Expr("call", "handle", (address, _load(A, _place())), name), line=3)


def test_blocks_may_add_to_one_element_that_nothing_else_uses() -> None:
    kernel = _kernel(_added(TX))
    assert limit_of(kernel, kernel, {}, RAN[:1]) is None
    for other in (
        _kernel(_added(TX), Store(AT, (_place(),), Expr("cast", "int32", (_load(C, TX),)))),
        _kernel(_added(TX, "atomic_add_ret_elem_op")),
        _kernel(_added(TX, "atomic_max_elem_op")),
        _kernel(_added(TX), _copy(_place(), TX)),
    ):
        assert limit_of(other, other, {}, RAN[:1]) == Limit("blocks", "two blocks may write one element of C")


def test_a_vector_of_256_bits_that_is_aligned_to_128_in_some_blocks_is_told() -> None:
    at = Expr("ramp", "int32x8", (_op("mul", BX, 12), _int(1)), 8)
    wide = _kernel(Store(C, (at,), Expr("load", "float32x8", (at,), None, 0, A), line=3))
    assert limit_of(wide, wide, {}, RAN[:1]) == Limit("blocks", "the alignment of C depends on the block", 3)


def test_an_operator_may_copy_from_any_element_on() -> None:
    """A column of a matrix of 64 in each block, as lowered by single elements."""
    matrix = replace(A, shape=(_int(THREADS), _int(BLOCKS)))
    element = Expr("load", "float32", (_int(0), BX), None, 0, matrix)
    sides = Expr("load", "float32", (_int(0),), None, 0, S)
    regions = [
        Expr("call", "handle", (load, *map(_int, sizes)), "region")
        for load, sizes in ((element, (1, THREADS, 1)), (sides, (2, THREADS)))
    ]
    copy = Evaluate(Expr("call", "handle", tuple(regions), "copy"), line=3)
    one = replace(element, args=(TX, BX))
    source, lowered = (_kernel(read, Store(C, (_place(),), _load(S, TX))) for read in (copy, Store(S, (TX,), one)))
    assert limit_of(source, lowered, {}, RAN[:1]) is None


def test_the_extent_of_what_an_address_names_is_not_its_layout() -> None:
    """A pointer is given as an element of a buffer that ends with it."""
    ends = replace(C, shape=(_op("add", _place(), 1),))
    other = _kernel(Store(ends, (_place(),), _load(A, _place()), line=7))
    assert limit_of(COPY, other, {}, RAN[:1]) is None
    strided = replace(ends, strides=(BX,))
    other = _kernel(Store(strided, (_place(),), _load(A, _place()), line=7))
    assert limit_of(COPY, other, {}, RAN[:1]) == Limit("blocks", "not understood: the layout of C")


@pytest.mark.parametrize(
    "layout", [{"elem_offset": BX}, {"strides": (BX,)}, {"shape": (BX,)}], ids=lambda layout: next(iter(layout))
)
def test_shared_memory_whose_layout_depends_on_the_block_is_not_understood(layout: dict[str, Any]) -> None:
    other = _kernel(Store(replace(S, **layout), (TX,), _load(A, _place())), _copy(_place()))
    assert limit_of(COPY, other, {}, RAN[:1]) == Limit("blocks", "not understood: the layout of S")


@pytest.mark.parametrize("offset", [False, True])
def test_a_pointer_that_names_a_tensor_with_strides_is_not_followed(offset: bool) -> None:
    """Nobody would compare the accesses through it with others."""
    rows = replace(A, shape=(_int(BLOCKS), _int(THREADS)), strides=(_int(THREADS + 1), _int(1)))
    source = _kernel(Store(C, (_place(),), Expr("load", "float32", (BX, TX), None, 0, rows)), buffers=(rows, C))
    pointer = _var("p", 9, "handle")
    value = Expr("call", "handle", (A.data, _int(0)), "handle_add_byte_offset") if offset else A.data
    view = replace(A, name="view", data=pointer, shape=(_int(BLOCKS * (THREADS + 1)),))
    place = _op("add", _op("mul", _op("min", BX, 40), THREADS + 1), TX)
    lowered = _kernel(Bind(pointer, value), Store(C, (_place(),), _load(view, place)), buffers=(rows, C))
    assert limit_of(source, lowered, {}, RAN[:2]) == Limit("blocks", "not understood: the pointer p")


def test_blocks_that_act_across_a_cluster_are_told() -> None:
    """By a note of a call here, which names no block."""
    pair = (("use_2cta", "1"),)
    both = _kernel(Evaluate(Expr("call", "handle", (), "tma_load", annotations=pair)), _copy(_place()))
    across = replace(both, attrs=(("cluster_dims", "[2, 1, 1]"),))
    assert limit_of(COPY, across, {}, RAN) == Limit("blocks", "blocks of a cluster act on one another")
