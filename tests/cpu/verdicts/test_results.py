"""From snapshots to results, and from results to the exit code."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from tests.cpu.checking import INVARIANT, RIGHT, WRONG, failed, make_result, make_run, saved_result
from tlcheck.cache.store import Cache
from tlcheck.errors import UsageError
from tlcheck.lower.runs import Lowered
from tlcheck.report.check_json import CheckReport, render
from tlcheck.report.schemas import schema_of
from tlcheck.snapshot.ir import Evaluate, Expr, Seq, Snapshot, Stmt, Unknown
from tlcheck.verdicts import judging
from tlcheck.verdicts.judge import Judge, Policy
from tlcheck.verdicts.results import Result, exit_code, read_snapshot
from tlcheck.witness import Addition
from tlcheck.worker.protocol import Failure

VALIDATOR = jsonschema.Draft202012Validator(schema_of(CheckReport))
CLEAN, EMPTY = make_result("proved"), make_result()
BROKEN = replace(CLEAN, broken=("gone",))


@pytest.mark.parametrize(
    ("found", "code", "strict"),
    [
        ([CLEAN, EMPTY], 3, 3),
        ([CLEAN, make_result("proved", "undecided")], 0, 1),
        ([CLEAN, make_result("proved", "refuted")], 1, 1),
        ([CLEAN, BROKEN], 1, 1),
        ([CLEAN, failed()], 3, 3),
        ([make_result("undecided"), failed()], 3, 1),
        ([make_result("refuted"), failed()], 1, 1),
        ([make_result("refuted"), failed("usage")], 2, 2),
    ],
)
def test_the_first_match_is_the_exit_code(found: list[Result], code: int, strict: int) -> None:
    assert exit_code(found, strict=False) == code
    assert exit_code(found[::-1], strict=True) == strict


def saved(file: Path) -> Result:
    return saved_result(file, read_snapshot(file), 0)


def test_a_wrong_snapshot_has_its_finding_in_full() -> None:
    result = saved(WRONG)
    (atomic,) = result.claims
    finding = atomic.finding
    assert finding is not None
    assert (atomic.verdict, finding.rule, finding.checkpoint) == ("refuted", "TLA001", "lower-tile-op")
    assert "i // 8, j // 8, j % 2" in finding.layout
    assert finding.excerpt is not None
    assert "AtomicAddx2" in finding.excerpt.lines[finding.excerpt.marked - finding.excerpt.first]
    assert isinstance(finding.witness, Addition)
    assert finding.witness.stride == 32
    assert finding.pass_config == ""  # of no use in 0.1.7
    assert (result.run.case, result.run.target, result.run.release) == (
        "cases/atomics.py::annotated_gemm",
        "sm_90",
        "0.1.7",
    )


def test_a_right_snapshot_is_proved() -> None:
    assert [atomic.verdict for atomic in saved(RIGHT).claims] == ["proved"]


def test_a_pass_configuration_that_avoids_it_is_named() -> None:
    finding = saved(INVARIANT).claims[0].finding
    assert finding is not None
    assert finding.pass_config == "TIR_DISABLE_VECTORIZE"


def test_the_source_line_is_read_from_the_users_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert saved(WRONG).claims[0].source.text == ""
    line = saved(WRONG).claims[0].source.line
    assert line > read_snapshot(WRONG).line > 1  # it is not that of the kernel
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "atomics.py").write_text("".join(f"    line {n}\n" for n in range(1, 500)))
    source = saved(WRONG).claims[0].source
    assert (source.exact, source.text, source.above) == (True, f"line {line}", f"line {line - 1}")


def test_a_failure_stays_one() -> None:
    failure = Failure("crash", "lower", "SIGABRT")
    with Judge(Policy(), Cache(None)) as judge:
        assert judge(Lowered(make_run(), None, failure)) == Result(make_run(), failure=failure)


def test_checkpoints_that_could_not_be_saved_are_noted() -> None:
    with Judge(Policy(), Cache(None)) as judge:
        result = judge(Lowered(make_run(), RIGHT, None, {"device-tir": "ValueError: no"}))
    assert result.notes == ("no checkpoint device-tir: ValueError: no",)


def test_a_fault_of_tlchecks_own_is_a_failure_of_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(snapshot: Snapshot) -> None:
        raise KeyError(snapshot.case)

    monkeypatch.setattr(judging, "judge_atomics", check)
    failure = saved(RIGHT).failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("internal", "tlcheck itself failed: KeyError: 'annotated_gemm'")
    assert failure.where.startswith("test_results.py:")


def test_a_snapshot_without_the_kernel_as_written_is_not_checked() -> None:
    snapshot = read_snapshot(RIGHT)
    late = {name: function for name, function in snapshot.checkpoints.items() if name != "intent"}
    result = saved_result(RIGHT, replace(snapshot, checkpoints=late), 0)
    assert result.failure is not None
    assert exit_code([result], strict=False) == 3


@pytest.mark.parametrize(
    ("name", "why"), [("atomic_add_elem_op", "are not understood"), ("atomicCAS", "is not a known atomic")]
)
def test_an_atomic_that_cannot_be_read_is_not_left_out(name: str, why: str) -> None:
    """Among others it is undecided; alone, the run is not checked."""
    snapshot = read_snapshot(RIGHT)
    written = snapshot.checkpoints["source"]
    strange = Evaluate(Expr("call", "handle", (), name))
    result = saved_result(RIGHT, with_written(snapshot, Seq((written.body, strange))), 0)
    assert [atomic.verdict for atomic in result.claims] == ["proved", "undecided"]
    assert f"{name} {why}" in result.claims[1].reason
    VALIDATOR.validate(json.loads(render([result], [], 0)))
    alone = saved_result(RIGHT, with_written(snapshot, strange), 0)
    assert alone.failure is not None
    assert alone.failure.message == "none of its atomics could be read"


def test_a_kernel_that_is_not_understood_is_not_one_without_atomics() -> None:
    snapshot = read_snapshot(RIGHT)
    result = saved_result(RIGHT, with_written(snapshot, Unknown("SomethingNew")), 0)
    assert result.failure is not None
    assert "not understood" in result.failure.message
    assert saved_result(RIGHT, with_written(snapshot, Seq(())), 0) == Result(
        result.run, pass_configs=snapshot.pass_configs, saved=str(RIGHT)
    )


def with_written(snapshot: Snapshot, body: Stmt) -> Snapshot:
    written = {name: replace(snapshot.checkpoints[name], body=body) for name in ("source", "intent")}
    return replace(snapshot, checkpoints={**snapshot.checkpoints, **written})


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"schema": 99}', b"\xff\xfe", RIGHT.read_bytes()[:2000]]
)
def test_a_corrupt_snapshot_is_one_line(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.snapshot.json"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"x\.snapshot\.json: ") as error:
        read_snapshot(file)
    assert "\n" not in str(error.value)


def test_the_prover_is_not_imported_for_these(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tvm", None)  # an import of it fails
    assert saved(WRONG).failure is None
    assert saved(RIGHT).failure is None
