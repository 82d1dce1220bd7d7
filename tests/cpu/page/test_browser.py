"""The page in a real browser: it loads, is read with the keyboard alone, and nothing in a kernel is ever run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import judge_here
from tests.cpu.page.conftest import Opened
from tests.cpu.page.pages import approved, era, large, recorded, upgraded
from tlcheck.page.golden_page import GoldenPage
from tlcheck.page.html import render
from tlcheck.page.shown import Page
from tlcheck.snapshot import codec

ESCAPE, LEFT, RIGHT, DOWN, ENTER, TAB = "\ue00c", "\ue012", "\ue014", "\ue015", "\ue007", "\ue004"
pytestmark = pytest.mark.xdist_group("browser")  # one of them

LISTED = "#cases a .name"
RED = [255, 90, 95]
HOSTILE = "<img src=x onerror=window.ran=1>"


@pytest.fixture(scope="module")
def page() -> Page:
    return upgraded()


@pytest.fixture(scope="module")
def file(page: Page, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(page), encoding="utf-8")
    return path


def goto(browser: Opened, case: str) -> None:
    """As a click in the list does."""
    browser.js(
        "[...document.querySelectorAll('#cases a')].find((a) => a.querySelector('.name').textContent === arguments[0])"
        ".click()",
        case,
    )
    browser.until(lambda: browser.text("main h2").startswith(case))


def test_it_loads_alone_and_lists_every_case(browser: Opened, file: Path, page: Page) -> None:
    browser.open(file)
    assert browser.texts(LISTED) == [entry.name for entry in page.entries]
    assert browser.text("#verdict") == page.verdict
    assert browser.js("return performance.getEntriesByType('resource').length") == 0
    assert len(browser.texts(".cluster")) == len(page.clusters) > 0
    assert browser.complaints() == []


def test_a_case_has_its_words_its_finding_and_both_texts(browser: Opened, file: Path, page: Page) -> None:
    browser.open(file)
    entry = next(entry for entry in page.entries if entry.name == "annotated_gemm")
    goto(browser, "annotated_gemm")
    assert browser.texts(".differences li")[: len(entry.words)] == list(entry.words)[:12]
    assert any("TLA001" in text for text in browser.texts("details.tone-bad summary"))
    labels = browser.texts("details.tone-bad p b")
    assert [word for word in ("kernel:", "blame:", "help:", "witness:", "found") if word not in labels] == []
    assert browser.text("[role=tab][aria-selected=true]").startswith("lower-tile-op")
    diff = next(view.diff for view in entry.views if view.diff is not None)
    changed = next(row for row in diff.rows if row.kind == "changed")
    assert changed.left is not None
    assert changed.right is not None
    assert changed.left.text in browser.texts(".row.changed .left code")
    assert changed.right.text in browser.texts(".row.changed .right code")
    (start, end), *_ = changed.spans()[1]
    assert any(text in changed.right.text[start:end] for text in browser.texts(".row.changed .right mark"))
    assert browser.complaints() == []


def test_equal_lines_are_folded_and_open(browser: Opened, file: Path, page: Page) -> None:
    browser.open(file)
    goto(browser, "annotated_gemm")
    entry = next(entry for entry in page.entries if entry.name == "annotated_gemm")
    diff = next(view.diff for view in entry.views if view.diff is not None)
    assert len(browser.texts(".row")) < len(diff.rows)
    browser.keys("a")
    browser.until(lambda: len(browser.texts(".row")) == len(diff.rows))


def test_filters_and_search(browser: Opened, file: Path, page: Page) -> None:
    browser.open(file)
    browser.js(
        "[...document.querySelectorAll('#filters button')].find((b) => b.textContent.includes('refuted')).click()"
    )
    refuted = [e.name for e in page.entries if any(tag.word == "refuted" for tag in e.tags)]
    assert browser.texts(LISTED) == refuted != []
    browser.click("#filters button[aria-pressed=true]")
    browser.keys("/", "loop_pip")
    browser.until(lambda: browser.texts(LISTED) == ["loop_pipelined"])
    browser.keys(*["\ue003"] * 8, "AtomicAddx2")
    having = [e.name for e in page.entries if any("AtomicAddx2" in line for v in e.views for line in v.lines)]
    assert having
    browser.until(lambda: set(having) <= set(browser.texts(LISTED)))
    assert set(browser.texts(LISTED)) != {e.name for e in page.entries}
    browser.keys("nowhere")
    browser.until(lambda: browser.texts(LISTED) == [])
    assert browser.complaints() == []


def test_everything_can_be_reached_by_keys(browser: Opened, file: Path, page: Page) -> None:
    browser.open(file)
    names = [entry.name for entry in page.entries]
    for name in (*names[:3], names[2]):
        browser.keys("j")
        browser.until(lambda name=name: browser.text("main h2").startswith(name))  # type: ignore[misc]
        if name == names[2]:
            browser.keys("k")
            browser.until(lambda: browser.text("main h2").startswith(names[1]))
    browser.keys("1")
    browser.until(lambda: browser.text("[role=tab][aria-selected=true]") == "source")
    browser.js("document.querySelector('[role=tab][aria-selected=true]').focus()")
    browser.keys(RIGHT)
    browser.until(lambda: browser.text("[role=tab][aria-selected=true]") == "intent")
    browser.keys(LEFT, LEFT)
    browser.until(lambda: browser.text("[role=tab][aria-selected=true]") == "layouts")
    browser.keys(TAB, ENTER)
    browser.until(lambda: browser.js("return document.querySelector('dialog').open"))
    browser.keys(ESCAPE, ESCAPE)
    browser.until(lambda: not browser.js("return location.hash.length > 1"))
    browser.keys("?")
    browser.until(lambda: "next, previous case" in browser.text("dialog"))
    browser.keys(ESCAPE, "/")
    assert browser.js("return document.activeElement.id") == "search"
    assert browser.complaints() == []


def test_differences_are_walked_over(browser: Opened, file: Path) -> None:
    browser.open(file)
    goto(browser, "annotated_gemm")
    seen = []
    for key in ("n", "n", "p"):
        browser.keys(key)
        assert len(browser.texts(".row.at")) == 1
        seen.append(browser.text(".row.at"))
    assert seen[0] == seen[2] != seen[1]


def test_the_focus_stays_where_it_was(browser: Opened, file: Path) -> None:
    browser.open(file)
    goto(browser, "annotated_gemm")
    browser.js("document.querySelector('#all').focus()")
    rows = len(browser.texts(".row"))
    browser.keys(ENTER)
    browser.until(lambda: len(browser.texts(".row")) > rows)
    assert browser.js("return document.activeElement.id") == "all"
    browser.js("document.querySelector('#tab-0').focus()")
    browser.keys(ENTER)
    browser.until(lambda: browser.text("[role=tab][aria-selected=true]") == "source")
    assert browser.js("return document.activeElement.id") == "tab-0"


def test_two_snapshots_of_one_case_can_both_be_opened(browser: Opened, page: Page, tmp_path: Path) -> None:
    entry = page.entries[0]
    twice = replace(page, entries=[entry, replace(entry, words=["the other one"])], clusters=())
    file = tmp_path / "twice.html"
    file.write_text(render(twice), encoding="utf-8")
    browser.open(file)
    browser.keys("j", "j")
    browser.until(lambda: browser.texts(".differences li") == ["the other one"])


def test_no_key_is_lost_when_keys_come_faster_than_the_address_changes(browser: Opened, file: Path, page: Page) -> None:
    browser.open(file)
    browser.js(
        "for (let i = 0; i < arguments[0]; i++)"
        "  document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}))",
        len(page.entries),
    )
    last = page.entries[-1].name
    browser.until(lambda: browser.text("main h2").startswith(last))
    browser.js("history.back()")
    before = page.entries[-2].name
    browser.until(lambda: browser.text("main h2").startswith(before))


def test_the_wrong_lane_is_red_and_named(browser: Opened, file: Path, page: Page) -> None:
    browser.open(file)
    goto(browser, "annotated_gemm")
    browser.keys("l")
    browser.until(lambda: browser.texts("figure .map"))
    red = browser.js(
        "const c = document.querySelector('figure canvas');"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; let n = 0;"
        "for (let i = 0; i < d.length; i += 4)"
        "  if (d[i] === arguments[0][0] && d[i + 1] === arguments[0][1] && d[i + 2] === arguments[0][2]) n++;"
        "return n",
        RED,
    )
    assert red > 0
    plate = next(e for e in page.entries if e.name == "annotated_gemm").plates[0].picture
    assert plate is not None
    row, column = next((mark.row, mark.column) for mark in plate.marks if mark.kind == "written")
    browser.click(".thumbnail")
    browser.until(lambda: "belongs at offset" in browser.text(".readout"))
    assert browser.text(".readout").startswith(f"B[{row}, {column}]: offset {plate.values[row, column]} - block (")
    browser.keys(DOWN)
    browser.until(lambda: browser.text(".readout") == f"B[{row + 1}, {column}]: offset {plate.values[row + 1, column]}")
    assert browser.complaints() == []


def test_nothing_in_a_kernel_is_markup_or_runs(browser: Opened, tmp_path: Path) -> None:
    fields = json.loads(era("annotated_gemm", "0.1.7").read_text(encoding="utf-8"))
    fields["case"] = HOSTILE
    fields["file"] = "cases/\u202ek.py"
    fields["cuda"] = f"</script><script>window.ran=2</script>\n{HOSTILE}\n\u202eevil\n" + fields["cuda"]
    for node in fields["nodes"]:
        if node[0] == "var" and node[2] in ("A", "B"):
            node[2] = f"{HOSTILE}{node[2]}"
        elif node[0] == "buffer" and node[1] in ("A", "B"):
            node[1] = f"{HOSTILE}{node[1]}"
    hostile = tmp_path / "hostile.snapshot.json"
    hostile.write_text(codec.dumps(codec.loads(json.dumps(fields))), encoding="utf-8")
    made = GoldenPage(approved(era("cast_bf16", "0.1.14")), judge_here)
    made.add(recorded(hostile))
    made.add(recorded(era("cast_bf16", "0.1.15")))
    report = tmp_path / "report.html"
    report.write_text(render(made.page()), encoding="utf-8")
    assert HOSTILE not in report.read_text(encoding="utf-8")
    browser.open(report)
    goto(browser, HOSTILE)
    views = [text.removesuffix("differs") for text in browser.texts("[role=tab]")]
    for number, name in enumerate(views, 1):
        browser.keys(str(number))
        browser.until(lambda name=name: browser.text("[role=tab][aria-selected=true]").startswith(name))  # type: ignore[misc]
        assert HOSTILE in browser.text("#panel"), name
        assert "\u202e" not in browser.text("#panel")
    assert "cuda" in views
    assert "\u202e" not in browser.text("body") + browser.js("return document.title")
    assert browser.js("return [window.ran, document.querySelectorAll('img').length]") == [None, 0]
    assert browser.complaints() == []


def test_a_script_that_is_not_its_own_is_refused(browser: Opened, file: Path) -> None:
    browser.open(file)
    browser.js("const s = document.createElement('script'); s.textContent = 'window.ran = 3'; document.body.append(s)")
    assert browser.js("return window.ran") is None
    assert any("Content Security Policy" in text for text in browser.complaints())


def test_it_is_read_on_a_phone_and_in_the_dark(browser: Opened, file: Path) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    browser.open(file)
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        goto(browser, "annotated_gemm")
        for number in range(1, 9):
            browser.keys(str(number))
            width = browser.js("return document.documentElement.scrollWidth")
            assert width <= phone["width"], browser.text("[role=tab][aria-selected=true]")
        assert browser.js("return getComputedStyle(document.querySelector('nav')).display") == "none"
        browser.js("document.querySelector('.back').click()")
        browser.until(lambda: browser.js("return getComputedStyle(document.querySelector('nav')).display") != "none")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    paper = "return getComputedStyle(document.documentElement).backgroundColor"
    light = browser.js(paper)
    browser.keys("t")
    assert browser.js(paper) != light
    browser.keys("t")
    assert browser.js(paper) == light


def test_a_hundred_cases_open_at_once(browser: Opened, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "large.html"
    file.write_text(render(large(page, 120)), encoding="utf-8")
    assert file.stat().st_size < 10_000_000
    browser.open(file)
    assert browser.js("return document.querySelectorAll('*').length") < 120 * 10  # the list; no text before it is read
    assert len(browser.texts(LISTED)) == 120
    assert browser.complaints() == []
