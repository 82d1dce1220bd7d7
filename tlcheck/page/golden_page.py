"""Goldens as a page: what kernels lower to now, beside what was approved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tlcheck.golden.comparison import GoldenComparison, grouped
from tlcheck.golden.entry import Golden, Key
from tlcheck.golden.normal import normal_lines, parse
from tlcheck.golden.recording import Recorded
from tlcheck.golden.revisions import Revisions
from tlcheck.golden.states import CHANGED, MISSING, NOT_LOWERED, ORPHANED, SAME, UNUSABLE, State, state_of
from tlcheck.golden.store import Contents
from tlcheck.lower.runs import Lowered
from tlcheck.page.gallery import gallery
from tlcheck.page.picture import Picture
from tlcheck.page.shown import (
    BAD,
    GOOD,
    QUIET,
    SEVERITY,
    WARN,
    Cluster,
    Entry,
    Page,
    Plate,
    Remark,
    Tag,
    View,
    by_severity,
)
from tlcheck.page.tags import remarks_of, result_tags
from tlcheck.report.golden_text import summary_of
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.results import Result

_TONES = {SAME: GOOD, CHANGED: WARN, MISSING: WARN, UNUSABLE: BAD, ORPHANED: WARN, NOT_LOWERED: BAD}
_WORDS = {SAME: "as approved"}


@dataclass
class GoldenPage:
    """Takes one run after the other: a snapshot need not stay in memory for longer than it is looked at."""

    approved: Contents
    judge: Callable[[Lowered], Result]
    states: list[State] = field(default_factory=list)
    _entries: list[Entry] = field(default_factory=list)

    def add(self, recorded: Recorded) -> None:
        """Compare and check a run."""
        state = state_of(recorded, self.approved)
        self.states.append(state)
        result = self.judge(recorded.lowered) if recorded.snapshot is not None else None
        remarks = [
            *_why(state, recorded),
            *_approved(recorded.key, self.approved),
            *(remarks_of(result) if result is not None else ()),
        ]
        tags = [_tag(state), *(result_tags(result) if result is not None else ())]
        views = views_of(state.comparison, self.approved.goldens.get(recorded.key), recorded.snapshot)
        plates = plates_of(recorded.snapshot, result) if recorded.snapshot is not None else ()
        self._entries.append(_entry(recorded.key, tags, state.comparison, remarks, views, plates))

    def add_orphan(self, state: State) -> None:
        """A golden that no case has."""
        self.states.append(state)
        views = views_of(None, self.approved.goldens[state.key], None)
        self._entries.append(_entry(state.key, [_tag(state)], None, [Remark(state.why, WARN)], views, ()))

    def page(self) -> Page:
        """All of it."""
        comparisons = {str(s.key): s.comparison for s in self.states if s.comparison is not None}
        bad = {s.kind for s in self.states if not s.expected} - {SAME}
        tone = BAD if bad else GOOD
        entries = by_severity(sorted(self._entries, key=lambda entry: (entry.file, entry.name, entry.target)))
        verdict = summary_of(self.states)
        clusters = [*unsettled(entries), *clusters_of(comparisons)]
        return Page("tlcheck golden", verdict, tone, ("approved", "now"), entries, clusters)


def _tag(state: State) -> Tag:
    if state.expected:
        return Tag("expected not to lower", QUIET)
    return Tag(_WORDS.get(state.kind, state.kind), _TONES[state.kind])


def _approved(key: Key, approved: Contents) -> Iterator[Remark]:
    """Yield who accepted what is compared with, and why."""
    made = approved.approvals.approved.get(str(key))
    if made is not None and key in approved.goldens and not approved.problem(key):
        yield Remark(f"approved by {made.words}", QUIET, made.claims)


def _why(state: State, recorded: Recorded) -> Iterator[Remark]:
    """Yield why there is nothing to compare."""
    if not state.why:
        return
    first, _, rest = state.why.partition("\n")
    detail = recorded.failure.detail if recorded.failure is not None else ""
    tone = QUIET if state.expected else _TONES[state.kind]
    yield Remark(first, tone, rest.splitlines(), detail.splitlines())


def _entry(
    key: Key,
    tags: Sequence[Tag],
    comparison: GoldenComparison | None,
    remarks: Sequence[Remark],
    views: Sequence[View],
    plates: Sequence[Plate],
) -> Entry:
    words = comparison.summary if comparison is not None else ()
    return Entry(key.file, key.name, key.target, tags, words, remarks, views, plates)


def views_of(comparison: GoldenComparison | None, approved: Golden | None, snapshot: Snapshot | None) -> list[View]:
    """Texts in the order of the pipeline: two where they differ, one where they do not or where there is only one."""
    old = {name: parse(text).lines for name, text in approved.texts().items()} if approved is not None else {}
    new = texts_of(snapshot) if snapshot is not None else {}
    diffs = comparison.texts if comparison is not None else {}
    views = []
    for name in in_order((*new, *old)):
        syntax = "cuda" if name == "cuda" else "tir"
        if name in diffs:
            views.append(View(name, diff=diffs[name]))
        elif name in new:
            note = "as approved" if comparison is not None and name in old else ""
            views.append(View(name, new[name], note=note, syntax=syntax))
        else:
            views.append(View(name, old[name], note="the golden"))
    return views


def in_order(names: Iterable[str]) -> list[str]:
    """Checkpoints as the pipeline has them, then the rest."""
    order = {str(name): place for place, name in enumerate(Checkpoint)}
    return sorted(dict.fromkeys(names), key=lambda name: order.get(name, len(order)))


def texts_of(snapshot: Snapshot) -> dict[str, Sequence[str]]:
    """Return the texts at every checkpoint, and `cuda`."""
    found: dict[str, Sequence[str]] = {name: normal_lines(f) for name, f in snapshot.checkpoints.items()}
    return {**found, "cuda": snapshot.cuda.splitlines()} if snapshot.cuda else found


def plates_of(snapshot: Snapshot, result: Result | None) -> list[Plate]:
    """The pictures of one kernel."""
    found = gallery(snapshot, result.claims if result is not None else ())
    drawn = [(name, found.picture(name)) for name in found.names]
    return [Plate(name, p) if isinstance(p, Picture) else Plate(name, missing=p) for name, p in drawn]


def clusters_of(comparisons: Mapping[str, GoldenComparison]) -> list[Cluster]:
    """Equal changes together."""
    return [
        Cluster(
            group.comparison.summary,
            Tag(group.comparison.kind, WARN if not group.comparison.is_same else QUIET),
            group.names,
        )
        for group in grouped(comparisons)
    ]


def unsettled(entries: Iterable[Entry]) -> list[Cluster]:
    """Return what is not as it should be and has nothing to be compared with, by its reasons: the worst first, then the
    largest groups.
    """
    found: dict[tuple[Tag, str], list[str]] = {}
    for entry in entries:
        tag = entry.tags[0]
        if tag.tone in (BAD, WARN) and not entry.words:
            own = [remark.title for remark in entry.remarks if remark.tone == tag.tone]
            for why in own or [remark.title for remark in entry.remarks[:1]] or [tag.word]:
                found.setdefault((tag, why), []).append(entry.title)
    made = [Cluster((why,), tag, list(dict.fromkeys(titles))) for (tag, why), titles in found.items()]
    return sorted(made, key=lambda cluster: (SEVERITY.index(cluster.tag.tone), -len(cluster.members)))


def revisions_page(base: Contents, head: Contents, name: str) -> Page:
    """The goldens of two git revisions; needs no TileLang. name: of the first revision."""
    revisions = Revisions(base, head)
    entries = []
    for key in sorted({*base.goldens, *head.goldens}):
        old, new, comparison = base.goldens.get(key), head.goldens.get(key), revisions.comparisons.get(str(key))
        problem, decided = revisions.problems.get(str(key)), revisions.decided.get(str(key))
        remarks = [Remark(problem, BAD)] if problem else [Remark(decided, GOOD)] if decided else []
        tag = _revision_tag(old, new, comparison)
        entries.append(_entry(key, [tag], comparison, remarks, views_of(comparison, new or old, None), ()))
    counted = [f"{n} {w}" for w in ("changed", "added", "removed") if (n := sum(e.tags[0].word == w for e in entries))]
    approved = (
        f"; {len(revisions.problems)} not approved" if revisions.problems else "; all approved" if counted else ""
    )
    verdict = f"{len(head.goldens)} goldens: {', '.join(counted) or 'nothing changed'} since {name}{approved}"
    clusters = [*unsettled(entries), *clusters_of(revisions.comparisons)]
    return Page("tlcheck golden", verdict, WARN if revisions.problems else GOOD, (name, "now"), entries, clusters)


def _revision_tag(old: Golden | None, new: Golden | None, comparison: GoldenComparison | None) -> Tag:
    if old is None or new is None:
        return Tag("added" if old is None else "removed", WARN)
    same = old == new or (comparison is not None and comparison.is_same)
    return Tag("the same", GOOD) if same else Tag("changed", WARN)
