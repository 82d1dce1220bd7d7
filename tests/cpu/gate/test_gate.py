"""`tlcheck gate` from the command line to the exit code, with workers that lower nothing."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cpu.checking import SAVED, StandInWorker, declared, put_in_place
from tlcheck.case import Expect
from tlcheck.cli.main import main
from tlcheck.facts import Facts
from tlcheck.gate import sides
from tlcheck.lower import session
from tlcheck.report.gate_json import GateReport
from tlcheck.report.schemas import schema_of
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts import checking
from tlcheck.worker.jobs import CaptureJob, task_of
from tlcheck.worker.protocol import Failure

VALIDATOR = jsonschema.Draft202012Validator(schema_of(GateReport))
RIGHT, WRONG = (SAVED / f"invariant_rows-{release}.snapshot.json" for release in ("0.1.7.post2", "0.1.7.post3"))


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "pyproject.toml").write_text('[tool.tlcheck]\npaths = ["kernels"]\ntoolchain = "old"\n')
    (tmp_path / "kernels").mkdir()
    for name in ("k.py", "other.py"):
        (tmp_path / "kernels" / name).write_text("from tlcheck.case import Case\n")


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> dict[str, StandInWorker]:
    """Two toolchains that lower two cases to the same."""
    files = {"k.py": (declared("a", ("sm_90",)),), "other.py": (declared("b", ("sm_90",)),)}
    found = {
        "old": StandInWorker("0.1.7.post2", files, snapshots={"a": RIGHT, "b": RIGHT}),
        "new": StandInWorker("0.1.7.post3", files, snapshots={"a": RIGHT, "b": RIGHT}),
    }

    put_in_place(monkeypatch, found)
    return found


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    code = main(["gate", "--quick", "--to", "new", "--format", "json", *argv])
    report = json.loads(capsys.readouterr().out)
    VALIDATOR.validate(report)
    return code, report


def classes(report: Any) -> dict[str, str]:
    return {c["case"].rpartition("/")[2]: c["class"] for c in report["comparisons"]}


def test_equal_kernels_pass(workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str]) -> None:
    code, report = run(capsys)
    assert (code, classes(report)) == (0, {"k.py::a": "same", "other.py::b": "same"})
    assert report["from"] == {"name": "old", "versions": {"tilelang": "0.1.7.post2"}}
    assert report["verdict"] == "PASS: tilelang 0.1.7.post2 (old) -> 0.1.7.post3 (new), 2 cases: 2 same"


def test_a_newly_refuted_atomic_fails_unless_that_class_does_not(
    workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str]
) -> None:
    workers["new"].snapshots = {"a": WRONG, "b": RIGHT}
    code, report = run(capsys)
    assert (code, classes(report)) == (1, {"k.py::a": "wrong", "other.py::b": "same"})
    assert report["comparisons"][0]["outcomes"][0]["rule"] == "TLA001"
    assert run(capsys, "--fail", "broken")[0] == 0
    assert run(capsys, "--fail", "none")[0] == 0
    assert run(capsys, "kernels/other.py")[0] == 0


def test_what_the_project_accepts_passes(
    workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    workers["new"].snapshots = {"a": WRONG, "b": RIGHT}
    (tmp_path / "tlcheck-accept.toml").write_text(
        '[[accept]]\nid = "wrong"\ncase = "kernels/k.py::a"\nreleases = "==0.1.7.post3"\nreason = "not deployed"\n'
        '[[accept]]\nid = "broken"\ncase = "kernels/k.py::a"\nreleases = "==0.1.7.post3"\nreason = "long ago"\n'
    )
    code, report = run(capsys)
    assert code == 0
    assert report["comparisons"][0]["outcomes"][0]["accepted"] == "not deployed"
    assert report["notes"] == [
        "acceptance of broken in kernels/k.py::a (==0.1.7.post3) matches nothing: remove it",
    ]


def test_a_file_that_no_longer_imports_keeps_the_cases_of_the_other_side(
    workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str]
) -> None:
    workers["new"].failures = {"k.py": Failure("exception", "import", "No module named gone")}
    code, report = run(capsys)
    assert (code, classes(report)) == (1, {"k.py::a": "broken", "other.py::b": "same"})
    assert "No module named gone" in report["comparisons"][0]["outcomes"][0]["words"]
    workers["old"].failures = {"k.py": Failure("exception", "import", "No module named gone")}
    code, report = run(capsys)
    assert (code, classes(report)) == (3, {"k.py": "fails-in-both", "other.py::b": "same"})


def test_an_error_that_a_case_expects_is_broken_all_the_same_and_none_if_it_was_there_before(
    workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str]
) -> None:
    known = declared("a", ("sm_90",), (Expect(releases=">0", error="refused", reason="known"),))
    for worker in workers.values():
        worker.files = {"k.py": (known,)}
    workers["new"].failures = {"a": Failure("exception", "lower", "refused")}
    code, report = run(capsys, "kernels/k.py")
    assert (code, classes(report)) == (1, {"k.py::a": "broken"})
    assert report["comparisons"][0]["outcomes"][0]["words"].endswith("refused; the case expects it of this release")
    workers["old"].failures = {"a": Failure("exception", "lower", "refused")}
    code, report = run(capsys, "kernels/k.py")
    assert (code, classes(report)) == (0, {"k.py::a": "fails-in-both"})


def test_one_toolchain_twice_lowers_twice_without_the_cache(
    workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[session.Session] = []

    def keep(*args: Any) -> session.Session:
        made.append(session.Session(*args))
        return made[-1]

    monkeypatch.setattr(checking, "Session", keep)
    run(capsys)
    code, report = run(capsys, "--from", "new")
    assert (code, report["summary"]["same"]) == (0, 2)
    assert [task_of(job) for job in workers["new"].jobs].count("lower") == 2 + 4
    assert [one.settings.cache for one in made] == [True, False]
    assert any("lowered twice" in note for note in report["notes"])


def test_every_format_from_one_run(
    workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    workers["new"].snapshots = {"a": WRONG, "b": WRONG}
    formats = "text,markdown,sarif,junit,json,github"
    assert main(["gate", "--to", "new", "--format", formats, "-o", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().out
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "gate.annotations.txt",
        "gate.json",
        "gate.md",
        "gate.sarif",
        "gate.txt",
        "gate.xml",
    ]
    text = (tmp_path / "out" / "gate.txt").read_text()
    assert text in shown
    assert "::error file=cases/atomics.py" in shown  # where the kernel is, whichever file has the case
    assert "2 runs" in shown
    assert text.count("witness: ") == 1
    assert re.search(r"^      found at [a-z-]+, after \S+$", shown, re.MULTILINE)
    assert "::a --arch sm_90 --passes --toolchain new\n" in shown


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--to", "new", "--fail", "bad"], "--fail 'bad': expected wrong, hazard, weaker"),
        (["--to", "new", "kernels/k.py@old"], "has its toolchains from --from and --to"),
        (["--to", "new", str(RIGHT)], "is a saved snapshot"),
        (["--to", "new", "--format", "pdf"], "unknown format 'pdf'"),
        (["--to", "new", "kernels/nothing.py"], "no such file or folder"),
        (["--to", "new", "kernels/k.py::nothing"], "declares no case"),
    ],
)
def test_bad_usage(
    workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str], argv: list[str], words: str
) -> None:
    assert main(["gate", *argv]) == 2
    assert words in capsys.readouterr().err


def test_scripts_that_come_to_nothing(workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str]) -> None:
    ended = Failure("exception", "run", "ValueError: no", "", f"{Path.cwd()}/kernels/k.py:3")
    Path("kernels", "k.py").write_text("import tilelang\n")
    for worker in workers.values():
        worker.scripts = {"k.py": {"kernels": [], "ended": asdict(ended), "names": []}}
    code, report = run(capsys, "kernels/k.py")
    assert (code, classes(report)) == (3, {"k.py": "fails-in-both"})
    (outcome,) = report["comparisons"][0]["outcomes"]
    assert (outcome["words"], outcome["line"]) == ("run: ValueError: no (kernels/k.py:3)", 3)
    assert main(["gate", "--to", "new", "kernels/k.py", "--keep-going"]) == 2
    words = "no case to compare in 1 file; kernels/k.py (sm_90): no kernel captured until it ended at kernels/k.py:3"
    assert f"{words}: ValueError: no\n" in capsys.readouterr().err
    code, report = run(capsys, "--keep-going", "--", "-v")
    assert (code, classes(report)) == (0, {"other.py::b": "same"})
    assert report["notes"][0] == "1 file without a case for these targets passed over"
    scripts = [job for job in workers["new"].jobs if isinstance(job, CaptureJob)]
    assert {job.script_args for job in scripts} == {(), ("-v",)}


def test_without_nvcc_compiling_says_what_to_do(
    workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(variable, "")
    monkeypatch.setattr("sys.path", [])
    assert main(["gate", "--to", "new", "--compile"]) == 2
    assert "--compile needs nvcc: set CUDA_HOME" in capsys.readouterr().err


def test_cuda_that_no_longer_compiles_is_broken(
    workers: dict[str, StandInWorker],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A compiler that knows no AtomicAddx4, which the new toolchain uses in one of two kernels."""
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(
        '#!/bin/sh\nfor last; do :; done\nif [ "$last" = --version ]; then echo "release 13.0, V13.0.88"; exit; fi\n'
        'if grep -q AtomicAddx4 "$last"; then echo "error: AtomicAddx4 is undefined"; exit 1; fi\n'
        'echo "Used 40 registers" >&2\n'
    )
    nvcc.chmod(0o755)
    monkeypatch.setenv("CUDA_HOME", str(nvcc.parents[1]))
    monkeypatch.setattr(sides, "headers_of", lambda toolchain: ())
    workers["new"].snapshots = {"a": WRONG, "b": RIGHT}
    code, report = run(capsys, "--compile", "--fail", "broken")
    assert (code, report["nvcc"]) == (1, "13.0")
    broken, same = report["comparisons"]
    (outcome,) = (outcome for outcome in broken["outcomes"] if outcome["class"] == "broken")
    assert outcome["words"] == "the generated CUDA no longer compiles: error: AtomicAddx4 is undefined"
    assert (same["class"], same["after"]["nvcc"]["registers"]) == ("same", 40)
    assert run(capsys, "--compile", "--fail", "none")[0] == 3
    assert run(capsys, "--compile", "kernels/other.py")[0] == 0


def test_a_fault_of_the_gates_own_is_the_failure_of_one_kernel(
    workers: dict[str, StandInWorker], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def facts_of(snapshot: Snapshot) -> Facts:
        if snapshot.toolchain["tilelang"] == "0.1.7.post3":
            raise ZeroDivisionError("by mistake")
        return Facts("0.1.7.post2")

    monkeypatch.setattr("tlcheck.facts.extract.facts_of", facts_of)
    workers["new"].snapshots = {"a": WRONG, "b": RIGHT}
    code, report = run(capsys)
    assert (code, classes(report)) == (1, {"k.py::a": "broken", "other.py::b": "same"})
    assert "tlcheck itself failed: ZeroDivisionError: by mistake" in report["comparisons"][0]["outcomes"][0]["words"]
