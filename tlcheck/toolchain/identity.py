"""Find what exactly a toolchain is: versions and content of its packages, read from metadata without importing them."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tlcheck.errors import UsageError
from tlcheck.toolchain.resolve import Toolchain

if TYPE_CHECKING:
    from importlib.metadata import Distribution

# What takes part in lowering. Everything else in an environment is not part of its identity.
_PACKAGES = ("tilelang", "apache-tvm-ffi", "z3-solver", "torch")
# The modules that lowering runs, and where an import would find each: through editable installs and PYTHONPATH too.
_MODULES = ("tilelang", "tvm_ffi", "z3")
_PROBE = f"""
import json, platform, sys
from importlib.util import find_spec
sys.path[:] = [entry for entry in sys.path if entry]
found = [platform.python_version(), sys.path]
print(json.dumps([*found, {{name: spec.origin for name in {_MODULES} if (spec := find_spec(name)) and spec.origin}}]))
"""
_PROBE_SECONDS = 60


@dataclass(frozen=True)
class Identity:
    """One toolchain. Two equal identities lower a kernel in the same way, as long as nobody edits installed files:
    `tlcheck.toolchain.content` looks at the files as they are.
    """

    python: str
    packages: tuple[tuple[str, str], ...]  # (name, version), sorted, of those that are there
    content: str  # sha256 over the hashes in the RECORD of TileLang's wheel; empty for a checkout, which has none

    @property
    def release(self) -> str:
        """TileLang's version."""
        return dict(self.packages)["tilelang"]


@dataclass(frozen=True)
class Probe:
    """A record of what an interpreter says. path: where it looks for modules. places: module -> the file that it would
    import.
    """

    python: str
    path: tuple[str, ...]
    places: Mapping[str, str]


def identify(toolchain: Toolchain, probed: Probe | None = None) -> Identity:
    """The identity of a toolchain. Raises UsageError if its interpreter does not run or has no TileLang."""
    probed = probed or probe(toolchain)
    path = list(probed.path)
    found = {name: found for name in _PACKAGES if (found := _first(name, path))}
    versions = {name: distribution.version for name, distribution in found.items()}
    if toolchain.checkout:
        versions["tilelang"], content = toolchain.checkout.version, ""
    elif "tilelang" in found:
        # hash of a wheel's files, whoever installed it: its RECORD without the installer's own entries
        rows = csv.reader((found["tilelang"].read_text("RECORD") or "").splitlines())
        files = sorted((name, digest) for name, digest, *_ in rows if digest and not _is_installers(name))
        content = hashlib.sha256(json.dumps(files).encode()).hexdigest()
    else:
        raise UsageError(f"toolchain {toolchain.name}: no tilelang is installed for {toolchain.python}")
    return Identity(probed.python, tuple(sorted(versions.items())), content)


def probe(toolchain: Toolchain) -> Probe:
    """Ask the interpreter, as a worker would start it. Raises UsageError if it does not run."""
    command = [str(toolchain.python), "-c", _PROBE]
    env = {**os.environ, **toolchain.env}
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=_PROBE_SECONDS)
        version, path, places = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise UsageError(f"toolchain {toolchain.name}: {toolchain.python} does not run: {error}") from error
    return Probe(version, tuple(path), places)


def _first(name: str, path: list[str]) -> Distribution | None:
    """The distribution that an import would take: the first one on the path."""
    from importlib.metadata import distributions  # 10 ms, which no known kernel needs

    return next(iter(distributions(name=name, path=path)), None)


def _is_installers(name: str) -> bool:
    """Whether pip wrote the file: scripts, byte code, notes beside the metadata."""
    note = name.partition("/")[0].endswith(".dist-info") and not name.endswith("/METADATA")
    return note or name.endswith(".pyc") or name.startswith("..")
