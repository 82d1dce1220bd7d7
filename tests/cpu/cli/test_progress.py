"""Test what is said while work goes on."""

from __future__ import annotations

import time

import pytest

from tests.cpu.checking import make_run
from tlcheck.cli import progress


def test_a_line_now_and_then_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PAUSE", 0.01)
    with progress.bar() as made:
        made.total(3)
        made.done(make_run())
        made.judges(make_run())
        said = ""
        while "checking" not in said:
            time.sleep(0.01)
            said += capsys.readouterr().err
        made.has_judged(make_run())
        assert made.line().startswith("1 of 3 lowered, 1 checked, ")
    assert "tlcheck: 1 of 3 lowered, 0 s: checking k.py::case sm_90\n" in said


def test_what_it_is_for_is_said_with_what_is_done() -> None:
    shown: list[str] = []
    made = progress.Bar(lambda **changes: shown.append(changes["description"]))
    made.goal("8 releases left, nothing helps yet")
    made.judges(make_run())
    made.goal("")
    made.stage("importing kernel files")
    assert shown == ["8 releases left, nothing helps yet: checking k.py::case sm_90", "importing kernel files"]


def test_nothing_follows_the_seconds_where_nothing_is_done() -> None:
    with progress.bar() as made:
        assert made.line().endswith(" s")
        made.stage("import kernels.py")
        assert made.line().endswith(" s: import kernels.py")
        assert "starting" not in made.line()


def test_how_many_there_are_is_not_known_while_scripts_run() -> None:
    with progress.bar() as made:
        assert made.line().startswith("starting, ")
        made.done(make_run())
        assert made.line().startswith("1 lowered, ")
        made.has_judged_ahead()
        assert made.line().startswith("1 lowered, 1 checked, ")


def test_how_many_there_are_is_not_known_while_another_session_runs_scripts() -> None:
    shown: dict[str, object] = {}
    made = progress.Bar(lambda **changes: shown.update(changes))
    made.done(make_run())
    made.total(1)
    assert shown == {"completed": 1, "total": 1}
    made.done(make_run())
    assert made.line().startswith("2 lowered, ")
    assert shown == {"completed": 2, "total": None}
    made.total(1)
    assert made.line().startswith("2 of 2 lowered, ")


def test_a_bar_ends_with_the_last_verdict() -> None:
    shown: dict[str, object] = {}
    made = progress.Bar(lambda **changes: shown.update(changes), judging=True)
    made.total(2)
    made.done(make_run())
    assert shown["completed"] == 0
    made.has_judged(make_run())
    assert (shown["completed"], shown["total"]) == (1, 2)


def test_a_terminal_shows_the_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress.bar() as made:
        made.total(2)
        made.judges(make_run())
    assert "checking k.py::case sm_90" in capsys.readouterr().err


def test_a_long_text_leaves_room_for_counts_and_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    with progress.bar() as made:
        made.total(2000)
        made.stage(f"running tests/{'unit/' * 20}test_it.py sm_90: test 4 of [10] (test_it)")
    shown = capsys.readouterr().err
    assert "running tests/" in shown
    assert "sm_90: test 4 of [10] (test_it) " in shown
    assert "0/2000" in shown
    assert "0:00:00" in shown


@pytest.mark.parametrize(("width", "wanted"), [(10, "0123456789"), (9, "012…56789"), (1, "0…9")])
def test_a_text_is_cut_in_its_middle(width: int, wanted: str) -> None:
    assert progress.fitted("0123456789", width) == wanted


def test_who_wants_quiet_hears_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "PAUSE", 0.01)
    with progress.bar(-1) as made:
        made.done(make_run())
        time.sleep(0.1)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("loudness", "shown"), [(-1, ""), (0, ""), (1, "Traceback\n")])
def test_who_wants_more_sees_tracebacks_once(loudness: int, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar(loudness) as made:
        made.trouble("Traceback")
        made.trouble("Traceback")
    assert capsys.readouterr().err == shown


def test_who_wants_more_hears_what_was_lowered(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.bar(1) as made:
        made.done(make_run())
        made.done(make_run(), known=True)
        made.done(make_run(), known=True)
    assert capsys.readouterr().err == "tlcheck: 1 kernel lowered, 2 known from earlier commands\n"
