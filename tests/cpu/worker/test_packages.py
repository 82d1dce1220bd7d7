"""The places of modules that a user's file imports."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from tlcheck.worker import packages


@pytest.mark.parametrize("detour", ["{0}/cases/..", "..", "../cases/../"])
def test_modules_are_named_without_the_detour_by_which_a_case_file_finds_them(
    detour: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "straight_kernels").mkdir()
    (tmp_path / "straight_kernels" / "__init__.py").touch()
    (tmp_path / "straight_kernels" / "gemm.py").touch()
    monkeypatch.chdir(tmp_path / "cases")
    monkeypatch.setattr(sys, "path_hooks", list(sys.path_hooks))
    monkeypatch.setattr(sys, "path", [detour.format(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    packages.import_straight()
    packages.import_straight()
    assert sys.path_hooks.count(packages._straight) == 1
    try:
        module = importlib.import_module("straight_kernels.gemm")
    finally:
        for name in ("straight_kernels", "straight_kernels.gemm"):
            sys.modules.pop(name, None)
    assert module.__file__ == str(tmp_path / "straight_kernels" / "gemm.py")


def test_other_folders_are_left_to_others(tmp_path: Path) -> None:
    for folder in (str(tmp_path), "", "lib"):
        with pytest.raises(ImportError):
            packages._straight(folder)
