"""Kernels of float32 whose rounding is what they are for run in their own type, too."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, load
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.request import Request
from tlcheck.execute.worlds.blocks import Block
from tlcheck.snapshot.ir import Bind, Expr, Seq, Stmt, Store

THREADS = 32
MAGIC = 12582912.0  # 1.5 * 2^23: floats from there on are integers


def combined(op: str, a: Expr, b: Expr, dtype: str = "float32") -> Expr:
    return Expr(op, dtype, (a, b))


def constant(value: float, dtype: str = "float32") -> Expr:
    return Expr("float", dtype, (), value)


class Rounds:
    """Each thread makes a number of its element of A."""

    def __init__(self, threads: int = THREADS) -> None:
        self.kernel = Kernel(threads=threads)
        self.a, self.b = (self.kernel.tensor(name, "float32", (threads + 1,)) for name in "AB")
        self.given = load(self.a, self.kernel.tx)
        self.following = load(self.a, add(self.kernel.tx, 1))

    def stored(self, value: Expr) -> Stmt:
        return Store(self.b, (self.kernel.tx,), value)

    def judged(self, source: Stmt, lowered: Stmt) -> Execution:
        return execute(self.kernel.snapshot((source,), (lowered,)))

    def magic(self) -> Expr:
        return combined("sub", combined("add", self.given, constant(MAGIC)), constant(MAGIC))

    def error(self) -> Stmt:
        """Of the sum with a large number: what is left of the element when the sum is known."""
        total = Expr("var", "float32", (), "total", 10**6)
        made = combined("add", self.given, constant(4096.0))
        left = combined("sub", self.given, combined("sub", total, constant(4096.0)))
        return Seq((Bind(total, made), self.stored(left)))


class RoundsInBlocks(Rounds):
    """Each thread of two blocks makes a number of its element of A."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel.blocks = 2
        self.a, self.b = (self.kernel.tensor(name, "float32", (2 * THREADS,)) for name in "AB")
        self.at = add(combined("mul", self.kernel.bx, Expr("int", "int32", (), THREADS), "int32"), self.kernel.tx)
        self.given = load(self.a, self.at)

    def stored(self, value: Expr) -> Stmt:
        return Store(self.b, (self.at,), value)


def verdict(found: Execution) -> str:
    return next(outcome.verdict for outcome in found.outputs if outcome.name == "B")


def test_a_sum_that_is_folded_is_refuted() -> None:
    made = Rounds()
    found = made.judged(made.stored(made.magic()), made.stored(made.given))
    (difference,) = [o.difference for o in found.outputs if o.difference is not None]
    assert (difference.rounded, difference.finer) == (True, True)
    assert float(difference.expected) == round(float(difference.got))


def test_the_error_of_a_sum_that_is_folded_to_nothing_is_refuted() -> None:
    made = Rounds()
    assert verdict(made.judged(made.error(), made.stored(constant(0.0)))) == "refuted"


def test_what_is_rounded_as_written_agrees() -> None:
    made = Rounds()
    assert verdict(made.judged(made.stored(made.magic()), made.stored(made.magic()))) == "agreed"
    assert verdict(made.judged(made.error(), made.error())) == "agreed"


def test_another_order_of_a_sum_agrees() -> None:
    made = Rounds()
    total = combined("add", made.given, made.following)
    one = combined("sub", combined("add", total, constant(3.0)), made.following)
    other = combined("add", made.given, combined("sub", combined("add", made.following, constant(3.0)), made.following))
    assert verdict(made.judged(made.stored(one), made.stored(other))) == "agreed"


@pytest.mark.parametrize(("threads", "expected"), [(7, "agreed"), (8, "refuted")])
def test_few_elements_may_be_off_by_chance(threads: int, expected: str) -> None:
    made = Rounds(threads)
    assert verdict(made.judged(made.stored(made.magic()), made.stored(made.given))) == expected


@pytest.mark.parametrize("blocks", [((1, 0, 0),), ((0, 0, 0), (1, 0, 0))])
def test_a_block_is_compared_with_itself_though_others_have_its_inputs(blocks: tuple[Block, ...]) -> None:
    made = RoundsInBlocks()
    snapshot = made.kernel.snapshot((made.stored(made.magic()),), (made.stored(made.given),))
    assert verdict(execute(snapshot, Request(blocks=blocks, seeds=(1,)))) == "refuted"
