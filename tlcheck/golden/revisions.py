"""Goldens of git revisions, read without checking them out, and what differs between two of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

from tlcheck.errors import UsageError
from tlcheck.golden.approvals import Decision
from tlcheck.golden.comparison import GoldenComparison, compare_goldens
from tlcheck.golden.entry import Golden, Key
from tlcheck.golden.store import Contents, contents


class Revisions:
    """The goldens of two revisions, by `str(key)`.

    comparisons: of those that both have and that differ. decided: what was decided of each that differs, in words.
    problems: why one does not count as approved. added, removed: how many only one has.
    """

    def __init__(self, base: Contents, head: Contents) -> None:
        self.comparisons: dict[str, GoldenComparison] = {}
        self.decided: dict[str, str] = {}
        self.problems: dict[str, str] = {}
        self.added = len(head.goldens.keys() - base.goldens.keys())
        self.removed = len(base.goldens.keys() - head.goldens.keys())
        for key in sorted({*base.goldens, *head.goldens}):
            self._compare(str(key), base.goldens.get(key), head.goldens.get(key))
            self._decide(key, base, head)

    def _compare(self, name: str, one: Golden | None, other: Golden | None) -> None:
        if one is not None and other is not None and one.digest != other.digest:
            try:
                self.comparisons[name] = compare_goldens(one, other)
            except ValueError as error:
                self.problems[name] = f"changed, and cannot be compared: {error}"

    def _decide(self, key: Key, base: Contents, head: Contents) -> None:
        one, other, name = base.goldens.get(key), head.goldens.get(key), str(key)
        made = head.approvals.approved.get(name)
        what = "added" if one is None else "removed" if other is None else "changed"
        if other is None:
            if made is None:
                self.decided[name] = "removed, as was accepted"
            else:
                self.problems[name] = "removed, and still approved: its files are gone"
        elif problem := head.problem(key):
            self.problems.setdefault(name, problem if one == other else f"{what}, {problem}")
        elif one is None or one.digest != other.digest:
            assert made is not None
            self.decided[name] = f"{what}, accepted by {made.words}{_claims(made)}"


def _claims(made: Decision) -> str:
    return f" (claims then: {', '.join(made.claims)})" if made.claims else ""


def contents_at(folder: Path, revision: str) -> Contents:
    """Return what `folder` held in a revision; nothing if it was not there. Raises UsageError."""
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
    """Run git in the folder's parent; return nothing where it fails."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder.parent, input=text, capture_output=True, check=False)
    except OSError as error:
        raise UsageError(f"cannot run git: {error.strerror}") from error
    return done.stdout if done.returncode == 0 else b""
