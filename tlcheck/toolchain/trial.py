"""Trying whether an interpreter imports TileLang, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tlcheck.files import cache_root
from tlcheck.toolchain.command import telling_line

_SECONDS = 300


def try_import(python: Path, env: Mapping[str, str]) -> tuple[str, float]:
    """Import TileLang, with `env` added to the variables: the error ('' if none) and the seconds it took."""
    return try_command([str(python), "-c", "import tilelang"], env)[1:]


def try_command(command: Sequence[str], env: Mapping[str, str] | None = None) -> tuple[str, str, float]:
    """Run a command: its output, the line that says why it failed ('' if it did not), and the seconds it took."""
    start = time.monotonic()
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **(env or {})},
            cwd=cache_root().anchor,  # the working folder comes first on the path, and may be a checkout
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error), time.monotonic() - start
    failed = f"exit code {done.returncode}" if done.returncode else ""
    error_line = failed and (telling_line(done.stderr.splitlines()) or failed)
    return done.stdout.strip(), error_line, time.monotonic() - start
