"""The files that make a toolchain, wherever an import finds them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cpu.toolchain.stand_ins import Index
from tests.cpu.toolchain.test_identity import unpack
from tlcheck.cache.store import Cache
from tlcheck.toolchain.checkout import Checkout
from tlcheck.toolchain.content import content_of
from tlcheck.toolchain.identity import probe
from tlcheck.toolchain.resolve import Toolchain


@pytest.fixture
def site(index: Index, tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    unpack(index.tilelang("9.1"), folder)
    unpack(index.wheel("z3_solver", "4.15", {"z3/__init__.py": "", "z3/lib/libz3.so": "one"}), folder)
    return folder


def found(*path: Path, checkout: Path | None = None, cache: Path | None = None) -> str:
    env = {"PYTHONPATH": ":".join(map(str, path))}
    place = Checkout(checkout, "9.1", "") if checkout else None
    toolchain = Toolchain("here", "interpreter", Path(sys.executable), env, place)
    return content_of(toolchain, probe(toolchain), Cache(cache))


@pytest.mark.parametrize("name", ["tilelang/__init__.py", "z3/lib/libz3.so", "tilelang/lib/libnew.so"])
def test_a_changed_or_new_file_counts(site: Path, name: str) -> None:
    first = found(site)
    assert found(site) == first
    (site / name).parent.mkdir(exist_ok=True)
    (site / name).write_text("import torch  # edited\n")
    assert found(site) != first


def test_byte_code_and_other_packages_do_not(site: Path) -> None:
    first = found(site)
    (site / "tilelang" / "__pycache__").mkdir()
    (site / "tilelang" / "__pycache__" / "x.pyc").touch()
    (site / "other.py").touch()
    assert found(site) == first


def test_a_source_tree_that_comes_first_is_what_counts(site: Path, tmp_path: Path) -> None:
    """As with an editable install, or a checkout on PYTHONPATH."""
    tree = tmp_path / "tree"
    library = tree / "build" / "lib" / "libtilelang.so"
    for file in (tree / "tilelang" / "__init__.py", library, tree / "3rdparty" / "tvm" / "python" / "tvm" / "ir.py"):
        file.parent.mkdir(parents=True)
        file.write_text("one\n")
    first = found(tree, site)
    assert first != found(site)
    assert first == found(site, checkout=tree)
    for file in (library, tree / "3rdparty" / "tvm" / "python" / "tvm" / "ir.py"):
        file.write_text("two\n")
        assert found(tree, site) != first
        file.write_text("one\n")
    assert found(tree, site) == first


def test_a_checkout_in_the_working_folder_is_not_imported(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = found(site)
    (tmp_path / "tilelang").mkdir()
    (tmp_path / "tilelang" / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    assert found(site) == first


def test_files_are_read_once(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again when one was written, though its size and time of change are as before."""
    results, library = tmp_path / "results", site / "z3" / "lib" / "libz3.so"
    first = found(site, cache=results)
    read: list[Path] = []
    read_bytes = Path.read_bytes

    def watched(path: Path) -> bytes:
        read.append(path)
        return read_bytes(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", watched)
        assert found(site, cache=results) == first
    assert not [path for path in read if site in path.parents]
    before = library.stat()
    library.write_text("two")
    os.utime(library, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found(site, cache=results) != first
