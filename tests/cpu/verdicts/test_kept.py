"""Verdicts are kept; the lines of the user's file beside them are not."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from tests.cpu.checking import INVARIANT, RIGHT, WRONG, make_run
from tlcheck.cache.store import Cache
from tlcheck.lower.runs import Lowered
from tlcheck.snapshot import codec
from tlcheck.verdicts import kept as verdicts
from tlcheck.verdicts import results


def refuse(lowered: Lowered) -> results.Result:
    raise AssertionError("checked again")


@pytest.mark.parametrize("saved", [WRONG, RIGHT, INVARIANT])
def test_a_kept_verdict_is_the_same(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lowered = Lowered(make_run(), saved, unsaved={"cuda": "why not"}, digest=saved.name)
    first = verdicts.result_of(lowered, Cache(tmp_path))
    assert first == results.result_of(lowered)
    assert first.notes == ("no checkpoint cuda: why not",)
    monkeypatch.setattr(results, "result_of", refuse)
    assert verdicts.result_of(lowered, Cache(tmp_path)) == first


def test_a_comment_that_was_added_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, saved = tmp_path / "kernels.py", tmp_path / "saved.json"
    snapshot = codec.loads(WRONG.read_text())
    saved.write_text(WRONG.read_text().replace(snapshot.file, str(kernels)))
    line = results.result_of(Lowered(make_run(), saved)).claims[0].source.line
    kernels.write_text("\n" * (line - 1) + "T.atomic_add(B, b)\n")
    lowered = Lowered(make_run(), saved, digest="any")
    assert verdicts.result_of(lowered, Cache(tmp_path)).claims[0].source.text == "T.atomic_add(B, b)"
    kernels.write_text("\n" * (line - 1) + "T.atomic_add(B, b)  # tlcheck: ignore[TLA001] known\n")
    monkeypatch.setattr(results, "result_of", refuse)
    assert verdicts.result_of(lowered, Cache(tmp_path)).claims[0].source.text.endswith("ignore[TLA001] known")


def test_a_fault_of_tlchecks_own_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(snapshot: object) -> None:
        raise RuntimeError("a bug")

    lowered = Lowered(make_run(), RIGHT, digest="any")
    with monkeypatch.context() as broken:
        broken.setattr(results, "check", fail)
        failure = verdicts.result_of(lowered, Cache(tmp_path)).failure
    assert failure is not None
    assert failure.kind == "internal"
    assert verdicts.result_of(lowered, Cache(tmp_path)).failure is None


def test_versions_of_packages_are_looked_up_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def version(package: str) -> str:
        asked.append(package)
        if package == "apache-tvm":
            raise PackageNotFoundError(package)
        return "1.0"

    monkeypatch.setattr(verdicts, "version", version)
    verdicts._versions.cache_clear()
    try:
        for saved in (WRONG, RIGHT):
            verdicts.result_of(Lowered(make_run(), saved, digest=saved.name), Cache(tmp_path))
        assert asked == ["apache-tvm", "numpy"]
    finally:
        verdicts._versions.cache_clear()
