"""A source that means the reference in another release was lost by the front end, not by its author."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import make_atomic, make_finding, make_result, make_run
from tlcheck.cache.store import Cache
from tlcheck.cli.progress import bar
from tlcheck.execute.request import Request
from tlcheck.gate import front_end, history
from tlcheck.gate.front_end import FrontEndSearch
from tlcheck.gate.history import HistorySearch
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.toolchain import neighbours
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.problems import problem_of
from tlcheck.verdicts.results import Result


def differing(release: str, seconds: float = 0.0) -> Result:
    finding = replace(make_finding("TLS010"), blame="author", advice="mend the kernel or the reference")
    claim = replace(make_atomic("refuted"), kind="source", finding=finding)
    return replace(make_result("agreed", run=make_run(release)), claims=(claim,), seconds=seconds)


def agreeing(release: str) -> Result:
    return replace(make_result("agreed", run=make_run(release)), reference="agrees with the reference")


def told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, result: Result, *beside: Result, seconds: float | None = None
) -> Result:
    """The result of 0.1.9 after a search that finds these, compared with the reference."""

    class Checks:
        def stop(self) -> None: ...

        def results(self, selections: Sequence[Selection]) -> Iterator[tuple[None, Result]]:
            assert [each.toolchain for each in selections] == ["0.1.8", "0.1.10"]
            yield from ((None, each) for each in beside)

    class ReferenceCheck:
        def __init__(self, *given: object) -> None:
            _, _, _, _, self.folder, _ = given

        def compared(self, found: Sequence[tuple[None, Result]]) -> list[Result]:
            assert self.folder != tmp_path  # where the kernel itself was compared
            return [each for _, each in found]

    @contextmanager
    def checking(*_: object) -> Iterator[Checks]:
        yield Checks()

    monkeypatch.setattr(neighbours, "RELEASES", dict.fromkeys(("0.1.8", "0.1.9", "0.1.10")))
    monkeypatch.setattr("tlcheck.toolchain.environment.find", lambda recipe: recipe)
    monkeypatch.setattr(history, "checking", checking)
    monkeypatch.setattr(front_end, "ReferenceCheck", ReferenceCheck)
    with bar() as watcher:
        search = HistorySearch(Settings(), Policy(execute=Request()), tmp_path, watcher, seconds=seconds)
        return FrontEndSearch(search, Cache(tmp_path / "cache")).told(result)


def test_a_release_that_agrees_with_the_reference_shows_the_front_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = told(monkeypatch, tmp_path, differing("0.1.9"), differing("0.1.8"), agreeing("0.1.10"))
    (claim,) = found.claims
    assert claim.finding is not None
    problem = problem_of(found, claim, claim.finding)
    assert problem.blame == "TileLang 0.1.9 (the front end); right (agreed) in 0.1.10"
    assert problem.help == "use TileLang 0.1.10; `tlcheck explain TLS010`"


def test_what_every_release_computes_is_the_authors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = differing("0.1.9")
    assert told(monkeypatch, tmp_path, own, differing("0.1.8"), differing("0.1.10")) == own
    undecided = make_result("agreed", run=make_run("0.1.10"))  # nobody knows what the reference says there
    assert told(monkeypatch, tmp_path, own, differing("0.1.8"), undecided) == own


def test_a_search_that_would_take_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own = differing("0.1.9", seconds=6.0)
    assert told(monkeypatch, tmp_path, own, agreeing("0.1.8"), agreeing("0.1.10"), seconds=10.0) == own
    assert told(monkeypatch, tmp_path, own, agreeing("0.1.8"), agreeing("0.1.10"), seconds=12.0) != own
