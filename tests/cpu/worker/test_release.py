"""The TileLang of an interpreter is imported once, without what makes that slow."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from tlcheck.worker import release


def test_no_garbage_is_collected_while_tilelang_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tilelang.py").write_text("import gc\n__version__ = '9.1'\ncollected = gc.isenabled()\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tilelang", raising=False)
    assert release.import_tilelang.__wrapped__()["tilelang"] == "9.1"
    assert not sys.modules.pop("tilelang").collected
    assert gc.isenabled()


def test_an_import_that_fails_leaves_collections_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tilelang.py").write_text("raise ImportError('no such library')\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tilelang", raising=False)
    with pytest.raises(ImportError, match="no such library"):
        release.import_tilelang.__wrapped__()
    assert gc.isenabled()
