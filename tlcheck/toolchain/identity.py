"""What exactly a toolchain is: versions and content of its packages, read from metadata without importing them."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions

from tlcheck.errors import UsageError
from tlcheck.toolchain.resolve import Toolchain

# What takes part in lowering. Everything else in an environment is not part of its identity.
_PACKAGES = ("tilelang", "apache-tvm-ffi", "z3-solver", "torch")
_PROBE = "import json, platform, sys; print(json.dumps([platform.python_version(), sys.path[1:]]))"


@dataclass(frozen=True)
class Identity:
    """One toolchain. Two equal identities lower a kernel in the same way."""

    python: str
    packages: tuple[tuple[str, str], ...]  # (name, version), sorted, of those that are there
    content: str  # sha256 over the recorded hashes of TileLang's own files

    @property
    def release(self) -> str:
        return dict(self.packages)["tilelang"]


def identify(toolchain: Toolchain) -> Identity:
    """The identity of a toolchain. Raises UsageError if its interpreter does not run or has no TileLang."""
    python, path = _probe(toolchain)
    found = {name: found for name in _PACKAGES if (found := _first(name, path))}
    if "tilelang" not in found:
        raise UsageError(f"toolchain {toolchain.name}: no tilelang is installed for {toolchain.python}")
    packages = tuple(sorted((name, found[name].version) for name in found))
    return Identity(python, packages, _content(found["tilelang"]))


def _probe(toolchain: Toolchain) -> tuple[str, list[str]]:
    """The interpreter's version and module search path, as a worker would have them."""
    command = [str(toolchain.python), "-c", _PROBE]
    try:
        done = subprocess.run(
            command, env={**os.environ, **toolchain.env}, capture_output=True, text=True, check=True, timeout=60
        )
        version, path = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise UsageError(f"toolchain {toolchain.name}: {toolchain.python} does not run: {error}") from error
    return version, path


def _first(name: str, path: list[str]) -> Distribution | None:
    """The distribution that an import would take: the first one on the path."""
    return next(iter(distributions(name=name, path=path)), None)


def _content(distribution: Distribution) -> str:
    """Hash of a wheel's files, whoever installed it: its RECORD without the installer's own entries."""
    rows = csv.reader((distribution.read_text("RECORD") or "").splitlines())
    files = sorted((name, digest) for name, digest, *_ in rows if digest and not _is_installers(name))
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


def _is_installers(name: str) -> bool:
    metadata = name.partition("/")[0].endswith(".dist-info") and not name.endswith("/METADATA")
    return metadata or name.endswith(".pyc") or name.startswith("..")
