"""The page of costs in a real browser: bars beside the source, and a line opens its accesses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import make_run
from tests.cpu.cost.kernels import cost, line_of
from tests.cpu.page.conftest import Opened
from tlcheck.gate.compiled_cost import Costed
from tlcheck.page.cost_page import cost_page

pytestmark = pytest.mark.xdist_group("browser")  # one of them
SOURCE = Path(__file__).parents[2] / "fixtures" / "cost.py"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = replace(make_run("0.1.15"), name="product_linear", target="sm_80", file="cost.py")
    path = tmp_path_factory.mktemp("cost") / "cost.html"
    found = [Costed(run, "random", cost("product_linear"))]
    path.write_text(cost_page(found, {"cost.py": SOURCE.read_text().splitlines()}))
    return path


def test_each_line_has_its_bar(browser: Opened, file: Path) -> None:
    browser.open(file)
    assert "1 kernel, 1 with something to gain" in browser.text("#verdict")
    assert browser.texts("#main thead th") == ["line", "", "share", "source", "limit"]
    line = line_of("T.gemm(a, b, c)")
    (text,) = browser.texts("#main tr.limited")
    assert text.startswith(str(line))
    assert text.endswith("bank conflicts")
    value = float(browser.js("return document.querySelector('tr.limited meter').value"))
    shares = [site.share for site in cost("product_linear").sites if site.line == line]
    assert value == pytest.approx(sum(shares), abs=1e-3)


def test_a_line_opens_its_accesses(browser: Opened, file: Path) -> None:
    browser.open(file)
    browser.click("tr.limited button")
    assert "32 wavefronts (ideal: 4)" in browser.text("#sheet")
    assert "annotate a swizzled layout" in browser.text("#sheet .advice")
