"""Kernels without an addition: atomic loads and stores are listed, and forms that no proof looks into are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.cpu.prove import handmade
from tests.fixtures.index import read
from tlcheck.program.device_library import ORDERS
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Assert, Buffer, Evaluate, Expr, Seq, Snapshot, Stmt, Store, Unknown
from tlcheck.snapshot.walk import rebuild
from tlcheck.verdicts.atomic_claims import judge_atomics
from tlcheck.verdicts.claim import REFUTED, UNDECIDED

FIXTURE = next(f for f in read().fixtures if f.path == "edges/ragged_source-0.1.15")
Make = Callable[[Expr, Expr, Buffer], Stmt]
ZERO = Expr("int", "int32", value=0)


def with_instead(make: Make) -> Snapshot:
    """The kernel with something else in place of its atomic, at every checkpoint."""

    def change(_: Stmt, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Evaluate) or "atomic_add" not in str(stmt.value.value):
            return stmt
        target, value, *_rest = stmt.value.args
        assert value.buffer is not None
        return replace(make(target, value, value.buffer), line=stmt.line)

    snapshot = FIXTURE.snapshot()
    changed = {name: replace(f, body=rebuild(f.body, change)) for name, f in snapshot.checkpoints.items()}
    return replace(snapshot, checkpoints=changed)


def storing(target: Expr, value: Expr, buffer: Buffer) -> Stmt:
    return Evaluate(Expr("call", "handle", (target, value, ZERO), "atomic_store_elem_op"))


def loading(target: Expr, value: Expr, buffer: Buffer) -> Stmt:
    return Evaluate(Expr("call", "float32", (Expr("str", "handle", value="AtomicLoad"), target, ZERO), "call_extern"))


def shuffled(target: Expr, value: Expr, buffer: Buffer) -> Stmt:
    return Store(buffer, value.args, Expr("shuffle", value.dtype, (value, ZERO), 1))


def asserted(target: Expr, value: Expr, buffer: Buffer) -> Stmt:
    return Seq((Assert(Expr("lt", "bool", (ZERO, ZERO)), "never"), Store(buffer, value.args, value)))


def held(target: Expr, value: Expr, buffer: Buffer) -> Stmt:
    name = Expr("var", "float32", value="x", uid=90_009)
    return Store(buffer, value.args, Expr("let", value.dtype, (name, value, name)))


def strange(target: Expr, value: Expr, buffer: Buffer) -> Stmt:
    return Unknown("Strange")


@pytest.mark.parametrize(("operation", "words"), [(storing, "atomic store to B"), (loading, "atomic load of B")])
def test_atomic_loads_and_stores_are_listed_with_their_lines(operation: Make, words: str) -> None:
    report = judge_atomics(with_instead(operation))
    (found,) = report.unjudged
    assert found.startswith(words + ", ")
    assert "(the kernel; the line is not known)" not in found
    assert (report.claims, report.problem) == ((), "")


def of_type(snapshot: Snapshot, dtype: str) -> Snapshot:
    """The kernel with its buffers and values of another type."""
    text = codec.dumps(snapshot).replace('"float32"', f'"{dtype}"')
    return codec.loads(text)


def ordered(order: int) -> Make:
    """A load with a memory order."""

    def make(target: Expr, value: Expr, buffer: Buffer) -> Stmt:
        number = Expr("int", "int32", value=order)
        return Evaluate(Expr("call", value.dtype, (target, number), "atomic_load_elem_op"))

    return make


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_store_that_does_not_compile_is_refuted(dtype: str) -> None:
    report = judge_atomics(of_type(with_instead(storing), dtype))
    (claim,) = report.claims
    assert (claim.kind, claim.key, claim.verdict, claim.rules) == ("atomic", "B store", REFUTED, ("TLA013",))
    assert claim.finding is not None
    assert claim.finding.what.startswith(
        f"atomic_store_elem_op (store of 1 {dtype} by value to {dtype}, global, relaxed)"
    )
    assert "no instance of constructor" in claim.finding.what
    assert claim.finding.excerpt is not None
    assert (
        "atomic_store_elem_op"
        in claim.finding.excerpt.lines[claim.finding.excerpt.marked - claim.finding.excerpt.first]
    )
    assert claim.source.exact
    assert report.unjudged == ()


def test_a_load_that_was_not_measured_is_undecided() -> None:
    """The device library asserts that a load does not release."""
    report = judge_atomics(with_instead(ordered(ORDERS.index("release"))))
    (claim,) = report.claims
    assert (claim.key, claim.verdict) == ("B load", UNDECIDED)
    assert claim.reason.startswith("what the device library does was not measured: load of 1 float32")
    assert judge_atomics(with_instead(ordered(ORDERS.index("acquire")))).claims == ()


@pytest.mark.parametrize("form", [shuffled, asserted, held])
def test_forms_that_no_proof_looks_into_hide_no_atomic(form: Make) -> None:
    assert judge_atomics(with_instead(form)).problem == ""


def test_an_unknown_statement_may_hide_one() -> None:
    assert judge_atomics(with_instead(strange)).problem.startswith("parts of the kernel were not understood")


def test_an_addition_is_not_listed() -> None:
    assert judge_atomics(FIXTURE.snapshot()).unjudged == ()


def test_a_call_that_does_not_compile_is_told_though_no_proof_follows_its_value() -> None:
    """With the output's agreement it would count as agreed otherwise."""
    sums, some, others = (handmade.tensor(n, "int16", 256, 91_050 + i) for i, n in enumerate(("y", "a", "b")))
    position = handmade.operation("sub", handmade.number(127), handmade.THREAD)
    first = handmade.operation("lt", handmade.THREAD, handmade.number(64))
    value = handmade.chosen(first, handmade.own(some), handmade.load(others, position))
    target = handmade.own(sums)
    lowered = handmade.add(target, handmade.own(some))
    snapshot = handmade.pair(handmade.add(target, value), lowered, sums, some, others)
    (claim,) = judge_atomics(snapshot).claims
    assert (claim.verdict, claim.code) == (UNDECIDED, "U039")
    assert "does not compile" in claim.reason
