"""The witness of a wrong sum: what is added too often or not at all, by whom, and not who wrote last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tests.cpu.checking import RIGHT, SAVED, executed
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.output_outcome import Difference
from tlcheck.execute.compare.sum_terms import UnequalTerm, unequal_terms
from tlcheck.execute.request import Request
from tlcheck.program.atomics import atomic_name
from tlcheck.snapshot.ir import Evaluate, Expr, If, Seq, Snapshot, Stmt
from tlcheck.snapshot.walk import expressions, postorder, rebuild, statements
from tlcheck.verdicts.results import read_snapshot
from tlcheck.witness import Act, Element, Term

BULK = SAVED / "tma_tile-0.1.15.snapshot.json"
STORED = SAVED.parent / "wrong" / "sums-0.1.9.snapshot.json"
ONE = Request(blocks=((0, 0, 0),), seeds=(1,))


def adds(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and any(atomic_name(e) for e in postorder(expressions(stmt)))


def changed(file: Path, change: Callable[[Stmt], Stmt]) -> Snapshot:
    """A snapshot with another statement in the place of each lowered addition."""
    saved = read_snapshot(file)
    lowered = saved.checkpoints["device-tir"]
    body = rebuild(lowered.body, lambda old, new: change(new) if adds(new) else new)
    return replace(saved, checkpoints={**saved.checkpoints, "device-tir": replace(lowered, body=body)})


def difference(snapshot: Snapshot) -> Difference:
    (found,) = [output.difference for output in execute(snapshot, ONE).outputs if output.difference is not None]
    return found


def terms(snapshot: Snapshot) -> tuple[UnequalTerm, ...]:
    return unequal_terms(snapshot, ONE, "B", difference(snapshot))


def test_an_atomic_that_is_made_again_is_found_with_both_threads() -> None:
    snapshot = changed(RIGHT, lambda stmt: Seq((stmt, stmt)))
    found = difference(snapshot)
    (term,) = unequal_terms(snapshot, ONE, "B", found)
    assert (len(term.source), [each.thread for each in term.lowered]) == (1, [0, 0])
    assert term.acts == term.lowered
    assert {each.block for each in term.acts} == {(0, 0, 0)}
    assert unequal_terms(snapshot, ONE, "B", replace(found, got="0.5")) == ()  # they do not leave this value


def test_an_addition_that_no_thread_makes_is_found_in_the_source() -> None:
    body = read_snapshot(RIGHT).checkpoints["device-tir"].body
    thread = next(e for s in statements(body) for e in postorder(expressions(s)) if e.op == "var" and e.value == "tx")
    few = Expr("lt", "bool", (thread, Expr("int", "int32", (), 64)))
    (term,) = terms(changed(RIGHT, lambda stmt: If(few, stmt, None)))
    assert (len(term.source), term.lowered) == (1, ())
    (made,) = term.acts
    assert made.origin.stmt is not None
    assert made.origin.stmt.line


def test_a_bulk_reduction_that_is_made_again_is_found_with_who_issued_it() -> None:
    (term,) = terms(changed(BULK, lambda stmt: Seq((stmt, stmt))))
    assert (len(term.source), [each.thread for each in term.lowered]) == (1, [0, 0])


def test_a_store_that_adds_to_its_element_is_an_addition_and_the_witness_tells_it() -> None:
    claims = executed(read_snapshot(STORED), Request(seeds=(0,)))
    (found,) = [c.finding.witness for c in claims if c.kind == "output" and c.finding is not None]
    assert isinstance(found, Element)
    assert [(term.value, term.intended, term.made) for term in found.terms] == [
        ("-1.0", 2, 0),
        ("1.0", 1, 0),
        ("2.0", 2, 0),
        ("3.0", 1, 0),
    ]
    assert (found.expected, found.got) == ("4.0", "-2.0")
    assert found.terms[0].words.startswith("missing twice: -1.0 by block (0, 0, 0), k = 1")
    assert "last is" not in found.words("O")


def test_terms_in_words() -> None:
    acts = tuple([Act("addition", (0, 0), thread, {}, 7, 40, "device-tir") for thread in (5, 133)])
    assert Term("0.25", 1, 2, acts).words == (
        "added twice instead of once: 0.25 by block (0, 0), thread 5 (line 40), and again by thread 133 (line 40)"
    )
    assert (
        Term("0.25", 0, 1, acts[:1]).words == "added, and not in the source: 0.25 by block (0, 0), thread 5 (line 40)"
    )
    assert Term("0.25", 3, 0, acts[:1]).words == "missing 3 times: 0.25 by block (0, 0), thread 5 (line 40), and 2 more"
