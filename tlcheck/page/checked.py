"""Checked kernels as a page: what was found, the texts of every checkpoint, and pictures of layouts."""

from __future__ import annotations

from collections.abc import Sequence

from tlcheck.page.golden import plates_of, texts_of, unsettled
from tlcheck.page.model import BAD, GOOD, QUIET, WARN, Entry, Page, Tag, View
from tlcheck.page.verdicts import remarks_of, tags_of
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.words import summary_in_words

_TONES = {0: GOOD, 1: BAD, 2: BAD, 3: WARN}


def entry_of(result: Result, snapshot: Snapshot | None) -> Entry:
    """Show one checked kernel; one without a snapshot has its failure only."""
    run = result.run
    if result.failure is not None:
        tags = [Tag("not checked", BAD) if result.excuse is None else Tag("expected error", QUIET)]
    else:
        tags = tags_of(result) or [Tag("nothing decided", WARN)]
    views = [] if snapshot is None else [_view(name, lines) for name, lines in texts_of(snapshot).items()]
    plates = plates_of(snapshot, result) if snapshot is not None else ()
    return Entry(run.file, run.name, run.target, tags, (), list(remarks_of(result)), views, plates)


def _view(name: str, lines: Sequence[str]) -> View:
    return View(name, lines, syntax="cuda" if name == "cuda" else "tir")


def page_of(results: Sequence[Result], entries: Sequence[Entry], notes: Sequence[str], code: int) -> Page:
    """Show a whole run; equal failures stand together."""
    verdict = summary_in_words(list(results))
    sides = ("", "as lowered")
    return Page("tlcheck check", verdict, _TONES.get(code, WARN), sides, entries, unsettled(entries), notes)
