"""Memory may hold anything: conditions on what it holds, values of each thread's own, and sources that change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from tests.cpu.mutations.tools import flipped
from tests.fixtures.index import read
from tlcheck.snapshot.ir import Alloc, Buffer, Evaluate, Expr, For, If, Seq, Snapshot, Stmt, Store, Thread
from tlcheck.snapshot.walk import rebuild, statements
from tlcheck.verdicts.atomic_claims import judge_atomics

FIXTURES = {f.path: f for f in read().fixtures}
GUARDED = FIXTURES["mutations/scatter_guarded-0.1.15"]
PLAIN = FIXTURES["edges/ragged_source-0.1.15"]
Change = Callable[[Stmt], Stmt]


def number(value: int) -> Expr:
    return Expr("int", "int32", value=value)


def real(value: float) -> Expr:
    return Expr("float", "float32", value=value)


def with_change(snapshot: Snapshot, change: Change, checkpoints: Sequence[str] = ("device-tir",)) -> Snapshot:
    functions = dict(snapshot.checkpoints)
    for name in checkpoints or functions:
        functions[name] = replace(functions[name], body=rebuild(functions[name].body, lambda _, stmt: change(stmt)))
    return replace(snapshot, checkpoints=functions)


def verdict(snapshot: Snapshot) -> str:
    (claim,) = judge_atomics(snapshot).claims
    return claim.verdict


def is_atomic(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and "atomic_add" in str(stmt.value.value)


# ---- conditions on data


def guard(make: Callable[[Expr], Expr | None]) -> Change:
    """A change of the condition under which something is added; None leaves it out."""

    def change(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, If) or not any(is_atomic(s) for s in statements(stmt)):
            return stmt
        made = make(stmt.condition)
        return stmt.then if made is None else replace(stmt, condition=made)

    return change


def compared(op: str, value: float) -> Callable[[Expr], Expr]:
    """`value op f[i]`."""
    return lambda condition: Expr(op, "bool", (real(value), condition.args[1]))


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda _: None, id="left out"),
        pytest.param(compared("le", 0.0), id="or equal"),
        pytest.param(compared("lt", 1.0), id="above one"),
        pytest.param(compared("lt", -1.0), id="above minus one"),
        pytest.param(compared("gt", 0.0), id="below"),
        pytest.param(lambda c: Expr("not", "bool", (c,)), id="not"),
        pytest.param(lambda c: Expr("or", "bool", (c, compared("eq", 0.0)(c))), id="or zero"),
        pytest.param(lambda c: Expr("and", "bool", (c, compared("ne", 3.0)(c))), id="not three"),
    ],
)
def test_another_condition_on_data_is_not_proved(make: Callable[[Expr], Expr | None]) -> None:
    assert verdict(GUARDED.snapshot()) == "proved"
    assert verdict(with_change(GUARDED.snapshot(), guard(make))) != "proved"


def loaded(buffer: Buffer, *indices: Expr) -> Expr:
    return Expr("load", buffer.dtype, indices, buffer=buffer)


WRITTEN = ("source", "intent")
LOWERED = ("tile-ops", "lower-tile-op", "type-cast", "vectorize-loop", "device-tir")


def sixteen(stmt: Stmt) -> Stmt:
    """As often as there are rows to read."""
    return replace(stmt, extent=number(16)) if isinstance(stmt, For) else stmt


def of_value(snapshot: Snapshot, condition: Callable[[Expr], Expr], checkpoints: Sequence[str]) -> Snapshot:
    """A kernel that adds only where a condition on the value holds, at some checkpoints."""

    def change(stmt: Stmt) -> Stmt:
        return If(condition(stmt.value.args[1]), stmt) if is_atomic(stmt) else stmt  # type: ignore[attr-defined]

    return with_change(snapshot, change, checkpoints)


NUMBERS = Buffer("I", "int32", (number(128),), "global", Expr("var", "handle", value="I", uid=90_003))


@pytest.mark.parametrize("least", [0, -1, -7, 3, 1000, -1000, 1 << 20])
def test_a_condition_that_most_numbers_keep_is_not_left_out_or_changed(least: int) -> None:
    def condition(least: int) -> Callable[[Expr], Expr]:
        def at_least(value: Expr) -> Expr:
            thread = Expr("floormod", "int32", (value.args[-1], number(128)))
            return Expr("ge", "bool", (loaded(NUMBERS, thread), number(least)))

        return at_least

    sixteen_rows = with_change(PLAIN.snapshot(), sixteen, ())
    right = of_value(sixteen_rows, condition(least), ())
    assert verdict(right) == "proved"
    assert verdict(of_value(sixteen_rows, condition(least), WRITTEN)) != "proved"
    assert verdict(of_value(sixteen_rows, condition(least), LOWERED)) != "proved"
    later = of_value(of_value(sixteen_rows, condition(least), WRITTEN), condition(least + 1), LOWERED)
    assert verdict(later) != "proved"


# ---- values of each thread's own

OWN = Buffer("own", "float32", (number(1),), "local", Expr("var", "handle", value="own", uid=90_001))


def privately(stmt: Stmt) -> Stmt:
    """Send what is added through a register that the kernel declares."""
    if not is_atomic(stmt):
        return stmt
    call = stmt.value  # type: ignore[attr-defined]
    target, value, *rest = call.args
    return Seq(
        (
            Alloc(OWN),
            Store(OWN, (number(0),), value),
            Evaluate(replace(call, args=(target, loaded(OWN, number(0)), *rest))),
        )
    )


def with_target(change_of: Callable[[Expr], Expr]) -> Change:
    """A change of the last index of the destination."""

    def change(stmt: Stmt) -> Stmt:
        if not is_atomic(stmt):
            return stmt
        call = stmt.value  # type: ignore[attr-defined]
        pointer, *rest = call.args
        load = pointer.args[0]
        moved = replace(load, args=(*load.args[:-1], change_of(load.args[-1])))
        return Evaluate(replace(call, args=(replace(pointer, args=(moved, *pointer.args[1:])), *rest)))

    return change


def test_what_one_thread_holds_is_not_what_another_does() -> None:
    private = with_change(with_change(PLAIN.snapshot(), sixteen, ()), privately, ())
    assert verdict(private) == "proved"
    assert verdict(with_change(private, with_target(flipped))) != "proved"


def test_a_condition_on_what_one_thread_holds_is_not_one_on_another() -> None:
    def held(stmt: Stmt) -> Stmt:
        if not is_atomic(stmt):
            return stmt
        call = stmt.value  # type: ignore[attr-defined]
        target, value, *rest = call.args
        added = Evaluate(replace(call, args=(target, real(1.0), *rest)))
        condition = Expr("lt", "bool", (real(0.0), loaded(OWN, number(0))))
        return Seq((Alloc(OWN), Store(OWN, (number(0),), value), If(condition, added)))

    private = with_change(with_change(PLAIN.snapshot(), sixteen, ()), held, ())
    assert verdict(private) == "proved"
    assert verdict(with_change(private, with_target(flipped))) != "proved"


# ---- sources that change, launches, types of pointers

STAGE = Buffer("stage", "float32", (number(1),), "local", Expr("var", "handle", value="stage", uid=90_002))


def test_a_source_that_is_overwritten_after_it_was_staged_is_not_what_is_added() -> None:
    """In the source the source is filled and then added; staged before that, it is the old content that is added."""

    def filled(late: bool) -> Change:
        def change(stmt: Stmt) -> Stmt:
            if not is_atomic(stmt):
                return stmt
            call = stmt.value  # type: ignore[attr-defined]
            target, value, *rest = call.args
            assert value.buffer is not None
            fill = Store(value.buffer, value.args, real(2.0))
            if late:
                staged = Evaluate(replace(call, args=(target, loaded(STAGE, number(0)), *rest)))
                return Seq((Alloc(STAGE), Store(STAGE, (number(0),), value), fill, staged))
            return Seq((fill, stmt))

        return change

    written = with_change(
        PLAIN.snapshot(), filled(late=False), [n for n in PLAIN.snapshot().checkpoints if n != "device-tir"]
    )
    assert verdict(with_change(written, filled(late=False))) == "proved"
    assert verdict(with_change(written, filled(late=True))) != "proved"


@pytest.mark.parametrize(
    ("tag", "extent"), [("threadIdx.x", 64), ("threadIdx.x", 256), ("threadIdx.y", 2), ("blockIdx.x", 3)]
)
def test_another_launch_is_not_proved(tag: str, extent: int) -> None:
    def change(stmt: Stmt) -> Stmt:
        there = isinstance(stmt, Thread) and stmt.tag == tag
        return replace(stmt, extent=number(extent)) if there else stmt  # type: ignore[call-arg]

    assert verdict(with_change(PLAIN.snapshot(), change)) != "proved"


@pytest.mark.parametrize(
    "name", ["mutations/scatter_guarded", "mutations/scatter_gathered", "mutations/replicated_parallel"]
)
@pytest.mark.parametrize("more", [2, 1])
def test_another_number_of_blocks_is_not_proved_block_by_block(name: str, more: int) -> None:
    def change(stmt: Stmt) -> Stmt:
        there = isinstance(stmt, Thread) and stmt.tag == "blockIdx.x"
        return replace(stmt, extent=number(int(stmt.extent.value or 0) + more)) if there else stmt  # type: ignore

    snapshot = FIXTURES[f"{name}-0.1.15"].snapshot()
    assert verdict(snapshot) == "proved"
    assert verdict(with_change(snapshot, change)) != "proved"


def test_a_block_dimension_that_the_kernel_does_not_have_is_not_proved() -> None:
    def change(stmt: Stmt) -> Stmt:
        if not (isinstance(stmt, Thread) and stmt.tag == "blockIdx.x"):
            return stmt
        var = Expr("var", "int32", value="by", uid=90_010)
        return replace(stmt, body=Thread(var=var, tag="blockIdx.y", extent=number(2), body=stmt.body))

    assert verdict(with_change(PLAIN.snapshot(), change)) != "proved"


@pytest.mark.parametrize("dtype", ["int32", "float16", "float64"])
def test_a_source_read_as_another_type_is_not_the_same(dtype: str) -> None:
    def change(stmt: Stmt) -> Stmt:
        if not is_atomic(stmt):
            return stmt
        call = stmt.value  # type: ignore[attr-defined]
        target, value, *rest = call.args
        assert value.buffer is not None
        other = replace(value, dtype=dtype, buffer=replace(value.buffer, dtype=dtype))
        return Evaluate(replace(call, args=(target, Expr("cast", "float32", (other,)), *rest)))

    assert verdict(with_change(PLAIN.snapshot(), change)) != "proved"


# ---- choices


def choosing(op: str, turned: bool = False) -> Change:
    """Adds `value op 0 ? value : 0`; turned: `0 op value`."""

    def change(stmt: Stmt) -> Stmt:
        if not is_atomic(stmt):
            return stmt
        call = stmt.value  # type: ignore[attr-defined]
        target, value, *rest = call.args
        operands = (real(0.0), value) if turned else (value, real(0.0))
        chosen = Expr("select", "float32", (Expr(op, "bool", operands), value, real(0.0)))
        return Evaluate(replace(call, args=(target, chosen, *rest)))

    return change


@pytest.mark.parametrize(
    ("op", "turned", "expected"),
    [("gt", False, "proved"), ("lt", True, "proved"), ("lt", False, "undecided"), ("ge", False, "undecided")],
)
def test_a_choice_is_the_same_whichever_way_its_comparison_is_written(op: str, turned: bool, expected: str) -> None:
    snapshot = with_change(PLAIN.snapshot(), sixteen, ())
    others = [name for name in snapshot.checkpoints if name != "device-tir"]
    assert verdict(with_change(with_change(snapshot, choosing("gt"), others), choosing(op, turned))) == expected


def test_what_is_read_out_of_bounds_for_some_lanes_refutes_nothing() -> None:
    """The loop is as long as memory says: a guard that keeps it in bounds, as releases add it, is no error."""
    assert verdict(with_change(PLAIN.snapshot(), choosing("gt"), ())) != "refuted"
