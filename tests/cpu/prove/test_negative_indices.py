"""An index that is never in bounds: TileLang counts it from the end, which the source does not say."""

from __future__ import annotations

import pytest

from tests.cpu.prove.handmade import THREAD, add, load, number, operation, own, status, tensor
from tlcheck.snapshot.ir import Expr

VALUES, RESULTS, LESS = tensor("F", "float32", 256, 91_051), tensor("S", "float32", 64, 91_052), number(-3)


@pytest.mark.parametrize(("index", "found"), [(LESS, "undecided"), (operation("add", THREAD, LESS), "different")])
def test_only_what_is_in_bounds_is_compared(index: Expr, found: str) -> None:
    source = add(load(RESULTS, index), own(VALUES))
    lowered = add(load(RESULTS, operation("add", number(64), LESS)), own(VALUES))
    assert status(source, lowered, VALUES, RESULTS) == found
