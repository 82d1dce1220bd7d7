"""Headers of a toolchain that is named by its path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tlcheck.probes import unknown
from tlcheck.probes.unknown import measure_unknown
from tlcheck.toolchain.identity import Probe
from tlcheck.toolchain.resolve import Toolchain


def test_an_environment_without_tilelang_has_no_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unknown, "nvcc", lambda: Path("nvcc"))
    monkeypatch.setattr(unknown, "probe", lambda toolchain: Probe("3.11", (), {}))
    measure_unknown(Toolchain("current", "interpreter", Path(sys.executable)), ["sm_80"])
