"""The gate's result as a page: every kernel as it was lowered before and after, side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from tlcheck.exits import CLEAN, FOUND
from tlcheck.gate.device_outcomes import evidence_in_words
from tlcheck.gate.gate import Gate
from tlcheck.gate.groups import DifferenceGroup, groups
from tlcheck.gate.outcome import LoweredPair, LoweredSide, Outcome
from tlcheck.gate.words import seconds_in_words, slowest_in_words, unchanged_in_words, verdict_in_words
from tlcheck.golden.textdiff import compare_texts
from tlcheck.lower.runs import toolchain_title
from tlcheck.page.golden_page import in_order, plates_of, texts_of
from tlcheck.page.picture import THREAD, Grid, Picture
from tlcheck.page.shown import BAD, GOOD, QUIET, WARN, Cluster, Entry, Page, Plate, Remark, Tag, View, by_severity
from tlcheck.page.tags import claim_tags, remarks_of, result_tags
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.results import read_snapshot

_TONES = {"slower-risk": WARN, "changed": WARN, "fixed": GOOD, "fails-in-both": QUIET, "same": GOOD}  # the rest fails


def gate_page(gate: Gate) -> Page:
    """Reads the snapshots again: their folder must still be there."""
    before, after = (toolchain_title(*side) for side in zip((gate.before, gate.after), gate.versions, strict=True))
    sides = (f"{before} (before)", f"{after} (after)")
    entries = by_severity(_entry(compared, sides) for compared in gate.comparisons)
    clusters = [_cluster(group) for group in groups(gate.comparisons)]
    slowest = slowest_in_words(gate)
    said = (seconds_in_words(gate), f"slowest: {slowest}" if slowest else "", unchanged_in_words(gate))
    notes = [text for text in (*said, *gate.notes) if text]
    tone = {CLEAN: GOOD, FOUND: BAD}.get(gate.exit_code, WARN)  # what was not checked is not green
    return Page("tlcheck gate", verdict_in_words(gate), tone, sides, entries, clusters, notes)


def _entry(compared: LoweredPair, sides: tuple[str, str]) -> Entry:
    old, new = (_snapshot(side) for side in (compared.before, compared.after))
    verdicts = result_tags(compared.after.result) if compared.after is not None else []
    tags = [*(Tag(klass, _TONES.get(klass, BAD)) for klass in compared.classes), *verdicts]
    evidence = evidence_in_words(compared)
    words = [*map(_words, compared.outcomes), *([f"on the device: {evidence}"] if evidence else [])]
    claims = claim_tags(compared.after.result) if compared.after is not None else {}
    remarks = list(_remarks(compared, sides[0]))
    views = list(_views(old, new, sides))
    # pictures of both sides, once where they are equal
    then, now = _drawn(compared.before, old), _drawn(compared.after, new)
    plates = [_plate(name, then.get(name), now.get(name)) for name in dict.fromkeys((*now, *then))]
    return Entry(compared.file, compared.name, compared.target, tags, words, remarks, views, plates, claims)


def _snapshot(side: LoweredSide | None) -> Snapshot | None:
    path: Path | None = side.snapshot if side is not None else None
    return read_snapshot(path) if path is not None else None


def _words(outcome: Outcome) -> str:
    accepted = f" (accepted: {outcome.accepted})" if outcome.accepted else ""
    claims = f"; {outcome.claims}" if outcome.claims else ""
    return f"{outcome.klass}: {outcome.words}{claims}{accepted}"


def _remarks(compared: LoweredPair, before: str) -> Iterator[Remark]:
    """Yield remarks about the new toolchain, and what was refuted or failed with the old one."""
    if compared.after is not None:
        yield from remarks_of(compared.after.result)
    for outcome in compared.outcomes:
        if outcome.detail and (compared.after is None or compared.after.result.failure is None):
            yield Remark(
                f"{outcome.klass}: {outcome.words}", _TONES.get(outcome.klass, BAD), code=outcome.detail.splitlines()
            )
    if compared.before is not None:
        wrong = (remark for remark in remarks_of(compared.before.result) if remark.tone in (BAD, WARN))
        yield from (replace(remark, title=f"{before}: {remark.title}", tone=QUIET) for remark in wrong)


def _views(old: Snapshot | None, new: Snapshot | None, sides: tuple[str, str]) -> Iterator[View]:
    """Texts in the order of the pipeline."""
    before = texts_of(old) if old is not None else {}
    after = texts_of(new) if new is not None else {}
    for name in in_order((*after, *before)):
        syntax = "cuda" if name == "cuda" else "tir"
        if name in before and name in after:
            diff = compare_texts(before[name], after[name])
            same = diff.verdict == "same"
            yield View(name, after[name] if same else (), None if same else diff, "the same" if same else "", syntax)
        else:
            lines, side = (before[name], sides[0]) if name in before else (after[name], sides[1])
            yield View(name, lines, note=f"only with {side}", syntax=syntax)


def _drawn(side: LoweredSide | None, snapshot: Snapshot | None) -> Mapping[str, Plate]:
    if side is None or snapshot is None:
        return {}
    return {plate.buffer: plate for plate in plates_of(snapshot, side.result)}


def _plate(name: str, then: Plate | None, now: Plate | None) -> Plate:
    if then is None or then.picture is None or now is None or now.picture is None:
        return now or then or Plate(name)
    same = shows_the_same(then.picture, now.picture)
    return now if same else Plate(name, now.picture, then.picture)


def shows_the_same(one: Picture, other: Picture) -> bool:
    """Whether two pictures show the same, however the layout is written. Where the branch of a warp-specialized kernel
    begins among the threads is no difference, as in the facts.
    """
    pairs = ((_counted(one), _counted(other)), (one.registers, other.registers))
    return all(np.array_equal(a, b) for a, b in pairs if a is not None and b is not None) and one.marks == other.marks


def _counted(picture: Picture) -> Grid:
    """Threads from the first one that is seen."""
    inside = picture.values >= 0
    first = picture.values[inside].min() if picture.kind == THREAD and inside.any() else 0
    return np.where(inside, picture.values - first, -1)


def _cluster(group: DifferenceGroup) -> Cluster:
    accepted = (f"accepted: {group.accepted}",) if group.accepted else ()
    tag = Tag(group.klass, QUIET if group.accepted else _TONES.get(group.klass, BAD))
    members = list(dict.fromkeys(f"{c.case} {c.target}" if c.name else c.file for c, _ in group.members))
    return Cluster((group.words, *group.claims, *accepted), tag, members)
