"""An answer is taken from the cache exactly as long as nothing that it rests on has changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from tlcheck.cache.store import open_cache
from tlcheck.lower import answers
from tlcheck.lower.answers import AnswerCache
from tlcheck.lower.runs import Lowered
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.dependencies import Dependencies
from tlcheck.worker.jobs import CaptureJob, InputsJob
from tlcheck.worker.protocol import Answer, Failure

pytestmark = pytest.mark.slow  # a process for each test

Lower = Callable[..., list[Lowered]]


def failure(kind: str, message: str) -> dict[str, str]:
    return asdict(Failure(kind, "lower", message))


def message(lowered: list[Lowered]) -> str:
    (done,) = lowered
    assert done.failure is not None
    return done.failure.message


def test_the_second_run_starts_no_worker(project: Path, lower: Lower, starts: list[str]) -> None:
    first = lower()
    assert message(first) == "ValueError: [1, 64, 'data', None, None]"
    assert starts == ["worker"]
    assert lower() == first
    assert starts == ["worker"]
    lower(cache=False)
    assert starts == ["worker"] * 2


CHANGES = {
    "the kernel file": ("k.py", "kernel(n=1)", "kernel(n=2)", "[2, 64, 'data', None, None]"),
    "a helper module": ("helper.py", "64", "32", "[1, 32, 'data', None, None]"),
    "a data file": ("data.txt", "data", "atad", "[1, 64, 'atad', None, None]"),
    "a module that was missing": ("optional.py", "", "NAME = 'there'", "[1, 64, 'data', None, 'there']"),
    "a package that comes before a module": (
        "helper/__init__.py", "", "SIZE = 8", "[1, 8, 'data', None, None]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_read_anew(project: Path, lower: Lower, starts: list[str], change: str) -> None:
    name, old, new, expected = CHANGES[change]
    first = message(lower())
    file = project / name
    file.parent.mkdir(exist_ok=True)
    before = file.read_text() if file.exists() else ""
    file.write_text(before.replace(old, new, 1) if old else new)
    assert message(lower()) == f"ValueError: {expected}"
    assert starts == ["worker"] * 2
    file.write_text(before) if before else file.unlink()
    if change.startswith("a package"):
        file.parent.rmdir()
    assert message(lower()) == first  # both states are kept
    assert starts == ["worker"] * 2


def test_a_variable_that_the_kernel_reads(
    project: Path, lower: Lower, starts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lower()
    monkeypatch.setenv("OF_NO_INTEREST", "1")
    lower()
    assert starts == ["worker"]
    monkeypatch.setenv("BLOCK", "128")
    assert message(lower()) == "ValueError: [1, 64, 'data', '128', None]"


@pytest.mark.parametrize("variable", ["TILELANG_SOMETHING", "TL_SOMETHING", "LD_PRELOAD_IS_NOT_ONE"])
def test_variables_of_tilelang_count_though_native_code_reads_them(
    project: Path, lower: Lower, starts: list[str], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    lower()
    monkeypatch.setenv(variable, "1")
    lower()
    assert len(starts) == (2 if variable.startswith("T") else 1)


@pytest.mark.parametrize(
    "name", ["tilelang/lib/libtilelang.so", "tilelang/language.py", "tilelang-0.0.1.dist-info/METADATA"]
)
def test_a_rebuilt_toolchain_is_another(project: Path, lower: Lower, starts: list[str], site: Path, name: str) -> None:
    lower()
    file = site / name
    file.write_text(file.read_text().replace("0.0.1", "0.0.2") if "METADATA" in name else "\n")
    lower()
    assert len(starts) == 2


def test_an_upgraded_package_is_seen(project: Path, lower: Lower, starts: list[str], site: Path) -> None:
    """Also one that TileLang has imported before the kernel did."""
    (site / "numpy-1.0.dist-info").mkdir()
    lower()
    (site / "numpy-1.0.dist-info").rename(site / "numpy-1.1.dist-info")
    lower()
    assert len(starts) == 2


def test_settings_that_decide_the_result(project: Path, lower: Lower, starts: list[str]) -> None:
    lower()
    assert message(lower(args={"n": "7"})) == "ValueError: [7, 64, 'data', None, None]"
    lower(arch=("sm_80",))
    lower(every_pass=True)
    lower(fork=False)
    assert len(starts) == 5
    lower(timeout=100.0, jobs=1)
    assert len(starts) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "os.kill(os.getpid(), 9)",
        "os.abort()",
        "raise MemoryError",
        "raise OSError('no space left')",
        "Path('helper.py').write_text('SIZE = 65'); 1 / 0",
    ],
)
def test_what_may_end_otherwise_next_time_is_not_kept(
    project: Path, lower: Lower, starts: list[str], code: str
) -> None:
    (project / "k.py").write_text(KERNEL_WITH.format(code=code))
    for _ in range(2):
        (done,) = lower(timeout=0.5)  # a limit in whole seconds: with 1.0 it would be two of them
        assert done.failure is not None
    assert len(starts) == 2


KERNEL_WITH = """
import os
from pathlib import Path
import tilelang
import helper

@tilelang.jit
def kernel():
    {code}
"""


def test_a_file_that_the_kernel_makes_for_itself_is_no_dependency(
    project: Path, lower: Lower, starts: list[str]
) -> None:
    code = "import tempfile; f = tempfile.mktemp(); Path(f).write_text('x'); Path(f).read_text(); os.unlink(f); 1 / 0"
    (project / "k.py").write_text(KERNEL_WITH.format(code=code))
    lower()
    lower()
    assert starts == ["worker"]


def test_a_damaged_or_deleted_cache_is_a_cold_one(project: Path, lower: Lower, starts: list[str], cache: Path) -> None:
    first = lower()
    for file in (cache / "results").rglob("*"):
        if file.is_file():
            file.write_bytes(file.read_bytes()[:-3] + b"xyz")
    assert lower() == first
    assert len(starts) == 2
    assert lower() == first
    assert len(starts) == 2


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        ({"kernels": [], "ended": None, "names": []}, True),
        ({"kernels": [{"name": "a", "failure": failure("exception", "ValueError: no")}]}, True),
        ({"kernels": [{"name": "a", "failure": failure("timeout", "no end")}]}, False),
        ({"kernels": [{"name": "a", "failure": failure("crash", "SIGSEGV")}]}, False),
        ({"kernels": [], "ended": failure("exception", "ConnectionError: no network")}, False),
    ],
)
def test_a_script_is_kept_if_it_would_end_so_again(
    project: Path, site: Path, tmp_path: Path, result: Mapping[str, Any], kept: bool
) -> None:
    """Also where it has no kernel and so has written nothing."""
    jobs = AnswerCache(
        open_cache(), Toolchain("here", "interpreter", Path(sys.executable), {"PYTHONPATH": str(site)}), fork=True
    )
    job = CaptureJob("k.py", output=str(tmp_path / "kernels.zip"))
    jobs.keep(job, Answer(result, None, 0.0, 0.0, "", Dependencies()), {})
    found = jobs.find(job, whole=True)
    assert (found is not None) == kept
    assert found is None or (found.answer.result, found.snapshot) == (result, "")


def test_who_needs_no_calls_takes_a_script_that_was_run_with_them(project: Path, site: Path, tmp_path: Path) -> None:
    jobs = AnswerCache(
        open_cache(), Toolchain("here", "interpreter", Path(sys.executable), {"PYTHONPATH": str(site)}), fork=True
    )
    job = CaptureJob("k.py", output=str(tmp_path / "kernels.zip"))
    result: Mapping[str, Any] = {"kernels": [], "ended": None, "names": []}
    without = replace(job, calls=False)
    jobs.keep(without, Answer(result, None, 0.0, 0.0, "", Dependencies()), {})
    assert jobs.find(job, whole=True) is None
    other = replace(job, script_args=("--more",))
    jobs.keep(other, Answer(result, None, 0.0, 0.0, "", Dependencies()), {})
    assert jobs.find(replace(other, calls=False), whole=True) is not None


INPUTS = InputsJob("k.py", "kernel", output="", arch="sm_90", seeds=(0,), number=1)
ELSEWHERE = replace(INPUTS, arch="sm_80", number=2)


@pytest.fixture
def releases(project: Path, site: Path) -> Callable[[str], AnswerCache]:
    """The answers that are kept for a release."""

    def of(release: str) -> AnswerCache:
        (folder,) = site.glob("tilelang-*.dist-info")
        folder.rename(site / f"tilelang-{release}.dist-info")
        (site / "tilelang" / "language.py").write_text(f"VERSION = {release!r}\n")
        toolchain = Toolchain(release, "interpreter", Path(sys.executable), {"PYTHONPATH": str(site)})
        return AnswerCache(open_cache(), toolchain, fork=True)

    return of


def test_inputs_are_those_of_any_release_and_arch(releases: Callable[[str], AnswerCache], tmp_path: Path) -> None:
    first, second = (replace(job, output=str(tmp_path / job.arch)) for job in (INPUTS, ELSEWHERE))
    Path(first.output).write_text("numbers")
    made = Answer({"digest": "d"}, None, 0.0, 0.0, "", Dependencies())
    releases("0.0.1").keep(first, made, {})
    later = releases("0.0.2")
    assert later.find(second, whole=False) is not None
    assert not Path(second.output).exists()
    assert later.find(second, whole=True) is not None
    assert Path(second.output).read_text() == "numbers"
    assert later.find(replace(second, parameters=("float16 ['64']",)), whole=True) is None
    assert later.find(replace(second, seeds=(0, 1)), whole=True) is None


def test_of_large_inputs_the_answer_is_kept_alone(
    releases: Callable[[str], AnswerCache], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_LARGE", 3)
    first, second = (replace(job, output=str(tmp_path / job.arch)) for job in (INPUTS, ELSEWHERE))
    Path(first.output).write_text("numbers")
    made = Answer({"digest": "d"}, None, 0.0, 0.0, "", Dependencies())
    releases("0.0.1").keep(first, made, {})
    found = releases("0.0.1").find(second, whole=False)
    assert found is not None
    assert found.answer == made
    assert releases("0.0.1").find(second, whole=True) is None
    assert not Path(second.output).exists()


def test_that_inputs_cannot_be_made_is_a_matter_of_the_release(releases: Callable[[str], AnswerCache]) -> None:
    no = Answer(None, Failure("exception", "inputs", "no"), 0.0, 0.0, "", Dependencies())
    releases("0.0.1").keep(INPUTS, no, {})
    assert releases("0.0.1").find(INPUTS, whole=True) is not None
    assert releases("0.0.1").find(ELSEWHERE, whole=True) is None
    assert releases("0.0.2").find(INPUTS, whole=True) is None
