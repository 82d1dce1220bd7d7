"""`tlcheck check` from the command line to the exit code."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import RIGHT, WRONG, StandInWorker, declared
from tests.cpu.worker.processes import WORKER
from tlcheck.case import Expect
from tlcheck.cli.main import main
from tlcheck.lower import session
from tlcheck.lower.client import Worker
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.protocol import Failure

PROVED = "1 atomic proved; no output was compared"  # nothing is executed here
DECLARES = "import tlcheck\n"  # a file of this kind is not run as a script
KNOWN = Expect(releases="<=0.1.15", rule="TLA001", buffer="B", reason="known")


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project with one kernel file; no other settings, no colours."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\n")
    (tmp_path / "k.py").write_text(DECLARES)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> StandInWorker:
    """Lowers cases to saved snapshots."""
    made = StandInWorker(files={"k.py": (declared("a", ("sm_90",)),)})

    def start(python: Path, env: Mapping[str, str], **options: Any) -> StandInWorker:
        return made

    monkeypatch.setattr(session, "resolve", lambda name, requirements: Toolchain(name, "release", Path(name)))
    monkeypatch.setattr(session, "Worker", start)
    return made


@pytest.fixture
def real(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real worker that imports a stand-in for TileLang."""
    monkeypatch.setattr(session, "resolve", lambda name, requirements: Toolchain(name, "interpreter", *WORKER))
    monkeypatch.setattr(session, "Worker", Worker)


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on nothing may start a worker."""

    def start(*args: object, **options: object) -> None:
        raise AssertionError("a worker was started")

    monkeypatch.setattr(session, "Worker", start)


def check(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, str]:
    """Exit code and stdout; nothing is on stderr."""
    code = main(["check", "--quick", *map(str, argv)])
    out, err = capsys.readouterr()
    assert err == ""
    return code, out


def refused(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> str:
    """The one line of an error, with exit code 2 and nothing on stdout."""
    assert main(["check", *map(str, argv)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tlcheck: error: ")
    assert err.count("\n") == 1
    return err


def test_saved_snapshots_need_no_worker(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch)
    code, out = check(capsys, RIGHT, WRONG)
    assert code == 1
    assert out.startswith(f"ok  {RIGHT}  sm_90  {PROVED}")
    assert re.search(r"^\S+:\d+: TLA001 lanes-not-contiguous: .*  \[TileLang 0.1.7, sm_90\]$", out, re.MULTILINE)
    assert "element B[0, 1] belongs at offset 32, is added at offset 1" in out
    assert out.endswith("1 ok, 1 bug in TileLang\n")
    assert check(capsys, RIGHT)[0] == 0
    assert check(capsys, RIGHT, WRONG, "-q") == (1, out.partition("\n")[2])
    assert check(capsys, RIGHT, "--quiet") == (0, "1 ok\n")


def test_a_kernel_file(capsys: pytest.CaptureFixture[str], worker: StandInWorker) -> None:
    code, out = check(capsys, "k.py")
    first, *others = out.splitlines()
    assert (code, first.startswith(f"ok  k.py::a  sm_90  {PROVED}"), others[-1]) == (0, True, "1 ok")
    worker.snapshots = {"a": WRONG}
    assert check(capsys, "k.py::a")[0] == 1


def test_results_are_in_the_order_of_the_arguments(capsys: pytest.CaptureFixture[str], worker: StandInWorker) -> None:
    worker.files = {"k.py": (declared("b"), declared("a", ("sm_90",)))}
    _, out = check(capsys, "k.py", RIGHT)
    assert [line.split("  ")[1:3] for line in out.splitlines() if line.startswith("ok")] == [
        ["k.py::b", "sm_80 sm_90"],
        ["k.py::a", "sm_90"],
        [str(RIGHT), "sm_90"],
    ]


def test_expectations(capsys: pytest.CaptureFixture[str], worker: StandInWorker) -> None:
    worker.files = {"k.py": (declared("a", ("sm_90",), (KNOWN,)),)}
    worker.snapshots = {"a": WRONG}
    code, out = check(capsys, "k.py")
    assert code == 0
    assert ", sm_90, expected] " in " ".join(out.split())
    assert out.endswith("\n1 expected\n")
    code, out = check(capsys, "k.py", "--no-expect")
    assert code == 1
    assert out.endswith("\n1 bug in TileLang\n")
    worker.snapshots = {}
    code, out = check(capsys, "k.py")
    assert code == 1
    assert "unexpectedly fine: TLA001 on B is expected" in out
    assert check(capsys, "k.py", "--no-expect")[0] == 0


def test_acceptances(capsys: pytest.CaptureFixture[str], worker: StandInWorker, tmp_path: Path) -> None:
    worker.snapshots = {"a": WRONG}
    entry = '[[accept]]\nid = "TLA001"\ncase = "k.py::a"\nreleases = "==0.1.15"\nreason = "why not"\n'
    (tmp_path / "tlcheck-accept.toml").write_text(entry)
    code, out = check(capsys, "k.py")
    assert code == 0
    assert "   accepted: why not\n" in out
    worker.snapshots = {}
    code, out = check(capsys, "k.py")
    assert code == 0
    assert "note: acceptance of TLA001 in k.py::a (==0.1.15) matches nothing" in out
    (tmp_path / "pyproject.toml").write_text('[tool.tlcheck]\nacceptance = "elsewhere.toml"\n')
    assert "elsewhere.toml" in refused(capsys, "k.py")


def test_a_case_that_fails_is_not_checked_and_the_others_are(
    capsys: pytest.CaptureFixture[str], worker: StandInWorker
) -> None:
    worker.files = {"k.py": (declared("a", ("sm_90",)), declared("b", ("sm_90",)))}
    worker.failures = {"a": Failure("crash", "lower", "SIGABRT: no such tile", "first\nsecond", "k.py:3")}
    code, out = check(capsys, "k.py")
    assert code == 3
    assert out.splitlines()[:4] == [
        "k.py:3: not checked: lower: SIGABRT: no such tile   [a, TileLang 0.1.15, sm_90]",
        "   first",
        "   second",
        "   raised at k.py:3",
    ]
    assert out.splitlines()[4].startswith(f"ok  k.py::b  sm_90  {PROVED}")
    assert out.endswith("\n1 ok, 1 not checked\n")


def test_files_without_cases_in_a_folder_are_counted(
    capsys: pytest.CaptureFixture[str], worker: StandInWorker, tmp_path: Path
) -> None:
    (tmp_path / "helper.py").touch()
    code, out = check(capsys, ".")
    assert code == 0
    assert "note: 1 file without a case for these targets passed over\n" in out
    worker.files = {}
    assert "no case to check in 2 files; one without the word tilelang is run where you name it" in refused(capsys, ".")


def test_json(capsys: pytest.CaptureFixture[str], worker: StandInWorker) -> None:
    worker.snapshots = {"a": WRONG}
    code, out = check(capsys, "k.py", "--format", "json")
    report = json.loads(out)
    assert code == report["exit_code"] == 1
    assert report["runs"][0]["claims"][0]["finding"]["rule"] == "TLA001"


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_report_in_a_file_is_the_one_on_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, form: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out = check(capsys, WRONG, "--format", form)
    assert check(capsys, WRONG, "--format", form, "-o", "report") == (1, "")
    written, printed = (re.sub(r'"seconds": [\d.]+', "", text) for text in ((tmp_path / "report").read_text(), out))
    assert written == printed


def test_save_keeps_the_snapshots(capsys: pytest.CaptureFixture[str], worker: StandInWorker, tmp_path: Path) -> None:
    check(capsys, "k.py", "--save", "made/here")
    saved = tmp_path / "made" / "here" / "k-a-sm_90-0.1.15.snapshot.json"
    assert saved.read_bytes() == RIGHT.read_bytes()
    assert check(capsys, saved)[0] == 0


def test_save_keeps_all_of_files_with_one_name(
    capsys: pytest.CaptureFixture[str], worker: StandInWorker, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "k.py").write_text(DECLARES)
    worker.files = {"k.py": (declared("a", ("sm_90",)),)}
    check(capsys, "k.py", "more/k.py", "--save", "made")
    assert [check(capsys, f"made/k-a-sm_90-0.1.15{n}.snapshot.json")[0] for n in ("", "-2")] == [0, 0]


def test_the_projects_settings(capsys: pytest.CaptureFixture[str], worker: StandInWorker, tmp_path: Path) -> None:
    text = '[tool.tlcheck]\npaths = ["k.py"]\narch = ["sm_100"]\ntoolchain = "0.1.9"\npythonpath = ["src"]\n'
    (tmp_path / "pyproject.toml").write_text(text)
    worker.files = {"k.py": (declared("a"),)}
    (tmp_path / "below").mkdir()
    (tmp_path / "src").mkdir()
    code, out = check(capsys)
    assert code == 0
    assert out.startswith("ok  k.py::a@0.1.9  sm_100  ")
    assert worker.jobs[-1].pythonpath == (str(tmp_path / "src"),)
    assert check(capsys, "--arch", "sm_80")[1].startswith("ok  k.py::a@0.1.9  sm_80  ")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["nowhere.py"], "no such file or folder: nowhere.py"),
        (["k.py", "--arch", "sm90"], "unknown arch 'sm90'"),
        (["k.py", "--arg", "n"], "--arg n: expected NAME=VALUE"),
        (["k.py", "-o", "no/such/folder"], "no/such/folder: no folder"),
        (["k.py", "--save", "k.py"], "k.py: File exists"),
        ([RIGHT, "--arch", "sm_80"], "--arch has no meaning for a saved snapshot"),
        ([RIGHT, "--arg", "n=1"], "--arg has no meaning"),
        ([RIGHT, "--toolchain", "0.1.7"], "--toolchain has no meaning"),
        ([], "nothing to work on"),
    ],
)
def test_bad_usage_is_one_line(
    capsys: pytest.CaptureFixture[str], worker: StandInWorker, argv: list[str | Path], message: str
) -> None:
    assert message in refused(capsys, *argv)
    assert not worker.jobs


def test_a_toolchain_that_is_not_there(capsys: pytest.CaptureFixture[str], cache: Path) -> None:
    assert "run `tlcheck toolchain install 0.1.9`" in refused(capsys, "k.py", "--toolchain", "0.1.9")
    assert "'nonsense' is no toolchain" in refused(capsys, "k.py@nonsense")


def test_a_corrupt_snapshot(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "s.snapshot.json").write_text(RIGHT.read_text()[:-100])
    assert "s.snapshot.json: not a snapshot" in refused(capsys, "s.snapshot.json")


KERNELS = """
import os, sys
import tilelang
from tlcheck.case import Case, Expect

def kernel(way):
    if way == "raise":
        raise ValueError("[bold]no such tile[/bold]")
    if way == "abort":
        os.abort()
    if way == "print":
        for _ in range(1024):
            os.write(1, b"x" * 2**20)
        raise ValueError("printed")
    while way == "hang":
        pass

raises, aborts, prints, hangs, no_kernel = (Case(kernel, {"way": w}, ("sm_90",)) for w in
    ("raise", "abort", "print", "hang", "none"))
known = Case(kernel, {"way": "raise"}, ("sm_90",), expect=[Expect(releases=">=0", error="no such tile")])
"""


@pytest.mark.slow
@pytest.mark.usefixtures("real")
def test_kernels_that_go_wrong_in_every_way(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(KERNELS)
    code, out = check(capsys, "k.py", "--timeout", "1")
    assert code == 2  # for `no_kernel`, which is no kernel; all others would be 3
    assert "Traceback" not in out
    assert len(out) < 3000
    for name, message in {
        "raises": "build: ValueError: [bold]no such tile[/bold]",
        "aborts": "build: the process ended with SIGABRT",
        "prints": "build: ValueError: printed",
        "hangs": "build: no end after 1 s of processor time",
        "no_kernel": "no_kernel returned NoneType, not a PrimFunc: is it a kernel?",
    }.items():
        found = rf"^k\.py:\d+: not checked: {re.escape(message)}.*  \[{name}, TileLang 0\.0\.1, sm_90\]$"
        assert re.search(found, out, re.MULTILINE), out
    assert re.search(r"^k\.py:\d+: fails as expected: .*  \[known, ", out, re.MULTILINE)
    assert out.endswith("\n5 not checked, 1 expected error\n")


@pytest.mark.slow
@pytest.mark.usefixtures("real")
def test_what_is_asked_for_and_not_in_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(KERNELS)
    (tmp_path / "empty.py").write_text(f"{DECLARES}x = 1")
    (tmp_path / "jit.py").write_text(f"{DECLARES}import tilelang\n@tilelang.jit\ndef kernel(n, m=1): pass")
    assert "did you mean hangs?" in refused(capsys, "k.py::hang")
    assert "declares no case and no kernel" in refused(capsys, "empty.py")
    assert "name a kernel: jit.py::kernel" in refused(capsys, "jit.py")
    assert "needs --arg n=..." in refused(capsys, "jit.py::kernel")
    assert "no build argument 'k'; it takes n, m" in refused(capsys, "jit.py::kernel", "--arg", "k=1", "--arg", "n=1")


@pytest.mark.usefixtures("real")
def test_a_file_that_cannot_be_imported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(f"{DECLARES}import nowhere.else_\nif nowhere.else_.FULL: x = 1")
    code, out = check(capsys, "k.py")
    assert code == 3
    assert out.startswith("k.py:3: not checked: import: MissingPackageError: nowhere.else_.FULL was tested, and")


@pytest.mark.slow
def test_the_prover_is_never_imported(tmp_path: Path) -> None:
    code = f"""
import sys
from tlcheck.cli.main import main
assert main(["check", {str(WRONG)!r}, {str(RIGHT)!r}]) == 1
loaded = {{"tvm", "tvm_ffi", "tilelang", "torch"}} & set(sys.modules)
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, cwd=tmp_path)
