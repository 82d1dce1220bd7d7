"""Layouts that count otherwise than the buffer: those of a view of it, and those of the part that has registers."""

from __future__ import annotations

import pytest

from tests.cpu.prove.handmade import ADDED, STEP, THREAD, add, load, number, operation, parallel, status
from tlcheck.snapshot.ir import Block, Buffer, Expr, Layout, Stmt

ROW, COLUMN = (Expr("var", "int32", value=name, uid=91_070 + n) for n, name in enumerate("ij"))


def buffer(scope: str, *shape: int) -> Buffer:
    return Buffer("S", "int32", tuple(map(number, shape)), scope, Expr("var", "handle", value="S", uid=91_072))


def element(of: Buffer, *indices: Expr) -> Expr:
    return Expr("load", "int32", indices, buffer=of)


def laid_out(layout: Layout, of: Buffer, body: Stmt) -> Block:
    return Block("root", body, ((of.data, layout),))


@pytest.mark.parametrize(("shift", "found"), [(0, "same"), (1, "different")])
def test_a_layout_of_a_view_is_one_of_the_buffer(shift: int, found: str) -> None:
    """`v = T.reshape(s, (2, 32))`: TileLang knows the layout of v alone. Here it turns the elements round."""
    declared, flat = buffer("shared", 16, 4), buffer("shared", 64)
    place = operation("sub", number(63), operation("add", operation("mul", ROW, number(32)), COLUMN))
    layout = Layout((ROW, COLUMN), (number(2), number(32)), (place,))
    parts = (operation(op, STEP, number(4)) for op in ("floordiv", "floormod"))
    source = laid_out(layout, declared, parallel(add(load(ADDED, STEP), element(declared, *parts))))
    there = operation("floormod", operation("sub", number(63 + shift), THREAD), number(64))
    assert status(source, add(load(ADDED, THREAD), element(flat, there)), declared, seen=(flat,)) == found


@pytest.mark.parametrize(("column", "found"), [(0, "same"), (1, "undecided")])
def test_a_fragment_of_which_a_part_has_registers(column: int, found: str) -> None:
    """No loop uses the second of two columns, so that the layout counts those of the first one."""
    declared, own = buffer("local.fragment", 64, 2), buffer("local", 1)
    layout = Layout((ROW, COLUMN), (number(64), number(1)), (COLUMN,), ROW)
    source = laid_out(layout, declared, parallel(add(load(ADDED, STEP), element(declared, STEP, number(column)))))
    assert status(source, add(load(ADDED, THREAD), element(own, number(0))), declared, seen=(own,)) == found
