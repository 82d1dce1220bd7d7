"""Find which CUDA libraries the dynamic loader finds by itself, and where to send it for the others."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from pathlib import Path


def library_path(sonames: Iterable[str], search: Iterable[Path], stubs: Path) -> dict[str, str]:
    """LD_LIBRARY_PATH for a process that needs these libraries; empty when the loader finds all of them.

    LD_LIBRARY_PATH comes before the system's folders. A library that the loader finds therefore gets no entry here (a
    stub would shadow a real driver); the others get the folder of an installed wheel, else of a stub, after the user's.
    """
    missing = [soname for soname in sonames if not is_loadable(soname)]
    added = dict.fromkeys(folder for soname in missing if (folder := _provider(soname, search, stubs)))
    if not added:
        return {}
    own = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": os.pathsep.join([*([own] if own else []), *map(str, added)])}


def is_loadable(soname: str) -> bool:
    """Whether the loader finds a library. It is the loader itself that is asked."""
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True


def _provider(soname: str, search: Iterable[Path], stubs: Path) -> Path | None:
    """The folder of a library in an nvidia wheel (nvidia/cuda_runtime/lib, nvidia/cu13/lib), else of its stub."""
    for packages in search:
        for library in sorted(packages.glob(f"nvidia/*/lib/{soname}")):
            return library.parent
    stub = stubs / soname
    return stub if (stub / soname).exists() else None
