"""An install says what it does while pip works."""

from __future__ import annotations

import re
import time

import pytest

from tlcheck.toolchain import install_progress


def test_a_log_shows_that_a_step_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(install_progress, "PAUSE", 0.05)
    said, end = "", time.monotonic() + 60
    with install_progress.progress("0.1.9") as reporter:
        reporter.step("install tilelang==0.1.9")
        reporter.detail("Downloading tilelang-0.1.9.whl (120 MB)")
        while said.count("\n") < 2 and time.monotonic() < end:
            said += capsys.readouterr().err
    assert re.fullmatch(
        r"0\.1\.9: install tilelang==0\.1\.9\n(0\.1\.9: \d+ s: Downloading tilelang-0\.1\.9\.whl \(120 MB\)\n)+", said
    )
    capsys.readouterr()
    time.sleep(0.1)
    assert capsys.readouterr().err == ""
