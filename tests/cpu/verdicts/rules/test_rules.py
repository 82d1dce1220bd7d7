"""Every rule refutes its bad example and accepts its good one, and all rules are run over all fixtures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import tlcheck.verdicts.rules
from tests.cpu.mutations.tools import rewrite
from tests.fixtures.index import Fixture, read
from tlcheck.snapshot.ir import Block, Buffer, Evaluate, Expr, Seq, Snapshot, Stmt, Store
from tlcheck.snapshot.walk import postorder, rebuild
from tlcheck.verdicts.atomic_claims import AtomicReport, judge_atomics
from tlcheck.verdicts.claim import Finding
from tlcheck.verdicts.rules.rule import rule_of, rules
from tlcheck.verdicts.rules.rule_pages import pages

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.xdist_group("fixtures")  # each is judged once

FIXTURES = {fixture.path: fixture for fixture in read().fixtures}
IDS = [rule.id for rule in rules() if rule.check]  # of executions: see test_executed
REVIEWED = Path(__file__).with_name("findings.toml")


def example(name: str) -> Fixture:
    return FIXTURES[f"rules/{name}"]


def only(report: AtomicReport) -> Finding:
    """The finding of a kernel with one atomic."""
    (atomic,) = report.claims
    assert atomic.finding is not None, (atomic.verdict, atomic.reason)
    return atomic.finding


@pytest.mark.parametrize("rule", IDS)
def test_a_rule_refutes_its_bad_example(rule: str) -> None:
    finding = only(example(f"{rule}-bad").report())
    assert finding.rule == rule
    assert finding.what
    assert finding.excerpt is not None or rule in ("TLA009", "TLA011")


@pytest.mark.parametrize("rule", IDS)
def test_a_rule_accepts_its_good_example(rule: str) -> None:
    assert [a.verdict for a in example(f"{rule}-good").report().claims] == ["proved"]


def test_every_rule_has_a_page_with_its_id() -> None:
    assert sorted((rule.id, rule.name, rule.title) for rule in rules()) == [(p.id, p.name, p.title) for p in pages()]
    assert all(rule.page.startswith(f"{rule.id}: ") for rule in rules())


@pytest.mark.slow
def test_the_findings_in_all_fixtures_are_those_reviewed() -> None:
    """fixture -> destination -> the rule of the finding, then those under `also`."""
    found: dict[str, dict[str, list[str]]] = {}
    for path, fixture in FIXTURES.items():
        for atomic in fixture.report().claims:
            if atomic.finding is not None:
                rows = found.setdefault(path, {})
                assert atomic.buffer not in rows
                rows[atomic.buffer] = [atomic.finding.rule, *atomic.finding.others]
    assert found == tomllib.loads(REVIEWED.read_text(encoding="utf-8"))


def test_vectors_of_float32_need_sm_90_or_a_library_that_falls_back() -> None:
    old, new = example("TLA001-bad"), example("TLA002-good")  # 0.1.7 and 0.1.15
    first = replace(old.snapshot(), target="sm_80", toolchain={"tilelang": "0.1.6.post2"}, headers="")
    finding = only(judge_atomics(first))
    assert "TLA013" in (finding.rule, *finding.others)
    assert judge_atomics(replace(new.snapshot(), target="sm_80")).count("proved") == 1


def test_a_release_or_an_arch_that_was_not_measured_is_undecided() -> None:
    snapshot = example("TLA002-good").snapshot()
    unknown = {**snapshot.toolchain, "tilelang": "0.1.99"}
    call = "add of 4 float32 by pointer to float32, global, relaxed"
    for changed, why in (
        (replace(snapshot, target="sm_70"), f"was not measured: {call}"),
        (replace(snapshot, toolchain=unknown), f"{call}: the headers of its device library are not those"),
    ):
        (atomic,) = judge_atomics(changed).claims
        assert atomic.verdict == "undecided"
        assert why in atomic.reason


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("TLA013-bad", "does not compile: no instance of overloaded function"),
        ("TLA014-bad", "wrong value: add of 3, -5 to element 0, which holds -5, leaves -5, not -2"),
    ],
)
def test_a_finding_about_the_device_library_says_what_was_measured(name: str, what: str) -> None:
    assert what in only(example(name).report()).what


def test_no_pass_is_named_for_a_vector_that_the_kernel_itself_misaligns() -> None:
    """The kernel of TLA002 is wrong in every release; the vectors of TLA001's are TileLang's."""
    own = only(example("TLA002-bad").report())
    assert (own.pass_name, own.place) == ("", "at lower-tile-op")
    made = only(example("TLA001-bad").report())
    assert "TLA002" in made.others
    assert made.pass_name == "tl.LowerTileOp"


@pytest.mark.parametrize(("step", "verdict"), [(1, "undecided"), (4, "proved")])
def test_the_author_answers_for_vectors_that_start_where_memory_says(step: int, verdict: str) -> None:
    numbers = Buffer("I", "int32", (Expr("int", "int32", (), 128),), "global", Expr("var", "handle", (), "I", 90_001))

    def gathered(stmt: Stmt) -> Stmt:
        if not is_atomic(stmt):
            return stmt
        pointer, *rest = stmt.value.args  # type: ignore[attr-defined]
        index = next(e for e in postorder([pointer]) if e.op == "add")  # tx * 4 + 1
        tx = next(e for e in postorder([index]) if e.op == "var")
        start = Expr("mul", "int32", (Expr("load", "int32", (tx,), buffer=numbers), Expr("int", "int32", (), step)))
        return Evaluate(replace(stmt.value, args=(rewrite(pointer, {id(index): start}), *rest)))  # type: ignore[attr-defined]

    snapshot = example("TLA002-bad").snapshot()
    for checkpoint in snapshot.checkpoints:
        snapshot = at(snapshot, checkpoint, gathered)
    (claim,) = judge_atomics(snapshot).claims
    assert claim.verdict == verdict
    reason = "at lower-tile-op the alignment of its vector instruction depends on what memory holds"
    assert claim.reason == (reason if verdict == "undecided" else "")


def at(snapshot: Snapshot, checkpoint: str, change: Callable[[Stmt], Stmt]) -> Snapshot:
    """A snapshot with its statements changed at one checkpoint."""
    function = snapshot.checkpoints[checkpoint]
    changed = replace(function, body=rebuild(function.body, lambda _, stmt: change(stmt)))
    return replace(snapshot, checkpoints={**snapshot.checkpoints, checkpoint: changed})


def is_atomic(stmt: Stmt) -> bool:
    return isinstance(stmt, Evaluate) and str(stmt.value.value).startswith("atomic_add")


def test_an_atomic_that_is_gone_is_refuted() -> None:
    snapshot = at(example("TLA009-good").snapshot(), "device-tir", lambda s: Seq(()) if is_atomic(s) else s)
    finding = only(judge_atomics(snapshot))
    assert (finding.rule, finding.checkpoint) == ("TLA006", "device-tir")
    assert "the atomic is gone" in finding.what


@pytest.mark.parametrize(("further", "verdict"), [(0, "refuted"), (1 << 20, "undecided")])
def test_an_atomic_that_reads_out_of_bounds_is_never_made(further: int, verdict: str) -> None:
    """TileLang leaves out an atomic whose operand no tensor holds: it is the author's."""

    def reads_on(stmt: Stmt) -> Stmt:
        if not is_atomic(stmt):
            return stmt
        assert isinstance(stmt, Evaluate)
        to, value = stmt.value.args[:2]
        index = Expr("add", "int32", (value.args[0], Expr("int", "int32", value=further)))
        return Evaluate(replace(stmt.value, args=(to, replace(value, args=(index,)), *stmt.value.args[2:])))

    snapshot = at(example("TLA007-good").snapshot(), "device-tir", lambda s: Seq(()) if is_atomic(s) else s)
    for checkpoint in ("source", "intent", "tile-ops"):
        snapshot = at(snapshot, checkpoint, reads_on)
    assert [claim.verdict for claim in judge_atomics(snapshot).claims] == [verdict]


def test_a_store_of_a_tile_operator_is_not_the_atomics() -> None:
    """T.clear of the destination, a tile operator in the source, is a store where the atomic is gone."""

    def cleared(stmt: Stmt) -> Stmt:
        if not isinstance(stmt, Evaluate) or stmt.value.value != "atomicadd":
            return stmt
        zero = Expr("float", "float32", value=0.0)
        return Seq((Evaluate(replace(stmt.value, value="fill", args=(stmt.value.args[1], zero))), stmt))

    def stored(stmt: Stmt) -> Stmt:
        if not is_atomic(stmt):
            return stmt
        assert isinstance(stmt, Evaluate)
        (load,) = stmt.value.args[0].args
        assert load.buffer is not None
        return Store(load.buffer, load.args, Expr("float", "float32", value=0.0))

    snapshot = at(example("TLA009-good").snapshot(), "device-tir", stored)
    assert only(judge_atomics(snapshot)).rule == "TLA009"
    for checkpoint in ("source", "intent"):
        snapshot = at(snapshot, checkpoint, cleared)
    assert only(judge_atomics(snapshot)).rule == "TLA006"


def test_an_atomic_that_may_be_in_what_is_not_understood_is_undecided() -> None:
    snapshot = at(example("TLA009-good").snapshot(), "device-tir", lambda s: _unknown(s) if is_atomic(s) else s)
    (atomic,) = judge_atomics(snapshot).claims
    assert atomic.verdict == "undecided"


def _unknown(stmt: Stmt) -> Stmt:
    assert isinstance(stmt, Evaluate)
    return Evaluate(Expr("unknown", "handle", value="some_node"))


@pytest.mark.parametrize("name", ["AtomicAddx8", "atomicCAS", "atomic_max_x2_elem_op"])
def test_an_atomic_that_no_signature_knows_is_not_gone(name: str) -> None:
    def renamed(stmt: Stmt) -> Stmt:
        assert isinstance(stmt, Evaluate)
        return Evaluate(replace(stmt.value, value="call_extern", args=(Expr("str", "", value=name), *stmt.value.args)))

    snapshot = at(example("TLA009-good").snapshot(), "device-tir", lambda s: renamed(s) if is_atomic(s) else s)
    (atomic,) = judge_atomics(snapshot).claims
    assert atomic.verdict == "undecided"


def test_an_order_that_is_weakened_is_named() -> None:
    finding = only(example("TLA010-bad").report())
    assert finding.what == "the kernel asks for acq_rel, atomic_addx2_elem_op is relaxed"


def test_two_elements_in_one_place_are_named() -> None:
    finding = only(example("TLA011-bad").report())
    assert finding.what == "its layout maps the elements [0, 0] and [0, 4] to the same offset 0"
    assert finding.blame == "author"  # a tensor has the layout that the kernel annotates


def test_a_block_around_it_does_not_change_a_verdict() -> None:
    for kind in ("bad", "good"):
        snapshot = example(f"TLA005-{kind}").snapshot()
        wrapped = at(snapshot, "lower-tile-op", lambda s: Block("around", s) if is_atomic(s) else s)
        assert judge_atomics(wrapped).count("refuted") == (kind == "bad")


def test_a_rule_that_an_execution_finds_has_a_page_and_no_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tlo999_an_element_differs.py").write_text('"""TLO999: It differs\n\nMore."""\nPROBLEM = "different"\n')
    monkeypatch.setattr(tlcheck.verdicts.rules, "__path__", [str(tmp_path)])
    rules.cache_clear()
    try:
        (rule,) = rules()
        assert (rule.id, rule.name, rule.title) == ("TLO999", "an-element-differs", "It differs")
        assert rule.check is None
        assert rule_of("different") is rule
        with pytest.raises(KeyError):
            rule_of("another")
    finally:
        rules.cache_clear()
        sys.modules.pop("tlcheck.verdicts.rules.tlo999_an_element_differs")
