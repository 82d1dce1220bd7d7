"""Some kernels are one formula at both levels, and others only look like it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, load
from tlcheck.execute.compare.both_levels import execute
from tlcheck.snapshot.ir import Expr, Store

THREADS = 32


def cast(dtype: str, e: Expr) -> Expr:
    return Expr("cast", dtype, (e,))


def power(a: Expr, name: str) -> Expr:
    return Expr("call", a.dtype, (a, Expr("float", a.dtype, (), 2.0)), name)


def equal(kernel: Kernel, source: Expr, lowered: Expr, release: str = "0.1.15") -> bool:
    """Whether the output is one formula at both levels."""
    c = kernel.tensor("C", source.dtype, (THREADS,))
    bodies = [[Store(c, (kernel.tx,), value)] for value in (source, lowered)]
    snapshot = kernel.snapshot(*bodies)
    snapshot = replace(snapshot, toolchain={**snapshot.toolchain, "tilelang": release})
    formulas = execute(snapshot).formulas
    return formulas is not None and "C" in formulas.equal


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float16"])
def test_a_tensor_of_any_type_is_one_formula(dtype: str) -> None:
    kernel = Kernel(threads=THREADS)
    a = load(kernel.tensor("A", dtype, (THREADS,)), kernel.tx)
    assert equal(kernel, cast("float32", a), cast("float32", a))


def test_a_power_that_no_negative_number_has() -> None:
    kernel = Kernel(threads=THREADS)
    a = load(kernel.tensor("A", "float32", (THREADS,)), kernel.tx)
    assert equal(kernel, power(a, "pow"), power(a, "powf"))
    assert not equal(kernel, power(a, "pow"), power(a, "__powf"))


@pytest.mark.parametrize(("release", "expected"), [("0.1.10", False), ("0.1.11", True)])
def test_round_that_may_go_away_from_zero(release: str, expected: bool) -> None:
    kernel = Kernel(threads=THREADS)
    whole = Expr("call", "float32", (load(kernel.tensor("A", "float32", (THREADS,)), kernel.tx),), "round")
    assert equal(kernel, whole, whole, release) == expected
