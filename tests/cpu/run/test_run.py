"""`tlcheck run` from end to end, with real processes that stand in for the toolchain's interpreter on a device."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import published
from tests.cpu.run.interpreters import CEILINGS, DEVICE, make_interpreter, make_sanitizer, tasks
from tests.fixtures.index import FOLDER
from tlcheck.cli.main import main
from tlcheck.snapshot import codec

pytestmark = pytest.mark.slow

LOGS = Path(__file__).parent / "logs"
RIGHT = FOLDER / "era" / "annotated_gemm-0.1.15.snapshot.json"
WRONG = FOLDER / "era" / "invariant_rows-0.1.14.snapshot.json"
HINT = "; --device cpu executes the case without one"
ELEMENT = {"index": [3], "got": 1.0, "expected": 2.0}


def source(snapshot: Path) -> str:
    return codec.loads(snapshot.read_text()).cuda


def trial(*findings: Mapping[str, Any], seed: int = 0, inputs: str = "", **outputs: Any) -> dict[str, Any]:
    out = {"error": 1e-5, "tolerance": 1e-3, "tolerance_of": [["declared by the case", 1e-3]], "worst": ELEMENT}
    return {"seed": seed, "inputs": inputs, "findings": list(findings), "outputs": {"B": {**out, **outputs}}}


def finding(kind: str, message: str = "something") -> dict[str, Any]:
    return {"kind": kind, "buffer": "B", "message": message, "count": 1, "total": 2, "elements": [ELEMENT]}


def done(snapshot: Path, *trials: Any, phase: str = "done", **more: Any) -> dict[str, Any]:
    return {"phase": phase, "source": source(snapshot), "trials": list(trials), "seconds": {"launch": 0.1}, **more}


def failure(phase: str, message: str, kind: str = "exception", detail: str = "") -> dict[str, str]:
    return {"kind": kind, "phase": phase, "message": message, "detail": detail, "where": ""}


def run(tmp_path: Path, plan: Mapping[str, Any], *arguments: str | Path) -> tuple[int, dict[str, Any]]:
    """The exit code and the report of `tlcheck run` with an interpreter that follows a plan."""
    python = make_interpreter(tmp_path / "toolchain", plan)
    output = tmp_path / "report.json"
    command = ["run", *map(str, arguments), "--toolchain", str(python), "-o", str(output)]
    code = main(command)
    return code, published(output.read_text(), "run")


def only(report: dict[str, Any]) -> dict[str, Any]:
    ((found,),) = [examination["runs"] for examination in report["examinations"]]
    return dict(found)


def test_a_case_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = {"verify": {"answer": done(RIGHT, trial(), trial(seed=1))}}
    code, report = run(tmp_path, plan, RIGHT, "--seeds", "2", "--exact")
    found = only(report)
    assert (code, found["status"], found["source"], found["findings"]) == (0, "passed", "same", [])
    shown = capsys.readouterr().out
    assert "annotated_gemm sm_90 0.1.15  passed  2 sets of inputs, error 1.0e-05, tolerance 1.0e-03" in shown
    assert shown.splitlines()[-1] == "1 run: 1 passed"
    (task,) = [task for task in tasks(tmp_path / "toolchain") if task["kind"] == "verify"]
    assert (task["seeds"], task["exact"], task["repeats"]) == ([0, 1], True, 3)
    assert (task["poisoned"], task["updated"], task["float_atomics"]) == ([], ["B"], True)
    assert (task["name"], task["args"]) == ("annotated_gemm", {"annotated": "'B'"})


def test_the_report_says_where_and_when(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_COMMIT", "0123abc")
    _, report = run(tmp_path, {"verify": {"answer": done(RIGHT, trial())}}, RIGHT)
    (examination,) = report["examinations"]
    assert examination["device"] == DEVICE
    assert examination["date"].startswith("20")
    assert set(examination["clocks"]) == {"before", "after"}
    assert report["commit"] == "0123abc"


@pytest.mark.parametrize("kind", ["wrong", "unwritten", "nan", "zeros", "stray-write", "nondeterministic"])
def test_findings_fail_a_case(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    plan = {"verify": {"answer": done(RIGHT, trial(finding(kind)), trial(finding(kind), seed=1))}}
    code, report = run(tmp_path, plan, RIGHT)
    found = only(report)
    assert (code, found["status"]) == (1, "failed")
    assert [(f["kind"], f["inputs"]) for f in found["findings"]] == [(kind, "inputs of seed 0")]
    shown = capsys.readouterr().out
    assert f"    {kind}: B: something (inputs of seed 0)\n        B[3] is 1.0, expected 2.0" in shown
    assert "check: proofs and execution refute nothing in this code" in shown


def test_inputs_that_are_not_exact_are_no_fault_of_the_kernel(tmp_path: Path) -> None:
    plan = {"verify": {"answer": done(RIGHT, trial(finding("inexact-inputs"), inputs="exact"))}}
    code, report = run(tmp_path, plan, RIGHT, "--exact")
    assert (code, only(report)["status"]) == (0, "passed")


def test_a_failure_is_linked_to_what_check_refutes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    watched = [{"offset": 0, **ELEMENT}]
    plan = {"verify": {"answer": done(WRONG, trial(finding("wrong"), watched=watched))}}
    code, report = run(tmp_path, plan, WRONG)
    (refuted,) = only(report)["refuted"]
    found = refuted["finding"]
    assert (code, found["rule"], refuted["buffer"]) == (1, "TLA001", "B")
    offsets = {found["witness"]["intended"], found["witness"]["written"]}
    (task,) = [task for task in tasks(tmp_path / "toolchain") if task["kind"] == "verify"]
    assert set(task["watched"]["B"]) == offsets
    shown = capsys.readouterr().out
    assert "check: TLA001 lanes-not-contiguous" in shown
    assert "on the device B[3] is 1.0, expected 2.0" in shown


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("AcceleratorError: CUDA error: misaligned address", "misaligned address"),
        ("AcceleratorError: CUDA error: an illegal memory access was encountered", "illegal memory access"),
        ("RuntimeError: CUDA_ERROR_ILLEGAL_ADDRESS", "illegal memory access"),
        ("CUDA error: operation not supported on global/shared address space", "wrong address space"),
        ("CUDA error: unspecified launch failure", "launch failure"),
        ("CUDA error: device-side assert triggered", "device-side assertion"),
    ],
)
def test_faults_of_the_device_have_names(tmp_path: Path, said: str, name: str) -> None:
    detail = "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."
    answer = done(RIGHT, phase="launch", failure=failure("launch", said, detail=detail))
    code, report = run(tmp_path, {"verify": {"answer": answer}}, RIGHT)
    found = only(report)
    assert (code, found["status"]) == (1, "failed")
    assert [f["kind"] for f in found["findings"]] == ["fault"]
    assert found["findings"][0]["message"] == f"{name}: the device stopped the kernel ({said})"


def test_one_case_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    """A hang, a crash, want of memory and a compiler that fails, each for its own case."""
    names = {"hang": signal.SIGALRM, "crash": signal.SIGSEGV}
    plan: dict[str, Any] = {"verify": {"answer": done(RIGHT, trial())}}
    for name, number in names.items():
        plan[f"verify:{name}"] = {"answer": done(RIGHT, phase="launch"), "signal": number, "say": "last words"}
    no_memory = failure("inputs", "OutOfMemoryError: CUDA out of memory. Tried to allocate 20 GiB")
    plan["verify:memory"] = {"answer": done(RIGHT, phase="inputs", failure=no_memory)}
    plan["verify:nvcc"] = {"answer": {"phase": "compile", "failure": failure("compile", "RuntimeError: nvcc failed")}}
    plan["verify:silent"] = {"exit": 3}
    files = [RIGHT]
    for name in ("hang", "crash", "memory", "nvcc", "silent"):
        text = json.loads(RIGHT.read_text())
        text["case"] = name
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(json.dumps(text))
    code, report = run(tmp_path, plan, *files, "--limit", "7")
    runs = {found["case"].partition("::")[2]: found for found in report["examinations"][0]["runs"]}
    assert code == 1
    assert runs["annotated_gemm"]["status"] == "passed"
    kinds = {name: [f["kind"] for f in runs[name]["findings"]] for name in runs}
    assert kinds["hang"] == ["timeout"]
    assert runs["hang"]["findings"][0]["message"].startswith("no end after 7 s on the GPU")
    assert kinds["crash"] == ["crash"]
    assert "SIGSEGV: last words" in runs["crash"]["findings"][0]["message"]
    assert kinds["memory"] == ["out-of-memory"]
    assert (runs["nvcc"]["status"], runs["nvcc"]["reason"]) == ("not run", "compile: RuntimeError: nvcc failed")
    assert (runs["silent"]["status"], kinds["silent"]) == ("not run", [])


def test_what_is_not_run_is_never_passed(tmp_path: Path) -> None:
    usage = failure("inputs", "the case has no inputs and reference", "usage")
    answer = done(RIGHT, phase="inputs", failure=usage)
    code, report = run(tmp_path, {"verify": {"answer": answer}}, RIGHT)
    found = only(report)
    assert (code, found["status"]) == (3, "not run")
    assert found["reason"] == "inputs: the case has no inputs and reference"


def test_a_snapshot_for_another_arch_is_not_run(tmp_path: Path) -> None:
    text = json.loads(RIGHT.read_text())
    text["target"] = "sm_80"
    other = tmp_path / "other.json"
    other.write_text(json.dumps(text))
    code, report = run(tmp_path, {}, other)
    assert (code, only(report)["reason"]) == (3, "made for sm_80, the device is sm_90")


def test_another_source_than_the_one_checked_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = done(RIGHT, trial())
    answer["source"] += "// more\n"
    code, report = run(tmp_path, {"verify": {"answer": answer}}, RIGHT)
    found = only(report)
    assert (code, found["source"]) == (0, "different")
    assert found["difference"][-1] == "+// more"
    assert "the CUDA source differs from the one that was checked" in capsys.readouterr().out


def test_the_sanitizer_runs_around_each_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = {
        "memcheck": (LOGS / "out_of_bounds-memcheck.txt").read_text(),
        "racecheck": (LOGS / "right-racecheck.txt").read_text(),
        "initcheck": "========= COMPUTE-SANITIZER\n========= Error: process didn't terminate successfully\n",
    }
    monkeypatch.setenv("PATH", str(make_sanitizer(tmp_path / "bin", logs).parent))
    plan = {"verify": {"answer": done(RIGHT, trial())}, "launch": {"answer": done(RIGHT), "say": "bye"}}
    code, report = run(tmp_path, plan, RIGHT, "--sanitize", "memcheck,racecheck,initcheck")
    found = only(report)
    assert (code, found["status"]) == (1, "failed")
    assert [(s["tool"], s["errors"]) for s in found["sanitized"]] == [("memcheck", 34), ("racecheck", 0)]
    (finding_,) = found["findings"]
    assert finding_["message"].startswith("memcheck counts 34 in main_kernel: Invalid __global__ write")
    assert found["reason"] == "initcheck did not run to its end: bye"
    lines = (tmp_path / "toolchain" / "tasks.jsonl").read_text().splitlines()
    caching = {(json.loads(line)["task"]["kind"], json.loads(line)["caching"]) for line in lines}
    assert caching == {("device", None), ("verify", None), ("launch", "1")}
    assert "racecheck clean" in capsys.readouterr().out


def test_times_stand_beside_floors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def times(median: float) -> dict[str, Any]:
        return {"median": median, "low": median, "high": median, "launches": 5, "rounds": [median]}

    timing = {"times": {"": times(2.0), "in torch": times(4.0)}, "bytes": int(4e9), "flops": int(4e11)}
    plan = {
        "device": {"answer": {"phase": "done", "device": {**DEVICE, "ceilings": CEILINGS}}},
        "verify": {"answer": done(RIGHT, trial())},
        "time": {"answer": {"phase": "done", "timing": timing}},
    }
    _, report = run(tmp_path, plan, RIGHT, "--bench")
    assert only(report)["timing"]["floor"] == pytest.approx(1.0)
    lines = capsys.readouterr().out.splitlines()
    kernel = next(line for line in lines if "the kernel" in line)
    assert "1.0000 (50%)" in kernel
    assert next(line for line in lines if "in torch" in line).split()[-1] == "0.50"


def test_two_toolchains_take_turns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def plan(level: float) -> dict[str, Any]:
        rounds = [level + i * 1e-3 for i in range(10)]
        return {"time": {"answer": {"phase": "done", "timing": {"times": {"": {"rounds": rounds}}}}}}

    old, new = (make_interpreter(tmp_path / name, plan(level)) for name, level in (("old", 1.0), ("new", 1.2)))
    output = tmp_path / "times.json"
    code = main(["run", str(RIGHT), "--from", str(old), "--to", str(new), "-o", str(output)])
    report = published(output.read_text(), "run-times")
    assert (code, report["cases"][0]["change"]["verdict"]) == (1, "slower")
    assert "1 case: 1 slower" in capsys.readouterr().out
    first, second = (task["rounds"] for name in ("old", "new") for task in tasks(tmp_path / name) if task.get("rounds"))
    assert (first["place"], second["place"]) == (0, 1)
    assert first["turns"] == second["turns"]
    assert main(["run", str(RIGHT), "--from", str(old), "--to", str(old)]) == 0


def test_a_toolchain_that_fails_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = {"time": {"answer": {"phase": "compile", "failure": failure("compile", "RuntimeError: nvcc failed")}}}
    old = make_interpreter(tmp_path / "old", broken)
    waits = {"time": {"answer": {"phase": "time"}, "until_partner_ends": True}}
    new = make_interpreter(tmp_path / "new", waits)
    assert main(["run", str(RIGHT), "--from", str(old), "--to", str(new)]) == 3  # else it waits for the test's end
    assert "compile: RuntimeError: nvcc failed" in capsys.readouterr().out


def test_an_interrupt_ends_all_processes(tmp_path: Path) -> None:
    """Ctrl-C while one case runs and another one waits."""
    python = make_interpreter(tmp_path / "toolchain", {"verify": {"answer": done(RIGHT), "sleep": 600}})
    command = [sys.executable, "-m", "tlcheck", "run", str(RIGHT), str(WRONG), "--toolchain", str(python)]
    process = subprocess.Popen([*command, "--jobs", "1", "--quiet"], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while "verify" not in _log(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=120)
    assert (process.returncode, error) == (130, "tlcheck: interrupted\n")
    assert sum('"kind": "verify"' in line for line in _log(tmp_path).splitlines()) == 1
    assert not running(str(python))


def test_an_interrupt_loses_nothing_that_has_run(tmp_path: Path) -> None:
    steps = {"verify:annotated_gemm": {"answer": done(RIGHT, trial())}, "verify": {"sleep": 600}}
    python = make_interpreter(tmp_path / "toolchain", steps)
    output = tmp_path / "report.json"
    command = [sys.executable, "-m", "tlcheck", "run", str(RIGHT), str(WRONG), "--toolchain", str(python)]
    process = subprocess.Popen([*command, "--jobs", "1", "-o", str(output)], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while _log(tmp_path).count('"verify"') < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    shown, _ = process.communicate(timeout=120)
    report = published(output.read_text(), "run")
    assert process.returncode == report["exit_code"] == 130
    ((first, second),) = [examination["runs"] for examination in report["examinations"]]
    assert (first["status"], second["status"], second["reason"]) == ("passed", "not run", "interrupted")
    assert "1 passed" in shown


def _log(tmp_path: Path) -> str:
    log = tmp_path / "toolchain" / "tasks.jsonl"
    return log.read_text() if log.exists() else ""


def running(text: str) -> list[str]:
    """The command lines of processes that have `text` in them."""
    files = Path("/proc").glob("[0-9]*/cmdline")
    return [line for file in files if text in (line := _read(file).replace("\0", " "))]


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""


def test_without_a_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for device, why in (
        ({"torch": "2.13.0+cpu", "cuda": ""}, "the toolchain's torch 2.13.0+cpu is built without CUDA"),
        ({"torch": "2.13.0", "cuda": "13.0"}, "torch finds no CUDA device"),
    ):
        plan = {"device": {"answer": {"phase": "done", "device": device}}}
        python = str(make_interpreter(tmp_path / "toolchain", plan))
        assert main(["run", str(RIGHT), "--toolchain", python]) == 3
        assert capsys.readouterr().err == f"tlcheck: not run: no GPU: {why}{HINT}\n"
        assert main(["run", str(RIGHT), "--toolchain", python, "--if-available"]) == 0
        assert capsys.readouterr().err == f"tlcheck: skipped: no GPU: {why}\n"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--sanitize", "memcheck,all"], "--sanitize all: expected memcheck, racecheck"),
        (["--replay", "nowhere"], "--replay nowhere: no such folder"),
        (["--from", "0.1.14"], "--from and --to belong together"),
        (["-o", "nowhere/report.json"], "nowhere/report.json: no folder "),
    ],
)
def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str) -> None:
    assert main(["run", str(RIGHT), *arguments]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1


@pytest.mark.toolchain
def test_the_real_interpreter_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a machine without a GPU, the pinned release; the worker's entry takes the task."""
    from tlcheck.toolchain.resolve import resolve

    try:
        resolve("pinned")
    except Exception as error:
        pytest.skip(str(error))
    if main(["run", str(RIGHT), "--toolchain", "pinned"]) == 3:
        assert capsys.readouterr().err.startswith("tlcheck: not run: no GPU: ")
    else:
        assert "passed" in capsys.readouterr().out
