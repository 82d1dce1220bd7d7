"""Loops whose last iterations stand behind them, where memory says how often they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cpu.mutations.mutants import mutants
from tests.cpu.mutations.tools import rewrite, with_statement
from tests.fixtures.index import read
from tlcheck.snapshot.ir import Evaluate, Expr, For, Function, If, Stmt
from tlcheck.snapshot.walk import expressions, postorder, statements, with_expressions
from tlcheck.verdicts.check import Report, check

PEELED = next(f for f in read().fixtures if f.path == "edges/peeled-0.1.15").snapshot()


def test_the_loop_and_its_last_iteration_are_the_loop_as_written() -> None:
    (atomic,) = check(PEELED).claims
    assert (atomic.verdict, atomic.not_source) == ("proved", "")
    assert {stage.status for stage in atomic.stages} == {"same"}


def _adds(stmt: Stmt) -> bool:
    calls = [e for s in statements(stmt) for e in postorder(expressions(s)) if e.op == "call"]
    return any(str(call.value).startswith("atomic_add") for call in calls)


def _addresses(stmt: Stmt) -> list[Expr]:
    """What says how often and where something is added; that all 64 threads run is said twice."""
    if isinstance(stmt, Evaluate):
        return [stmt.value.args[0].args[0]]
    if isinstance(stmt, If):
        on_threads = any(e.value == "tx" for e in postorder([stmt.condition]))
        return [] if on_threads else [stmt.condition]
    return [stmt.start, stmt.extent] if isinstance(stmt, For) else []


def _mutants(function: Function) -> Iterator[tuple[str, Function]]:
    """The function with one number changed, in a loop, a condition or an address of an atomic."""
    for place, stmt in enumerate(s for s in statements(function.body) if _adds(s)):
        for e in postorder(_addresses(stmt)):
            for step in (-1, 1) if e.op == "int" and e.dtype.startswith("int") else ():
                new = {id(e): replace(e, value=int(e.value or 0) + step)}

                def change(now: Stmt, new: dict[int, Expr] = new) -> Stmt:
                    return with_expressions(now, [rewrite(x, new) for x in expressions(now)])

                yield f"{place}: {e.value} {step:+}", with_statement(function, stmt, change)


@pytest.mark.parametrize("checkpoint", ["lower-tile-op", "device-tir"])
def test_no_changed_number_is_proved(checkpoint: str) -> None:
    broken = dict(_mutants(PEELED.checkpoints[checkpoint]))
    assert len(broken) > 30
    checked = {what: _checked(checkpoint, function) for what, function in broken.items()}
    assert [what for what, report in checked.items() if report.claims[0].verdict == "proved"] == []


def test_nothing_that_a_pass_could_do_wrong_is_proved() -> None:
    proved = [kind for kind, report in _made_wrong() if report.claims[0].verdict == "proved"]
    # Another version of the pipelined buffer, which executions judge; and each of two guards that say the same.
    assert proved == ["swap neighbours in the source", "drop a guard", "drop a guard"]


def _made_wrong() -> Iterator[tuple[str, Report]]:
    made = list(mutants(PEELED, ("device-tir",)))
    assert {"repeat the atomic", "remove the atomic", "shorten a loop"} <= {mutant.kind for mutant in made}
    for mutant in made:
        yield mutant.kind, _checked("device-tir", mutant.snapshot.checkpoints["device-tir"])


def _checked(checkpoint: str, function: Function) -> Report:
    return check(replace(PEELED, checkpoints={**PEELED.checkpoints, checkpoint: function}))
