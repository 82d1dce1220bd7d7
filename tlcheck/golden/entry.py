"""A golden: what is kept of one case for one target, as texts."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tlcheck.errors import UsageError
from tlcheck.targets.lookup import TARGETS

FACTS = "facts.json"
COST = "cost.json"
TEXT_SUFFIX = ".tir"
PENDING_SUFFIX = ".new"
_ARCHS = "|".join(TARGETS)
_FILE = re.compile(rf"(?P<name>.+)\.(?P<target>{_ARCHS})\.(?P<part>[\w-]+\.(?:tir|json))")
_CONFLICT = re.compile(r"^(<{7} |={7}$|>{7} )", re.MULTILINE)


@dataclass(frozen=True, order=True)
class Key:
    """Whose golden it is. file: from the project's folder, with forward slashes. name: empty for a file as a whole."""

    file: str
    name: str
    target: str

    def __str__(self) -> str:
        return f"{self.case} {self.target}" if self.name else self.file

    @property
    def case(self) -> str:
        return f"{self.file}::{self.name}"

    @property
    def stem(self) -> str:
        """Return where its files are in the golden folder, without `.PART`."""
        return f"{self.file.removesuffix('.py')}/{self.name}.{self.target}"


@dataclass(frozen=True)
class Golden:
    """parts: `lower-tile-op.tir`, `facts.json`, `cost.json`, ... -> text."""

    parts: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Changes with any character of any part."""
        sha = hashlib.sha256()
        for name, text in sorted(self.parts.items()):
            data = text.encode("utf-8", "surrogateescape")
            sha.update(f"{name} {len(data)}\n".encode() + data)
        return sha.hexdigest()

    def texts(self) -> dict[str, str]:
        """Checkpoint -> text."""
        return {name.removesuffix(TEXT_SUFFIX): text for name, text in self.parts.items() if name.endswith(TEXT_SUFFIX)}


def json_part(values: Mapping[str, object]) -> str:
    """JSON with a line for each entry, so that a change is a line of a git diff."""
    lines = []
    for name, value in values.items():
        if isinstance(value, (list, tuple)) and value:
            entries = ",\n".join(f"  {json.dumps(entry)}" for entry in value)
            lines.append(f"{json.dumps(name)}: [\n{entries}\n]")
        else:
            lines.append(f"{json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def key_of(file: str, name: str, target: str, root: Path) -> Key:
    """Raises UsageError for a kernel file outside the project's folder."""
    relative = os.path.relpath(os.path.realpath(file), os.path.realpath(root)).replace(os.sep, "/")
    if relative.startswith("../"):
        raise UsageError(f"{file} is outside {root}: goldens are kept for the kernel files of a project")
    return Key(relative, name, target)


def placed(path: str) -> tuple[Key, str] | None:
    """The key and part of a file in the golden folder, `.new` aside; None for a file of another kind."""
    place = PurePosixPath(path)
    found = _FILE.fullmatch(place.name.removesuffix(PENDING_SUFFIX))
    if found is None or len(place.parts) < 2:
        return None
    return Key(f"{place.parent}.py", found["name"], found["target"]), found["part"]


def damage(golden: Golden) -> str:
    """Return what is wrong with a golden's texts as texts, in words; empty if nothing is."""
    for name, text in sorted(golden.parts.items()):
        if _CONFLICT.search(text):
            return f"{name} has merge-conflict markers: resolve the conflict with either side, then update and review"
        if "\r" in text:
            return (
                f"{name} has CRLF line ends: write `*.tir text eol=lf` into golden/.gitattributes and check out again"
            )
        if any("\udc80" <= c <= "\udcff" for c in text):
            return f"{name} is not UTF-8"
        if not text.endswith("\n"):
            return f"{name} is cut off" if text else f"{name} is empty"
    return "" if golden.texts() else "it has no text"
