"""T.reduce of every kind, against NumPy's reductions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import (
    Array,
    Kernel,
    call,
    flag,
    load,
    number,
    poisoned,
    random,
    region,
    text,
    whole_pointer,
)
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.values import poison
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Evaluate, Expr

SHAPE = (3, 4, 5)
OF: dict[str, Callable[[Array, int], Array]] = {
    "sum": lambda x, axis: x.sum(axis, dtype=x.dtype),
    "abssum": lambda x, axis: np.where(x < 0, -x, x).sum(axis, dtype=x.dtype),
    "max": lambda x, axis: x.max(axis),
    "min": lambda x, axis: x.min(axis),
    "absmax": lambda x, axis: np.where(x < 0, -x, x).max(axis),
    "bitand": lambda x, axis: np.bitwise_and.reduce(x, axis),
    "bitor": lambda x, axis: np.bitwise_or.reduce(x, axis),
    "bitxor": lambda x, axis: np.bitwise_xor.reduce(x, axis),
}
WITH: dict[str, Callable[[Array, Array], Array]] = {
    "sum": lambda a, b: a + b,
    "abssum": lambda a, b: a + b,
    "max": np.maximum,
    "min": np.minimum,
    "absmax": np.maximum,
    "bitand": lambda a, b: a & b,
    "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b,
}
KINDS = [(k, d) for k in OF for d in ("float32", "float16", "int32", "uint8") if "bit" not in k or d[0] != "f"]


def reduction(source: Expr, target: Expr, kind: str, axis: int, clear: bool, propagate: bool = False) -> Expr:
    notes = (("nan_propagate", "True"),) if propagate else ()
    args = (source, target, text(kind), number(axis), flag(clear))
    return Expr("call", "handle", args, "reduce", annotations=notes)


def run(a: Array, before: Array, dtypes: tuple[str, str], *how: object, exact: bool = True) -> Array:
    kernel = Kernel(exact=exact)
    source, target = kernel.tensor("A", dtypes[0], a), kernel.tensor("B", dtypes[1], before)
    tile = kernel.tile("f", dtypes[0], a.shape, "local.fragment")
    result = kernel.tile("r", dtypes[1], before.shape, "local.fragment")
    step = reduction(region(tile), region(result), *how)  # type: ignore[arg-type]
    return kernel.run(
        call("copy", region(source), region(tile)),
        call("copy", region(target), region(result)),
        call("reduce", *step.args, notes=dict(step.annotations)),
        call("copy", region(result), region(target)),
    )["B"]


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("kind", "dtype"), KINDS)
def test_kinds(kind: str, dtype: str, axis: int, clear: bool) -> None:
    """Along every axis, which is left out of the result or kept with one element, by turns."""
    a, kept = random(dtype, *SHAPE), (axis % 2 == 1) == clear
    with np.errstate(over="ignore"):
        expected = OF[kind](a, axis)
        before = random(dtype, *expected.shape, seed=1)
        expected = expected if clear else WITH[kind](before, expected)
    shape = tuple(1 if i == axis else n for i, n in enumerate(SHAPE)) if kept else expected.shape
    found = run(a, before.reshape(shape), (dtype, dtype), kind, axis, clear)
    assert np.array_equal(found, expected.reshape(shape))


def test_one_axis_gives_one_element() -> None:
    a = random("float32", 9)
    assert run(a, np.zeros(1), ("float32", "float32"), "sum", 0, True).tolist() == [a.sum()]


def test_elements_are_converted_before() -> None:
    a = random("int8", 3, 60)
    found = run(a, np.zeros(3, np.int32), ("int8", "int32"), "sum", 1, True)
    assert np.array_equal(found, a.sum(1, dtype=np.int32))


def test_real_sums_are_rounded() -> None:
    a = random("float32", 3, 7) / 3
    found = run(a, np.zeros(3), ("float64", "float16"), "sum", 1, True, exact=False)
    terms = a.astype(np.float16).astype(np.float64)
    assert np.array_equal(found, terms.sum(1).astype(np.float16).astype(np.float64))


@pytest.mark.parametrize("propagate", [False, True])
@pytest.mark.parametrize("kind", ["max", "min", "absmax"])
def test_nan_gives_way_to_numbers_unless_it_shall_not(kind: str, propagate: bool) -> None:
    a = random("float32", 3, 5)
    a[1, 2] = np.nan
    found = run(a, np.zeros(3), ("float32", "float32"), kind, 1, True, propagate)
    expected = OF[kind](np.delete(a, 2, 1) if not propagate else a, 1)
    assert np.array_equal(found[1:2], expected[1:2], equal_nan=True)


@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize(("kind", "first"), [("max", -np.inf), ("min", np.inf), ("absmax", 0.0)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_lines_without_a_number_give_what_a_maximum_begins_with(
    kind: str, first: float, clear: bool, dtype: str
) -> None:
    a = random(dtype, 3, 5)
    a[1] = np.nan
    found = run(a, np.full(3, 2.0), (dtype, dtype), kind, 1, clear)
    assert found[1] == (first if clear else 2.0)
    assert not np.isnan(found).any()
    assert np.isnan(run(a, np.full(3, 2.0), (dtype, dtype), kind, 1, clear, True)[1])


@pytest.mark.parametrize("kind", ["sum", "max", "min", "absmax"])
def test_poison_stays(kind: str) -> None:
    a = random("float32", 3, 5)
    a[1, 2], a[1, 0] = poison(5), np.nan
    found = run(a, np.zeros(3), ("float32", "float32"), kind, 1, True)
    assert poisoned(found).tolist() == [False, True, False] or kind == "sum"
    assert np.isnan(found[1])


def test_buffers_by_pointer() -> None:
    kernel, a = Kernel(), random("float32", 4, 6)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [4])
    step = reduction(whole_pointer(source), whole_pointer(target), "max", 1, True)
    assert np.array_equal(kernel.run(call("reduce", *step.args))["B"], a.max(1))


def test_registers_of_each_thread() -> None:
    kernel, a = Kernel(threads=4), random("float32", 4, 6)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", [4])
    own, one = kernel.tile("own", "float32", (6,), "local"), kernel.tile("one", "float32", (1,), "local")
    step = reduction(region(own), region(one), "sum", 0, True)
    found = kernel.run(
        call("copy", region(source, (kernel.tx, 0), (1, 6)), region(own)),
        call("reduce", *step.args),
        call("copy", region(one), region(target, (kernel.tx,), (1,))),
    )["B"]
    assert np.array_equal(found, a.sum(1))


def test_unknown_kinds_are_not_modelled() -> None:
    with pytest.raises(NotModelled, match="reduce prod"):
        run(np.zeros((2, 2)), np.zeros(2), ("float32", "float32"), "prod", 1, True)


@pytest.mark.parametrize(("line", "filled"), [(0, False), (0, True), (9, False)])
def test_a_fragment_of_tilelangs_own_begins_as_the_shared_destination(line: int, filled: bool) -> None:
    """Before 0.1.8 nothing fills it. line: one of the author's own is what it is. filled: so is one that is filled."""
    a, before = random("float32", 4, 8), random("float32", 4, seed=1)
    kernel = Kernel()
    source, given, out = (
        kernel.tensor("A", "float32", a),
        kernel.tensor("G", "float32", before),
        kernel.tensor("B", "float32", [4]),
    )
    tile, shared = kernel.tile("f", "float32", (4, 8), "local.fragment"), kernel.tile("s", "float32", (4,), "shared")
    made = kernel.tile("s_frag", "float32", (4,), "local.fragment")
    reduce = replace(Evaluate(reduction(region(tile), region(made), "sum", 1, clear=False)), line=line)
    found = kernel.run(
        call("copy", region(source), region(tile)),
        call("copy", region(given), region(shared)),
        *([call("fill", region(made), number(0))] if filled else []),
        reduce,
        call("copy", replace(region(made), args=(load(made, 0), number(1), number(4))), region(shared)),
        call("copy", region(shared), region(out)),
    )["B"]
    if line:
        assert poisoned(found).all()
    else:
        assert np.allclose(found, a.sum(1) + (0 if filled else before))


@pytest.mark.parametrize("elements", [1, 3])
def test_a_sum_of_terms_that_cancel_costs_what_partial_sums_lose(elements: int) -> None:
    """1,000 times 1 and 1,000 times -1: the sum is 0, those of some of the terms are about 45, and are rounded too."""
    terms = np.tile([1.0, -1.0], 1000)
    kernel = Kernel(lowered=Options(source=True, exact=False, costly=True))
    source = kernel.tensor("A", "float16", np.broadcast_to(terms, (elements, 2000)).copy())
    target = kernel.tensor("B", "float16", np.zeros(elements))
    tiles = [
        kernel.tile(name, "float16", shape, "local.fragment")
        for name, shape in (("f", (elements, 2000)), ("r", (elements,)))
    ]
    step = reduction(region(tiles[0]), region(tiles[1]), "sum", 1, True)
    found = kernel.run(
        call("copy", region(source), region(tiles[0])),
        call("reduce", *step.args),
        call("copy", region(tiles[1]), region(target)),
    )["B"]
    assert (np.abs(found) > 0.25).all()
    assert (np.abs(found) < 2.0).all()
