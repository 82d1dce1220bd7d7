"""`tlcheck dump` from the command line to the files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import RIGHT, StandInWorker, declared
from tlcheck.cli.main import main
from tlcheck.lower import session
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.jobs import LowerJob
from tlcheck.worker.protocol import Failure


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> StandInWorker:
    """A project with one kernel file, and a worker that lowers its cases to a saved snapshot."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.tlcheck]\n")
    (tmp_path / "k.py").write_text("from tlcheck.case import Case\n")
    made = StandInWorker(files={"k.py": (declared("a", ("sm_90",)), declared("b"))})

    def start(python: Path, env: Mapping[str, str], **options: Any) -> StandInWorker:
        return made

    monkeypatch.setattr(session, "resolve", lambda name, requirements: Toolchain(name, "release", Path(name)))
    monkeypatch.setattr(session, "Worker", start)
    return made


def dump(capsys: pytest.CaptureFixture[str], *argv: str | Path) -> tuple[int, str, str]:
    code = main(["dump", *map(str, argv)])
    return (code, *capsys.readouterr())


def test_one_checkpoint_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = dump(capsys, RIGHT, "--at", "vectorize-loop")
    assert code == 0
    assert "# vectorize-loop: after tl.VectorizeLoop\n" in out
    assert out.count("def main(") == 1


def test_everything_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = dump(capsys, RIGHT)
    assert out.count("def main") == 7
    assert out.index("# intent: before") < out.index("# device-tir: after") < out.index("__global__")


def test_one_output_to_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    _, out, _ = dump(capsys, RIGHT, "--at", "cuda")
    assert dump(capsys, RIGHT, "--at", "cuda", "-o", "x.cu") == (0, "", "")
    assert (tmp_path / "x.cu").read_text() == out


def test_several_outputs_to_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert dump(capsys, "k.py::a", "-o", "out") == (0, "8 files in out\n", "")
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert {"01-intent.py", "06-device-tir.py", "kernel.cu"} < names
    assert len(names) == 8


def test_one_output_to_a_folder_that_is_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dump(capsys, "k.py::a", "--at", "intent", "-o", tmp_path)
    assert (tmp_path / "01-intent.py").is_file()


def test_several_runs_have_a_folder_each(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    dump(capsys, "k.py", "--at", "intent", "-o", "out")
    assert sorted(file.relative_to(tmp_path / "out").as_posix() for file in (tmp_path / "out").rglob("*.py")) == [
        "k-a-sm_90-0.1.15/01-intent.py",
        "k-b-sm_80-0.1.15/01-intent.py",
        "k-b-sm_90-0.1.15/01-intent.py",
    ]


def test_files_with_one_name_have_a_folder_each(
    capsys: pytest.CaptureFixture[str], worker: StandInWorker, tmp_path: Path
) -> None:
    for folder in ("one", "two"):
        (tmp_path / "all" / folder).mkdir(parents=True)
        (tmp_path / "all" / folder / "k.py").write_text("from tlcheck.case import Case")
    dump(capsys, "all", "--at", "intent", "--arch", "sm_90", "-o", "out")
    assert len(list((tmp_path / "out").rglob("01-intent.py"))) == 4


def test_every_pass_is_asked_of_the_worker(capsys: pytest.CaptureFixture[str], worker: StandInWorker) -> None:
    dump(capsys, "k.py::a", "--every-pass")
    (*_, job) = worker.jobs
    assert isinstance(job, LowerJob)
    assert job.every_pass
    dump(capsys, "k.py::a")
    (*_, job) = worker.jobs
    assert isinstance(job, LowerJob)
    assert not job.every_pass


def test_a_kernel_that_cannot_be_lowered_is_3(capsys: pytest.CaptureFixture[str], worker: StandInWorker) -> None:
    worker.failures = {"a": Failure("exception", "lower", "ValueError: no", "more")}
    code, out, err = dump(capsys, "k.py", "--at", "intent")
    assert code == 3
    assert out.count("def main(") == 2
    assert err == "k.py::a sm_90 0.1.15: lower: ValueError: no\n    more\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["k.py::a", "--at", "nowhere"], "no checkpoint 'nowhere': there are source, intent, tile-ops"),
        ([RIGHT, "--at", "nowhere"], "has no 'nowhere'; it has source, intent, tile-ops"),
        (["k.py::a", "--every-pass", "--at", "nowhere"], "has no 'nowhere'"),
        (["nowhere.py"], "no such file or folder"),
        (["k.py::a", "-o", "k.py"], "k.py: "),
        ([RIGHT, "--arch", "sm_80"], "no meaning for a saved snapshot"),
    ],
)
def test_bad_usage_is_one_line(capsys: pytest.CaptureFixture[str], argv: list[str | Path], message: str) -> None:
    code, out, err = dump(capsys, *argv)
    assert (code, out) == (2, "")
    assert err.startswith("tlcheck: error: ")
    assert message in err
    assert err.count("\n") == 1
