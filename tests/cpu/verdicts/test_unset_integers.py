"""Integers that nobody stored have no number, in sentences and in traces, as floats have none."""

from __future__ import annotations

import pytest

from tests.cpu.checking import executed
from tests.cpu.execute.ops.tile.building import Kernel, load, number
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Expr, If, Stmt, Store
from tlcheck.verdicts.problems import element_in_words
from tlcheck.witness import Element

UNSET = "C[8] is undefined (never written), should be 7 (random inputs of seed 0; 24 elements differ)"


@pytest.mark.parametrize("through", [False, True])
def test_an_integer_that_nobody_stored_is_undefined(through: bool) -> None:
    """through: shared memory, from which all threads copy."""
    kernel = Kernel(threads=32)
    c = kernel.tensor("C", "int32", (32,))
    into = kernel.tile("s", "int32", (32,)) if through else c
    store = Store(into, (kernel.tx,), number(7), line=5)
    copy: list[Stmt] = [Store(c, (kernel.tx,), load(into, kernel.tx), line=6)] if through else []
    few = If(Expr("lt", "bool", (kernel.tx, number(8))), store)
    (claim,) = [c for c in executed(kernel.snapshot([store, *copy], [few, *copy]), Request()) if c.finding is not None]
    assert claim.finding is not None
    witness = claim.finding.witness
    assert isinstance(witness, Element)
    assert element_in_words("C", witness) == UNSET
    assert "never written   nothing wrote it" in witness.lowered[-1]


def test_whole_numbers_have_all_their_digits() -> None:
    element = Element((3,), "-1592635573", "0.12345678901", "")
    assert element_in_words("C", element) == "C[3] is -1592635573, should be 0.1234568"
