"""Reports of `tlcheck golden`: what is not as approved, equal changes together."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from tlcheck import exits
from tlcheck.golden.comparison import GoldenGroup, grouped
from tlcheck.golden.revisions import Revisions
from tlcheck.golden.states import CHANGED, MISSING, NOT_LOWERED, ORPHANED, REJECTED, SAME, UNUSABLE, WAITING, State
from tlcheck.golden.store import Contents
from tlcheck.report import diff_markdown
from tlcheck.report.diff_text import DiffForm, write_groups
from tlcheck.verdicts.words import plural

_LINE = 200  # characters of an error
_ROWS = 40  # of text shown of each of several groups
_ADVICE = {  # the options of `golden update`; None where only a review is left
    MISSING: ("record them", ("--new-only",)),
    WAITING: ("decide on those that wait", None),
    UNUSABLE: ("record them anew", ()),
    ORPHANED: ("remove them", ()),
    CHANGED: ("if that is meant", ()),
}


def write(console: Console, states: Sequence[State], form: DiffForm, words: Sequence[str] = ()) -> None:
    """The report of `golden check`. words: what the user says of the kernels, for commands about them."""
    comparisons = {str(s.key): s.comparison for s in states if s.comparison is not None}
    write_groups_and_notes(console, grouped(comparisons), list(_notes(states, words)), summary_of(states), form)


def write_groups_and_notes(
    console: Console, groups: Sequence[GoldenGroup], notes: Sequence[str], summary: str, form: DiffForm
) -> None:
    """Groups, notes, and what it comes to."""
    if form.markdown:
        print(diff_markdown.render(groups, notes, summary, stat=form.stat), end="")
        return
    write_groups(console, groups, _ROWS if len(groups) > 1 else None, stat=form.stat)
    for note in notes:
        console.print(Text(note), highlight=False, soft_wrap=True)
    console.print(Text(summary, style="bold"), highlight=False, soft_wrap=True)


def _notes(states: Sequence[State], words: Sequence[str]) -> Iterator[str]:
    for state in states:
        if state.kind in (MISSING, WAITING, REJECTED, UNUSABLE, ORPHANED, NOT_LOWERED):
            known = "expected not to lower" if state.expected else state.kind
            yield f"{state.key}: {known}: {_first_line(state.why)}"
    kinds = {state.kind for state in states}
    for kind, (what, options) in _ADVICE.items():
        if kind in kinds:
            update = shlex.join(["tlcheck", "golden", "update", *words, *(options or ())])
            yield f"{what}: " + (f"`{update}`, then " if options is not None else "") + "`tlcheck golden review`"


def _first_line(text: str) -> str:
    line = text.partition("\n")[0]
    return line if len(line) <= _LINE else line[: _LINE - 3] + "..."


def summary_of(states: Sequence[State]) -> str:
    """Return how many there are of each kind, in one line."""
    words = {SAME: "as approved"}
    counted = [(sum(1 for s in states if s.kind == kind and not s.expected), kind) for kind in _KINDS]
    parts = [f"{number} {words.get(kind, kind)}" for number, kind in counted if number]
    expected = sum(1 for s in states if s.expected)
    parts += [f"{expected} expected not to lower"] if expected else []
    return f"{plural(len(states), 'golden')}: {', '.join(parts)}" if parts else "no goldens"


_KINDS = (SAME, CHANGED, MISSING, WAITING, REJECTED, UNUSABLE, ORPHANED, NOT_LOWERED)


def write_revisions(console: Console, base: Contents, head: Contents, name: str, form: DiffForm) -> int:
    """The report of `golden diff`. Returns the exit code: `FOUND` where something that differs is not approved."""
    revisions = Revisions(base, head)
    groups = grouped(revisions.comparisons)
    real = sum(len(group.names) for group in groups)
    counts = [(revisions.added, "added"), (revisions.removed, "removed")]
    differ = "".join(f"{count} {what}, " for count, what in counts if count)
    summary = f"{plural(len(head.goldens), 'golden')}, {differ}{real} changed since {name}"
    open_ = len(revisions.problems)
    approved = f"; {open_} not approved" if open_ else "; all approved" if revisions.decided else ""
    notes = [f"{key}: {words}" for key, words in (*revisions.decided.items(), *revisions.problems.items())]
    write_groups_and_notes(console, groups, notes, f"{summary}{approved}", form)
    return exits.exit_code(found=bool(revisions.problems))
