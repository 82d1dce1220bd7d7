"""Kernels that ask whether a float is a number run with NaN and infinities, too."""

from __future__ import annotations

import pytest

from tests.cpu.execute.observe.test_tensors_in_order import store
from tests.cpu.execute.ops.tile.building import Kernel, add, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.compare.specials import asks
from tlcheck.snapshot.ir import Expr, Stmt

HALF = Expr("float", "float32", (), 0.5)


def compared(op: str, a: Expr, b: Expr) -> Expr:
    return Expr(op, "bool", (a, b))


class Asks:
    """Each thread stores whether a condition holds for its element of A."""

    def __init__(self) -> None:
        self.kernel = Kernel(threads=32)
        self.a, self.b = self.kernel.tensor("A", "float32", (32,)), self.kernel.tensor("B", "int32", (32,))
        self.given = load(self.a, self.kernel.tx)
        self.again = load(self.a, self.kernel.tx)

    def stored(self, condition: Expr) -> Stmt:
        return store(self.b, self.kernel.tx, Expr("select", "int32", (condition, number(1), number(0))))

    def judged(self, source: Expr, lowered: Expr) -> OutputOutcome:
        found = execute(self.kernel.snapshot((self.stored(source),), (self.stored(lowered),))).outputs
        return next(outcome for outcome in found if outcome.name == "B")


def test_a_comparison_with_itself_that_is_folded() -> None:
    made = Asks()
    found = made.judged(compared("ne", made.given, made.again), Expr("int", "bool", (), 0))
    assert found.verdict == "refuted"
    assert found.difference is not None
    assert (found.difference.special, found.difference.expected, found.difference.got) == (True, "1", "0")
    assert found.difference.writer is not None
    assert found.difference.author is not None


def test_what_a_comparison_is_not() -> None:
    made = Asks()
    negated = Expr("not", "bool", (compared("gt", made.given, HALF),))
    assert made.judged(negated, compared("le", made.given, HALF)).verdict == "refuted"
    assert made.judged(negated, negated).verdict == "agreed"


@pytest.mark.parametrize(("shift", "of_nan", "verdict"), [(4, 4, "agreed"), (4, 5, "refuted"), (0, 4, "refuted")])
def test_integers_that_leave_their_type_for_infinite_floats_are_the_authors(
    shift: int, of_nan: int, verdict: str
) -> None:
    """(int(a) - 3) % 7 is (int(a) + 4) % 7, but for infinite a."""
    made = Asks()
    whole, unequal = Expr("cast", "int32", (made.given,)), compared("ne", made.given, made.again)
    shifted, other = (Expr("floormod", "int32", (add(whole, n), number(7))) for n in (-3, shift))
    asked = Expr("select", "int32", (unequal, number(of_nan), shifted))
    snapshot = made.kernel.snapshot((store(made.b, made.kernel.tx, asked),), (store(made.b, made.kernel.tx, other),))
    (found,) = (o.verdict for o in execute(snapshot).outputs if o.name == "B")
    assert found == verdict


@pytest.mark.parametrize(("least", "verdict"), [(0, "agreed"), (1, "refuted")])
def test_integers_that_leave_their_type_choose_no_float(least: int, verdict: str) -> None:
    """int(a) + 1 > int(a) is true, but for infinite a; int(a) + 1 > 1 is not."""
    made = Asks()
    b = made.kernel.tensor("F", "float32", (32,))
    whole, unequal = Expr("cast", "int32", (made.given,)), compared("ne", made.given, made.again)
    more = compared("gt", add(whole, 1), whole if least == 0 else number(least))
    chosen = Expr("select", "float32", (more, made.given, HALF))
    source, lowered = (Expr("select", "float32", (unequal, HALF, found)) for found in (chosen, made.given))
    snapshot = made.kernel.snapshot((store(b, made.kernel.tx, source),), (store(b, made.kernel.tx, lowered),))
    (found,) = (o for o in execute(snapshot).outputs if o.name == "F")
    assert found.verdict == verdict


@pytest.mark.parametrize("name", ["isnan", "isinf", "isfinite"])
def test_a_question_that_is_kept(name: str) -> None:
    made = Asks()
    asked = Expr("call", "bool", (made.given,), name)
    assert asks(made.kernel.function(made.stored(asked)))


def test_a_kernel_that_does_not_ask_has_numbers_alone() -> None:
    """A comparison turned round is another one for NaN alone, which such a kernel is not made for."""
    made = Asks()
    one = compared("le", made.given, HALF)
    other = Expr("not", "bool", (compared("lt", HALF, made.given),))
    assert not asks(made.kernel.function(made.stored(one)))
    assert made.judged(one, other).verdict == "agreed"


def test_one_of_two_comparisons_holds_for_every_number_and_not_for_nan() -> None:
    made = Asks()
    either = Expr("or", "bool", (compared("ge", made.given, HALF), compared("lt", made.again, HALF)))
    assert made.judged(either, Expr("int", "bool", (), 1)).verdict == "refuted"
    assert made.judged(either, either).verdict == "agreed"
    other = compared("lt", made.given, Expr("float", "float32", (), 0.25))
    assert not asks(made.kernel.function(made.stored(Expr("or", "bool", (compared("ge", made.given, HALF), other)))))


def test_a_tensor_that_is_no_longer_read() -> None:
    """x * 0 is 0 for numbers alone."""
    kernel = Kernel(threads=32)
    a, b = kernel.tensor("A", "float32", (32,)), kernel.tensor("B", "float32", (32,))
    product = Expr("mul", "float32", (load(a, kernel.tx), Expr("float", "float32", (), 0.0)))
    stored = store(b, kernel.tx, product)
    nothing = store(b, kernel.tx, Expr("float", "float32", (), 0.0))
    found = execute(kernel.snapshot((stored,), (nothing,))).outputs
    assert [(o.name, o.verdict) for o in found] == [("B", "refuted")]
    assert [o.verdict for o in execute(kernel.snapshot((stored,), (stored,))).outputs] == ["agreed"]
