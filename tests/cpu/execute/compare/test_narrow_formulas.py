"""What rounds on purpose, or is another function, is no equal formula: floats of 8 bits, round, __powf."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, load, number
from tlcheck.execute.compare.run import execute
from tlcheck.snapshot.ir import Expr, Store

THREADS = 32
E5M2, E4M3 = "float8_e5m2", "float8_e4m3fn"


def cast(dtype: str, e: Expr) -> Expr:
    return Expr("cast", dtype, (e,))


def times(a: Expr, b: Expr) -> Expr:
    return Expr("mul", a.dtype, (a, b))


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


@pytest.mark.parametrize("dtype", [E5M2, "float16"])
def test_a_tensor_of_any_type_is_one_formula(dtype: str) -> None:
    kernel = Kernel(threads=THREADS)
    a = load(kernel.tensor("A", dtype, (THREADS,)), kernel.tx)
    assert equal(kernel, cast("float32", a), cast("float32", a))


def test_a_cast_among_types_of_8_bits() -> None:
    """1024 is one of E5M2, and 448 the largest number of E4M3."""
    kernel = Kernel(threads=THREADS)
    a = load(kernel.tensor("A", E5M2, (THREADS,)), kernel.tx)
    assert not equal(kernel, cast("float32", cast(E4M3, a)), cast("float32", a))


def test_an_integer_as_a_float_of_8_bits() -> None:
    kernel = Kernel(threads=THREADS)
    whole = Expr("mul", "int32", (kernel.tx, number(37)))
    assert not equal(kernel, cast("float16", cast(E4M3, whole)), cast("float16", whole))


def test_a_product_in_8_bits() -> None:
    """1.25 squared is 1.5 in E5M2, and 1.5625 in float32."""
    kernel = Kernel(threads=THREADS)
    a = load(kernel.tensor("A", E5M2, (THREADS,)), kernel.tx)
    wide = cast("float32", a)
    assert not equal(kernel, cast("float32", times(a, a)), times(wide, wide))


def test_a_constant_of_8_bits() -> None:
    kernel = Kernel(threads=THREADS)
    a = cast("float32", load(kernel.tensor("A", "float16", (THREADS,)), kernel.tx))
    narrow, wide = cast("float32", Expr("float", E4M3, (), 1000.3)), Expr("float", "float32", (), 1000.3)
    assert not equal(kernel, times(a, narrow), times(a, wide))


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
