"""The files of a toolchain that take part in lowering, as they are now, whoever put or changed them there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from tlcheck.cache.store import Cache, key_of
from tlcheck.toolchain.identity import Probe
from tlcheck.toolchain.resolve import Toolchain

_Touched = tuple[str, str, int, int, int]  # name, path, size and times of a file: what changes with it


def content_of(toolchain: Toolchain, probed: Probe, cache: Cache) -> str:
    """Hash over names and contents of TileLang's, apache-tvm-ffi's and z3-solver's files, native libraries included.

    Hundreds of megabytes are read again only after one of the files was touched: the cache keeps the hash.
    """
    folders = {name: Path(place).parent for name, place in probed.places.items()}
    if toolchain.checkout:
        folders["tilelang"] = toolchain.checkout.root / "tilelang"
    files = sorted(file for name, folder in sorted(folders.items()) for file in _files(name, folder))
    stamp = key_of(files)
    if (kept := cache.get("toolchains", stamp)) is not None:
        return kept.decode()
    content = key_of([(name, hashlib.sha256(Path(place).read_bytes()).hexdigest()) for name, place, *_ in files])
    cache.put("toolchains", stamp, content.encode())
    return content


def packages_of(probed: Probe) -> list[str]:
    """Name and version of everything that is installed there: kernels import other packages too."""
    return sorted(found.name for entry in probed.path for found in Path(entry).glob("*.dist-info"))


def _files(module: str, folder: Path) -> Iterator[_Touched]:
    """The files of a module; of TileLang with what a source tree has beside it, wherever it is."""
    within = len(f"{folder}{os.sep}")
    for entry in _all_files(str(folder)):
        yield _touched(f"{module}/{entry.path[within:]}", entry.path, entry.stat())
    if module == "tilelang":
        tree = folder.parent
        found = [*tree.glob("build/lib/*.so*"), *tree.glob("3rdparty/tvm/python/**/*.py")]
        found += tree.glob("src/tl_templates/cuda/**/*.h")
        for file in found:
            if file.is_file():
                yield _touched(f"{module}/{os.path.relpath(file, folder)}", str(file), file.stat())


def _all_files(folder: str) -> Iterator[os.DirEntry[str]]:
    """All files below a folder: there are ten thousand, and whoever waits for a gate waits for these."""
    try:
        entries = os.scandir(folder)
    except OSError:  # gone, or nobody may look into it
        return
    with entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != "__pycache__":
                    yield from _all_files(entry.path)
            elif entry.is_file():
                yield entry


def _touched(name: str, place: str, found: os.stat_result) -> _Touched:
    return name, place, found.st_size, found.st_mtime_ns, found.st_ctime_ns
