"""Kernels without an addition: atomic loads and stores are listed, and forms that no proof looks into are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.fixtures.index import read
from tlcheck.snapshot.ir import Assert, Buffer, Evaluate, Expr, Seq, Snapshot, Stmt, Store, Unknown
from tlcheck.snapshot.walk import rebuild
from tlcheck.verdicts.check import check

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
    report = check(with_instead(operation))
    (found,) = report.unjudged
    assert found.startswith(words + ", ")
    assert "(the kernel; the line is not known)" not in found
    assert (report.claims, report.problem) == ((), "")


@pytest.mark.parametrize("form", [shuffled, asserted, held])
def test_forms_that_no_proof_looks_into_hide_no_atomic(form: Make) -> None:
    assert check(with_instead(form)).problem == ""


def test_an_unknown_statement_may_hide_one() -> None:
    assert check(with_instead(strange)).problem.startswith("parts of the kernel were not understood")


def test_an_addition_is_not_listed() -> None:
    assert check(FIXTURE.snapshot()).unjudged == ()
