"""`capture` says what it writes of each kernel."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tlcheck.lower.captured import write
from tlcheck.lower.runs import CapturedOrigin, Lowered, Run
from tlcheck.toolchain.releases import PINNED


@pytest.mark.parametrize(
    ("is_captured", "said"),
    [(False, "needs no case: gemm.py::gemm builds it"), (True, "no case can build it: its builder")],
)
def test_it_says_why_a_kernel_has_no_case(is_captured: bool, said: str, tmp_path: Path) -> None:
    lowered = Lowered(
        Run("gemm.py", "gemm", "sm_90", PINNED, {}, is_captured=is_captured), tmp_path / "kernel.snapshot.json"
    )
    ((_, words),) = write([lowered], tmp_path, force=False, snapshots=False)
    assert words.startswith(said)
    assert not list(tmp_path.iterdir())


def test_a_case_file_imports_modules_that_functions_of_their_packages_hide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each package exports a function of the module's name, and the script has that name too."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    for package in ("hiding", "other"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "hidden.py").write_text(f"def hidden(n): pass\ndef {package}_kernel(n): pass\n")
        (tmp_path / package / "__init__.py").write_text(f"from {package}.hidden import hidden\n")
    (tmp_path / "hidden.py").write_text("def own_kernel(n): pass\n")
    snapshot = tmp_path / "kernel.snapshot.json"
    found = [
        Lowered(
            Run("hidden.py", function, "sm_90", PINNED, {}, position=(place,), is_captured=True),
            snapshot,
            origin=CapturedOrigin(module, function, {"n": "1"}),
        )
        for place, (module, function) in enumerate(
            [("hiding.hidden", "hiding_kernel"), ("other.hidden", "other_kernel"), ("", "own_kernel")]
        )
    ]
    write(found, tmp_path / "cases", force=False, snapshots=False, pythonpath=[str(tmp_path)])
    values = runpy.run_path(str(tmp_path / "cases" / "hidden_cases.py"))
    for function in ("hiding_kernel", "other_kernel", "own_kernel"):
        assert values[f"{function}_case"].kernel.__name__ == function
