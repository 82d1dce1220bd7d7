"""A reduction of what is wrong begins where that does, if nothing else writes it in between."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, region, text
from tlcheck.execute.compare.derived import with_causes
from tlcheck.execute.compare.origin import OriginAccess, ValueOrigin
from tlcheck.execute.compare.output_outcome import Difference
from tlcheck.execute.compare.writers import Writer
from tlcheck.execute.compare.wrong_output import WrongOutput
from tlcheck.execute.memory.state import NOWHERE
from tlcheck.snapshot.ir import Expr, Stmt, Store


def _wrong(stmt: Stmt, buffer: str, seed: int = 0) -> WrongOutput:
    writer = Writer((0, 0, 0), 0, NOWHERE)
    difference = Difference(0, (0,), seed, "1", "2", 1, writer, writer)
    origin = ValueOrigin("other-value", OriginAccess(buffer, (0,), None, stmt), True, "2", "1")
    return WrongOutput(difference, origin=origin)


def _kernel(op: str = "reduce", whole: bool = True, again: bool = False) -> tuple[Kernel, list[Stmt]]:
    """f is set, and reduced to g; again: it is cleared before. The two statements come first and last."""
    kernel = Kernel()
    f, g = (kernel.tile(name, "int32", (size,), "local.fragment") for name, size in (("f", 32), ("g", 1)))
    store = Store(f, (kernel.tx,), load(f, kernel.tx))
    part = region(f) if whole else region(f, (0,), (8,))
    reduces = call(op, part, region(g), text("sum"), number(0), Expr("bool", "bool", (), True))
    return kernel, [store, *([call("fill", region(f), number(0))] if again else []), reduces]


def _names(kernel: Kernel, body: list[Stmt], seed: int = 0) -> list[str]:
    outputs = {"O": _wrong(body[0], "f"), "P": _wrong(body[-1], "g", seed)}
    found = with_causes(kernel.function(*body), outputs)
    return [wrong.origin.access.buffer for wrong in found.values() if wrong.origin is not None]


def test_a_reduction_of_what_is_wrong_has_its_origin() -> None:
    assert _names(*_kernel()) == ["f", "f"]


@pytest.mark.parametrize("made", [_kernel(again=True), _kernel(whole=False), _kernel(op="copy")])
def test_what_may_be_wrong_by_itself_has_its_own_origin(made: tuple[Kernel, list[Stmt]]) -> None:
    """The buffer is set again, a part of it is read that may be right, or the statement is no reduction."""
    assert _names(*made) == ["f", "g"]


def test_what_is_wrong_in_another_run_is_no_cause() -> None:
    assert _names(*_kernel(), seed=1) == ["f", "g"]
