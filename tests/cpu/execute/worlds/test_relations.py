"""What T.assume says of two elements holds for what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.worlds.integer_limits import ranks
from tlcheck.snapshot.ir import Buffer, Expr, For, Stmt, Store


class Parts:
    """Each thread adds up a part of A, from S to E, and stores the sum."""

    def __init__(self) -> None:
        self.kernel = kernel = Kernel(threads=32)
        self.a, self.out = (kernel.tensor(name, "int32", (256,)) for name in ("A", "O"))
        self.s, self.e = (kernel.tensor(name, "int32", (33,)) for name in "SE")
        self.tx, k = kernel.tx, variable("k")
        length = Expr("sub", "int32", (load(self.e, self.tx), load(self.s, self.tx)))
        value = add(load(self.out, self.tx), load(self.a, add(load(self.s, self.tx), k)))
        self._sum = Store(self.out, (self.tx,), number(0)), For(k, number(0), length, "serial", self._added(value))

    def _added(self, value: Expr) -> Stmt:
        return Store(self.out, (self.tx,), value)

    def run(self, *promises: Expr) -> Execution:
        body = (*(call("assume", promise) for promise in promises), *self._sum)
        return execute(self.kernel.snapshot(body, body))

    def element(self, of: Buffer, step: int = 0) -> Expr:
        return load(of, add(self.tx, step) if step else self.tx)


def _is(op: str, one: Expr, other: Expr) -> Expr:
    return Expr(op, "bool", (one, other))


@pytest.mark.parametrize("op", ["lt", "le"])
def test_an_element_below_one_of_another_tensor(op: str) -> None:
    p = Parts()
    found = p.run(_is(op, p.element(p.s), p.element(p.e)))
    assert [o.verdict for o in found.outputs if o.name == "O"] == ["agreed"]
    assert any(value for value in found.left["O"].values)


def test_parts_that_follow_one_another() -> None:
    p = Parts()
    found = p.run(_is("lt", p.element(p.s), p.element(p.e)), _is("ge", p.element(p.s, 1), p.element(p.e)))
    assert [o.verdict for o in found.outputs if o.name == "O"] == ["agreed"]


@pytest.mark.parametrize(("op", "falls"), [("lt", False), ("gt", True)])
def test_neighbours_rise_or_fall(op: str, falls: bool) -> None:
    p = Parts()
    promise = _is(op, p.element(p.s), p.element(p.s, 1))
    assert ranks(p.kernel.function(call("assume", promise))) == {"S": (0, falls)}
    kernel = p.kernel
    body = call("assume", promise), Store(p.out, (p.tx,), load(p.s, p.tx))
    left = execute(kernel.snapshot(body, body)).left["O"].values
    assert (np.diff(left) < 0).all() if falls else (np.diff(left) > 0).all()
