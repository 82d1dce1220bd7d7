"""A library may ask Triton for the device when it is imported: no case of it could be made again otherwise."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tlcheck.worker import triton_driver


@pytest.mark.parametrize(("rocm", "answer"), [("", ("cuda", 90, 32)), ("gfx942", ("hip", "gfx942", 32))])
def test_triton_reports_the_device_that_torch_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rocm: str, answer: tuple[object, ...]
) -> None:
    driver = "class _Config:\n    def set_active(self, found): self.active = found\ndriver = _Config()\n"
    compiler = "def GPUTarget(*of): return of\n"
    for folder, name, text in (("runtime", "driver", driver), ("backends", "compiler", compiler)):
        place = tmp_path / "triton" / folder
        place.mkdir(parents=True)
        (place / f"{name}.py").write_text(text)
    properties = SimpleNamespace(gcnArchName=rocm, major=9, minor=0, warp_size=32)
    torch = SimpleNamespace(cuda=SimpleNamespace(get_device_properties=lambda number: properties))
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    triton_driver.pretend()
    try:
        found = importlib.import_module("triton.runtime.driver").driver.active
        assert found.get_current_target() == answer
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
            del sys.modules[name]
