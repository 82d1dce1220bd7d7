from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.cpu.mutations.mutants import mutants
from tests.fixtures.index import Fixture, read
from tlcheck.algebra.algebra import Algebra, unread
from tlcheck.algebra.polynomial import as_constant
from tlcheck.program.walk import Program, walk
from tlcheck.prove.assumptions import assume, hold, nearest, promises_more, related, symbols
from tlcheck.snapshot.ir import Evaluate, Expr, Seq, Snapshot, Stmt
from tlcheck.snapshot.walk import rebuild
from tlcheck.verdicts.atomic_claims import judge_atomics

FIXTURES = {f.path: f for f in read().fixtures}
PITCH, ROWS = FIXTURES["mutations/assumed_pitch-0.1.15"], FIXTURES["mutations/assumed_rows-0.1.15"]


def number(value: int) -> Expr:
    return Expr("int", "int32", value=value)


def promising(*conditions: Expr) -> tuple[Program, int]:
    """A kernel of one size `n` of which this is promised, and the size's uid."""
    program = walk(PITCH.snapshot().checkpoints["intent"])
    (size,) = {s.uid for s in symbols(program)}
    return replace(program, assumptions=conditions), size


def size_of(program: Program) -> Expr:
    return symbols(program)[0]


def condition(op: str, *args: Expr) -> Expr:
    return Expr(op, "bool", args)


def of(factor: int, n: Expr) -> Expr:
    """`n % factor == 0`."""
    return condition("eq", Expr("floormod", "int32", (n, number(factor))), number(0))


N = size_of(walk(PITCH.snapshot().checkpoints["intent"]))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ((), (1, None)),
        ((condition("le", number(32), N),), (32, None)),
        ((condition("lt", number(32), N), condition("lt", N, number(100))), (33, 99)),
        ((condition("and", condition("ge", N, number(8)), condition("le", N, number(64))),), (8, 64)),
        ((condition("eq", N, number(256)),), (256, 256)),
        ((condition("ge", N, number(-5)),), (1, None)),  # a size is at least 1 in any case
    ],
    ids=str,
)
def test_ranges(conditions: tuple[Expr, ...], expected: tuple[int | None, int | None]) -> None:
    program, size = promising(*conditions)
    algebra = Algebra(unread)
    assume(algebra, program, multiples=False)
    assert algebra.ranges[size] == expected


def test_multiples_divide() -> None:
    program, size = promising(of(4, N), of(6, N), condition("ge", N, number(30)))
    algebra = Algebra(unread)
    assume(algebra, program, multiples=True)
    n = algebra.variable(size)
    assert as_constant(algebra.floormod(n, 12)) == 0
    assert as_constant(algebra.floormod(n, 24)) is None
    assert algebra.bounds(n) == (36, None)


def test_instances_keep_what_is_promised() -> None:
    program, size = promising(of(64, N), condition("le", N, number(256)))
    algebra = Algebra(unread)
    kept = [n for n in (32, 64, 100, 192, 256, 320) if hold(algebra, program, {size: n})]
    assert kept == [64, 192, 256]


def test_promises_of_more_than_sizes_are_told_apart() -> None:
    block = Expr("var", "int32", value="bx", uid=999_999)
    sizes, _ = promising(of(64, N))
    blocks, _ = promising(of(64, N), condition("lt", block, N))
    assert not promises_more(sizes)
    assert promises_more(blocks)


def without_promises(fixture: Fixture) -> set[str]:
    """The verdicts of a kernel whose lowering relies on a promise that the source does not have."""
    snapshot = fixture.snapshot()

    def plain(_: Stmt, stmt: Stmt) -> Stmt:
        if isinstance(stmt, Evaluate) and stmt.value.value == "assume":
            return Seq(())
        return stmt.body if getattr(stmt, "key", "") == "tl.assume" else stmt  # type: ignore[attr-defined]

    functions = {n: replace(f, body=rebuild(f.body, plain)) for n, f in snapshot.checkpoints.items()}
    return {a.verdict for a in judge_atomics(replace(snapshot, checkpoints=functions)).claims}


@pytest.mark.parametrize("fixture", [PITCH, ROWS], ids=lambda f: f.path)
def test_dropped_guards_are_right_because_of_the_promise_alone(fixture: Fixture) -> None:
    assert {a.verdict for a in fixture.report().claims} == {"proved"}
    assert without_promises(fixture) == {"refuted"}


@pytest.mark.parametrize(
    ("promised", "wanted", "expected"),
    [
        ((), 37, 37),
        ((of(64, N),), 37, 64),
        ((of(64, N), condition("ge", N, number(5000))), 37, 5056),
        ((of(96, N), condition("lt", N, number(500))), 1000, 480),
    ],
    ids=str,
)
def test_sizes_are_picked_from_the_promises(promised: tuple[Expr, ...], wanted: int, expected: int) -> None:
    program, size = promising(*promised)
    algebra = Algebra(unread)
    assume(algebra, program, multiples=False)
    assert nearest(algebra, program)(size, wanted) == expected


def promised(snapshot: Snapshot, *conditions: Expr) -> Snapshot:
    """The same kernel with more promises."""
    more = tuple(Evaluate(Expr("call", "bool", (c,), "assume")) for c in conditions)
    functions = {n: replace(f, body=Seq((*more, f.body))) for n, f in snapshot.checkpoints.items()}
    return replace(snapshot, checkpoints=functions)


def test_wrong_code_for_sizes_that_nobody_tries_by_chance_is_refuted() -> None:
    snapshot = PITCH.snapshot()
    (mutant,) = (m for m in mutants(snapshot, ("device-tir",)) if m.kind == "shift base by one")
    uncommon = promised(mutant.snapshot, of(704, N), condition("ge", N, number(9000)))
    assert {c.verdict for c in judge_atomics(uncommon).claims} == {"refuted"}


def test_where_no_size_keeps_the_promises_that_is_the_reason() -> None:
    snapshot = PITCH.snapshot()
    (mutant,) = (m for m in mutants(snapshot, ("device-tir",)) if m.kind == "shift base by one")
    square = condition("eq", Expr("mul", "int32", (N, N)), number(64 * 64 * 7 * 7))
    (claim,) = judge_atomics(promised(mutant.snapshot, square)).claims
    assert claim.verdict == "undecided"
    assert "none of the sizes tried keeps what the kernel promises" in claim.reason


def two_sizes() -> tuple[Program, Expr, Expr]:
    """A kernel with the sizes n and m."""
    program = walk(PITCH.snapshot().checkpoints["intent"])
    other = Expr("var", "int32", value="m", uid=N.uid + 100_000)
    function = replace(program.function, params=(*program.function.params, other))
    return replace(program, function=function), N, other


def arithmetic(op: str, *args: Expr) -> Expr:
    return Expr(op, "int32", args)


@pytest.mark.parametrize(
    ("promise", "point", "expected"),
    [
        (lambda n, m: condition("eq", n, arithmetic("mul", number(2), m)), (100, 37), {(74, 37), (100, 50)}),
        (lambda n, m: condition("eq", arithmetic("add", n, m), number(64)), (37, 37), {(27, 37), (37, 27)}),
        (lambda n, m: condition("le", m, n), (37, 130), {(37, 37), (130, 130)}),
        (lambda n, m: condition("lt", n, m), (130, 37), {(130, 131), (36, 37)}),
        (lambda n, m: of_size(n, m), (100, 37), {(74, 37)}),
        (lambda n, m: condition("eq", arithmetic("mul", n, m), number(1000)), (100, 37), {(100, 37)}),
    ],
    ids=("twice", "sum", "at most", "less", "multiple", "not found"),
)
def test_sizes_that_belong_together_are_picked_together(
    promise: Callable[[Expr, Expr], Expr], point: tuple[int, int], expected: set[tuple[int, int]]
) -> None:
    program, n, m = two_sizes()
    program = replace(program, assumptions=(promise(n, m),))
    algebra = Algebra(unread)
    assume(algebra, program, multiples=False)
    found = related(algebra, program, {n.uid: point[0], m.uid: point[1]})
    assert (found[n.uid], found[m.uid]) in expected
    assert hold(algebra, program, found) == (found != {n.uid: point[0], m.uid: point[1]})


def of_size(n: Expr, m: Expr) -> Expr:
    """`n % m == 0`."""
    return condition("eq", Expr("floormod", "int32", (n, m)), number(0))


def test_a_size_is_what_is_promised_of_it_by_another() -> None:
    program, n, m = two_sizes()
    program = replace(program, assumptions=(condition("eq", n, arithmetic("mul", number(2), m)),))
    algebra = Algebra(unread)
    assume(algebra, program, multiples=True)
    assert algebra.poly(n) == algebra.poly(arithmetic("mul", m, number(2)))
    assert as_constant(algebra.poly(arithmetic("floormod", n, number(2)))) == 0
