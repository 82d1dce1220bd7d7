"""Since which release a kernel is wrong, and by which pass, as a finding tells it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from tests.cpu.checking import INVARIANT, installed, make_atomic, make_finding, make_result, make_run
from tests.cpu.gate.test_bisect_passes import every_pass
from tlcheck.cli.main import main
from tlcheck.cli.progress import bar
from tlcheck.gate import history
from tlcheck.gate.bisect_passes import judge_passes
from tlcheck.gate.history import HistorySearch, with_histories
from tlcheck.lower.runs import Lowered
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.toolchain import neighbours
from tlcheck.verdicts.claim import Finding
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.problems import problem_of
from tlcheck.verdicts.results import Result

RELEASES = ["0.1.7", "0.1.8", "0.1.9", "0.1.10", "0.1.11", "0.1.12"]


class Told(HistorySearch):
    """A search whose releases are told: `verdicts` of the one claim by release; `asked` are those looked at."""

    verdicts: dict[str, str]
    asked: list[str]

    def checked(self, run: object, releases: Sequence[str], end: float | None) -> list[tuple[Lowered, Result]]:
        self.asked.extend(releases)
        runs = [make_run(release) for release in releases]
        return [
            (Lowered(run, None), make_result(self.verdicts[r], run=run)) for r, run in zip(releases, runs, strict=True)
        ]


def found(
    monkeypatch: pytest.MonkeyPatch, verdicts: dict[str, str], seconds: float | None = None, *, stopped: bool = False
) -> tuple[Finding, list[str], Result]:
    monkeypatch.setattr(neighbours, "RELEASES", dict.fromkeys(RELEASES))
    monkeypatch.setattr("tlcheck.toolchain.environment.find", lambda recipe: recipe)
    monkeypatch.setattr(HistorySearch, "_passes", lambda *_: {})
    with bar() as watcher:
        search = Told(Settings(), Policy(), Path(), watcher, seconds=seconds, stopped=lambda: stopped)
        object.__setattr__(search, "verdicts", verdicts)
        object.__setattr__(search, "asked", [])
        (result,) = with_histories([make_result("refuted", run=make_run("0.1.9"))], search)
    finding = result.claims[0].finding
    assert finding is not None
    return finding, search.asked, result


def test_no_more_releases_are_tried_where_the_user_has_ended_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _, asked, _ = found(monkeypatch, dict.fromkeys(RELEASES, "refuted"), stopped=True)
    assert asked == ["0.1.8", "0.1.10"]


def test_releases_are_tried_outward_up_to_one_that_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = {"0.1.8": "agreed", "0.1.10": "refuted", "0.1.11": "agreed"}
    finding, asked, result = found(monkeypatch, verdicts)
    assert asked == ["0.1.8", "0.1.10", "0.1.11"]
    assert finding.history is not None
    assert (finding.history.right_in, finding.history.wrong_in) == (("0.1.8", "0.1.11"), ("0.1.10",))
    problem = problem_of(result, result.claims[0], finding)
    assert problem.blame == "TileLang 0.1.9 (tl.LowerTileOp); right (agreed) in 0.1.8 and 0.1.11"
    assert problem.help.startswith("use TileLang 0.1.11; ")


def test_what_is_proved_is_right_without_reserve(monkeypatch: pytest.MonkeyPatch) -> None:
    finding, _, _ = found(monkeypatch, {"0.1.8": "proved", "0.1.10": "proved"})
    assert finding.history is not None
    assert finding.history.words == "right in 0.1.8 and 0.1.10"


def test_what_is_undecided_there_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = {"0.1.8": "undecided", "0.1.7": "refuted"} | dict.fromkeys(RELEASES[3:], "refuted")
    finding, asked, _ = found(monkeypatch, verdicts)
    assert finding.history is not None
    assert finding.history.words == "wrong in 0.1.7, 0.1.10, 0.1.11 and 0.1.12 too; not decided in 0.1.8"
    assert asked == ["0.1.8", "0.1.10", "0.1.7", "0.1.11", "0.1.12"]


def test_unasked_the_nearest_releases_alone_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    finding, asked, result = found(monkeypatch, {"0.1.8": "refuted", "0.1.10": "refuted"}, seconds=10.0)
    assert asked == ["0.1.8", "0.1.10"]
    slow = replace(result, seconds=6.0, claims=(replace(make_atomic("refuted"), finding=make_finding()),))
    with bar() as watcher:
        (untold,) = with_histories([slow], HistorySearch(Settings(), Policy(), Path(), watcher, seconds=10.0))
    assert untold == slow
    assert finding.history is not None


def test_a_kernel_of_a_script_is_sought_among_all_that_the_script_makes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The script runs again: nobody finds its kernels by name."""
    run = replace(make_run("0.1.9"), file="s.py", name="add[n=64]", is_captured=True)
    other = replace(run, name="add[n=65]")
    asked: list[Selection] = []

    class Checks:
        def stop(self) -> None: ...

        def results(self, selections: Sequence[Selection]) -> Iterator[tuple[None, Result]]:
            asked.extend(selections)
            yield from ((None, make_result("refuted", run=replace(each, toolchain="0.1.8"))) for each in (other, run))

    @contextmanager
    def checking(*_: object) -> Iterator[Checks]:
        yield Checks()

    monkeypatch.setattr(history, "checking", checking)
    with bar() as watcher:
        search = HistorySearch(Settings(), Policy(), tmp_path, watcher)
        ((_, found),) = search.checked(run, ["0.1.8"], None)
    assert (found.run.name, found.run.toolchain) == ("add[n=64]", "0.1.8")
    assert [(each.path, each.name, each.toolchain) for each in asked] == [(Path("s.py"), "", "0.1.8")]


def test_the_passes_of_a_script_that_goes_on_are_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Session:
        def __init__(self, *_: object) -> None:
            self.stopped = Event()
            self.stop = self.stopped.set

        def lower(self, _: Sequence[Selection]) -> Iterator[Lowered]:
            assert self.stopped.wait(60)
            yield Lowered(run, None)

    run = make_run("0.1.9")
    monkeypatch.setattr(history, "Session", Session)
    with bar() as watcher:
        search = HistorySearch(Settings(), Policy(), tmp_path, watcher)
        assert search._passes(make_result("refuted", run=run), time.monotonic() + 0.1) == {}


def test_the_passes_of_what_is_known_to_be_wrong_are_judged_alone() -> None:
    every = every_pass(INVARIANT)
    (guilty,) = judge_passes(make_run(), every).guilty
    assert judge_passes(make_run(), every, known=[guilty.claim]).guilty == (guilty,)
    assert not judge_passes(make_run(), every, known=[]).guilty


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.xdist_group("0.1.14")
@pytest.mark.usefixtures("kept_results")
def test_a_real_kernel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for release in ("0.1.14", "0.1.15"):
        installed(release)
    monkeypatch.chdir(Path(__file__).parents[3])
    case = "cases/atomics.py::invariant_rows"
    assert main(["check", case, "--arch", "sm_90", "--toolchain", "0.1.14", "--why", "--no-expect"]) == 1
    said = capsys.readouterr().out
    assert "blame: TileLang 0.1.14 (tl.VectorizeLoop); right" in said
    assert "0.1.15" in said.partition("blame:")[2].splitlines()[0]
