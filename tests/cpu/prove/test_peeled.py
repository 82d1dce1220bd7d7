"""Loops whose last iterations stand behind them, where memory says how often they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cpu.mutations.mutants import mutants
from tests.cpu.mutations.tools import atomics, binary, integer, rewrite, target, with_call, with_statement
from tests.fixtures.index import read
from tlcheck.snapshot.ir import Alloc, Buffer, Evaluate, Expr, For, Function, If, Seq, Stmt, Store
from tlcheck.snapshot.walk import expressions, postorder, rebuild, statements, substitute, with_expressions
from tlcheck.verdicts.atomic_claims import AtomicReport, judge_atomics

PEELED = next(f for f in read().fixtures if f.path == "edges/peeled-0.1.15").snapshot()


def test_the_loop_and_its_last_iteration_are_the_loop_as_written() -> None:
    (atomic,) = judge_atomics(PEELED).claims
    assert (atomic.verdict, atomic.not_source) == ("proved", "")
    assert {stage.status for stage in atomic.stages} == {"same"}
    for checkpoint in ("lower-tile-op", "device-tir"):
        assert _checked(checkpoint, PEELED.checkpoints[checkpoint]).claims[0].verdict == "proved"


@pytest.mark.parametrize("name", ["k", "none"])
def test_a_version_that_a_variable_of_no_loop_names_is_not_read(name: str) -> None:
    """CUDA has no such variable behind its loop. Which of the versions that exist it is, is a matter of time."""
    function = PEELED.checkpoints["device-tir"]
    k = next(s.var for s in statements(function.body) if isinstance(s, For) and s.var.value == "k")
    version = k if name == "k" else replace(k, value=name, uid=90_020)

    def change(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Evaluate) or not _adds(stmt) or k.uid not in {e.uid for e in postorder([stmt.value])}:
            return stmt
        value = stmt.value.args[1]
        new = {id(e): version for e in postorder([value]) if e.uid == k.uid}
        first, second, *rest = stmt.value.args
        return replace(stmt, value=replace(stmt.value, args=(first, rewrite(second, new), *rest)))

    changed = replace(function, body=rebuild(function.body, lambda _, stmt: change(stmt)))
    (claim,) = _checked("device-tir", changed).claims
    assert claim.verdict == ("proved" if name == "k" else "undecided")


def _adds(stmt: Stmt) -> bool:
    calls = [e for s in statements(stmt) for e in postorder(expressions(s)) if e.op == "call"]
    return any(str(call.value).startswith("atomic_add") for call in calls)


def _addresses(stmt: Stmt) -> list[Expr]:
    """Return what says how often and where something is added; that all 64 threads run is said twice."""
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


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["lower-tile-op", "device-tir"])
def test_no_changed_number_is_proved(checkpoint: str) -> None:
    broken = dict(_mutants(PEELED.checkpoints[checkpoint]))
    assert len(broken) > 30
    checked = {what: _checked(checkpoint, function) for what, function in broken.items()}
    assert [what for what, report in checked.items() if report.claims[0].verdict == "proved"] == []


@pytest.mark.slow
def test_nothing_that_a_pass_could_do_wrong_is_proved() -> None:
    proved = [kind for kind, report in _made_wrong() if report.claims[0].verdict == "proved"]
    # Another version of the pipelined buffer, which executions judge; and each of two guards that say the same.
    assert proved == ["swap neighbours in the source", "drop a guard", "drop a guard"]


def _made_wrong() -> Iterator[tuple[str, AtomicReport]]:
    made = list(mutants(PEELED, ("device-tir",)))
    assert {"repeat the atomic", "remove the atomic", "shorten a loop"} <= {mutant.kind for mutant in made}
    for mutant in made:
        yield mutant.kind, _checked("device-tir", mutant.snapshot.checkpoints["device-tir"])


@pytest.mark.parametrize(("iterations", "verdict"), [(1, "undecided"), (2, "proved"), (3, "undecided")])
def test_the_last_iterations_may_stand_in_a_loop_of_their_own(iterations: int, verdict: str) -> None:
    function = PEELED.checkpoints["lower-tile-op"]
    loop, behind = _loop(function), _behind(function)
    left, k = binary("sub", loop.extent, integer(1)), replace(loop.var, uid=10_000)
    others = For(k, integer(0), integer(iterations), "unrolled", _one(loop, binary("add", left, k)))
    shorter = with_statement(function, loop, lambda now: replace(now, extent=left))
    report = _checked("lower-tile-op", with_statement(shorter, behind, lambda now: others))
    assert report.claims[0].verdict == verdict


def test_an_iteration_that_stays_in_the_loop_is_not_the_last_one() -> None:
    function = PEELED.checkpoints["device-tir"]
    behind = _behind(function)
    assert isinstance(behind, If)
    kept = with_statement(function, _step(_loop(function)), lambda now: Seq((now, replace(behind, then=now))))
    assert not _is_proved(with_statement(kept, behind, lambda now: Seq(())))


def test_what_stands_behind_the_loop_is_added_once() -> None:
    function = PEELED.checkpoints["device-tir"]
    var = _loop(function).var
    twice = with_statement(function, _behind(function), lambda now: For(var, integer(0), integer(2), "serial", now))
    assert not _is_proved(twice)


@pytest.mark.parametrize(("staged", "verdict"), [("", "proved"), ("each", "proved"), ("loop", "undecided")])
def test_the_last_iteration_does_not_add_what_the_loop_has_left_in_a_register(staged: str, verdict: str) -> None:
    written, function = _adding_a(PEELED.checkpoints["source"]), PEELED.checkpoints["lower-tile-op"]
    loop = _loop(function)
    inside = _with_values(_step(loop), staged != "", staged != "")
    behind = _with_values(_one(loop, loop.extent), staged != "", staged == "each")
    made = with_statement(function, _behind(function), lambda now: behind)
    made = with_statement(made, _step(loop), lambda now: inside)
    made = replace(made, body=Seq((Alloc(REGISTER), made.body)))
    snapshot = replace(PEELED, checkpoints={**PEELED.checkpoints, "source": written, "lower-tile-op": made})
    first = judge_atomics(snapshot).claims[0].stages[0]
    assert (first.checkpoint, first.status) == ("lower-tile-op", {"proved": "same"}.get(verdict, verdict))


@pytest.mark.parametrize(("rows", "proved"), [(16, True), (17, False)])
def test_what_no_content_that_was_tried_has_run_is_not_the_same(rows: int, proved: bool) -> None:
    """As many iterations as one number in memory is above another: none where all of them are equal."""
    written, function = PEELED.checkpoints["source"], PEELED.checkpoints["lower-tile-op"]
    loop, behind = _loop(function), _behind(function)
    (number,) = (e for e in postorder([loop.extent]) if e.op == "load")
    following = replace(number, args=(binary("add", number.args[0], integer(1)),))
    extent = binary("sub", following, number)
    left = binary("sub", extent, integer(1))
    alone = rebuild(_one(loop, left), lambda old, now: _with_rows(now, rows))
    made = with_statement(function, loop, lambda now: replace(now, extent=left))
    made = with_statement(made, behind, lambda now: alone)
    pipelined = next(s for s in statements(written.body) if isinstance(s, For))
    written = with_statement(written, pipelined, lambda now: replace(now, extent=extent))
    snapshot = replace(PEELED, checkpoints={**PEELED.checkpoints, "source": written, "lower-tile-op": made})
    assert (judge_atomics(snapshot).claims[0].stages[0].status == "same") == proved


def _with_rows(stmt: Stmt, rows: int) -> Stmt:
    """An atomic with another number of rows from one iteration to the next."""
    if not isinstance(stmt, Evaluate) or not _adds(stmt):
        return stmt
    load = target(stmt.value)
    new = {id(e): integer(rows) for e in postorder(load.args[:1]) if e.op == "int" and e.value == 16}
    return with_expressions(stmt, [rewrite(stmt.value, {id(load): rewrite(load, new)})])


REGISTER = Buffer("staged", "float32", (integer(1),), "local", Expr("var", "handle", value="staged", uid=10_001))


def _adding_a(source: Function) -> Function:
    """The source with the atomic's value read from A, not from the tile that A is copied to."""
    (copy,) = (e for s in statements(source.body) for e in expressions(s) if e.value == "copy")
    (atomic,) = atomics(source)
    return with_call(source, atomic, replace(atomic, args=(copy.args[0], *atomic.args[1:])))


def _with_values(step: Stmt, staged: bool, stored: bool) -> Stmt:
    """The same lowered: by way of a register or not, which is stored to or left as it is."""
    of_a = next(b for b in PEELED.checkpoints["lower-tile-op"].buffers if b.name == "A")
    register = Expr("load", "float32", (integer(0),), buffer=REGISTER)

    def change(old: Stmt, now: Stmt) -> Stmt:
        if not isinstance(now, Evaluate) or not _adds(now):
            return now
        value = replace(target(now.value), buffer=of_a)
        call = replace(now.value, args=(now.value.args[0], register if staged else value, *now.value.args[2:]))
        added = replace(now, value=call)
        return Seq((Store(REGISTER, (integer(0),), value), added)) if stored else added

    return rebuild(step, change)


def _loop(function: Function) -> For:
    return next(s for s in statements(function.body) if isinstance(s, For) and _adds(s))


def _step(loop: For) -> Stmt:
    """Return what adds in the loop."""
    return next(s for s in statements(loop) if isinstance(s, If) and _adds(s))


def _behind(function: Function) -> Stmt:
    """Return what adds behind the loop."""
    inside = list(statements(_loop(function)))
    return next(s for s in statements(function.body) if isinstance(s, If) and _adds(s) and s not in inside)


def _one(loop: For, k: Expr) -> Stmt:
    """Return what adds in one iteration, where there is that one."""

    def at(old: Stmt, now: Stmt) -> Stmt:
        roots = expressions(now)
        return with_expressions(now, substitute(roots, {loop.var.uid: k})) if roots else now

    return If(binary("ge", k, integer(0), "bool"), rebuild(_step(loop), at))


def _is_proved(function: Function) -> bool:
    return _checked("device-tir", function).claims[0].verdict == "proved"


def test_a_version_of_a_tile_in_a_shared_allocation_is_the_tile() -> None:
    function = PEELED.checkpoints["device-tir"]
    (tile,) = (s for s in statements(function.body) if isinstance(s, Alloc) and s.buffer.name == "s")
    assert _is_proved(with_statement(function, tile, lambda now: Seq(())))


def _checked(checkpoint: str, function: Function) -> AtomicReport:
    """Judge the kernel with another function there. Left out are checkpoints that might be wrong then as well."""
    others = {name: PEELED.checkpoints[name] for name in ("source", "intent", "tile-ops", "device-tir")}
    return judge_atomics(replace(PEELED, checkpoints={**others, checkpoint: function}))
