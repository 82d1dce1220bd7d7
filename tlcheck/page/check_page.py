"""Checked kernels as a page: what was found, the texts of every checkpoint, and pictures of layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tlcheck import __version__
from tlcheck.exits import CLEAN, FOUND, NOT_CHECKED, USAGE
from tlcheck.page.golden_page import plates_of, texts_of, unsettled
from tlcheck.page.shown import BAD, GOOD, QUIET, WARN, Entry, Page, Remark, Tag, View, by_severity
from tlcheck.page.tags import claim_tags, in_pipeline, pass_tags, remarks_of, result_tags
from tlcheck.snapshot.ir import Snapshot
from tlcheck.toolchain.checkout import commit_of
from tlcheck.verdicts.kernels import kernels_of
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.summary import summary_in_words

_TONES = {CLEAN: GOOD, FOUND: BAD, USAGE: BAD, NOT_CHECKED: WARN}


def entry_of(result: Result, snapshot: Snapshot | None) -> Entry:
    """Show one checked kernel; one without a snapshot has its failure only."""
    run = result.run
    if result.failure is not None:
        tags = [Tag("not checked", BAD) if result.excuse is None else Tag("expected error", QUIET)]
    else:
        tags = result_tags(result) or [Tag("nothing decided", WARN)]
    remarks = list(remarks_of(result))
    if snapshot is None:
        return Entry(run.file, run.name, run.target, tags, (), remarks)
    views = [_view(name, lines) for name, lines in texts_of(snapshot).items()] + list(_sources(remarks, snapshot))
    plates = plates_of(snapshot, result)
    passes = pass_tags(result, in_pipeline(list(snapshot.checkpoints)))
    return Entry(run.file, run.name, run.target, tags, (), remarks, views, plates, claim_tags(result), passes)


def _view(name: str, lines: Sequence[str]) -> View:
    return View(name, lines, syntax="cuda" if name == "cuda" else "tir")


def _sources(remarks: Sequence[Remark], snapshot: Snapshot) -> Iterator[View]:
    """The user's files that something is said of, as far as they are there."""
    named = {spot.view: None for remark in remarks for spot in remark.spots if spot.view not in snapshot.checkpoints}
    for name in named:
        file = Path(name)
        if file.is_file():
            yield View(name, file.read_text(encoding="utf-8", errors="replace").splitlines())


def page_of(results: Sequence[Result], entries: Sequence[Entry], notes: Sequence[str], code: int) -> Page:
    """Show a whole run; equal failures stand together."""
    verdict = summary_in_words(list(results))
    sides = ("", "as lowered")
    opened = any(kernel.open for kernel in kernels_of(results))
    tone = WARN if code == CLEAN and opened else _TONES.get(code, WARN)
    return Page(
        "tlcheck check", verdict, tone, sides, by_severity(entries), unsettled(entries), notes, made_with(results)
    )


def made_with(results: Sequence[Result]) -> list[str]:
    """The versions that a run was made with, and the commits of the files that were checked."""
    releases = dict.fromkeys(f"tilelang {result.run.tilelang}" for result in results)
    commits = {commit_of(Path(file).absolute()) for file in {result.run.file for result in results}}
    own = [f"kernels at commit {', '.join(sorted(filter(None, commits)))}"] if any(commits) else []
    return [f"tlcheck {__version__}", *releases, *own]
