"""Atomics whose destination or place in an expression is not what it seems."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.prove.handmade import ADDED, STEP, THREAD, address, load, status, tensor
from tests.cpu.prove.test_content import number, with_change
from tests.fixtures.index import read
from tlcheck.program.atomics import atomics
from tlcheck.program.walk import walk
from tlcheck.snapshot.ir import Bind, Buffer, Expr, For, Function, Snapshot, Stmt, Store
from tlcheck.verdicts.atomic_claims import judge_atomics

RETURNED = {f.path: f for f in read().fixtures}["edges/returned_index-0.1.7"]
IS_INSIDE = Expr("lt", "bool", (Expr("var", "int32", value="n", uid=90_010), number(1)))


def guarded(stmt: Stmt) -> Stmt:
    """A destination that a condition selects, as 0.1.7 guards what is read out of bounds."""
    if not isinstance(stmt, Bind) or stmt.value.args[0].value != "AtomicAddRet":
        return stmt
    name, target, *rest = stmt.value.args
    chosen = Expr("call", "int32", (IS_INSIDE, target, number(0)), "if_then_else")
    return replace(stmt, value=replace(stmt.value, args=(name, chosen, *rest)))


def verdicts(snapshot: Snapshot) -> dict[str, str]:
    return {c.buffer: c.finding.rule if c.finding else c.verdict for c in judge_atomics(snapshot).claims}


def test_a_destination_that_a_condition_selects_is_a_copy_in_cuda() -> None:
    """A later pass may still move the condition out of it; behind the last one it stays."""
    assert verdicts(RETURNED.snapshot())["N"] == "proved"
    report = judge_atomics(with_change(RETURNED.snapshot(), guarded))
    found = next(c.finding for c in report.claims if c.buffer == "N")
    assert found is not None
    assert (found.rule, found.checkpoint) == ("TLA008", "device-tir")
    assert found.what == "the atomic goes to N's copy in registers; N is never updated"
    assert found.witness.words("N").endswith("element N[0], offset 0")


@pytest.mark.parametrize("op", ["select", "if_then_else"])
def test_atomics_in_the_branches_of_a_selection_run_where_it_takes_them(op: str) -> None:
    """A select is `?:` in CUDA, which evaluates one branch."""
    data, condition = Expr("var", "handle", value="N", uid=90_011), Expr("var", "bool", value="c", uid=90_012)
    buffer = Buffer("N", "int32", (number(1),), "global", data)
    place = Expr("call", "handle", (Expr("load", "int32", (number(0),), buffer=buffer),), "address_of")
    added = Expr("call", "int32", (place, number(1)), "atomic_add_ret_elem_op")
    chosen = (condition, added, number(0))
    value = Expr("select", "int32", chosen) if op == "select" else Expr("call", "int32", chosen, op)
    function = Function("f", (data,), (buffer,), (), Store(buffer, (number(0),), value))
    (site,) = atomics(walk(function)).sites
    assert [(g.condition, g.holds) for g in site.scope.guards] == [(condition, True)]


@pytest.mark.parametrize(("lanes", "status_"), [(2, "different"), (4, "same")])
def test_equal_lanes_call_an_atomic_each_for_itself(lanes: int, status_: str) -> None:
    """Four iterations add what a vector of four equal lanes adds, and not what one of two does."""
    kept = tensor("P", "int32", 1024, 91_030)
    call = Expr("call", "int32", (address(load(ADDED, THREAD)), number(1)), "atomic_add_ret_elem_op")
    added = For(STEP, number(0), number(4), "serial", Store(kept, (STEP,), call))
    equal = Expr("broadcast", f"int32x{lanes}", (call,), lanes)
    assert status(added, Store(kept, (number(0),), equal), kept, root="B") == status_
