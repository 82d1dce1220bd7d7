"""With a real toolchain: what was kept is what would be made again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tlcheck.cache.store import Cache
from tlcheck.cli.main import main
from tlcheck.lower import session
from tlcheck.lower.cached import AnsweredJob, CachedExecutor, ToolchainWorker
from tlcheck.toolchain.releases import PINNED
from tlcheck.worker.jobs import Job, name_of, task_of
from tlcheck.worker.protocol import Answer

pytestmark = pytest.mark.toolchain

KERNEL = """
import tilelang.language as T
from size import SIZE

@T.prim_func
def kernel(A: T.Tensor((SIZE,), "float32"), B: T.Tensor((SIZE,), "float32")):
    with T.Kernel(1, threads=64) as _:
        for i in T.Parallel(SIZE):
            T.atomic_add(B[i], A[i])
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel with a helper, and results of its own for the user's toolchains."""
    installed(PINNED)
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "size.py").write_text("SIZE = 256\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "open_cache", lambda wanted: Cache(tmp_path / "results") if wanted else Cache(None))


def report(capsys: pytest.CaptureFixture[str], folder: str, *options: str) -> tuple[str, bytes]:
    """The report, and the snapshot that was saved."""
    argv = ["check", "k.py::kernel", "--arch", "sm_90", "--format", "json", "--save", folder]
    assert main([*argv, *options]) == 0
    (saved,) = Path(folder).iterdir()
    return re.sub(r'"seconds": [\d.]+', '"seconds": 0', capsys.readouterr().out), saved.read_bytes()


@pytest.mark.slow
def test_a_warm_run_starts_no_worker_and_says_the_same(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("started")

    plain = report(capsys, "plain", "--no-cache")
    assert report(capsys, "cold") == plain
    with monkeypatch.context() as warm:
        warm.setattr("tlcheck.lower.session.Worker.start", refuse)
        warm.setattr("tlcheck.verdicts.judge.JudgingProcess.__init__", refuse)
        assert report(capsys, "warm") == plain
    Path("size.py").write_text("SIZE = 512\n")
    changed = report(capsys, "changed")
    assert changed == report(capsys, "fresh", "--no-cache")
    assert changed[1] != plain[1]
    assert json.loads(changed[0])["summary"]["proved"] == 2  # the atomic and the output


SEVERAL = """
import tilelang.language as T
from tlcheck.case import Case

FIRST

@T.macro
def scaled(B, A, i, by):
    T.atomic_add(B[i], A[i] * by)

def one(size=256):
    @T.prim_func
    def main(A: T.Tensor((size,), "float32"), B: T.Tensor((size,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(size):
                scaled(B, A, i, 2.0)
    return main

def two(size=256):
    @T.prim_func
    def main(A: T.Tensor((size,), "float32"), B: T.Tensor((size,), "float32")):
        with T.Kernel(1, threads=64) as _:
            for i in T.Parallel(size):
                scaled(B, A, i, 3.0)
    return main

small = Case(one, targets=("sm_80",))
wide = Case(two, args={"size": 256}, targets=("sm_80",))
"""
POSTPROC = """
from tilelang.engine.callback import register_cuda_postproc_callback

@register_cuda_postproc_callback
def marked(code, _):
    return code + "// 1\\n"
"""


def lowered_cases(monkeypatch: pytest.MonkeyPatch, folder: str) -> tuple[set[str], dict[str, bytes]]:
    """The cases that were lowered, not only traced; and all snapshots."""
    found = set()
    done = CachedExecutor._done

    def noted(self: CachedExecutor, side: ToolchainWorker, job: Job, answer: Answer) -> AnsweredJob | None:
        if task_of(job) == "lower" and "place" not in (answer.result or {}):
            found.add(name_of(job))
        return done(self, side, job, answer)

    with monkeypatch.context() as patch:
        patch.setattr(CachedExecutor, "_done", noted)
        assert main(["check", "several.py", "--quick", "-v", "--save", folder]) == 0
    return found, {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def edit(old: str, new: str) -> None:
    Path("several.py").write_text(Path("several.py").read_text().replace(old, new))


def test_after_an_edit_of_one_kernel_the_others_are_not_lowered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("several.py").write_text(SEVERAL.replace("FIRST", ""))
    assert lowered_cases(monkeypatch, "first")[0] == {"small", "wide"}
    edit("scaled(B, A, i, 2.0)", "scaled(B, A, i, 2.5)\n                T.atomic_add(B[0], 1.0)")
    edit('"size": 256', '"size": 0x100')
    capsys.readouterr()
    names, snapshots = lowered_cases(monkeypatch, "edited")
    assert names == {"small"}
    assert capsys.readouterr().err == "tlcheck: 1 kernel lowered, 1 known from earlier commands\n"
    monkeypatch.setenv("TLCHECK_NO_CACHE", "1")
    monkeypatch.setattr(session, "open_cache", lambda wanted: Cache(None))
    assert lowered_cases(monkeypatch, "fresh") == ({"small", "wide"}, snapshots)


def test_a_kernel_file_that_changes_the_compiler_is_lowered_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("several.py").write_text(SEVERAL.replace("FIRST", POSTPROC))
    assert lowered_cases(monkeypatch, "first")[0] == {"small", "wide"}
    edit("// 1", "// 2")
    names, snapshots = lowered_cases(monkeypatch, "edited")
    assert names == {"small", "wide"}
    assert all(b"// 2" in content for content in snapshots.values())
