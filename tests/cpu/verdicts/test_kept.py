"""Verdicts are kept; the lines of the user's file beside them are not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import tlcheck
from tests.cpu.checking import INVARIANT, RIGHT, WRONG, make_run
from tests.fixtures.index import FOLDER
from tlcheck.cache import code
from tlcheck.cache.store import Cache
from tlcheck.execute.request import GivenInputs, Request
from tlcheck.lower.runs import Lowered
from tlcheck.snapshot import codec
from tlcheck.verdicts import judge as judging
from tlcheck.verdicts import kept
from tlcheck.verdicts.judge import Judge, Policy
from tlcheck.verdicts.judging import verdicts_of
from tlcheck.verdicts.kept import Verdicts, dumps, keep, known, loads
from tlcheck.verdicts.results import Result, read_snapshot
from tlcheck.worker.protocol import Failure


def result(lowered: Lowered, cache: Cache) -> Result:
    with Judge(Policy(), cache, 1) as judge:
        return judge(lowered)


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No process starts."""

    def start(self: object) -> None:
        raise AssertionError("judged again")

    monkeypatch.setattr(judging.JudgingProcess, "__init__", start)
    return monkeypatch


@pytest.mark.parametrize("saved", [WRONG, RIGHT, INVARIANT])
def test_a_kept_verdict_is_the_same(saved: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    lowered = Lowered(make_run(), saved, unsaved={"cuda": "why not"})
    first = result(lowered, Cache(tmp_path))
    assert first == result(lowered, Cache(None))
    assert first.notes == ("no checkpoint cuda: why not",)
    request.getfixturevalue("refuse")
    assert result(lowered, Cache(tmp_path)) == first


def test_an_operator_that_is_edited_has_its_kernels_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of proofs alone stay as they were."""
    package, kept_in = tmp_path / "tlcheck", Cache(tmp_path / "kept")
    shutil.copytree(Path(tlcheck.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(code, "_PACKAGE", package)
    lowered = Lowered(make_run(), FOLDER / "wrong" / "sums-0.1.9.snapshot.json")
    asked = []
    verdicts = judging.JudgingProcess.verdicts

    def ask(self: judging.JudgingProcess, snapshot: Path, request: Request | None, given: GivenInputs | None) -> bytes:
        asked.append("proofs" if request is None else "execution")
        return verdicts(self, snapshot, request, given)

    monkeypatch.setattr(judging.JudgingProcess, "verdicts", ask)

    def judged() -> list[str]:
        code.code_of.cache_clear()
        asked.clear()
        for request in (None, Request()):
            with Judge(Policy(execute=request), kept_in, 1) as judge:
                judge(lowered)
        return list(asked)

    assert judged() == ["proofs", "execution"]
    assert judged() == []
    with (package / "execute" / "ops" / "tile" / "fill.py").open("a") as operator:
        operator.write("# another meaning\n")
    assert judged() == ["execution"]
    assert judged() == []
    code.code_of.cache_clear()


def test_a_comment_that_was_added_is_seen(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    kernels, saved = tmp_path / "kernels.py", tmp_path / "saved.json"
    snapshot = codec.loads(WRONG.read_text())
    saved.write_text(WRONG.read_text().replace(snapshot.file, str(kernels)))
    lowered = Lowered(make_run(), saved)
    line = result(lowered, Cache(None)).claims[0].source.line
    kernels.write_text("\n" * (line - 1) + "T.atomic_add(B, b)\n")
    assert result(lowered, Cache(tmp_path)).claims[0].source.text == "T.atomic_add(B, b)"
    kernels.write_text("\n" * (line - 1) + "T.atomic_add(B, b)  # tlcheck: ignore[TLA001] known\n")
    request.getfixturevalue("refuse")
    assert result(lowered, Cache(tmp_path)).claims[0].source.text.endswith("ignore[TLA001] known")


@pytest.mark.parametrize("saved", [WRONG, RIGHT])
def test_verdicts_are_read_as_they_were_written(saved: Path) -> None:
    verdicts = verdicts_of(read_snapshot(saved))
    assert loads(dumps(verdicts)) == verdicts


def test_texts_that_are_no_unicode_are_kept() -> None:
    verdicts = verdicts_of(read_snapshot(WRONG))
    odd = replace(verdicts, claims=(replace(verdicts.claims[0], call="\udcff"),))
    assert loads(dumps(odd)) == odd


@pytest.mark.parametrize(("kind", "is_kept"), [("check", True), ("internal", False), ("killed", False)])
def test_only_failures_of_the_snapshots_own_are_kept(kind: str, is_kept: bool, tmp_path: Path) -> None:
    keep(Cache(tmp_path), "any", None, Verdicts(failure=Failure(kind, "check", "why")))
    assert (known(Cache(tmp_path), "any", None) is not None) == is_kept


def test_versions_of_packages_are_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def version(package: str) -> str:
        asked.append(package)
        if package == "apache-tvm":
            raise PackageNotFoundError(package)
        return "1.0"

    monkeypatch.setattr("importlib.metadata.version", version)
    kept._versions.cache_clear()
    try:
        for digest in ("one", "other"):
            known(Cache(tmp_path), digest, None)
        assert asked == ["apache-tvm", "ml_dtypes", "numpy"]
    finally:
        kept._versions.cache_clear()


_FIRST_READERS = """
import sys, threading
sys.setswitchinterval(1e-6)
from tlcheck.verdicts.kept import Verdicts, dumps, loads
content, start = dumps(Verdicts()), threading.Barrier(16)

def read():
    start.wait()
    loads(content)

threads = [threading.Thread(target=read) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_several_threads_may_be_the_first_to_read_verdicts() -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(tlcheck.__file__).parents[1])}
    ends = [subprocess.run([sys.executable, "-c", _FIRST_READERS], env=env).returncode for _ in range(3)]
    assert ends == [0, 0, 0]


def test_verdicts_with_a_cost_serve_those_who_ask_for_none(tmp_path: Path) -> None:
    cache, request = Cache(tmp_path), Request()
    found = Verdicts(notes=("kept",))
    keep(cache, "digest", replace(request, cost=True), found)
    assert known(cache, "digest", request) == found
    assert known(cache, "digest", None) is None
    keep(cache, "other", request, found)
    assert known(cache, "other", replace(request, cost=True)) is None
