"""`--cluster` without what it needs. With it: tests/cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tlcheck.cli.main import main


@pytest.mark.slow
def test_nobody_else_imports_what_it_takes() -> None:
    saved = Path(__file__).parents[2] / "fixtures" / "era" / "annotated_gemm-0.1.15.snapshot.json"
    program = f"""
import sys
from tlcheck.cli.main import main
main(["check", {str(saved)!r}])
sys.exit(any(name.startswith(("tlcheck.cluster", "ray")) for name in sys.modules))
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


@pytest.mark.parametrize(
    "command", [["check"], ["matrix", "--toolchains", "pinned"], ["gate", "--from", "0.1.14", "--to", "0.1.15"]]
)
def test_without_ray_it_is_one_line(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    (tmp_path / "k.py").write_text("from tlcheck.case import Case\n")
    assert main([command[0], str(tmp_path / "k.py"), *command[1:], "--cluster", "auto"]) == 2
    assert capsys.readouterr().err == "tlcheck: error: --cluster needs Ray: pip install 'tlcheck[cluster]'\n"


@pytest.mark.parametrize("option", [["--jobs", "2"], ["--live"]])
def test_what_is_for_one_machine_is_refused(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.py").write_text("from tlcheck.case import Case\n")
    assert main(["check", str(tmp_path / "k.py"), *option, "--cluster", "auto"]) == 2
    expected = f"tlcheck: error: {option[0]} is for this machine: it has no meaning with --cluster\n"
    assert capsys.readouterr().err == expected
