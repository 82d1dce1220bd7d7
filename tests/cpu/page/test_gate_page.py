"""The gate's page: both toolchains side by side. `tlcheck gate` runs with workers that lower nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import RIGHT, WRONG, StandInWorker, declared, put_in_place
from tests.cpu.gate.comparing import compared, failing, saved
from tests.cpu.page.conftest import Opened
from tests.cpu.page.pages import unpacked
from tlcheck.cli.main import main
from tlcheck.gate.gate import Gate
from tlcheck.gate.outcome import LoweredPair
from tlcheck.page.gallery import gallery
from tlcheck.page.gate_page import gate_page, shows_the_same
from tlcheck.page.picture import Picture, picture
from tlcheck.page.shown import Page
from tlcheck.targets.nvidia import WARP
from tlcheck.verdicts.results import read_snapshot


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path) -> Path:
    """One case becomes wrong, the other one stays."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "k.py").write_text("from tlcheck.case import Case\n")
    files = {"k.py": (declared("a", ("sm_90",)), declared("b", ("sm_90",)))}
    workers = {
        "0.1.15": StandInWorker("0.1.15", files, snapshots={"a": RIGHT, "b": RIGHT}),
        "0.1.7": StandInWorker("0.1.7", files, snapshots={"a": WRONG, "b": RIGHT}),
    }

    put_in_place(monkeypatch, workers)
    argv = ["gate", "--from", "0.1.15", "--to", "0.1.7", "kernels", "--format", "html", "-o", "gate.html"]
    assert main(argv) == 1
    return tmp_path / "gate.html"


def page_of(*comparisons: LoweredPair) -> Page:
    versions = ({"tilelang": "0.1.7"}, {"tilelang": "0.1.15"})
    return gate_page(Gate("0.1.7", "0.1.15", versions, comparisons, ("wrong",)))


def test_both_sides_are_shown_from_one_run(report: Path) -> None:
    data = unpacked(report.read_text())
    wrong, right = data["entries"]
    assert data["verdict"].startswith("FAIL: tilelang 0.1.15 -> 0.1.7")
    assert [wrong["tags"][0], right["tags"][0]] == [["wrong", "bad"], ["same", "good"]]
    names = [view["name"] for view in wrong["views"]]
    assert names == [
        "source",
        "intent",
        "tile-ops",
        "lower-tile-op",
        "type-cast",
        "vectorize-loop",
        "device-tir",
        "cuda",
    ]
    differ = {view["name"] for view in wrong["views"] if "rows" in data["views"][view["text"]]}
    assert {"lower-tile-op", "cuda"} <= differ
    assert all("lines" in data["views"][view["text"]] for view in right["views"])


def test_pictures_of_both_are_shown_where_they_differ(report: Path) -> None:
    data = unpacked(report.read_text())
    wrong, right = data["entries"]
    pairs = {plate["buffer"]: plate for plate in wrong["plates"]}
    before, after = (data["pictures"][pairs["B"][side]] for side in ("before", "picture"))
    assert (before["marks"], [mark[2] for mark in after["marks"]].count("written")) == ([], 1)
    assert all("before" not in plate for plate in right["plates"])


def test_equal_differences_are_one_cluster_with_its_cases(report: Path) -> None:
    data = unpacked(report.read_text())
    cluster = data["clusters"][0]
    assert cluster["tag"] == ["wrong", "bad"]
    assert [data["entries"][n]["name"] for n in cluster["members"]] == ["a"]


def test_threads_that_only_begin_elsewhere_are_no_other_picture() -> None:
    layout = gallery(read_snapshot(RIGHT)).layouts["c"]
    one, later = (picture("c", replace(layout, thread_start=start), None, WARP) for start in (0, 128))
    other = picture("c", replace(layout, index=layout.index[::-1], thread=layout.index[0]), None, WARP)
    assert isinstance(one, Picture)
    assert isinstance(later, Picture)
    assert isinstance(other, Picture)
    assert (later.values == one.values + 128).all()
    assert shows_the_same(one, later)
    assert not shows_the_same(one, other)


def test_a_case_that_fails_has_its_error_and_a_new_one_its_text() -> None:
    side = saved("cast_bf16", "0.1.15")
    page = page_of(compared(side, failing("boom", release="0.1.15")), compared(None, side, name="new"))
    broken, new = page.entries
    assert [tag.word for tag in broken.tags] == ["broken"]
    assert any("boom" in remark.title for remark in broken.remarks)
    assert any("declared only now" in word for word in new.words)


def test_the_page_of_the_gate_is_read_in_a_browser(browser: Opened, report: Path) -> None:
    browser.open(report)
    assert browser.text("#verdict").startswith("FAIL")
    browser.keys("j")
    browser.until(lambda: browser.texts(".row.changed, .row.added, .row.removed"))
    assert browser.text(".legend") == "0.1.15 (before) | 0.1.7 (after)"
    browser.keys("l")
    browser.until(lambda: browser.texts(".plate.pair .caption")[:2] == ["0.1.15 (before)", "0.1.7 (after)"])
    assert browser.complaints() == []


def test_what_was_not_checked_is_not_green_and_a_change_says_what_the_claims_say() -> None:
    right, other = saved("annotated_gemm", "0.1.11"), saved("annotated_gemm", "0.1.8")
    incomplete = page_of(compared(failing("boom"), failing("boom")))
    assert (incomplete.verdict.partition(":")[0], incomplete.tone) == ("INCOMPLETE", "warn")
    assert page_of(compared(right, right)).tone == "good"
    (entry,) = page_of(compared(other, right)).entries
    changed = [words for words in entry.words if words.startswith(("changed: ", "slower-risk: "))]
    assert changed
    assert all(words.endswith("; additions still proved") for words in changed), changed
