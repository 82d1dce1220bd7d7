"""The page of `check`: claims at a glance, the first wrong checkpoint, and lines that lead to each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import WRONG, make_finding, saved_result
from tests.cpu.page.conftest import Opened
from tests.fixtures.index import FOLDER
from tlcheck import __version__
from tlcheck.execute.request import Request
from tlcheck.lower.runs import of_saved
from tlcheck.page.check_page import entry_of, page_of
from tlcheck.page.gallery import accessed, gallery
from tlcheck.page.html import render
from tlcheck.page.picture import Picture
from tlcheck.page.shown import BAD, GOOD, QUIET, WARN, Entry, Spot, Tag, by_severity
from tlcheck.page.tags import pass_tags
from tlcheck.snapshot import text
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.judging import verdicts_of
from tlcheck.verdicts.results import Result, read_snapshot, result_of
from tlcheck.witness import Accesses, Act

pytestmark = pytest.mark.xdist_group("browser")  # one of them
STAGES = ["source", "intent", "tile-ops", "lower-tile-op", "device-tir"]


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return read_snapshot(WRONG)


@pytest.fixture(scope="module")
def result(snapshot: Snapshot) -> Result:
    return saved_result(WRONG, snapshot, 0)


def test_claims_stand_by_kind_with_the_worst_first(result: Result, snapshot: Snapshot) -> None:
    (wrong,) = (claim for claim in result.claims if claim.finding is not None)
    right = replace(wrong, finding=None, verdict="agreed", kind="order", buffer="x")
    explained = replace(right, verdict="undecided", buffer="y", reason="why")
    both = replace(result, claims=(right, replace(wrong, also=(explained,))))
    assert entry_of(both, snapshot).claims == {
        "order": [Tag("y: undecided", WARN), Tag("x: agreed", GOOD)],
        "atomic": [Tag("B: refuted", BAD)],
    }


def test_the_first_wrong_checkpoint_is_named_and_no_other_is_called_right_that_was_not_looked_at(
    result: Result,
) -> None:
    claim = next(claim for claim in result.claims if claim.finding is not None)
    found = replace(make_finding(), checkpoint="lower-tile-op", skipped=("tile-ops (sync_grid)",))
    wrong = replace(result, claims=(replace(claim, finding=found),))
    assert pass_tags(wrong, STAGES) == [
        Tag("source", QUIET),
        Tag("intent: right", GOOD),
        Tag("tile-ops: not executed", WARN),
        Tag("lower-tile-op: the first wrong one, after tl.LowerTileOp", BAD),
        Tag("device-tir: wrong", BAD),
    ]
    race = replace(claim, kind="order", finding=replace(found, checkpoint="device-tir"))
    assert pass_tags(replace(result, claims=(race,)), STAGES) == []


def tir_line(snapshot: Snapshot, spot: Spot) -> str:
    return text.render(snapshot.checkpoints[spot.view]).lines[spot.line - 1]


def test_lines_are_counted_as_in_the_text_without_layouts(result: Result, snapshot: Snapshot) -> None:
    entry = entry_of(result, snapshot)
    (remark,) = (remark for remark in entry.remarks if remark.tone == BAD)
    (spot,) = (spot for spot in remark.spots if spot.view in snapshot.checkpoints)
    marked = next(line for line in remark.code if line.startswith(">"))
    assert marked.endswith(tir_line(snapshot, spot))
    assert marked.split()[1] == str(spot.line)
    assert any(line.startswith("help: ") and "`tlcheck explain TLA001`" in line for line in remark.lines)


def test_an_element_that_nothing_orders_is_drawn(result: Result, snapshot: Snapshot) -> None:
    drawn = gallery(snapshot).picture("B")
    assert isinstance(drawn, Picture)
    row, column = 3, 5
    place = tuple(int(index[row, column]) for index in drawn.window.indices)
    for index in (place, (int(drawn.values[row, column]),)):  # as written, and as passes make it: an offset
        race = Accesses(index, Act("write", (0,), 1), Act("read", (0,), 2))
        (mark,) = accessed(drawn, race).marks
        assert (mark.row, mark.column, mark.kind) == (row, column, "written")
    claim = next(claim for claim in result.claims if claim.buffer == "B")
    refuted = replace(claim, finding=replace(make_finding("TLR001"), witness=race))
    marked = gallery(snapshot, (refuted,)).picture("B")
    assert isinstance(marked, Picture)
    assert "nothing orders the write of block (0), thread 1" in marked.notes[-1]


def test_the_worst_files_and_cases_come_first() -> None:
    listed = [("a", "one", GOOD), ("b", "two", GOOD), ("b", "three", BAD), ("c", "four", WARN), ("b", "five", WARN)]
    entries = [Entry(file, name, "sm_90", [Tag("word", tone)]) for file, name, tone in listed]
    assert [entry.name for entry in by_severity(entries)] == ["three", "five", "two", "four", "one"]


def test_lines_lead_to_each_other(browser: Opened, result: Result, snapshot: Snapshot, tmp_path: Path) -> None:
    """From the finding to the TIR, from there to the user's file, and back."""
    source = tmp_path / "kernels.py"
    source.write_text("import tilelang\n\nhere = 1\n")
    entry = entry_of(result, snapshot)
    (remark,) = (remark for remark in entry.remarks if remark.tone == BAD)
    spots = [spot for spot in remark.spots if spot.view in snapshot.checkpoints]
    line = Spot(str(source), 3)
    claims = [
        replace(
            c,
            source=replace(c.source, file=line.view, line=line.line),
            finding=replace(c.finding, origin=None),  # which has a line of its own
        )
        if c.finding
        else c
        for c in result.claims
    ]
    entry = entry_of(replace(result, claims=tuple(claims)), snapshot)
    file = tmp_path / "check.html"
    file.write_text(render(page_of([result], [entry], [], 1)))
    browser.open(file)
    browser.keys("\ue00c")  # Escape: from the only case to the overview
    assert browser.text(".made").startswith(f"tlcheck {__version__}, tilelang 0.1.7")
    browser.click("#cases a")
    assert browser.texts(".claims td .tag") == ["B: refuted"]
    browser.click(".remark .spot")
    assert browser.text("[role=tab][aria-selected=true]") == spots[0].view
    assert browser.text(".row.at .number") == str(spots[0].line)
    assert browser.text(".row.at code").strip() == tir_line(snapshot, spots[0]).strip()
    browser.click(".row.at .spoken .spot")
    assert browser.text("[role=tab][aria-selected=true]") == line.view
    assert browser.text(".row.at code") == "here = 1"
    browser.click(".row.at .spoken .spot")
    assert browser.text(".row.at .number") == str(spots[0].line)
    browser.js(
        "[...document.querySelectorAll('.passes button')].find((b) => b.textContent === 'device-tir: wrong').click()"
    )
    assert browser.text("[role=tab][aria-selected=true]") == "device-tir"
    assert browser.complaints() == []


@pytest.mark.slow
def test_it_opens_where_the_finding_is_with_the_kernels_file_beside_it(browser: Opened, tmp_path: Path) -> None:
    file = FOLDER / "wrong" / "wait-0.1.9.snapshot.json"
    found = read_snapshot(file)
    result = result_of(of_saved(file, found).run, verdicts_of(found, Request()))
    page = tmp_path / "check.html"
    page.write_text(render(page_of([result], [entry_of(result, found)], [], 1)), encoding="utf-8")
    browser.open(page, width=1500)
    browser.until(lambda: browser.texts(".beside .pane"))  # the only case is open
    assert browser.text("[role=tab][aria-selected=true]") == "device-tir"
    assert browser.js("return [...document.querySelectorAll('.beside .pane')].map((pane) => pane.dataset.view)") == [
        "device-tir",
        found.file,
    ]
    named = "return [...document.querySelectorAll('.pane .row.risky')].map((row) => row.dataset.line)"
    assert browser.js(named) == ["42", "72", "42"]
    browser.click(".pane:last-child .spoken .spot")  # leads to the line of TIR, which stands beside it
    assert browser.js("return document.querySelector('.pane:first-child .row.at').dataset.line") in ("42", "72")
    assert browser.js("return document.documentElement.scrollWidth <= innerWidth")
    browser.keys("\ue00c")  # Escape
    browser.until(lambda: browser.text("main h2") == "What was found")
    browser.open(page, width=500, height=1000)
    browser.keys("\ue00c")  # Escape
    browser.until(lambda: browser.text("main h2") == "What was found")
    assert browser.js("return document.querySelector('main h2').getBoundingClientRect().top") < 150
    assert browser.complaints() == []
