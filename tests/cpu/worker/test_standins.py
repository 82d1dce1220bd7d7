"""A package that is not installed has a stand-in where a user's file imports it, and nowhere else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
from tlcheck.worker import standins

standins.install()
import runpy, sys
runpy.run_path(sys.argv[1])
"""
FILE = """
import importlib.util
import absent_and_imported

print(importlib.util.find_spec("absent_and_asked_for"))
assert importlib.util.find_spec("absent_and_imported") is not None
print(type(absent_and_imported).__name__)
"""


def test_a_file_that_asks_whether_a_package_is_installed_hears_the_truth(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(FILE)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "kernels.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert done.stdout.splitlines() == ["None", "_StandIn"]
