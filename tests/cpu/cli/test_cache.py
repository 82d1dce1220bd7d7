"""`tlcheck cache` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tlcheck.cache.store import Cache
from tlcheck.cli.main import main


def test_info_and_clean(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "info"]) == 0
    assert capsys.readouterr().out == f"{cache / 'results'}: 0 results, 0.0 MB of at most 2147.5 MB\n"
    (cache / "toolchains").mkdir(parents=True)
    Cache(cache / "results").put("kind", "key", b"content")
    assert main(["cache", "clean"]) == 0
    assert capsys.readouterr().out == f"removed 1 result, 0.0 MB, from {cache / 'results'}\n"
    assert [path.name for path in cache.iterdir()] == ["toolchains"]
