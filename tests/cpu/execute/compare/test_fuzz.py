"""Snapshots that no compiler made: a fixed sample of what `make fuzz` tries. And kernels that ask for too much."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from benchmarks import fuzz
from tests.fixtures.index import FOLDER
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.execute.worlds.budget import Budget, parsed
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, For, Function, Snapshot, Stmt, Store, While
from tlcheck.snapshot.walk import rebuild
from tlcheck.verdicts.judging import verdicts_of

SUMS = codec.loads((FOLDER / "wrong/sums-0.1.9.snapshot.json").read_text())


@pytest.fixture(autouse=True)
def _deep_enough() -> Iterator[None]:
    """As in a judging process."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.slow
def test_broken_snapshots_are_refused_or_judged() -> None:
    said = [fuzz.outcome(number).partition(":")[0] for number in range(6, 46)]
    assert set(said) <= {"refused", "judged", "nothing to judge", "fault"}
    assert said.count("refused") > 5
    assert said.count("judged") > 10


@pytest.mark.timeout(20)
@pytest.mark.parametrize("number", [135, 906, 1982])
def test_snapshots_that_once_raised_or_had_no_end(number: int) -> None:
    """An element that no run touches is traced; an address of a pointer without its type; a statement with thousands
    of reads, of which each was looked at for each element.
    """
    assert fuzz.outcome(number) == "judged"


def test_proofs_without_an_end_are_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(snapshot: Snapshot) -> None:
        while True:
            pass

    monkeypatch.setattr("tlcheck.verdicts.judging.judge_atomics", forever)
    found = verdicts_of(SUMS, None, 0.05).failure
    assert found is not None
    assert (found.kind, found.message) == ("timeout", "the proofs took more than 0.05 s of the processor")


def changed(change: Stmt | None = None, value: Expr | None = None) -> Snapshot:
    """As lowered, the last store is another statement, or stores another value."""

    def other(old: Stmt, new: Stmt) -> Stmt:
        if not isinstance(new, Store):
            return new
        return change or replace(new, value=value or new.value)

    lowered = SUMS.checkpoints["device-tir"]
    made = replace(lowered, body=rebuild(lowered.body, other))
    return replace(SUMS, checkpoints={"source": SUMS.checkpoints["source"], "device-tir": made})


def reasons(snapshot: Snapshot, request: Request | None = None) -> list[tuple[str, str]]:
    return [(o.verdict, o.reason) for o in execute(snapshot, request).outputs]


NOTHING = Evaluate(Expr("call", "int32", (), "a_call_of_tomorrow"))
ZERO, HUGE = Expr("int", "int32", (), 0), Expr("int", "int64", (), 10**10)


def test_a_kernel_that_never_ends() -> None:
    first = Expr("load", "float16", (ZERO,), None, 0, _output())
    more = Expr("add", "float16", (first, Expr("float", "float16", (), 1.0)))
    forever = While(Expr("int", "bool", (), 1), Store(_output(), (ZERO,), more))
    few = Request(budget=Budget(4_000))
    assert reasons(changed(forever), few) == [("undecided", "more statements than allowed")]
    spent = Request(budget=Budget(10**9, seconds=0.2))
    assert reasons(changed(forever), spent) == [("undecided", "time")]


def test_a_loop_that_waits_for_another_block() -> None:
    """Nothing changes any more: it has no end however large the budget is."""
    first = Expr("load", "float16", (ZERO,), None, 0, _output())
    same = Store(_output(), (ZERO,), first)
    forever = While(Expr("int", "bool", (), 1), same, line=12)
    said = "in the blocks that run, a loop never ends (line 12)"
    assert reasons(changed(forever), Request(budget=Budget(4_000))) == [("undecided", said)]


def test_a_kernel_that_needs_too_much_memory() -> None:
    index = Expr("var", "int32", (), "i", 10**6)
    store = Store(_output(), (ZERO,), Expr("float", "float16", (), 0.0))
    source = SUMS.checkpoints["source"]
    lanes = For(index, ZERO, HUGE, "parallel", store)
    snapshot = replace(SUMS, checkpoints={**SUMS.checkpoints, "source": replace(source, body=lanes)})
    assert reasons(snapshot) == [("undecided", "more memory than allowed")]


def test_a_fault_of_ours_leaves_the_other_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(function: Function, checkpoint: str) -> bool:
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr("tlcheck.execute.worlds.levels.is_tiled", fails)
    (claim,) = verdicts_of(SUMS, Request()).claims
    assert (claim.verdict, claim.reason.partition(" (")[0]) == (
        "undecided",
        "tlcheck itself failed: ZeroDivisionError: by zero",
    )


def test_an_unknown_intrinsic_is_named() -> None:
    assert reasons(changed(NOTHING)) == [("undecided", "a_call_of_tomorrow")]


def test_statements_within_each_other_without_an_end() -> None:
    """A file of some kilobytes whose statements are more than could ever be gone through."""
    fields = json.loads(codec.dumps(SUMS))
    body = fields["checkpoints"]["source"]["body"]
    for _ in range(60):
        fields["nodes"].append(["Seq", 0, body, body])
        body = len(fields["nodes"]) - 1
    with pytest.raises(codec.CorruptSnapshot, match="more than 1000000 nodes in each other"):
        codec.loads(json.dumps(fields))


def _output() -> Buffer:
    return SUMS.checkpoints["source"].buffers[1]


@pytest.mark.parametrize(
    ("text", "budget"),
    [("1000", Budget(1000)), ("4000000,8G", Budget(4_000_000, 8 << 30)), ("5,3", Budget(5, 3))],
)
def test_budgets(text: str, budget: Budget) -> None:
    assert parsed(text) == budget


@pytest.mark.parametrize("text", ["", "0", "many", "-5", "5,0", "5,8T", "5,"])
def test_what_is_no_budget(text: str) -> None:
    with pytest.raises(ValueError, match="no budget"):
        parsed(text)
