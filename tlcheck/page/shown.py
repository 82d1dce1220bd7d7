"""Define what a page shows, as plain data: cases with their verdicts, texts and pictures, and groups of equal
differences.

tone: `bad`, `warn`, `good` or `quiet`: how much something asks for attention.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tlcheck.golden.textdiff import TextDiff
from tlcheck.page.picture import Picture

BAD, WARN, GOOD, QUIET = "bad", "warn", "good", "quiet"
SEVERITY = (BAD, WARN, QUIET, GOOD)  # the worst first


@dataclass(frozen=True)
class Tag:
    """One word that a case can be filtered by."""

    word: str
    tone: str


@dataclass(frozen=True)
class Spot:
    """A line of a view, counted from 1."""

    view: str
    line: int


@dataclass(frozen=True)
class Remark:
    """A finding, an error or a note. lines: more of it. code: as it stands. spots: the lines it is about."""

    title: str
    tone: str
    lines: Sequence[str] = ()
    code: Sequence[str] = ()
    spots: Sequence[Spot] = ()


@dataclass(frozen=True)
class View:
    """One text of a case: two aligned, or only one. note: what there is to know of it.

    syntax: `tir` or `cuda`.
    """

    name: str
    lines: Sequence[str] = ()
    diff: TextDiff | None = None
    note: str = ""
    syntax: str = "tir"


@dataclass(frozen=True)
class Plate:
    """A picture, and what it was before where that differs. missing: why there is none."""

    buffer: str
    picture: Picture | None = None
    before: Picture | None = None
    missing: str = ""


@dataclass(frozen=True)
class Entry:
    """One case for one target. status: its place among all, the first of its tags. words: what differs, a line each.

    claims: kind -> what each one comes to. passes: the checkpoints in order, where one of them is the first wrong one.
    """

    file: str
    name: str
    target: str
    tags: Sequence[Tag]
    words: Sequence[str] = ()
    remarks: Sequence[Remark] = ()
    views: Sequence[View] = ()
    plates: Sequence[Plate] = ()
    claims: Mapping[str, Sequence[Tag]] = field(default_factory=dict)
    passes: Sequence[Tag] = ()

    @property
    def title(self) -> str:
        return f"{self.file}::{self.name} {self.target}" if self.name else self.file

    @property
    def severity(self) -> int:
        """Return the rank of its worst tag: 0 asks for the most attention."""
        return min((SEVERITY.index(tag.tone) for tag in self.tags), default=len(SEVERITY))


def by_severity(entries: Iterable[Entry]) -> list[Entry]:
    """Files with the worst cases first, and the worst cases of a file; else in their order."""
    listed = list(entries)
    files = list(dict.fromkeys(entry.file for entry in listed))
    worst = {file: min(entry.severity for entry in listed if entry.file == file) for file in files}
    return sorted(listed, key=lambda entry: (worst[entry.file], files.index(entry.file), entry.severity))


@dataclass(frozen=True)
class Cluster:
    """A difference that several cases have. members: titles of entries."""

    words: Sequence[str]
    tag: Tag
    members: Sequence[str]


@dataclass(frozen=True)
class Page:
    """sides: names of the two columns of a diff. made: with which versions, from which commit."""

    title: str
    verdict: str
    tone: str
    sides: tuple[str, str]
    entries: Sequence[Entry]
    clusters: Sequence[Cluster] = ()
    notes: Sequence[str] = field(default_factory=tuple)
    made: Sequence[str] = ()
