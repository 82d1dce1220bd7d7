"""Test what the device library of a release makes of a call that later releases have right, by its headers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.snapshot.ir import Expr, Store


def report(made: Kernel, store: Store, release: str) -> OutputOutcome:
    """Of the only output, the same statement as written and as lowered."""
    snapshot = replace(made.snapshot([store], [store]), toolchain={"tilelang": release})
    (outcome,) = execute(snapshot).outputs
    return outcome


def reduced(name: str, dtype: str, release: str) -> OutputOutcome:
    """A warp's keys: a number above the low 32 bits, and the thread below."""
    made = Kernel(threads=32)
    thread = Expr("cast", dtype, (made.tx,))
    step = Expr("int", dtype, (), 1 << (16 if dtype == "int32" else 33))
    high = Expr("mul", dtype, (Expr("sub", dtype, (Expr("int", dtype, (), 1000), thread)), step))
    key = Expr("add", dtype, (high, thread))
    value = Expr("call", dtype, (Expr("str", "handle", (), f"tl::warp_reduce_{name}"), key), "call_extern")
    return report(made, Store(made.tensor("C", dtype, [32]), (made.tx,), value), release)


@pytest.mark.parametrize("name", ["sum", "max", "min", "bitand", "bitor"])
@pytest.mark.parametrize("release", ["0.1.8", "0.1.12"])
def test_64_bits_of_a_warp_go_through_32(release: str, name: str) -> None:
    """The greatest key is that of thread 0; of the low bits alone it would be thread 31's."""
    found = reduced(name, "int64", release)
    assert found.verdict == "refuted"
    if name == "max":
        assert found.difference is not None
        assert (found.difference.expected, found.difference.got) == (str(1000 << 33), "31")


@pytest.mark.parametrize(
    ("dtype", "release"), [("int64", "0.1.7"), ("int64", "0.1.13"), ("float64", "0.1.12"), ("int32", "0.1.12")]
)
def test_other_releases_and_types_do_not(dtype: str, release: str) -> None:
    assert reduced("max", dtype, release).verdict == "agreed"


def filled(value: Expr, lanes: int, release: str, made: Kernel | None = None) -> OutputOutcome:
    """Each thread writes a vector of one value."""
    made = made or Kernel(threads=2)
    stride, first = Expr("int", "int32", (), 1), Expr("mul", "int32", (made.tx, Expr("int", "int32", (), lanes)))
    vector = Expr("broadcast", f"{value.dtype}x{lanes}", (value,), lanes)
    target = made.tensor("C", value.dtype, [2 * lanes])
    return report(made, Store(target, (Expr("ramp", f"int32x{lanes}", (first, stride), lanes),), vector), release)


@pytest.mark.parametrize("release", ["0.1.6.post2", "0.1.11"])
def test_the_sign_of_a_byte_covers_those_above_it(release: str) -> None:
    """make_int(-7, -7, -7, -7) of these releases is 0xfffffff9."""
    found = filled(Expr("int", "int8", (), -7), 16, release)
    assert found.difference is not None
    assert (found.difference.index, found.difference.expected, found.difference.got) == ((1,), "-7", "-1")
    assert found.difference.count == 2 * 12


def test_a_value_that_is_no_constant_is_packed_in_any_length() -> None:
    made = Kernel(threads=2)
    below = Expr("cast", "int8", (Expr("sub", "int32", (made.tx, Expr("int", "int32", (), 7))),))
    assert filled(below, 4, "0.1.11", made).verdict == "refuted"


@pytest.mark.parametrize("release", ["0.1.10", "0.1.12"])
def test_the_sign_of_a_word_covers_the_one_above_it(release: str) -> None:
    """Eight int32 are four of `(long long)(int)(-7) | (long long)(int)(-7) << 32`."""
    found = filled(Expr("int", "int32", (), -7), 8, release)
    assert found.difference is not None
    assert (found.difference.index, found.difference.expected, found.difference.got) == ((1,), "-7", "-1")
    assert found.difference.count == 2 * 4


@pytest.mark.parametrize(("release", "verdict"), [("0.1.12", "refuted"), ("0.1.13", "agreed")])
def test_words_that_are_chosen_lane_by_lane_are_packed_alike(release: str, verdict: str) -> None:
    """Thread 0 writes -1, 0, -1, 0, .. in one vector."""
    made = Kernel(threads=1)
    lanes = [Expr("sub", "int32", (made.tx, Expr("int", "int32", (), 1 - n % 2))) for n in range(8)]
    numbers = [Expr("int", "int32", (), n) for n in range(8)]
    place = Expr("ramp", "int32x8", (numbers[0], numbers[1]), 8)
    store = Store(made.tensor("C", "int32", [8]), (place,), Expr("shuffle", "int32x8", (*lanes, *numbers), 8))
    assert report(made, store, release).verdict == verdict


@pytest.mark.parametrize(("dtype", "value"), [("int8", 5), ("uint8", 213)])
def test_of_32_bytes_half_are_set(dtype: str, value: int) -> None:
    """make_longlong4 of four numbers of 32 bits."""
    found = filled(Expr("int", dtype, (), value), 32, "0.1.12")
    assert found.difference is not None
    assert (found.difference.index, found.difference.expected, found.difference.got) == ((4,), str(value), "0")
    assert found.difference.count == 2 * 16


@pytest.mark.parametrize(
    ("dtype", "value", "lanes", "release"),
    [
        ("int32", -7, 8, "0.1.13"),
        ("int32", -7, 8, "0.1.9"),
        ("int32", -7, 4, "0.1.12"),
        ("int32", 7, 8, "0.1.12"),
        ("uint32", 7, 8, "0.1.12"),
        ("int8", -7, 32, "0.1.13"),
        ("int8", -7, 16, "0.1.12"),
        ("int8", 7, 16, "0.1.11"),
        ("int8", -7, 4, "0.1.11"),
        ("int8", -7, 2, "0.1.11"),
        ("uint8", 200, 16, "0.1.11"),
        ("int16", -7, 4, "0.1.11"),
    ],
)
def test_other_vectors_are_right(dtype: str, value: int, lanes: int, release: str) -> None:
    assert filled(Expr("int", dtype, (), value), lanes, release).verdict == "agreed"
