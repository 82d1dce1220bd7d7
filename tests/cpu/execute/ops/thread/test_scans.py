"""Scans of the device library, in place and not, against NumPy; and that the threads of one are in order."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.execute.observe.race_watch import Watch
from tlcheck.execute.stops import Illegal
from tlcheck.program.release import UNKNOWN, Release
from tlcheck.snapshot.ir import Alloc, Buffer, Evaluate, Expr, For, Function, If, Seq, Stmt, Store, Thread

registry.load()


def _int(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def _buffer(name: str, size: int, scope: str, uid: int) -> Buffer:
    return Buffer(name, "float32", (_int(size),), scope, Expr("var", "handle", (), name, uid))


def _copied(target: Buffer, source: Buffer, size: int, uid: int, threads: int, tx: Expr) -> Stmt:
    """Every thread copies its elements; no guard is needed where the size is a multiple of the threads."""
    i = Expr("var", "int32", (), "i", uid)
    at = Expr("add", "int32", (Expr("mul", "int32", (i, _int(threads))), tx))
    store = Store(target, (at,), Expr("load", "float32", (at,), buffer=source))
    return For(i, _int(0), _int(size // threads), "serial", store)


def _scanned(
    name: str,
    *sizes: int,
    size: int,
    threads: int,
    in_place: bool,
    release: Release = UNKNOWN,
    first: int = 0,
    printed: bool = True,
    unordered: int | None = None,
) -> tuple[Array, Array, Watch]:
    """The values, what is left of the scan of them, and who watched the order of accesses. first: thread that scans.

    printed: whether by the CUDA that is made of it. unordered: an element that is NaN.
    """
    tx = Expr("var", "int32", (), "tx", 1)
    a, b, s = _buffer("A", size, "global", 2), _buffer("B", size, "global", 3), _buffer("s", size, "shared", 4)
    d = s if in_place else _buffer("d", size, "shared", 5)
    addresses = [Expr("call", "handle", (Expr("load", "float32", (_int(0),), buffer=x),), "address_of") for x in (s, d)]
    library = Expr("str", "handle", (), f"tl::{name}::run")
    call = Evaluate(Expr("call", "float32", (library, *addresses, *map(_int, sizes)), "call_extern"))
    scan = If(Expr("le", "bool", (_int(first), tx)), call)
    barrier = Evaluate(Expr("call", "int32", (Expr("str", "handle", (), "shared"),), "tvm_storage_sync"))
    copies = [_copied(s, a, size, 6, threads, tx), _copied(b, d, size, 7, threads, tx)]
    allocated = [Alloc(x) for x in dict.fromkeys((s, d))]
    body = Seq((*allocated, copies[0], barrier, scan, barrier, copies[1]))
    function = Function("main", (a.data, b.data), (a, b), (), Thread(tx, "threadIdx.x", _int(threads), body))
    values = np.random.default_rng(0).integers(-9, 9, size).astype(np.float64)
    values[[] if unordered is None else unordered] = np.nan
    kind = kind_of("float32")
    given = Tensor(kind, size, lambda seed, numbers: values[numbers])
    tensors = {"A": given, "B": Tensor(kind, size, lambda seed, numbers: None)}
    machine = Machine(
        function, (threads, 1, 1), [World(0)], tensors, {}, Options(source=False, printed=printed, release=release)
    )
    watch = Watch(machine, frozenset())
    machine.run(watch)
    _, left = machine.pages("B").outcome(0)
    return values, left, watch


@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize(
    ("name", "rows", "columns", "axis", "reverse"),
    [
        ("CumSum2D<128, 1, false>", 64, 128, 1, False),
        ("CumSum2D<128, 1, true>", 10, 64, 1, True),
        ("CumSum2D<128, 0, false>", 64, 10, 0, False),
        ("CumSum2D<128, 0, true>", 40, 48, 0, True),
        ("CumMax2D<128, 1, false>", 3, 128, 1, False),
    ],
)
def test_rows_and_columns(name: str, rows: int, columns: int, axis: int, reverse: bool, in_place: bool) -> None:
    sizes = (rows, columns, columns, columns)
    values, left, watch = _scanned(name, *sizes, size=rows * columns, threads=128, in_place=in_place)
    box = values.reshape(rows, columns)
    box = np.flip(box, axis) if reverse else box
    expected = (np.maximum if "Max" in name else np.add).accumulate(box, axis)
    assert np.array_equal(left.reshape(rows, columns), np.flip(expected, axis) if reverse else expected)
    assert not watch.races


def test_threads_that_do_not_begin_at_0_leave_lines_out() -> None:
    """By InclusiveScan2D of scan.h: `item` is the number of the thread in the block, by which lines are taken."""
    values, left, _ = _scanned(
        "CumSum2D<128, 1, false>", 6, 32, 32, 32, size=192, threads=192, in_place=True, first=128
    )
    box, found = values.reshape(6, 32), left.reshape(6, 32)
    assert np.array_equal(found[:4], box[:4])
    assert np.array_equal(found[4:], np.cumsum(box[4:], 1))


def test_more_threads_than_it_is_for_race() -> None:
    *_, few = _scanned("CumSum2D<128, 1, false>", 6, 32, 32, 32, size=192, threads=64, in_place=True)
    *_, many = _scanned("CumSum2D<128, 1, false>", 6, 32, 32, 32, size=192, threads=192, in_place=True)
    assert not few.races
    assert many.races


def test_columns_of_a_tall_tile_up_to_0_1_10() -> None:
    """By the loops of CumSum2D in reduce.h: of 64 rows 32 are summed, as many as there are columns."""
    values, left, _ = _scanned(
        "CumSum2D<128, 0, false>", 64, 32, size=64 * 32, threads=128, in_place=True, release=Release.of("0.1.10")
    )
    box, found = values.reshape(64, 32), left.reshape(64, 32)
    assert np.array_equal(found[:32], np.cumsum(box[:32], 0))
    assert np.array_equal(found[32:], box[32:])


def test_as_tir_the_columns_of_a_tall_tile_are_summed() -> None:
    """The library is wrong, and not the pass that calls it."""
    release = Release.of("0.1.10")
    values, left, _ = _scanned(
        "CumSum2D<128, 0, false>", 64, 32, size=64 * 32, threads=128, in_place=True, release=release, printed=False
    )
    assert np.array_equal(left.reshape(64, 32), np.cumsum(values.reshape(64, 32), 0))


def test_columns_of_a_wide_tile_up_to_0_1_10() -> None:
    """Rows behind the tile are read and written."""
    with pytest.raises(Illegal, match="access of s out of bounds"):
        _scanned(
            "CumSum2D<128, 0, false>", 32, 64, size=64 * 32, threads=128, in_place=True, release=Release.of("0.1.9")
        )


@pytest.mark.parametrize("release", [Release.of("0.1.9"), Release.of("0.1.11")])
def test_columns_of_a_square_are_right_in_all_releases(release: Release) -> None:
    values, left, _ = _scanned(
        "CumSum2D<128, 0, true>", 64, 64, size=64 * 64, threads=128, in_place=True, release=release
    )
    box = values.reshape(64, 64)
    assert np.array_equal(left.reshape(64, 64), np.cumsum(box[::-1], 0)[::-1])


@pytest.mark.parametrize(("name", "length"), [("CumSum1D<64, false>", 128), ("CumSum1D<64, true>", 192)])
def test_a_line(name: str, length: int) -> None:
    values, left, watch = _scanned(name, length, size=length, threads=64, in_place=True)
    expected = np.cumsum(values[::-1])[::-1] if "true" in name else np.cumsum(values)
    assert np.array_equal(left, expected)
    assert not watch.races


@pytest.mark.parametrize("name", ["CumMax1D<128>", "CumMax1D<128, true>"])
def test_maxima_go_on_after_nan(name: str) -> None:
    values, found, _ = _scanned(name, 128, size=128, threads=128, in_place=False, unordered=50)
    forwards = values[::-1] if "true" in name else values
    expected = np.fmax.accumulate(forwards)
    assert np.array_equal(found, expected[::-1] if "true" in name else expected)
