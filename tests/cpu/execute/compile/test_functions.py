"""Functions of values that TileLang's documentation lists and no kernel of the tests has, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, load, number, text
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr, Store

A = np.array([3, -2, 70000, 1, 0, -7, 5, 46341], np.int32)
X = np.array([0.5, -1.5, 2.0, 1e-3, 0.0, -7.0, 3.0, 9.0], np.float32)


def _found(dtype: str, values: npt.NDArray[Any], name: str, *args: Expr) -> npt.NDArray[Any]:
    """Return what a function of each element, and of further arguments, gives; a name with `::` or `f` is the
    library's.
    """
    kernel = Kernel(threads=len(values))
    source, target = kernel.tensor("A", dtype, values), kernel.tensor("B", dtype, [len(values)])
    all_args = (load(source, kernel.tx), *args)
    if "::" in name or name.endswith("f"):
        value = Expr("call", dtype, (text(name), *all_args), "call_pure_extern")
    else:
        value = Expr("call", dtype, all_args, name)
    return kernel.run(Store(target, (kernel.tx,), value))["B"]


ONE = Expr("float", "float32", (), 1.0)


@pytest.mark.parametrize(
    ("name", "args", "meaning"),
    [
        ("fminf", (ONE,), lambda x: np.fmin(x, 1)),
        ("fmaxf", (ONE,), lambda x: np.fmax(x, 1)),
        ("__saturatef", (), lambda x: np.clip(np.nan_to_num(x), 0, 1)),
        ("__fdividef", (ONE,), lambda x: x),
        ("cbrtf", (), np.cbrt),
        ("expm1f", (), np.expm1),
        ("erfcf", (), lambda x: np.array([math.erfc(one) for one in x])),
    ],
)
def test_the_device_librarys_mathematics(name: str, args: tuple[Expr, ...], meaning: Callable[[Any], Any]) -> None:
    values = np.array([0.5, -1.5, 2.0, 1e-3, 0.0, -7.0, np.nan, 9.0], np.float32)
    assert np.allclose(_found("float32", values, name, *args), meaning(values.astype(np.float64)), equal_nan=True)


def test_a_clamp_keeps_nan() -> None:
    """0.1.15: of the value or of a bound (docstring of T.clamp). Bounds that are exchanged give the upper one."""
    values = np.array([0.5, -1.5, 2.0, np.nan, -np.inf, np.inf], np.float32)
    low, high, nan = (Expr("float", "float32", (), number) for number in (-1.0, 1.0, math.nan))
    assert np.array_equal(_found("float32", values, "clamp", low, high), np.clip(values, -1, 1), equal_nan=True)
    assert np.isnan(_found("float32", values, "clamp", low, nan)).all()
    assert _found("float32", values[:3], "clamp", high, low).tolist() == [-1, -1, -1]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_whole_numbers_as_exponents(count: int) -> None:
    """Integers wrap."""
    for found in (
        _found("int32", A, "pow_of_int", number(count)),
        _found("int32", A, f"tl::pow_of_int<{count}>"),
    ):
        assert found.tolist() == (A.astype(object) ** count & 0xFFFFFFFF).astype(np.uint32).view(np.int32).tolist()
    assert np.allclose(_found("float32", X, f"tl::pow_of_int<{count}>"), X.astype(np.float64) ** count)


def test_the_library_takes_no_exponent_for_one() -> None:
    assert _found("int32", A, "pow_of_int", number(0)).tolist() == [1] * 8
    assert _found("int32", A, "tl::pow_of_int<0>").tolist() == A.tolist()


def test_a_negative_exponent() -> None:
    """The library takes it for one, too."""
    values = np.array([0.5, -2.0, 4.0], np.float32)
    assert _found("float32", values, "pow_of_int", number(-2)).tolist() == [4.0, 0.25, 0.0625]
    assert _found("float32", values, "tl::pow_of_int<-2>").tolist() == values.tolist()
    with pytest.raises(NotModelled, match="a negative power of int32"):
        _found("int32", A, "pow_of_int", number(-1))


def test_a_power_of_two_as_a_factor() -> None:
    for name in ("ldexp", "ldexpf"):
        assert _found("float32", X, name, number(3)).tolist() == (X * 8).tolist()


def test_the_next_number_of_the_type() -> None:
    up = Expr("float", "float32", (), 100.0)
    assert _found("float32", X, "nextafterf", up).tolist() == np.nextafter(X, np.float32(100)).tolist()
    assert _found("float64", X.astype(np.float64), "nextafter", up)[0] == np.nextafter(0.5, 100.0)
