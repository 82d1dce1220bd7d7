"""Layouts by what they do, on index maps made by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from tlcheck.facts.kernel_facts import LayoutFacts
from tlcheck.facts.layout_digests import layouts
from tlcheck.program.walk import walk
from tlcheck.snapshot import ir

IndexMap = Callable[..., Sequence[ir.Expr]]


def number(value: int) -> ir.Expr:
    return ir.Expr("int", "int32", value=value)


def binary(op: str, a: ir.Expr, b: ir.Expr | int) -> ir.Expr:
    return ir.Expr(op, "int32", (a, number(b) if isinstance(b, int) else b))


def described(shape: Sequence[int], index: IndexMap, dtype: str = "float16") -> LayoutFacts:
    """The layout of a shared buffer with that index map."""
    variables = tuple(ir.Expr("var", "int32", value=f"i{n}", uid=n + 10) for n in range(len(shape)))
    extents = tuple(map(number, shape))
    data = ir.Expr("var", "handle", value="a", uid=1)
    layout = ir.Layout(variables, extents, tuple(index(*variables)))
    alloc = ir.Alloc(ir.Buffer("a", dtype, extents, "shared", data))
    body = ir.Seq((alloc, ir.Block("root", ir.Seq(()), ((data, layout),))))
    (found,) = layouts(walk(ir.Function("main", (), (), (), body)), None)
    return found


def swizzled(width: int, alike: int) -> IndexMap:
    """Chunks of 8 elements in rows of `width`, permuted by exclusive or with the row's number over `alike`."""

    def index(i: ir.Expr, j: ir.Expr) -> Sequence[ir.Expr]:
        row = binary("floordiv", binary("floormod", i, 8), alike)
        chunk = binary("floormod", binary("floordiv", j, 8), width // 8)
        moved = ir.Expr("call", "int32", (chunk, row), "bitwise_xor")
        inside = binary("add", binary("mul", moved, 8), binary("floormod", j, 8))
        return (binary("floordiv", j, width), binary("add", binary("mul", i, width), inside))

    return index


@pytest.mark.parametrize(("width", "alike", "kind"), [(64, 1, "128B"), (32, 2, "64B"), (16, 4, "32B")])
def test_swizzles_are_known_by_their_width(width: int, alike: int, kind: str) -> None:
    assert described((64, 64), swizzled(width, alike)).kind == f"swizzle {kind}"
    assert described((64, 64), swizzled(width, alike), "int8").kind == "permuted"  # not in chunks of 16 bytes


def test_other_layouts() -> None:
    assert described((64, 32), lambda i, j: (i, j)).kind == "row-major"
    assert described((64, 32), lambda i, j: (binary("add", binary("mul", i, 40), j),)).kind == "padded to 40"
    assert described((64, 32), lambda i, j: (j, i)).kind == "permuted"


def test_equal_maps_have_one_digest_however_they_are_written() -> None:
    one = described((64, 64), swizzled(32, 2))
    rewritten = described((64, 64), lambda i, j: (number(0), *swizzled(32, 2)(i, binary("add", j, 0))))
    assert one.digest == rewritten.digest != described((64, 64), swizzled(64, 1)).digest
    assert described((64, 32), lambda i, j: (j, i)).digest != described((64, 32), lambda i, j: (i, j)).digest


def test_versions_in_front_change_nothing() -> None:
    plain = described((64, 64), swizzled(64, 1))
    assert described((3, 64, 64), lambda v, i, j: (v, *swizzled(64, 1)(i, j))).digest == plain.digest
    row_major = described((16, 64), lambda i, j: (number(0), number(0), i, j))
    assert described((2, 16, 64), lambda v, i, j: (v, i, j)).digest == row_major.digest
