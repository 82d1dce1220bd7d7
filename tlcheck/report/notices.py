"""Define what the formats for machines and reviewers have in common: notices at source lines, whatever command found
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

ERROR, HAZARD, WARNING, NOTE = "error", "hazard", "warning", "note"  # an error and a hazard fail


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell about a kernel. id: of its kind, stable between releases. title: equal for equal notices of
    several kernels. message: the whole. accepted: why it does not count, empty if it does.
    """

    id: str
    level: str
    title: str
    message: str
    file: str
    line: int
    detail: str = ""
    accepted: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """One case for one target, and its notices. skipped: why it was not looked at, as was known before. evidence: what
    a device shows of it, empty where none was asked.
    """

    file: str
    name: str
    target: str
    notices: tuple[Notice, ...] = ()
    seconds: float = 0.0
    skipped: str = ""
    evidence: str = ""

    @property
    def case(self) -> str:
        return f"{self.file}::{self.name}" if self.name else self.file

    @property
    def words(self) -> str:
        return f"{self.case} {self.target}".strip()


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report. command: `check` or `gate`. verdict: the one line that says it all. kinds: notice id -> what it
    means. incomplete: nothing failed, and something was not checked.
    """

    command: str
    verdict: str
    subjects: tuple[Subject, ...]
    notes: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    failed: bool = False
    incomplete: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """The same notice of several kernels."""

    first: Notice
    members: tuple[tuple[Subject, Notice], ...]


def together(subjects: Sequence[Subject], *, apart: bool = False) -> list[Told]:
    """Notices with one id, title and level told once: errors first, then the largest groups. apart: those of different
    lines by themselves.
    """
    found: dict[tuple[str, ...], list[tuple[Subject, Notice]]] = {}
    for subject in subjects:
        for n in subject.notices:
            place = (n.file, str(n.line)) if apart else ()
            found.setdefault((n.level, n.id, n.title, n.accepted, *place), []).append((subject, n))
    order = (ERROR, HAZARD, WARNING, NOTE)
    told = [Told(members[0][1], tuple(members)) for members in found.values()]
    return sorted(told, key=lambda t: (bool(t.first.accepted), order.index(t.first.level), -len(t.members)))


def cases_in_words(told: Told) -> Iterator[str]:
    """`cases/atomics.py::tile_x2 (sm_80, sm_90)`, a line for each case, with what a device shows of it."""
    cases: dict[str, list[Subject]] = {}
    for subject, _ in told.members:
        cases.setdefault(subject.case, []).append(subject)
    for case, subjects in cases.items():
        named = ", ".join(dict.fromkeys(subject.target for subject in subjects if subject.target))
        shown = ", ".join(dict.fromkeys(f"{s.target} {s.evidence}" for s in subjects if s.evidence))
        yield (f"{case} ({named})" if named else case) + (f"; on the device: {shown}" if shown else "")
