"""Tests whose imports lead to TileLang."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.lower.reach import Reach

FILES = {
    "lib/__init__.py": "from .api import run",
    "lib/api.py": "def run():\n    from lib import kernels",
    "lib/kernels.py": "import tilelang",
    "lib/plain.py": "import os",
    "src/other/near.py": "import tilelang.language as T",
    "tests/conftest.py": "import os",
    "tests/test_far.py": "from lib.plain import anything",  # through the package's own __init__
    "tests/test_near.py": "from other.near import kernel",
    "tests/test_own.py": "import tilelang",
    "tests/test_else.py": "import json, torch",
    "tests/test_broken.py": "import (",
    "apart/conftest.py": "from lib.kernels import scale",
    "apart/test_fixture.py": "def test(scale): ...",
}


def test_the_nearest_come_first_and_others_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    found = Reach(Path()).nearest(sorted(Path().rglob("test_*.py")))
    assert [file.stem for file in found] == ["test_own", "test_near", "test_fixture", "test_far"]
