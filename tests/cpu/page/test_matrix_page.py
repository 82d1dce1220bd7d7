"""The page of a matrix in a real browser: sorted, searched, and a cell opens what was found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import failed, make_result, make_run
from tests.cpu.page.conftest import Opened
from tlcheck.matrix.cell import cells_of
from tlcheck.matrix.table import Column, Matrix, rows_of
from tlcheck.page.matrix_page import matrix_page
from tlcheck.verdicts.results import Result

pytestmark = pytest.mark.xdist_group("browser")  # one of them
ESCAPE = "\ue00c"
HOSTILE = "<img src=x onerror=window.ran=1>"
KERNELS = "tbody th"


def result(release: str, name: str, place: int, *verdicts: str) -> Result:
    return make_result(*verdicts, run=replace(make_run(release), name=name, position=(0, place)))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = [
        result("0.1.7", "right", 0, "proved"),
        result("0.1.8", "right", 0, "agreed"),
        result("0.1.7", "mended", 1, "refuted"),
        result("0.1.8", "mended", 1, "proved"),
        failed(message=HOSTILE, run=replace(make_run("0.1.7"), name="open", position=(0, 2))),
        result("0.1.8", "open", 2, "undecided"),
    ]
    columns = tuple(Column(name, name, {}) for name in ("0.1.7", "0.1.8"))
    path = tmp_path_factory.mktemp("matrix") / "matrix.html"
    path.write_text(matrix_page(Matrix({}, columns, rows_of(cells_of(results, []), ("0.1.7", "0.1.8")))))
    return path


def test_it_is_sorted_by_what_is_worst_with_a_toolchain(browser: Opened, file: Path) -> None:
    browser.open(file)
    assert [text.split()[0] for text in browser.texts(KERNELS)] == ["k.py::right", "k.py::mended", "k.py::open"]
    assert browser.text("tbody tr:nth-child(2) th").endswith("wrong from 0.1.7 on, right again in 0.1.8")
    browser.click("#sort0")
    assert [text.split()[0] for text in browser.texts(KERNELS)] == ["k.py::mended", "k.py::open", "k.py::right"]
    browser.click("#sort0")
    assert [text.split()[0] for text in browser.texts(KERNELS)] == ["k.py::right", "k.py::open", "k.py::mended"]
    assert browser.complaints() == []


def test_a_search_finds_kernels_and_findings(browser: Opened, file: Path) -> None:
    browser.open(file)
    browser.keys("/", "tla001")
    browser.until(lambda: browser.texts(KERNELS) and len(browser.texts(KERNELS)) == 1)
    assert browser.text(KERNELS).startswith("k.py::mended")
    assert browser.text("#shown") == "1 of 3 kernels"


def test_a_cell_opens_what_was_found_and_runs_nothing_of_it(browser: Opened, file: Path) -> None:
    browser.open(file)
    browser.click("tbody tr:nth-child(2) td:nth-child(2) button")
    assert "wrong: 1 refuted" in browser.text("#sheet")
    assert "TLA001 at B" in browser.text("#sheet")
    browser.keys(ESCAPE)
    browser.until(lambda: not browser.js("return document.getElementById('sheet').open"))
    browser.click("tbody tr:nth-child(3) td:nth-child(2) button")
    assert HOSTILE in browser.text("#sheet")
    assert browser.js("return window.ran") is None
    assert browser.complaints() == []
