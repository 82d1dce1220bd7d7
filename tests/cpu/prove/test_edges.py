"""Kernels that are easily misjudged: proved where they are right, refuted where they are wrong or made wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cpu.mutations.mutants import Mutant, mutants
from tests.cpu.prove.handmade import ADDED, THREAD, add, load, number, operation, own, pair
from tests.fixtures.index import Fixture, read
from tlcheck.prove.evidence import Evidence, evidence
from tlcheck.prove.plans import Comparison
from tlcheck.prove.subject import evidences, subject
from tlcheck.snapshot.ir import Evaluate, Expr, Seq, Snapshot, Stmt
from tlcheck.snapshot.walk import rebuild
from tlcheck.verdicts.atomic_claims import AtomicReport, judge_atomics

EDGES = {f.path.removeprefix("edges/"): f for f in read().fixtures if f.path.startswith("edges/")}
RIGHT = [name for name in EDGES if not name.startswith("one_element")]
SHOWN = [name for name in RIGHT if not name.startswith("peeled")]  # no instance is made of that loop: test_peeled.py


def made_wrong(fixture: Fixture) -> list[Mutant]:
    """Return what a pass could do wrong at the last checkpoint, to the atomic that is judged."""
    return list(mutants(fixture.snapshot(), ("device-tir",)))


def verdicts(report: AtomicReport, buffer: str = "") -> set[str]:
    return {claim.verdict for claim in report.claims if claim.buffer in (buffer or claim.buffer)}


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_proved(name: str) -> None:
    assert verdicts(EDGES[name].report()) == {"proved"}


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("kind", ["shift base by one", "repeat the atomic", "remove the atomic"])
def test_what_is_made_wrong_is_refuted(name: str, kind: str) -> None:
    wrong = [m for m in made_wrong(EDGES[name]) if m.kind == kind]
    assert wrong
    for mutant in wrong:
        assert verdicts(judge_atomics(mutant.snapshot), mutant.root) == {"refuted"}


@pytest.mark.parametrize("name", [n for n in RIGHT if n.startswith("ragged_source")])
@pytest.mark.parametrize("kind", ["duplicate an iteration", "shorten a loop"])
def test_another_loop_is_not_proved(name: str, kind: str) -> None:
    (mutant,) = (m for m in made_wrong(EDGES[name]) if m.kind == kind)
    assert "proved" not in verdicts(judge_atomics(mutant.snapshot), mutant.root)


def test_only_one_of_the_values_that_threads_add_to_one_element_is_added() -> None:
    """Up to 0.1.7 by a plain store, later by the first thread alone."""
    (stored,) = EDGES["one_element-0.1.7"].report().claims
    (added,) = EDGES["one_element-0.1.15"].report().claims
    assert stored.finding is not None
    assert added.finding is not None
    assert (stored.finding.rule, added.finding.rule) == ("TLA009", "TLA006")
    assert "thread 1:" in added.finding.words


def test_a_strided_destination_ends_with_its_last_element() -> None:
    """The last row is 15 * 128 elements behind the first; what lies behind its 64 elements is not the buffer's."""
    fixture = EDGES["strided-0.1.15"]
    (mutant,) = (m for m in made_wrong(fixture) if m.kind == "shift base by one")
    (claim,) = judge_atomics(mutant.snapshot).claims
    assert claim.finding is not None
    assert "TLA007" in (claim.finding.rule, *claim.finding.others)
    shown = [e.difference for e in evidences(subject(mutant.snapshot)) if e.difference]
    assert shown[0].outside is not None
    assert shown[0].outside.wrong == 1


def with_terms(snapshot: Snapshot, count: int) -> Snapshot:
    """The same kernel with a value that is a sum of so many terms."""

    def longer(_: Stmt, stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Evaluate) or "atomic_add" not in str(stmt.value.value):
            return stmt
        call = stmt.value
        total = call.args[1]
        for _term in range(1, count):
            total = Expr("add", total.dtype, (total, call.args[1]))
        return replace(stmt, value=replace(call, args=(call.args[0], total, *call.args[2:])))

    functions = {n: replace(f, body=rebuild(f.body, longer)) for n, f in snapshot.checkpoints.items()}
    return replace(snapshot, checkpoints=functions)


@pytest.fixture
def frames() -> Iterator[int]:
    """Allow fewer terms than usual: the work grows with their square."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(500)
    yield 500
    sys.setrecursionlimit(before)


@pytest.mark.slow
def test_a_sum_of_more_terms_than_frames_is_judged(frames: int) -> None:
    fixture = next(f for f in read().fixtures if f.path == "mutations/scatter_guarded-0.1.15")
    snapshot = with_terms(fixture.snapshot(), frames + 1)
    assert verdicts(judge_atomics(snapshot)) == {"proved"}
    other = {**snapshot.checkpoints, "device-tir": with_terms(fixture.snapshot(), frames).checkpoints["device-tir"]}
    assert verdicts(judge_atomics(replace(snapshot, checkpoints=other))) == {"undecided"}


def test_an_atomic_whose_judging_fails_is_undecided_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(comparison: Comparison) -> Evidence:
        if comparison.match.source[0].target.root == "B":
            raise KeyError(17)
        return evidence(comparison)

    monkeypatch.setattr("tlcheck.prove.subject.evidence", failing)
    found = {c.buffer: c for c in judge_atomics(EDGES["second_group-0.1.15"].snapshot()).claims}
    assert found["C"].verdict == "proved"
    assert found["B"].verdict == "undecided"
    assert "tlcheck itself failed: KeyError: 17 (test_edges.py:" in found["B"].reason


@pytest.mark.parametrize(("thread", "verdict", "witness"), [(64, "undecided", ""), (63, "refuted", "thread 63")])
def test_an_atomic_that_no_thread_reaches_is_not_missed(thread: int, verdict: str, witness: str) -> None:
    """A compiler may drop what is never executed. Where something is, the witness is an addition that is made."""
    never = add(own(ADDED), number(1), operation("le", number(thread), THREAD))
    (claim,) = judge_atomics(pair(never, Evaluate(number(0)))).claims
    assert claim.verdict == verdict
    assert (claim.finding.words if claim.finding is not None else "").count(witness)


@pytest.mark.parametrize(("last", "verdict"), [("right", "undecided"), ("wrong", "refuted")])
def test_what_a_later_pass_mends_is_not_refuted(last: str, verdict: str) -> None:
    """Such as an addition of too many threads, which the guard of what it reads leaves out again."""
    once = add(load(ADDED, THREAD), number(1))
    twice = pair(once, Seq((once, once))).checkpoints["device-tir"]
    right = pair(once, once)
    source, intent, end = right.checkpoints.values()
    checkpoints = {"source": source, "intent": intent, "lower-tile-op": twice}
    checkpoints["device-tir"] = end if last == "right" else twice
    (claim,) = judge_atomics(replace(right, checkpoints=checkpoints)).claims
    assert claim.verdict == verdict
    assert ("right again" in claim.reason) == (last == "right")
