"""What depends on a loop's variable in cycles is the same again after them, and is kept by its place in the cycle."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from tlcheck.execute.compile import registry
from tlcheck.execute.compile.expressions import _elementwise, _operation
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Code, counter, key_for
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.growth import cycle
from tlcheck.execute.memory.values import kind_of
from tlcheck.snapshot.ir import Expr

K = Expr("var", "int32", (), "k", uid=1)


class Compiler:
    """As much of a machine as operators of integers ask for."""

    class options:  # noqa: N801
        exact, jitter, printed, wide, field = True, 0, False, False, None

    def code(self, e: Expr) -> Code:
        if e.op == "var":
            return counter(e.uid)
        if e.op == "int":
            return Code(lambda frame: int(e.value or 0), frozenset(), True, True)
        machine: Any = self
        return _elementwise(e, _operation(e, machine), machine)


def number(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def made(op: str, a: Expr, b: int) -> Expr:
    return Expr(op, "int32", (a, number(b)))


def value(e: Expr, k: int) -> int:
    return int(Compiler().code(e).run(Frame({1: k}, 1, 1)))


CYCLES = {
    "k % 2": (made("floormod", K, 2), 2),
    "k % 4 // 2": (made("floordiv", made("floormod", K, 4), 2), 4),
    "k // 2 % 2": (made("floormod", made("floordiv", K, 2), 2), 4),
    "(k + 3) * 6 % 4": (made("floormod", made("mul", made("add", K, 3), 6), 4), 2),
    "(k * 6 // 4) % 3": (made("floormod", made("floordiv", made("mul", K, 6), 4), 3), 2),
    "k % 2 * 4096": (made("mul", made("floormod", K, 2), 4096), 2),
    "k % 6 - k % 4": (Expr("sub", "int32", (made("floormod", K, 6), made("floormod", K, 4))), 12),
}


@pytest.mark.parametrize("text", CYCLES)
def test_a_cycle_is_as_long_as_the_values_say(text: str) -> None:
    e, length = CYCLES[text]
    found = cycle([Compiler().code(e).growths[1]])
    values = [value(e, k) for k in range(-30, 60)]
    assert found == length
    assert values[found:] == values[:-found]


@pytest.mark.parametrize("e", [K, made("add", made("floormod", K, 2), 1), made("mul", K, 3), made("floordiv", K, 3)])
def test_growth_says_what_later_iterations_add(e: Expr) -> None:
    growth = Compiler().code(e).growths[1]
    for k, times in product(range(-5, 9), range(4)):
        steps = times * growth.period
        assert value(e, k + steps) - value(e, k) == steps * growth.slope


@pytest.mark.parametrize(
    "e",
    [
        Expr("mul", "int32", (K, K)),
        Expr("floormod", "int32", (number(100), K)),
        Expr("floordiv", "int32", (number(100), K)),
        made("floordiv", K, -2),
        Expr("min", "int32", (K, number(7))),
    ],
)
def test_of_another_dependence_nothing_is_known(e: Expr) -> None:
    code = Compiler().code(e)
    assert not code.growths
    key = key_for([code])
    assert [key(Frame({1: k}, 1, 1)) for k in range(3)] == [(0,), (1,), (2,)]


def test_a_key_is_the_place_in_the_cycle_of_all_codes() -> None:
    codes = [Compiler().code(CYCLES[text][0]) for text in ("k % 2", "k % 4 // 2")]
    key = key_for(codes)
    assert [key(Frame({1: k}, 1, 1)) for k in range(6)] == [(0,), (1,), (2,), (3,), (0,), (1,)]
    assert key_for([*codes, Compiler().code(K)])(Frame({1: 6}, 1, 1)) == (6,)


def test_a_position_is_asked_again_after_other_types_were_written_there() -> None:
    """Half and float share an allocation: what is written as one and read as the other are its bits."""
    registry.load()
    half, whole = kind_of("float16"), kind_of("float32")
    cells = Cells(64, (half, whole), (0,), 1)
    halves, wholes = (np.arange(n).reshape(-1, 1, 1) for n in (8, 4))
    as_half, as_whole = cells.locate(halves, half, 0), cells.locate(wholes, whole, 0)
    cells.put(as_half, np.ones((8, 1, 1)), None, half)
    for _ in range(2):
        assert (cells.take(as_half, half) == 1).all()
    cells.put(as_whole, np.full((4, 1, 1), 2.0), None, whole)
    assert cells.take(as_half, half).reshape(-1).tolist() == [0, 2] * 4
    cells.put(as_half, np.ones((8, 1, 1)), np.ones((1, 1), np.bool_), half)
    assert (cells.take(as_half, half) == 1).all()
    before = cells.writes
    cells.forget()
    assert np.isnan(cells.take(as_half, half)).all()
    assert cells.writes > before
