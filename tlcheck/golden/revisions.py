"""Goldens of a git revision, read without checking it out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.golden.store import Contents, contents


def contents_at(folder: Path, revision: str) -> Contents:
    """What `folder` held in a revision; nothing if it was not there. Raises UsageError."""
    # `^{commit}` also keeps an argument that begins with a dash from being an option of git.
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if not commit:
        raise UsageError(f"{folder}: git knows no revision {revision!r} here; in CI, fetch it first")
    name = commit.decode().strip()
    return contents(dict(_files(folder, name)), f"{revision}:{folder.name}")


def _files(folder: Path, commit: str) -> Iterator[tuple[str, bytes]]:
    """Path in the folder and content of each file."""
    listed = _git(folder, "ls-tree", "-r", "-z", commit, "--", folder.name).split(b"\0")
    blobs = [
        (entry.split(b"\t", 1)[1].decode("utf-8", "surrogateescape"), entry.split()[2]) for entry in listed if entry
    ]
    wanted = b"".join(blob + b"\n" for _, blob in blobs)
    answer, place = _git(folder, "cat-file", "--batch", text=wanted), 0
    for path, _ in blobs:
        end = answer.index(b"\n", place)
        size = int(answer[place:end].split()[2])
        yield Path(path).relative_to(folder.name).as_posix(), answer[end + 1 : end + 1 + size]
        place = end + size + 2


def _git(folder: Path, *arguments: str, text: bytes = b"") -> bytes:
    """In the folder's parent; empty where git fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder.parent, input=text, capture_output=True, check=False)
    except OSError as error:
        raise UsageError(f"cannot run git: {error.strerror}") from error
    return done.stdout if done.returncode == 0 else b""
