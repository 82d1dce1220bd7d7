"""From what is selected to results: saved snapshots, kernels that are lowered, and what is stopped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cpu.checking import RIGHT, WRONG, StandInWorker, declared, put_in_place
from tlcheck.errors import UsageError
from tlcheck.execute.request import Request
from tlcheck.lower.runs import Run
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Settings
from tlcheck.verdicts.checking import checking
from tlcheck.verdicts.judge import Policy

pytestmark = pytest.mark.usefixtures("fresh_processes")


class Told:
    """A record of what a watcher hears, in its order."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def goal(self, text: str) -> None: ...

    def stage(self, text: str) -> None:
        self.words.append("stage")

    def total(self, runs: int) -> None: ...

    def done(self, run: Run, *, known: bool = False) -> None:
        self.words.append("lowered")

    def trouble(self, text: str) -> None: ...

    def judges(self, run: Run) -> None:
        self.words.append("judges")

    def has_judged(self, run: Run) -> None:
        self.words.append("judged")

    def has_judged_ahead(self) -> None: ...


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> StandInWorker:
    made = StandInWorker()
    put_in_place(monkeypatch, {"pinned": made})
    return made


def test_saved_snapshots_and_lowered_kernels_keep_their_places(worker: StandInWorker, tmp_path: Path) -> None:
    worker.files = {"k.py": (declared("a", ("sm_90",)),)}
    chosen = [Selection(WRONG), Selection(Path("k.py")), Selection(RIGHT)]
    told = Told()
    with checking(Settings(cache=False), Policy(), tmp_path, told) as checks:
        found = [(lowered.run.position, result.count("refuted") > 0) for lowered, result in checks.results(chosen)]
    assert [position[0] for position, _ in found] == [0, 2, 1]
    assert [refuted for _, refuted in found][:2] == [True, False]
    assert (told.words.count("lowered"), told.words.count("judged")) == (1, 3)


def test_where_all_is_saved_no_worker_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_place(monkeypatch, {})
    told = Told()
    with checking(Settings(cache=False), Policy(), tmp_path, told) as checks:
        ((_, result),) = checks.results([Selection(RIGHT)])
    assert (result.saved, result.failure) == (str(RIGHT), None)
    assert told.words == ["judges", "judged"]


def test_a_file_that_is_no_snapshot_is_said_before_anything_is_lowered(worker: StandInWorker, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with (
        checking(Settings(cache=False), Policy(), tmp_path, Told()) as checks,
        pytest.raises(UsageError, match=r"broken\.json"),
    ):
        list(checks.results([Selection(Path("k.py")), Selection(broken)]))
    assert worker.jobs == []


def test_cases_make_their_own_inputs_where_kernels_are_executed(tmp_path: Path) -> None:
    settings = Settings(cache=False, seeds=(7,))
    with checking(settings, Policy(execute=Request(seeds=(0, 1))), tmp_path, Told()) as checks:
        assert checks.session.settings.seeds == (0, 1)
    with checking(settings, Policy(), tmp_path, Told()) as checks:
        assert checks.session.settings.seeds == (7,)


def test_what_is_stopped_is_interrupted(worker: StandInWorker, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    shutil.copy(RIGHT, saved)
    with checking(Settings(cache=False), Policy(), tmp_path, Told()) as checks:
        checks.stop()
        ((_, result),) = checks.results([Selection(saved)])
    assert result.is_interrupted
