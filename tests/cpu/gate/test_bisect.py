"""Test which releases have a kernel wrong: the range, the row, its transitions."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import (
    RIGHT,
    WRONG,
    StandInWorker,
    declared,
    failed,
    make_atomic,
    make_result,
    make_run,
    published,
    put_in_place,
)
from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.gate.bisect import BisectRow, Point, ends_of, range_of, rows
from tlcheck.report.bisect_report import Bisected
from tlcheck.toolchain import environment
from tlcheck.toolchain.environment import Recipe
from tlcheck.toolchain.releases import RELEASES
from tlcheck.verdicts.results import Result
from tlcheck.worker.protocol import Failure


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The releases that are; all that are known."""
    names = set(RELEASES)
    monkeypatch.setattr(environment, "find", lambda recipe: recipe if _name(recipe) in names else None)
    return names


def _name(recipe: Recipe) -> str:
    return recipe.name


def test_a_range_has_both_ends_and_what_is_between(installed: set[str]) -> None:
    assert range_of("0.1.7.post2", "0.1.9") == ["0.1.7.post2", "0.1.7.post3", "0.1.8", "0.1.9"]
    assert range_of("0.1.8", "0.1.8") == ["0.1.8"]
    installed.add("0.1.99")
    assert range_of("0.1.14", "0.1.99") == ["0.1.14", "0.1.15", "0.1.99"]


def test_ends_that_are_no_releases(installed: set[str]) -> None:
    assert range_of("0.1.14", "current") == ["0.1.14", "0.1.15", "current"]
    assert range_of("current", "./build") == ["current", *RELEASES, "./build"]


def test_without_ends_it_is_all_that_is_installed(installed: set[str]) -> None:
    installed.clear()
    with pytest.raises(UsageError, match="no release is installed"):
        ends_of(None, None)
    installed |= {"0.1.10", "0.1.9", "0.1.15"}
    assert ends_of(None, None) == ("0.1.9", "0.1.15")
    assert ends_of("0.1.10", None) == ("0.1.10", "0.1.15")
    assert ends_of(None, "./build") == ("0.1.9", "./build")


def test_what_is_not_installed_between_is_left_out_unless_both_ends_are_given(installed: set[str]) -> None:
    installed -= {"0.1.8", "0.1.10"}
    assert range_of("0.1.7.post3", "0.1.11", every=False) == ["0.1.7.post3", "0.1.9", "0.1.11"]
    with pytest.raises(UsageError, match=r"toolchain install 0\.1\.8`"):
        range_of("0.1.8", "0.1.9", every=False)


def test_what_cannot_be_a_range(installed: set[str]) -> None:
    with pytest.raises(UsageError, match=r"--from 0\.1\.9 is newer than --to 0\.1\.8"):
        range_of("0.1.9", "0.1.8")
    installed -= {"0.1.8", "0.1.9"}
    with pytest.raises(UsageError, match=r"run `tlcheck toolchain install 0\.1\.8 0\.1\.9 --with own`"):
        range_of("0.1.7", "0.1.15", ["own"])


def result(release: str, *verdicts: str, position: int = 0) -> Result:
    return make_result(*verdicts, run=replace(make_run(release), position=(position,)))


def test_every_state_and_each_transition() -> None:
    found = [
        result("1", "proved", "refuted"),
        result("2", "proved", "proved"),
        result("3", "refuted", "undecided"),
        failed(run=make_run("4")),
        result("6", "undecided", "proved"),
        result("7"),
    ]
    (row,) = rows(found[::-1], list("1234567"))
    assert [point.state for point in row.points] == ["wrong", "right", "wrong", "fails", "absent", "undecided", "right"]
    assert [before.at + after.at for before, after in row.transitions] == ["12", "23", "34", "45", "56", "67"]
    assert [atomic.verdict for atomic in row.points[0].wrong] == ["refuted"]


def test_what_is_right_is_said_to_agree_unless_it_is_proved() -> None:
    """Of releases that have right what others have wrong; without a wrong one all claims count."""

    def of_two(release: str, verdict: str, other: str) -> Result:
        return replace(result(release), claims=(make_atomic(verdict), make_atomic(other, "C")))

    found = [of_two("1", "refuted", "proved"), of_two("2", "proved", "agreed"), of_two("3", "agreed", "proved")]
    found.append(result("4"))
    (row,) = rows(found, list("1234"))
    assert [point.word for point in row.points] == ["wrong", "right", "agreed", "agreed"]
    (row,) = rows(found[1:3], list("23"))
    assert [point.word for point in row.points] == ["agreed", "agreed"]
    (row,) = rows([result("5", "proved", "proved")], ["5"])
    assert [point.word for point in row.points] == ["right"]
    assert {point.state for point in row.points} == {"right"}


def test_a_file_that_one_release_cannot_import_fails_for_all_its_cases() -> None:
    broken = Result(replace(make_run("2"), name="", target=""), failure=Failure("exception", "import", "no T.foo"))
    other = replace(make_run("1"), name="other", position=(1,))
    first, second = rows([result("1", "proved"), make_result("proved", run=other), broken], ["1", "2"])
    assert (first.case, second.case) == ("k.py::case", "k.py::other")
    assert [[point.state for point in row.points] for row in (first, second)] == [["right", "fails"]] * 2
    (nothing,) = rows([broken], ["2"])
    assert (nothing.case, nothing.points[0].state) == ("k.py", "fails")


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch, installed: set[str], tmp_path: Path) -> Mapping[str, StandInWorker]:
    """Wrong in 0.1.7 and again in 0.1.8; 0.1.7.post3 does not lower it."""
    files = {"k.py": (declared("a", ("sm_90",)),)}
    made = {
        release: StandInWorker(release, files) for release in ("0.1.7", *(f"0.1.7.post{n}" for n in (1, 2, 3)), "0.1.8")
    }
    for release in ("0.1.7", "0.1.8"):
        made[release].snapshots = {"a": WRONG}
    made["0.1.7.post3"].failures = {"a": Failure("exception", "lower", "no such tile")}

    put_in_place(monkeypatch, made)
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(RIGHT, "saved.json")
    Path("k.py").touch()
    return made


@pytest.mark.slow
@pytest.mark.usefixtures("workers")
def test_the_row_in_words_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bisect", "k.py::a", "--from", "0.1.7", "--to", "0.1.8"]
    assert main(command) == 1
    out = capsys.readouterr().out.splitlines()
    assert out == [
        "k.py::a sm_90",
        "  0.1.7        wrong      B: TLA001 lanes-not-contiguous after tl.LowerTileOp",
        "  0.1.7.post1  right",
        "  0.1.7.post2  right",
        "  0.1.7.post3  fails      lower: no such tile",
        "  0.1.8        wrong      B: TLA001 lanes-not-contiguous after tl.LowerTileOp",
        "  wrong in 0.1.7, right in 0.1.7.post1",
        "  right in 0.1.7.post2, fails in 0.1.7.post3",
        "  fails in 0.1.7.post3, wrong in 0.1.8",
        "by which pass: tlcheck bisect k.py::a --arch sm_90 --passes --toolchain 0.1.8",
    ]
    assert main([*command, "--format", "json", "-o", "out.json"]) == 1
    (row,) = published(Path("out.json").read_text(), "bisect")["rows"]
    assert [point["state"] for point in row["points"]] == ["wrong", "right", "right", "fails", "wrong"]
    assert row["points"][0]["findings"][0]["pass"] == "tl.LowerTileOp"
    assert row["transitions"][0] == {"before": "0.1.7", "after": "0.1.7.post1", "from": "wrong", "to": "right"}


@pytest.mark.slow
def test_workers_do_not_all_live_at_once(workers: Mapping[str, StandInWorker], monkeypatch: pytest.MonkeyPatch) -> None:
    alive, most = set[StandInWorker](), 0
    for worker in workers.values():

        def start(worker: StandInWorker = worker) -> None:
            nonlocal most
            StandInWorker.start(worker)
            alive.add(worker)
            most = max(most, len(alive))

        def close(worker: StandInWorker = worker) -> None:
            StandInWorker.close(worker)
            alive.remove(worker)

        monkeypatch.setattr(worker, "start", start)
        monkeypatch.setattr(worker, "close", close)
    main(["bisect", "k.py::a", "--from", "0.1.7", "--to", "0.1.8", "--jobs", "2"])
    assert (most, len(alive)) == (2, 0)


@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["k.py", "--toolchain", "0.1.8"], "--toolchain goes with --passes"),
        (["k.py", "--passes", "--from", "0.1.7"], "or at two: then give both --from and --to"),
        (["k.py", "--from", "0.1.7", "--to", "0.1.8", "--toolchain", "0.1.8"], "--toolchain goes with --passes"),
        (["k.py@0.1.7", "--from", "0.1.7", "--to", "0.1.8"], "without a toolchain"),
        (["saved.json", "--from", "0.1.7", "--to", "0.1.8"], "bisecting needs FILE"),
        (["k.py::a", "--passes", "--toolchain", "0.1.7"], "no pass tl.LowerTileOp"),
    ],
)
def test_nonsense_is_refused(argv: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", *argv]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("workers")
def test_a_kernel_that_is_not_lowered_has_no_passes_to_look_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", "k.py::a", "--passes", "--toolchain", "0.1.7.post3"]) == 3
    assert "k.py::a sm_90, tilelang 0.1.7.post3: fails  lower: no such tile" in capsys.readouterr().out


@pytest.mark.parametrize(("states", "silent"), [(["undecided", "absent"], True), (["undecided", "right"], False)])
def test_a_bisection_that_decides_nothing_is_silent(states: list[str], silent: bool) -> None:
    row = BisectRow("k.py::a", "sm_90", tuple(Point(f"0.1.{n}", state) for n, state in enumerate(states)))
    assert Bisected(rows=(row,)).is_silent == silent
