"""A TileLang that is imported in place: a built checkout, or a copy of the `tilelang` folder of a wheel."""

from __future__ import annotations

import filecmp
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

from tlcheck.errors import UsageError
from tlcheck.toolchain import environment
from tlcheck.toolchain.environment import Recipe
from tlcheck.toolchain.releases import PINNED, RELEASES

_LIBRARIES = ("tilelang/lib/libtilelang*.so", "build/lib/libtilelang*.so")


@dataclass(frozen=True)
class Checkout:
    """One TileLang by its path. root: the folder that has `tilelang`, put first on the path of an interpreter."""

    root: Path
    version: str  # of TileLang, as far as the folder tells: `0.1.15`
    commit: str  # `1a2b3c4d5`, with a `+` if tracked files were edited; empty outside of git

    @property
    def release(self) -> str:
        """The release whose environment has what this version needs.

        It is the version itself where that is known or installed, else the newest known release before it.
        """
        public = Version(self.version).public
        if public in RELEASES or environment.find(environment.release_recipe(public)):
            return public
        older = [release for release in RELEASES if Version(release) <= Version(public)]
        return older[-1] if older else next(iter(RELEASES))

    def recipe(self, requirements: tuple[str, ...] = ()) -> Recipe:
        """Return how the environment is made in which it is imported."""
        return environment.release_recipe(self.release, requirements)


def read_checkout(path: Path) -> Checkout | None:
    """The TileLang at `path`: the folder that has `tilelang`, or `tilelang` itself. None if there is none.

    Raises UsageError for one that cannot be imported as it is.
    """
    root = _root(path)
    if root is None:
        return None
    if os.pathsep in str(root):
        raise UsageError(f"{root} cannot be put on the path of Python: its name has a {os.pathsep!r}")
    libraries = [file for pattern in _LIBRARIES for file in sorted(root.glob(pattern))]
    if not libraries:
        raise UsageError(
            f"{root} has no built libraries (libtilelang*.so in tilelang/lib or build/lib): build it first, "
            f"or copy tilelang/lib of the release that it was made from"
        )
    return Checkout(root, _version(root, libraries[0]), commit_of(root / "tilelang" / "__init__.py"))


def commit_of(file: Path) -> str:
    """The commit of the git checkout that tracks `file`, short, with a `+` if it has changes; empty if none does."""
    git = ["git", "-C", str(file.parent)]
    if not _output([*git, "ls-files", file.name]):
        return ""
    return _output([*git, "describe", "--always", "--exclude=*", "--abbrev=9", "--dirty=+"])


def at_commit(name: str, commit: str) -> str:
    """`~/src/tilelang at 1a2b3c4d5`: what a checkout is called; the name alone without a commit."""
    return f"{name} at {commit}" if commit else name


def _root(path: Path) -> Path | None:
    if (path / "tilelang" / "__init__.py").is_file():
        return path
    if not (path / "__init__.py").is_file() or not (path / "libinfo.py").is_file():
        return None
    if path.name != "tilelang":
        raise UsageError(f"{path} looks like TileLang's package: Python finds it only in a folder called `tilelang`")
    return path.parent


def _version(root: Path, library: Path) -> str:
    """Read the version from VERSION, as TileLang does; else from metadata beside it; else from an equal library."""
    for found in (_stated(root), _installed(root), _same_library(library)):
        if found:
            return found
    raise UsageError(
        f"cannot tell which release {root / 'tilelang'} was made from: write it into the file {root / 'VERSION'} "
        f"(such as {PINNED}), or install that release with `tlcheck toolchain install`"
    )


def _stated(root: Path) -> str:
    file = root / "VERSION"
    if not file.is_file():
        return ""
    text = file.read_text(encoding="utf-8", errors="replace").strip()
    try:
        return str(Version(text))
    except InvalidVersion as error:
        raise UsageError(f"{file} has no version of TileLang: {text[:40]!r}") from error


def _installed(folder: Path) -> str:
    """The version of the TileLang that pip has installed into a folder."""
    found = sorted(folder.glob("tilelang-*.dist-info"))
    return found[0].name.removesuffix(".dist-info").partition("-")[2] if found else ""


def _same_library(library: Path) -> str:
    """The version of the installed toolchain that has the same native library: only Python was edited then."""
    for folder in environment.folders():
        packages = environment.site_packages(folder)
        other = packages / "tilelang" / "lib" / library.name
        if environment.load(folder) and other.is_file() and filecmp.cmp(library, other, shallow=False):
            return _installed(packages)
    return ""


def _output(command: list[str]) -> str:
    """Return what a command prints; empty if it fails or is not there."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
