"""Integers that lead nowhere reach the ends of their types: what casts leave of them is compared."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, load, multiply, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.snapshot.ir import Expr, If, Stmt, Store


def _cast(value: Expr, *dtypes: str) -> Expr:
    for dtype in dtypes:
        value = Expr("cast", dtype, (value,))
    return value


class Values:
    """Each thread stores what is made of its element of A."""

    def __init__(self, dtype: str = "int32") -> None:
        self.kernel = Kernel(threads=32)
        self._a, self._b = (self.kernel.tensor(name, of, (32,)) for name, of in (("A", dtype), ("B", "int64")))
        self.x = load(self._a, self.kernel.tx)

    def judged(self, source: Expr, lowered: Expr) -> OutputOutcome:
        bodies: list[tuple[Stmt]] = [(Store(self._b, (self.kernel.tx,), _cast(e, "int64")),) for e in (source, lowered)]
        return next(o for o in execute(self.kernel.snapshot(*bodies)).outputs if o.name == "B")


@pytest.mark.parametrize(
    ("dtype", "through"),
    [("int32", "int16"), ("int32", "int8"), ("int64", "int32"), ("uint16", "uint8"), ("uint32", "int16")],
)
def test_a_cast_that_is_missing(dtype: str, through: str) -> None:
    v = Values(dtype)
    found = v.judged(_cast(v.x, through, dtype), v.x)
    assert found.verdict == "refuted"
    assert found.difference is not None
    assert (found.difference.special, found.difference.ends) == (True, True)
    assert v.judged(v.x, v.x).verdict == "agreed"


def test_a_sum_is_tried_with_smaller_ones() -> None:
    v = Values()
    more = add(v.x, 1)
    assert v.judged(_cast(more, "int8", "int32"), more).verdict == "refuted"
    assert v.judged(_cast(more, "int16", "int32"), more).verdict == "agreed"


def test_what_leaves_its_type_is_the_authors() -> None:
    v = Values()
    assert v.judged(Expr("floordiv", "int32", (multiply(v.x, 1 << 20), number(1 << 20))), v.x).verdict == "agreed"


def test_integers_that_lead_to_elements_stay() -> None:
    v = Values()
    table = v.kernel.tensor("T", "int32", (8,))
    place = Expr("floormod", "int32", (v.x, number(8)))
    assert v.judged(load(table, place), load(table, place)).verdict == "agreed"


def test_an_integer_that_nobody_wrote_is_not_compared() -> None:
    k = Kernel(threads=32)
    a, b, s = k.tensor("A", "int32", (32,)), k.tensor("B", "int8", (32,)), k.tile("s", "int8", (32,))
    some = If(Expr("lt", "bool", (number(0), k.tx)), Store(s, (k.tx,), _cast(load(a, k.tx), "int8")))
    all_ = Store(b, (k.tx,), load(s, k.tx))
    lies = Store(s, (k.tx,), Expr("int", "int8", (), 7))  # other memory, with something else in it
    found = next(o for o in execute(k.snapshot([some, all_], [lies, some, all_])).outputs if o.name == "B")
    assert (found.verdict, found.unset > 0) == ("agreed", True)
