"""Offsets of packed sequences are seen in how a kernel uses them; what nothing can be compared of is not agreed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.fixtures.index import FOLDER
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.offsets import offsets
from tlcheck.snapshot.codec import loads
from tlcheck.snapshot.ir import Bind, Buffer, Expr, Function, Seq, Snapshot, Stmt, Store
from tlcheck.snapshot.walk import rebuild

SUMS = loads((FOLDER / "wrong/sums-0.1.9.snapshot.json").read_text())


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


Y, TOTAL = _var("y", 1), _var("total", 2)
L = Buffer("L", "int32", (_int(5),), "global", _var("L", 3, "handle"))
B = Buffer("B", "float32", (TOTAL, _int(64)), "global", _var("B", 4, "handle"))


def _kernel(step: int) -> Function:
    """Rows of B from L[y] on, as long as they are below L[y + step]."""
    first, end = _var("first", 5), _var("end", 6)
    after = Expr("add", "int32", (Y, _int(step)))
    held = Expr("select", "float32", (Expr("lt", "bool", (first, end)), *[Expr("float", "float32", (), 1.0)] * 2))
    body: list[Stmt] = [
        Bind(first, Expr("load", "int32", (Y,), buffer=L)),
        Bind(end, Expr("load", "int32", (after,), buffer=L)),
        Store(B, (Expr("add", "int32", (first, _int(3))), _int(0)), held),
    ]
    return Function("main", (L.data, B.data, TOTAL), (L, B), (), Seq(tuple(body)))


def test_what_is_read_with_its_neighbour_is_an_offset_into_what_it_indexes() -> None:
    found = offsets(_kernel(1))
    assert list(found) == ["L"]
    assert found["L"] is TOTAL
    assert not offsets(_kernel(2))


def test_indices_are_drawn_within_the_axis() -> None:
    draw = inputs.Draw(8, ranges=(("experts", 3),))
    assert [draw.limit("experts"), draw.limit("experts", 0), draw.limit("other")] == [3, 3, 8]
    assert draw.with_limit("experts", 2).limit("experts") == 2
    assert draw.with_limit("experts", 64).limit("experts") == 3


def test_offsets_rise_from_nothing_to_the_extent() -> None:
    for size, last, gaps in ((5, 512, False), (5, 512, True), (64, 64, False), (2, 7, True), (1, 3, True)):
        made = inputs.rising("L", kind_of("int32"), size, last, gaps)
        whole = made(0, np.arange(size))
        assert whole is not None
        assert (whole[0], whole[-1]) == (0, last if size > 1 else 0)
        assert (np.diff(whole) >= 0).all()
        parts = [made(0, np.arange(size // 2)), made(0, np.arange(size // 2, size))]
        assert np.array_equal(np.concatenate([p for p in parts if p is not None]), whole)


def test_every_other_part_is_empty_for_the_first_seed() -> None:
    made = inputs.rising("L", kind_of("int32"), 9, 512, True)
    first, second = made(0, np.arange(9)), made(1, np.arange(9))
    assert first is not None
    assert second is not None
    assert (np.diff(first) == 0).tolist() == [False, True] * 4
    assert (np.diff(second) > 0).all()


def _storing(value: float) -> Snapshot:
    """Return what both levels store, whatever the inputs."""

    def other(old: Stmt, new: Stmt) -> Stmt:
        return replace(new, value=Expr("float", "float16", (), value)) if isinstance(new, Store) else new

    kernel = SUMS.checkpoints["source"]
    kernel = replace(kernel, body=rebuild(kernel.body, other))
    lowered = SUMS.checkpoints["lower-tile-op"]
    return replace(
        SUMS, checkpoints={"source": kernel, "device-tir": replace(lowered, body=rebuild(lowered.body, other))}
    )


def test_an_output_without_a_number_is_not_agreed() -> None:
    assert [(o.verdict, o.reason) for o in execute(_storing(float("nan"))).outputs] == [
        ("undecided", "as written, all of it is NaN")
    ]
    assert [o.verdict for o in execute(_storing(float("inf"))).outputs] == ["agreed"]


def test_no_two_neighbours_are_equal_where_they_are_to_be_distinct() -> None:
    draw = inputs.Draw(ranges=(("P", 100),), distinct=("P",))
    contents = inputs.contents("P", kind_of("int32"), draw)
    for seed in (0, 1):
        found = contents(seed, np.arange(250))
        assert found is not None
        assert sorted(found[:100]) == sorted(found[137:237]) == list(range(100))
        assert not np.array_equal(np.sort(found[:100]), found[:100])
    other = inputs.contents("Q", kind_of("int32"), draw)(0, np.arange(100))
    assert other is not None
    assert len(set(other.tolist())) <= 8
