"""A browser for the tests of pages: a real Chromium without a window, where there is one."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

_SECONDS = 60.0  # that anything may take on a busy machine


@dataclass
class Opened:
    """A page in the browser. Everything that is done to it is done with keys or clicks."""

    driver: WebDriver

    def open(self, file: Path, width: int = 1400, height: int = 900) -> float:
        """Returns the milliseconds until it was ready, as the browser counts them."""
        self.driver.set_window_size(width, height)
        self.driver.get("about:blank")
        self.driver.get(file.as_uri())
        self.until(lambda: self.js("return document.documentElement.dataset.ready"))
        return float(self.js("return document.documentElement.dataset.ready"))

    def js(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def keys(self, *keys: str) -> None:
        """Pressed where the focus is."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def click(self, selector: str) -> None:
        self.js("document.querySelector(arguments[0]).click()", selector)

    def text(self, selector: str) -> str:
        return str(self.js("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def texts(self, selector: str) -> list[str]:
        found: list[str] = self.js(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
        )
        return found

    def until(self, holds: Callable[[], object]) -> None:
        """Wait for it. The test fails where it does not come."""
        end = time.monotonic() + _SECONDS
        while not holds():
            assert time.monotonic() < end, f"never came; the page says {self.text('main')[:300]!r}"
            time.sleep(0.03)

    def complaints(self) -> list[str]:
        """Return what the console has of warnings and errors, refused requests and scripts among them."""
        log = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [entry["message"] for entry in log]


def _missing() -> str:
    """Return why there is no browser, in words; empty if there is one."""
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"pages are tested in a real browser, and there is no {program}: apt install chromium-driver"
    return ""


@pytest.fixture(scope="session")
def _driver() -> Iterator[WebDriver]:
    if reason := _missing():
        pytest.skip(reason)
    pytest.importorskip("selenium", reason="pip install selenium")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def browser(_driver: WebDriver) -> Opened:
    """The same browser for all tests, with an empty console."""
    opened = Opened(_driver)
    opened.complaints()
    return opened
