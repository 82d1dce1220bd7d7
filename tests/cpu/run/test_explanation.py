"""What fails on the device and no proof refutes is executed on the CPU; what passes is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from tests.cpu.checking import StandInWorker, declared, published
from tests.cpu.run.interpreters import DEVICE, make_interpreter
from tests.fixtures.index import FOLDER
from tlcheck.case import Expect
from tlcheck.cli.main import main
from tlcheck.lower import session
from tlcheck.run import examination
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.jobs import Job, name_of, output_of, task_of
from tlcheck.worker.protocol import Answer, Failure

LOOP = FOLDER / "wrong" / "loop-0.1.15.snapshot.json"  # refuted by execution alone, from element 100 on
SM_80 = {**DEVICE, "arch": "sm_80"}
HANG = {"kind": "timeout", "phase": "launch", "message": "no end after 40 s", "detail": "", "where": ""}
HANGS = {"answer": {"phase": "launch", "failure": HANG}}
PASSES = {"answer": {"phase": "done", "trials": [{"seed": 0, "inputs": "", "findings": [], "outputs": {}}]}}
EXPECTED = Expect(rule="TLO002", releases=">=0.1.6", buffer="C", reason="the layout of another loop")


def plan(**steps: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the device does with each case; one for sm_80, as the snapshot."""
    verify = {f"verify:{name}": step for name, step in steps.items()}
    return {"device": {"answer": {"phase": "done", "device": SM_80}}, **verify}


def report_of(folder: Path, *arguments: str | Path) -> tuple[int, dict[str, Any]]:
    """The exit code, and the runs by name."""
    output = folder / "report.json"
    code = main(["run", *map(str, arguments), "-o", str(output)])
    (examined,) = published(output.read_text(), "run")["examinations"]
    return code, {run["case"].rpartition("::")[2]: run for run in examined["runs"]}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings and acceptances are those of the working folder."""
    monkeypatch.chdir(tmp_path)


def saved(folder: Path, step: Mapping[str, Any], settings: str = "") -> tuple[int, dict[str, Any]]:
    """A saved snapshot in a project with these settings; the device does this with it."""
    python = make_interpreter(folder / "toolchain", plan(loop=step))
    (folder / "pyproject.toml").write_text(f"[tool.tlcheck]\n{settings}\n")
    code, runs = report_of(folder, LOOP, "--toolchain", python)
    return code, runs["loop"]


def test_a_failure_is_executed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = saved(tmp_path, HANGS)
    (refuted,) = found["refuted"]
    assert (code, found["status"], found["excused"], found["unrefuted"]) == (1, "failed", "", "")
    assert (refuted["basis"], refuted["finding"]["rule"]) == ("execution", "TLO002")
    assert "    check: TLO002 " in capsys.readouterr().out


def test_what_passes_is_not_executed(tmp_path: Path) -> None:
    code, found = saved(tmp_path, PASSES)
    assert (code, found["status"], found["refuted"]) == (0, "passed", [])
    assert found["unrefuted"] == "proofs refute nothing in this code"


def test_a_project_may_execute_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = saved(tmp_path, HANGS, "execute = false")
    assert (code, found["refuted"]) == (1, [])
    assert "    check: proofs refute nothing in this code\n" in capsys.readouterr().out


def test_an_interrupted_execution_loses_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(examination, "explained", interrupted)
    code, found = saved(tmp_path, HANGS)
    assert (code, found["status"], found["findings"][0]["kind"]) == (130, "failed", "timeout")


def test_what_an_execution_leaves_open_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = saved(tmp_path, HANGS, 'budget = "1"')
    assert (code, found["refuted"]) == (1, [])
    said = "proofs and execution refute nothing in this code; undecided: more statements than allowed"
    assert found["unrefuted"] == said
    assert f"    check: {said}\n" in capsys.readouterr().out


@dataclass(eq=False)
class Maker(StandInWorker):
    """Makes inputs too, for seeds 0 and 1: A and C are full of 7; those of `unable` raise."""

    def _answer(self, job: Job) -> Answer:
        if task_of(job) != "inputs":
            return super()._answer(job)
        if name_of(job) == "unable":
            return Answer(None, Failure("exception", "inputs", "inputs raised ValueError"), 0.0, 0.0, "")
        with Path(output_of(job)).open("wb") as file:
            np.save(file, np.full(256, 7, np.float32))
        made = {"sets": [[0, [0, 0]], [1, [0, 0]]], "where": "k.py:1", "updates": None, "digest": "d1"}
        return Answer(made, None, 0.0, 0.0, "")


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maker:
    """Lowers cases of two files: some are expected to be wrong, some have inputs of their own."""
    names = ("passing", "expected", "other", "unable")
    cases = {name: declared(name, ("sm_80",)) for name in names}
    cases["expected"] = replace(cases["expected"], expects=(EXPECTED,), inputs=True)
    cases["other"] = replace(cases["other"], expects=(replace(EXPECTED, rule="TLR001"),))
    cases["unable"] = replace(cases["unable"], inputs=True)
    files = {"first.py": (cases["passing"],), "k.py": tuple(cases.values())}
    made = Maker("0.1.15", files, snapshots=dict.fromkeys(names, LOOP))
    steps = {name: HANGS if name != "passing" else PASSES for name in names}
    found = Toolchain("it", "release", make_interpreter(tmp_path / "toolchain", plan(**steps)))
    for module in (session, examination):
        monkeypatch.setattr(module, "resolve", lambda name, requirements: found)
    monkeypatch.setattr(session, "Worker", lambda python, env, **options: made)
    for name in files:
        (tmp_path / name).write_text("from tlcheck.case import Case\n")
    return made


def test_what_the_case_expects_of_an_execution_excuses_its_failure(
    worker: Maker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second file's second case: what is lowered once more finds its place. It runs on its own inputs."""
    code, runs = report_of(tmp_path, "first.py", "k.py::passing", "k.py::expected", "--jobs", "1")
    found = runs["expected"]
    (refuted,) = found["refuted"]
    assert (code, found["status"], found["excused"]) == (0, "failed", EXPECTED.reason)
    assert (refuted["executed"]["inputs"], refuted["executed"]["seeds"]) == (["the case's"], [0, 1])
    assert f"expected: {EXPECTED.reason}" in capsys.readouterr().out
    assert (runs["passing"]["status"], runs["passing"]["refuted"]) == ("passed", [])
    assert [name_of(job) for job in worker.jobs if task_of(job) == "inputs"] == ["expected"]


def test_what_nobody_expects_or_can_execute_has_no_excuse(worker: Maker, tmp_path: Path) -> None:
    code, runs = report_of(tmp_path, "k.py", "--jobs", "1")
    assert (runs["passing"]["refuted"], runs["expected"]["excused"]) == ([], EXPECTED.reason)
    assert (code, runs["other"]["excused"], runs["unable"]["excused"]) == (1, "", "")
    assert [claim["finding"]["rule"] for claim in runs["other"]["refuted"]] == ["TLO002"]
    said = "proofs refute nothing in this code; not executed: inputs: inputs raised ValueError"
    assert (runs["unable"]["refuted"], runs["unable"]["unrefuted"]) == ([], said)
