"""Layouts and fragments as functions, against the same computed point by point."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.strategies import randoms

from tests.cpu.prove.random_expressions import integer, value, variable
from tlcheck.algebra.algebra import FragmentTable
from tlcheck.program.layouts import clash, fragment_table
from tlcheck.snapshot.ir import Expr, Layout

REPLICA = variable(9)


@dataclass(frozen=True)
class Digit:
    """`(v // divisor) % base` of one input."""

    of: Expr
    divisor: int
    base: int

    @property
    def expr(self) -> Expr:
        return _binary("floormod", _binary("floordiv", self.of, integer(self.divisor)), integer(self.base))


def _binary(op: str, a: Expr, b: Expr) -> Expr:
    return Expr(op, "int32", (a, b))


def _mixed(digits: list[Digit]) -> Expr:
    """Digits written one after the other as one number."""
    total = integer(0)
    for digit in digits:
        total = _binary("add", _binary("mul", total, integer(digit.base)), digit.expr)
    return total


def _fragment(random: Random, replicas: int) -> Layout:
    """A random permutation of the bits of the inputs (and of the replica) onto thread and register."""
    rows, columns = 2 ** random.randint(0, 4), 2 ** random.randint(1, 4)
    i, j = variable(1), variable(2)
    digits = [Digit(v, 2**b, 2) for v, n in ((i, rows), (j, columns)) for b in range(n.bit_length() - 1)]
    random.shuffle(digits)
    cut = random.randint(0, len(digits))
    threads = digits[:cut]
    if replicas > 1:
        threads.insert(random.randint(0, cut), Digit(REPLICA, 1, replicas))
    index: tuple[Expr, ...] = (_mixed(digits[cut:]),)
    if len(digits) - cut > 1 and random.random() < 0.5:
        index = (_mixed(digits[cut : cut + 1]), _mixed(digits[cut + 1 :]))
    replica = REPLICA if replicas > 1 else None
    return Layout((i, j), (integer(rows), integer(columns)), index, _mixed(threads), replica, replicas)


def _at(table: FragmentTable, thread: int, local: int) -> int:
    return int(table.at(np.asarray(thread), np.asarray(local)))


@pytest.mark.parametrize("replicas", [1, 2, 3])
@settings(max_examples=30)
@given(random=randoms(use_true_random=False))
def test_a_fragment_read_backwards(random: Random, replicas: int) -> None:
    layout = _fragment(random, replicas)
    table = fragment_table(layout)
    assert table is not None
    rows, columns = (int(e.value or 0) for e in layout.input_shape)
    held: dict[tuple[int, int], int] = {}
    extents = [1 + max(p[k] for p in _images(layout, rows, columns, replicas)) for k in range(len(layout.index))]
    for i, j, r in product(range(rows), range(columns), range(replicas)):
        point = {1: i, 2: j, 9: r}
        assert layout.thread is not None
        local = 0
        for index, extent in zip(layout.index, extents, strict=True):
            local = local * extent + value(index, point)
        held[value(layout.thread, point), local] = i * columns + j
    assert {slot: _at(table, *slot) for slot in held} == held
    outside = [(t, n) for t, n in product(range(-1, table.threads + 2), range(-1, table.registers + 2))]
    assert all(_at(table, *slot) < 0 for slot in outside if slot not in held)


def _images(layout: Layout, rows: int, columns: int, replicas: int) -> list[list[int]]:
    points = product(range(rows), range(columns), range(replicas))
    return [[value(e, {1: i, 2: j, 9: r}) for e in layout.index] for i, j, r in points]


def test_registers_that_hold_nothing_are_unlike_each_other() -> None:
    """Else additions of what they hold would be equal, or all skipped under a condition on it."""
    i = variable(1)
    layout = Layout((i,), (integer(8),), (_binary("floormod", i, integer(2)),), _binary("floordiv", i, integer(2)))
    table = fragment_table(layout)
    assert table is not None
    thread, local = np.meshgrid(np.arange(8), np.arange(5))
    held = table.at(thread, local)
    nothing = held[held < 0]
    assert sorted(held[held >= 0].tolist()) == list(range(8))
    assert len(np.unique(nothing)) == nothing.size


def test_a_fragment_with_two_elements_in_one_register_cannot_be_read_backwards() -> None:
    i = variable(1)
    assert fragment_table(Layout((i,), (integer(8),), (integer(0),), _binary("floordiv", i, integer(2)))) is None


def test_an_element_before_its_buffer_is_named() -> None:
    i = variable(1)
    found = clash(Layout((i,), (integer(8),), (_binary("sub", integer(4), _binary("floordiv", i, integer(1))),)))
    assert found == ((7,), (7,), -3)


@settings(max_examples=60)
@given(random=randoms(use_true_random=False))
def test_clashes_of_layouts(random: Random) -> None:
    i, j = variable(1), variable(2)
    rows, columns = random.choice((2, 4, 6)), random.choice((4, 8))
    index = tuple(
        _binary(random.choice(("floordiv", "floormod")), random.choice((i, j)), integer(random.choice((1, 2, 4))))
        for _ in range(3)
    )
    index = (*index, _binary("add", i, _binary("mul", j, integer(random.choice((0, 1, rows))))))
    layout = Layout((i, j), (integer(rows), integer(columns)), index)
    points = list(product(range(rows), range(columns)))
    images = [tuple(value(e, {1: a, 2: b}) for e in index) for a, b in points]
    found = clash(layout)
    assert (found is not None) == (len(set(images)) < len(images))
    if found is not None:
        one, other = (images[points.index((p[0], p[1]))] for p in found[:2])
        assert found[0] != found[1]
        assert one == other
