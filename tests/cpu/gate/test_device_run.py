"""`tlcheck gate --run` from the command line to the exit code, with processes that stand in for those on a GPU."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from tests.cpu.checking import SAVED, StandInWorker, declared
from tests.cpu.gate.comparing import compared, failing, made
from tests.cpu.page.pages import unpacked
from tests.cpu.report.sarif_subset import SCHEMA as SARIF
from tests.cpu.run.interpreters import DEVICE, make_interpreter, tasks
from tlcheck.cli.main import main
from tlcheck.gate import gate
from tlcheck.gate.device_outcomes import evidence_in_words
from tlcheck.gate.outcome import LoweredSide
from tlcheck.lower import session
from tlcheck.report.gate_json import GateReport
from tlcheck.report.schemas import schema_of
from tlcheck.run.device_results import FAILED, NOT_RUN, PASSED, DeviceFinding, DeviceResult
from tlcheck.snapshot import codec
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.jobs import task_of
from tlcheck.worker.protocol import Failure

pytestmark = pytest.mark.slow

VALIDATOR = jsonschema.Draft202012Validator(schema_of(GateReport))
RIGHT, WRONG = (SAVED / f"invariant_rows-{release}.snapshot.json" for release in ("0.1.7.post2", "0.1.7.post3"))
NO_GPU = {"torch": "2.13.0+cpu", "cuda": ""}
ELEMENT = {"index": [3], "got": 1.0, "expected": 2.0}
FINDING = {"kind": "wrong", "buffer": "B", "message": "1 of 2 elements are wrong", "elements": [ELEMENT]}


def ran(*findings: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    trial = {"seed": 0, "inputs": "", "findings": list(findings), "outputs": {"B": {"error": 1e-5}}}
    source = codec.loads(RIGHT.read_text()).cuda
    return {"answer": {"phase": "done", "source": source, "trials": [trial], **more}}


def stopped(phase: str, message: str) -> dict[str, Any]:
    failure = {"kind": "exception", "phase": phase, "message": message, "detail": "", "where": ""}
    return ran(phase=phase, failure=failure, trials=[])


MISALIGNED = stopped("launch", "AcceleratorError: CUDA error: misaligned address")
UNCOMPILED = stopped("compile", "RuntimeError: nvcc says no")


class Toolchains:
    """Two toolchains, `old` and `new`: what each does with the cases `a` and `b` on a device."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = {"k.py": (declared("a", ("sm_90",)), declared("b", ("sm_80", "sm_90")))}
        self.workers = {
            name: StandInWorker(release, files, snapshots={"a": RIGHT, "b": RIGHT})
            for name, release in (("old", "0.1.7.post2"), ("new", "0.1.7.post3"))
        }
        self.set("old", a=ran(), b=ran())
        self.set("new", a=ran(), b=ran())

    def set(self, name: str, device: Mapping[str, Any] = DEVICE, **cases: Mapping[str, Any]) -> None:
        """Set what a toolchain's interpreter does from now on."""
        plan = {"device": {"answer": {"phase": "done", "device": device}}}
        make_interpreter(self.folder / name, {**plan, **{f"verify:{case}": step for case, step in cases.items()}})

    def resolve(self, name: str, requirements: object) -> Toolchain:
        return Toolchain(name, "release", self.folder / name / "python")

    def start(self, python: Path, env: Mapping[str, str], **options: Any) -> StandInWorker:
        return self.workers[python.parent.name]


@pytest.fixture
def toolchains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Toolchains:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("GIT_COMMIT", "0123abc")
    (tmp_path / "k.py").write_text("from tlcheck.case import Case\n")
    found = Toolchains(tmp_path)
    for module in (session, gate):
        monkeypatch.setattr(module, "resolve", found.resolve)
    monkeypatch.setattr(session, "Worker", found.start)
    return found


COMMAND = ("gate", "--from", "old", "--to", "new", "k.py", "--run")


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    code = main([*COMMAND, "--format", "json", *argv])
    report = json.loads(capsys.readouterr().out)
    VALIDATOR.validate(report)
    return code, report


def statuses(report: Any) -> dict[str, tuple[str, str]]:
    return {
        f"{c['name']} {c['target']}": (c["before"]["device"]["status"], c["after"]["device"]["status"])
        for c in report["comparisons"]
    }


def on_device(report: Any) -> list[tuple[str, str, str]]:
    return [(c["name"], o["class"], o["words"]) for c in report["comparisons"] for o in c["outcomes"] if is_device(o)]


def is_device(outcome: Any) -> bool:
    return bool(outcome["kind"] == "device")


def accept(folder: Path, name: str) -> None:
    """An acceptance of that for the case `a`."""
    (folder / "pyproject.toml").write_text('[tool.tlcheck]\npaths = ["k.py"]\n')
    (folder / "tlcheck-accept.toml").write_text(
        f'[[accept]]\nid = "{name}"\ncase = "k.py::a"\nreleases = "==0.1.7.post3"\nreason = "not deployed"\n'
    )


def test_both_sides_pass_where_they_were_run_and_nowhere_else(
    toolchains: Toolchains, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, report = run(capsys, "--exact", "--seeds", "2", "--limit", "7.5", "--arg", "n=3")
    assert statuses(report) == {
        "a sm_90": ("passed", "passed"),
        "b sm_80": ("not run", "not run"),
        "b sm_90": ("passed", "passed"),
    }
    assert (code, on_device(report)) == (0, [])
    other = report["comparisons"][1]["after"]["device"]
    assert other["reason"] == "made for sm_80, the device is sm_90"
    assert report["verdict"].endswith("3 same; on the device: 2 passed, 1 not run")
    assert report["device"]["to"] == {"gpu": DEVICE, "missing": None}
    assert report["device"]["commit"] == "0123abc"
    for name in ("old", "new"):
        asked = [task for task in tasks(tmp_path / name) if task["kind"] == "verify"]
        assert sorted(task["name"] for task in asked) == ["a", "b"]
        assert [asked[0][key] for key in ("seeds", "repeats", "exact", "limit")] == [[0, 1], 3, True, 7.5]
        assert asked[0]["args"] == {"n": "3"}
        lowered = [job for job in toolchains.workers[name].jobs if task_of(job) == "lower"]
        assert len(lowered) == 3  # what is run is what was lowered for the comparison


def test_a_kernel_that_fails_now_is_wrong_with_the_devices_words(
    toolchains: Toolchains, capsys: pytest.CaptureFixture[str]
) -> None:
    toolchains.set("new", a=ran(FINDING), b=MISALIGNED)
    code, report = run(capsys)
    assert (code, report["summary"]["wrong"]) == (1, 2)
    assert on_device(report) == [
        (
            "a",
            "wrong",
            "fails on the device now: wrong: B: 1 of 2 elements are wrong (inputs of seed 0); before it passed",
        ),
        (
            "b",
            "wrong",
            "fails on the device now: fault: misaligned address: the device stopped the kernel "
            "(AcceleratorError: CUDA error: misaligned address); before it passed",
        ),
    ]
    finding = report["comparisons"][0]["after"]["device"]["findings"][0]
    assert (finding["kind"], finding["elements"]) == ("wrong", [ELEMENT])
    assert run(capsys, "--fail", "broken")[0] == 0


def test_what_the_project_accepts_of_the_device_passes(
    toolchains: Toolchains, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    toolchains.set("new", a=ran(FINDING), b=ran())
    accept(tmp_path, "wrong/device")
    code, report = run(capsys)
    assert (code, report["comparisons"][0]["outcomes"][0]["accepted"]) == (0, "not deployed")


def test_what_fails_with_both_is_not_new_and_what_passes_now_is_fixed(
    toolchains: Toolchains, capsys: pytest.CaptureFixture[str]
) -> None:
    toolchains.set("old", a=MISALIGNED, b=MISALIGNED)
    toolchains.set("new", a=ran(FINDING), b=ran())
    code, report = run(capsys)
    assert (code, [(name, klass) for name, klass, _ in on_device(report)]) == (
        0,
        [("a", "fails-in-both"), ("b", "fixed")],
    )


def test_a_kernel_that_no_longer_compiles_there_is_broken(
    toolchains: Toolchains, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    toolchains.set("new", a=UNCOMPILED, b=ran())
    code, report = run(capsys)
    assert (code, statuses(report)["a sm_90"]) == (1, ("passed", "not run"))
    assert on_device(report) == [
        ("a", "broken", "cannot be run on the device now: compile: RuntimeError: nvcc says no; before it passed")
    ]
    accept(tmp_path, "broken/device")
    assert run(capsys)[0] == 0
    toolchains.set("old", a=UNCOMPILED, b=ran())
    code, report = run(capsys)
    assert (code, on_device(report), statuses(report)["a sm_90"]) == (3, [], ("not run", "not run"))
    toolchains.set("new", a=ran(), b=ran())
    assert (run(capsys)[0], on_device(run(capsys)[1])[0][:2]) == (0, ("a", "fixed"))


def test_a_kernel_that_does_not_lower_is_not_run(toolchains: Toolchains, capsys: pytest.CaptureFixture[str]) -> None:
    toolchains.workers["new"].failures = {"a": Failure("exception", "lower", "refused")}
    code, report = run(capsys)
    assert (code, statuses(report)["a sm_90"]) == (1, ("passed", "not run"))
    assert report["comparisons"][0]["after"]["device"]["reason"] == "lower: refused"
    assert [o["kind"] for o in report["comparisons"][0]["outcomes"]] == ["error"]  # told once


def test_without_a_gpu_nothing_passes_and_one_line_says_so(
    toolchains: Toolchains, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("old", "new"):
        toolchains.set(name, NO_GPU, a=ran(), b=ran())
    line = "no GPU: the toolchain's torch 2.13.0+cpu is built without CUDA: nothing was run"
    code, report = run(capsys)
    assert (code, report["notes"]) == (3, [line])
    assert set(statuses(report).values()) == {("not run", "not run")}
    assert report["device"]["from"] == {"gpu": None, "missing": line[8 : -len(": nothing was run")]}
    assert main(COMMAND) == 3
    shown = capsys.readouterr().out
    assert shown.count(f"note: {line}") == 1
    assert "on the device: nothing was run\n  not run (no GPU)  3 runs\n" in shown
    assert shown.splitlines()[-1].startswith("INCOMPLETE: ")
    main([*COMMAND, "--format", "markdown"])
    assert capsys.readouterr().out.startswith("### :warning: tlcheck gate")
    main([*COMMAND, "--format", "github"])
    assert capsys.readouterr().out.startswith("::warning title=tlcheck::INCOMPLETE: ")
    assert "passed" not in shown
    code, report = run(capsys, "--if-available")
    assert (code, report["notes"]) == (0, [line])
    assert set(statuses(report).values()) == {("not run", "not run")}


def test_a_gpu_that_only_one_side_has(toolchains: Toolchains, capsys: pytest.CaptureFixture[str]) -> None:
    toolchains.set("new", NO_GPU)
    code, report = run(capsys)
    assert (code, statuses(report)["a sm_90"]) == (3, ("passed", "not run"))
    assert report["notes"][0].startswith("no GPU with new: ")


def test_other_cuda_than_what_was_checked_is_told(toolchains: Toolchains, capsys: pytest.CaptureFixture[str]) -> None:
    toolchains.set("new", a=ran(source="int x;"), b=ran())
    _, report = run(capsys)
    device = report["comparisons"][0]["after"]["device"]
    assert (device["source"], bool(device["difference"])) == ("different", True)
    (note,) = report["notes"]
    assert note.startswith("k.py::a sm_90 with new: the CUDA that ran is not the one that was checked: ")


def test_every_format_shows_it(toolchains: Toolchains, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    toolchains.workers["new"].snapshots = {"a": WRONG, "b": RIGHT}
    toolchains.set("new", a=ran(FINDING), b=ran())
    formats = "text,markdown,sarif,junit,json,github,html"
    assert main([*COMMAND, "--format", formats, "-o", str(tmp_path / "out")]) == 1
    text, markdown, junit = ((tmp_path / "out" / f"gate.{suffix}").read_text() for suffix in ("txt", "md", "xml"))
    static = text.partition("TLA001")[2].partition("k.py: a")[2]
    assert "      on the device: passed -> failed (wrong)" in static.partition("  device")[0]  # beside the IR's change
    assert "fails on the device now: wrong: B: 1 of 2 elements are wrong" in text
    assert "      B[3] is 1.0, expected 2.0" in text
    evidence = text.partition("\non the device: Stand-in (sm_90), CUDA 13.0, torch 2.11.0, ")[2]
    assert re.findall(r"^  (\S.*)  1 run\n +k.py: (\w) \((sm_\d+)\)", evidence, re.MULTILINE) == [
        ("passed -> failed (wrong)", "a", "sm_90"),
        ("not run (another arch)", "b", "sm_80"),
        ("passed -> passed", "b", "sm_90"),
    ]
    assert "- `k.py::a (sm_90); on the device: sm_90 passed -> failed (wrong)`" in markdown
    assert "<summary>on the device: passed -&gt; passed: 1</summary>\n\n- `k.py::b sm_90`" in markdown
    entries = unpacked((tmp_path / "out" / "gate.html").read_text())["entries"]
    assert "on the device: passed -> failed (wrong)" in entries[0]["words"]
    assert entries[2]["words"] == ["on the device: passed -> passed"]
    outputs = {case.get("name"): case.findtext("system-out") for case in ElementTree.fromstring(junit).iter("testcase")}
    assert outputs["b sm_90"] == "on the device: passed -> passed"
    assert outputs["b sm_80"] == "on the device: not run (another arch)"
    sarif = json.loads((tmp_path / "out" / "gate.sarif").read_text())
    jsonschema.validate(sarif, SARIF)
    told = [r["message"]["text"] for r in sarif["runs"][0]["results"] if "on the device" in r["message"]["text"]]
    assert len(told) == 1
    assert told[0].startswith("k.py::a sm_90: fails on the device now")


def test_without_run_nothing_is_said_of_a_device(toolchains: Toolchains, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate", "--from", "old", "--to", "new", "k.py"]) == 0
    assert "device" not in capsys.readouterr().out
    assert main(["gate", "--from", "old", "--to", "new", "k.py", "--seeds", "2"]) == 2
    assert "--seeds has no meaning without --run" in capsys.readouterr().err


def side(status: str, kind: str = "wrong", excused: str = "", reason: str = "") -> LoweredSide:
    findings = (DeviceFinding(kind, "B", "some words"),) if status == FAILED else ()
    made_side = made("proved")
    device = DeviceResult(made_side.result.run, status, reason, findings, excused=excused)
    return replace(made_side, device=device)


@pytest.mark.parametrize(
    ("before", "after", "klass"),
    [
        (side(PASSED), side(PASSED), None),
        (side(PASSED), side(FAILED), "wrong"),
        (side(PASSED), side(FAILED, excused="known"), "wrong"),
        (side(NOT_RUN), side(FAILED), "wrong"),
        (side(NOT_RUN, excused="does not lower"), side(FAILED), "wrong"),
        (side(FAILED), side(FAILED), "fails-in-both"),
        (side(FAILED, "fault"), side(FAILED, "nan"), "fails-in-both"),
        (side(FAILED), side(PASSED), "fixed"),
        (side(NOT_RUN), side(PASSED), "fixed"),
        (side(NOT_RUN, excused="no GPU"), side(PASSED), None),
        (side(PASSED), side(NOT_RUN), "broken"),
        (side(FAILED), side(NOT_RUN), "broken"),
        (side(PASSED), side(NOT_RUN, excused="no GPU"), None),
        (side(NOT_RUN), side(NOT_RUN), None),
        (made("proved"), side(FAILED), None),  # not asked for on one side: cannot be, and means nothing
    ],
)
def test_classes(before: LoweredSide, after: LoweredSide, klass: str | None) -> None:
    assert [outcome.klass for outcome in compared(before, after).outcomes] == ([klass] if klass else [])


def test_one_toolchain_that_shows_two_things_is_not_deterministic() -> None:
    (outcome,) = compared(side(PASSED), side(FAILED), one=True).outcomes
    assert (outcome.klass, outcome.after) == ("changed", "not deterministic on the device")
    (outcome,) = compared(side(FAILED), side(FAILED), one=True).outcomes
    assert outcome.klass == "fails-in-both"


def test_evidence_in_words() -> None:
    assert evidence_in_words(compared(side(FAILED, "nan"), side(PASSED))) == "failed (nan) -> passed"
    assert evidence_in_words(compared(None, side(PASSED))) == "not declared -> passed"
    alike = side(NOT_RUN, reason="compile: no\nmore")
    assert evidence_in_words(compared(alike, alike)) == "not run (compile: no)"
    assert evidence_in_words(compared(side(PASSED), alike)) == "passed -> not run (compile: no)"
    assert evidence_in_words(compared(failing("boom"), made("proved"))) == ""
