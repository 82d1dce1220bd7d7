"""Choices that hang on how a sum is rounded of which nothing should be left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, Store


def _float(value: float) -> Expr:
    return Expr("float", "float32", (), value)


def _two(op: str, a: Expr, b: Expr) -> Expr:
    return Expr(op, "float32", (a, b))


@pytest.mark.parametrize(("more", "expected"), [(0.0, "undecided"), (1e-3, "refuted")])
def test_every_element_that_hangs_on_rounding_is_a_tie(more: float, expected: str) -> None:
    """Of 256 elements some are above zero as written, and others as lowered. more: what moves the lowered ones."""
    made = Kernel(threads=256)
    a, b = (made.tensor(name, "float32", np.zeros(256)) for name in "AB")
    c = made.tensor("C", "float32", [256])
    x, y = load(a, made.tx), load(b, made.tx)
    parts = _two("add", _two("mul", x, _float(0.1)), _two("mul", y, _float(0.1)))
    whole = _two("mul", _two("add", x, y), _float(0.1))

    def chosen(left: Expr, right: Expr) -> Store:
        above = Expr("lt", "bool", (_float(0.0), _two("sub", left, right)))
        return Store(c, (made.tx,), Expr("select", "float32", (above, _float(1.0), _float(0.0))))

    lowered = chosen(_two("add", whole, _float(more)), parts)
    (outcome,) = execute(made.snapshot([chosen(parts, whole)], [lowered])).outputs
    assert outcome.verdict == expected
    assert outcome.reason == ("tie: rounding decides what is chosen" if expected == "undecided" else "")


@pytest.mark.parametrize(("grows", "expected"), [(1e300, "undecided"), (1.0, "refuted")])
def test_the_order_of_a_sum_at_the_edge_of_float64_is_no_finding(grows: float, expected: str) -> None:
    """x + (x - x) is 1e308 as written; as lowered x + x - x is infinite. An infinite number of itself is one."""
    made = Kernel(threads=32)
    c = made.tensor("C", "float32", [32])
    x = _two("mul", _float(1e8), load(made.tensor("A", "float32", np.full(32, grows)), made.tx))
    written = _two("add", x, _two("sub", x, x))
    twice = _two("add", x, x) if grows > 1.0 else _float(float("inf"))
    snapshot = made.snapshot([Store(c, (made.tx,), written)], [Store(c, (made.tx,), _two("sub", twice, x))])
    arrays = {"A": np.full(32, grows), "C": np.zeros(32)}
    (outcome,) = execute(snapshot, Request(seeds=(0,), given={0: arrays})).outputs
    assert outcome.verdict == expected


@pytest.mark.parametrize(
    ("grows", "lowered", "expected"),
    [(True, 0.0, "undecided"), (True, None, "undecided"), (False, 0.0, "refuted"), (False, None, "refuted")],
    ids=["NaN where numbers overflow", "a number there", "NaN where the author writes infinity", "a number there too"],
)
def test_what_overflow_leaves_is_no_finding_and_infinity_as_written_is_compared(
    grows: bool, lowered: float | None, expected: str
) -> None:
    """C is infinite as written, by a product of 1e200 with itself or in so many words; as lowered infinity times 0."""
    made = Kernel(threads=32)
    c = made.tensor("C", "float32", [32])
    endless = _two("mul", _float(1e200), load(made.tensor("A", "float32", np.full(32, 1e200)), made.tx))
    if not grows:
        endless = _float(float("inf"))
    other = _float(1.0) if lowered is None else _two("mul", endless, _float(lowered))
    snapshot = made.snapshot([Store(c, (made.tx,), endless)], [Store(c, (made.tx,), other)])
    arrays = {"A": np.full(32, 1e200), "C": np.zeros(32)}
    (outcome,) = execute(snapshot, Request(seeds=(0,), given={0: arrays})).outputs
    assert outcome.verdict == expected


HALVES = np.arange(-64, 64) / 2


def _rounded(release: str, written: str, lowered: str, dtype: str = "float32") -> OutputOutcome:
    """Counts of halves by what they are rounded to: T.round or such as written, a function of CUDA as lowered."""
    made = Kernel(threads=128)
    a, c = made.tensor("A", dtype, HALVES), made.tensor("C", "int32", [128])
    x, name = load(a, made.tx), Expr("str", "handle", (), lowered)
    sides = Expr("call", dtype, (x,), written), Expr("call", dtype, (name, x), "call_pure_extern")
    places = [Expr("add", "int32", (Expr("cast", "int32", (side,)), number(64))) for side in sides]
    adding = [
        call("atomic_add_elem_op", Expr("call", "handle", (load(c, at),), "address_of"), number(1)) for at in places
    ]
    snapshot = replace(made.snapshot([adding[0]], [adding[1]]), toolchain={"tilelang": release})
    (outcome,) = execute(snapshot, Request(seeds=(0,), given={0: {"A": HALVES, "C": np.zeros(128)}})).outputs
    return outcome


@pytest.mark.parametrize(
    ("release", "written", "lowered", "dtype", "expected"),
    [
        ("0.1.15", "round", "nearbyintf", "float32", "agreed"),
        ("0.1.15", "round", "hrint", "float16", "agreed"),
        ("0.1.15", "round_ties_away_from_zero", "tl::RoundTiesAwayFromZero", "float32", "agreed"),
        ("0.1.15", "round", "roundf", "float32", "refuted"),
        ("0.1.15", "round", "round", "float64", "refuted"),
        ("0.1.14", "round", "hrint", "float16", "agreed"),
        ("0.1.9", "round", "truncf", "float32", "refuted"),
    ],
)
def test_round_takes_the_even_number_of_two(
    release: str, written: str, lowered: str, dtype: str, expected: str
) -> None:
    assert _rounded(release, written, lowered, dtype).verdict == expected


@pytest.mark.parametrize(("lowered", "dtype"), [("roundf", "float32"), ("round", "float64")])
def test_round_of_releases_that_mean_two_things_by_it_is_a_tie(lowered: str, dtype: str) -> None:
    """Before 0.1.11 constants are rounded to even numbers, and CUDA's function is the one that does not."""
    assert _rounded("0.1.9", "round", lowered, dtype).reason == "tie: rounding decides what is chosen"
