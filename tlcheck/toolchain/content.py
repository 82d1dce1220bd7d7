"""The files of a toolchain that take part in lowering, as they are now, whoever put or changed them there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from tlcheck.cache.store import Cache, key_of
from tlcheck.toolchain.identity import Probe
from tlcheck.toolchain.resolve import Toolchain


def content_of(toolchain: Toolchain, probed: Probe, cache: Cache) -> str:
    """Hash over names and contents of TileLang's, apache-tvm-ffi's and z3-solver's files, native libraries included.

    Hundreds of megabytes are read again only after one of the files was touched: the cache keeps the hash.
    """
    folders = {name: Path(place).parent for name, place in probed.places.items()}
    if toolchain.checkout:
        folders["tilelang"] = toolchain.checkout.root / "tilelang"
    files = sorted(file for name, folder in sorted(folders.items()) for file in _files(name, folder))
    stamp = key_of([(name, *_touched(file)) for name, file in files])
    if (kept := cache.get("toolchains", stamp)) is not None:
        return kept.decode()
    content = key_of([(name, hashlib.sha256(file.read_bytes()).hexdigest()) for name, file in files])
    cache.put("toolchains", stamp, content.encode())
    return content


def packages_of(probed: Probe) -> list[str]:
    """Name and version of everything that is installed there: kernels import other packages too."""
    return sorted(found.name for entry in probed.path for found in Path(entry).glob("*.dist-info"))


def _files(module: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Name and place of each file of a module; for TileLang with what a source tree has beside it, wherever it is."""
    found = [*_all_files(folder)]
    if module == "tilelang":
        tree = folder.parent
        found += [*tree.glob("build/lib/*.so*"), *tree.glob("3rdparty/tvm/python/**/*.py")]
        found += tree.glob("src/tl_templates/cuda/**/*.h")
    yield from ((f"{module}/{os.path.relpath(file, folder)}", file) for file in found if file.is_file())


def _all_files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(place, name) for name in names)


def _touched(file: Path) -> tuple[str, int, int, int]:
    found = file.stat()
    return str(file), found.st_size, found.st_mtime_ns, found.st_ctime_ns
