"""One case for one target with one toolchain, and what lowering it came to."""

from __future__ import annotations

import ast
import hashlib
import os
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tlcheck.case import Expect
from tlcheck.execute.request import GivenInputs
from tlcheck.lower.selection import UNCHANGED, Variation
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.checkout import at_commit
from tlcheck.worker.protocol import Failure

_LONGEST_NAME = 120  # characters of a captured kernel's in a file's: it holds all arguments

Position = tuple[int, ...]  # of a run in reports; each has its own


@dataclass(frozen=True)
class Run:
    """One case for one target with one toolchain.

    file, toolchain: as the user named them. name, target: empty for a file that could not even be imported.
    versions: of what determines the IR, `tilelang` and others, with the `commit` of a checkout. position: its place in
    reports. has_inputs, has_reference: whether the case declares its own. said: the words of the user's command line
    that any other command about it needs. variation: see `Selection`. numbers: see `DeclaredCase`. is_captured: whether
    running a script makes the kernel: commands that import the file by name do not find it.
    """

    file: str
    name: str
    target: str
    toolchain: str
    versions: Mapping[str, str]
    args: Mapping[str, str] = field(default_factory=dict)
    expects: tuple[Expect, ...] = ()
    position: Position = ()
    has_inputs: bool = False
    said: tuple[str, ...] = ()
    has_reference: bool = False
    variation: Variation = UNCHANGED
    numbers: Mapping[str, str] = field(default_factory=dict)
    is_captured: bool = False

    @property
    def case(self) -> str:
        """`FILE::NAME`."""
        return f"{self.file}::{self.name}" if self.name else self.file

    @property
    def slug(self) -> str:
        """A file name that says what this is a run of."""
        name = re.sub(r"[^\w.=,\[\]-]", "_", self.name)[:_LONGEST_NAME]
        return f"{Path(self.file).stem}-{name}-{self.target}-{self.release}"

    @property
    def release(self) -> str:
        return release_of(self.versions)

    @property
    def tilelang(self) -> str:
        """`0.1.15`, and what else the user named it: `0.1.15 (~/src/tilelang at 1a2b3c4d5)`."""
        return tilelang_in_words(self.toolchain, self.versions)


def near(path: str) -> str:
    """A path as people write it: from the working folder, where it is below that."""
    return path.removeprefix(f"{Path.cwd()}{os.sep}")


def release_of(versions: Mapping[str, str]) -> str:
    """TileLang's version without what a local build adds to it."""
    return Release.among(versions).text


def toolchain_title(name: str, versions: Mapping[str, str]) -> str:
    """Name a toolchain as the user did, a checkout with its commit, which stands among the versions."""
    return at_commit(name, versions.get("commit", ""))


def tilelang_in_words(name: str, versions: Mapping[str, str]) -> str:
    """Name TileLang's version, then the toolchain where that says something else: `0.1.15 (~/src/tilelang)`."""
    release, title = release_of(versions), toolchain_title(name, versions)
    if not release:
        return title
    return release if title in ("", "pinned", release) else f"{release} ({title})"


@dataclass(frozen=True)
class CapturedOrigin:
    """The way to make a captured kernel again: a function of a module, and its arguments as Python source.

    module: empty for the script itself.
    """

    module: str
    function: str
    args: Mapping[str, str]


@dataclass(frozen=True)
class RecordedCall:
    """The first call of a captured kernel. file: its inputs and outputs, or `missing` says why there is none.

    updates: parameters whose tensors it was given, and has changed. size: bytes of all tensors that are kept.
    """

    file: Path | None = None
    updates: tuple[str, ...] = ()
    size: int = 0
    missing: str = ""


@dataclass(frozen=True)
class MadeInputs:
    """A record of what came of a case's `inputs`: the arrays and the hash of their file, or why there are none."""

    given: GivenInputs | None = None
    digest: str = ""
    failure: Failure | None = None


@dataclass(frozen=True)
class Lowered:
    """A run with the snapshot's file, or why there is none. unsaved: checkpoint -> why it is missing.

    seconds: of processor time, by phase (`import`, `build`, `lower`, `extract`), when it was lowered.
    digest: hash of the snapshot's content, empty where results are not kept. origin: of a captured kernel, if it can be
    made without its script. recorded: a call of it; None where none was to be recorded. saved: it was not lowered now,
    the user gave the snapshot. inputs: the case's own; None where it has none, or none were to be made. until: the
    passes before the one that failed, where all were wanted.
    """

    run: Run
    snapshot: Path | None = None
    failure: Failure | None = None
    unsaved: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    digest: str = ""
    origin: CapturedOrigin | None = None
    recorded: RecordedCall | None = None
    saved: bool = False
    inputs: MadeInputs | None = None
    until: Path | None = None

    @cached_property
    def hash(self) -> str:
        """The hash of the snapshot's content, also where results are not kept; empty where there is no snapshot."""
        if self.digest or self.snapshot is None:
            return self.digest
        return hashlib.sha256(self.snapshot.read_bytes()).hexdigest()

    @property
    def is_interrupted(self) -> bool:
        """Whether the user ended the command before."""
        return self.failure is not None and self.failure.kind == "interrupted"


def line_of(run: Run, failure: Failure) -> int:
    """The line of the run's own file that a failure is about: where it was raised, else where the kernel is bound; 0
    where neither is known.
    """
    place, _, number = failure.where.rpartition(":")
    if number.isdigit() and Path(place).resolve() == Path(run.file).resolve():
        return int(number)
    try:
        module = ast.parse(Path(run.file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return 0
    return next((stmt.lineno for stmt in module.body if run.name in _bound(stmt)), 0)


def _bound(stmt: ast.stmt) -> set[str]:
    """The names that a statement of a module binds; of a definition its own."""
    if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {stmt.name}
    return {node.id for node in ast.walk(stmt) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def of_saved(file: Path, snapshot: Snapshot, position: int = 0) -> Lowered:
    """A snapshot that the user saved, as a run; what a case expects is not in it."""
    s = snapshot
    name = s.toolchain.get("tilelang", "")
    run = Run(s.file, s.case, s.target, name, s.toolchain, s.args, position=(position,))
    return Lowered(run, file, saved=True)


def unique_name(name: str, taken: Container[str], sign: str = "-") -> str:
    """`name`, or `name-2` and so on where it is taken: two folders may hold files of one name."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}{sign}{number}"
    return found
