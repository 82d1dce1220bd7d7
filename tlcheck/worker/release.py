"""The TileLang of this interpreter."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

from tlcheck.worker.headers import digest


@cache
def headers() -> str:
    """Hash of the headers of the device library beside the tilelang that is imported."""
    import tilelang

    return digest(Path(str(tilelang.__file__)).parent)


@cache
def import_tilelang() -> Mapping[str, str]:
    """Import tilelang and return the versions that determine the IR. Raises what the import raises.

    Garbage is collected again afterwards, but for what the import has made: next to nothing of it is ever garbage, and
    collecting takes a fifth of the time. Call it before torch is imported, which is most of it.
    """
    collected = gc.isenabled()
    gc.disable()
    try:
        import tilelang
    finally:
        gc.freeze()
        if collected:
            gc.enable()
    versions = {"tilelang": str(tilelang.__version__)}
    for package in ("apache-tvm-ffi", "z3-solver"):  # 0.1.6 has neither
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
