"""Find what differs between two goldens: in words first, then as aligned texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.facts import Change, Facts, changes, from_json
from tlcheck.golden.costs import cost_changes, read_cost
from tlcheck.golden.entry import COST, FACTS, Golden
from tlcheck.golden.normal import parse
from tlcheck.golden.textdiff import MOVED, RENAMED, SAME, Row, TextDiff, compare_texts
from tlcheck.snapshot.checkpoint import BEFORE_LOWERING, Checkpoint

_ASKED = ("argument ", "pass config ")  # in a header
_TEXT_SHOWN = 120  # characters of a statement in words
_NAME = re.compile(r"[A-Za-z_]\w*")
_NAMING = {  # where facts have names of the kernel's in them
    "grid": ("text",),
    "buffers": ("name", "shape"),
    "loops": ("name", "extents"),
    "layouts": ("buffer", "text"),
    "accesses": ("buffer", "count"),
    "syncs": ("place", "count"),
    "instructions": ("count",),
}
_WORD = re.compile(r"\b(?!T\.)\w+")


@dataclass(frozen=True)
class GoldenComparison:
    """header: what determines the IR, where it differs, in words. changes: of the facts, the most telling first.

    texts: checkpoint -> aligned texts, of those that differ. missing: checkpoints that one side lacks, in words.
    elsewhere: checkpoints that differ too, in words.
    """

    header: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    texts: Mapping[str, TextDiff] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def is_same(self) -> bool:
        """Whether the IR is the same; another release or argument with the same IR is no difference of it."""
        return not (self.changes or self.texts or self.missing or self.elsewhere)

    @cached_property
    def kind(self) -> str:
        """`same`, `header`, `names`, `order`, `names and order`, or `changed`."""
        if self.is_same:
            return "header" if self.header else "same"
        if self.changes or self.missing or not self.texts:
            return "changed"
        found = {text.verdict for text in self.texts.values()}
        if "changed" in found:
            return "changed"
        return "names and order" if len(found) > 1 or "names and order" in found else found.pop()

    @cached_property
    def summary(self) -> tuple[str, ...]:
        """All in words, at least one line where anything differs: what was asked for first, the release last."""
        texts = tuple(f"{name}: {text_in_words(text)}" for name, text in self.texts.items())
        asked = tuple(word for word in self.header if word.startswith(_ASKED))
        rest = tuple(word for word in self.header if not word.startswith(_ASKED))
        words = (change.told for change in self.changes)
        return (*asked, *words, *self.missing, *texts, *self.elsewhere, *rest)

    @cached_property
    def signature(self) -> tuple[object, ...]:
        """Equal for equal changes of different cases: of facts, and only where these are equal of the text."""
        rewrites = tuple(change.rewrite for change in self.changes)
        texts = frozenset(_rewrite(row) for text in self.texts.values() for row in text.rows if row.kind != SAME)
        return (self.kind, self.header, rewrites, self.missing, self.elsewhere, frozenset() if rewrites else texts)


def _rewrite(row: Row) -> tuple[str, ...]:
    """The words that differ in a line; all of a line that only one side has, but for names and numbers."""
    if row.left is not None and row.right is not None:
        ours, theirs = row.spans()
        return (row.kind, _words_at(row.left.text, ours), _words_at(row.right.text, theirs))
    side = row.left or row.right
    assert side is not None
    return (row.kind, _WORD.sub("", side.text.strip()))


def compare_goldens(before: Golden, after: Golden) -> GoldenComparison:
    """Two goldens of one case, or of two. Raises ValueError where facts cannot be read."""
    ours, theirs = before.texts(), after.texts()
    parsed = {name: (parse(ours[name]), parse(theirs[name])) for name in ours if name in theirs}
    header = dict.fromkeys(word for a, b in parsed.values() for word in _header_words(a.header, b.header))
    diffs = {name: compare_texts(a.lines, b.lines) for name, (a, b) in parsed.items()}
    renamed = {old: new for diff in reversed(diffs.values()) for old, new in diff.renamed.items()}
    one, other = _facts(before, renamed), _facts(after, {})
    old, new = _cost(before, renamed), _cost(after, {})
    changed = () if one is None or other is None else changes(one, other)
    return GoldenComparison(
        tuple(header),
        (*changed, *(() if old is None or new is None else cost_changes(old, new))),
        {name: diff for name, diff in diffs.items() if diff.verdict != SAME},
        (*_missing(ours, theirs, "no longer recorded"), *_missing(theirs, ours, "recorded only now")),
    )


def _missing(these: Mapping[str, str], those: Mapping[str, str], what: str) -> Iterable[str]:
    """Checkpoints that only one side has; a `source` is no difference, since older snapshots have none."""
    return (f"checkpoint {name}: {what}" for name in these if name not in those and name != Checkpoint.SOURCE)


def _facts(golden: Golden, renamed: Mapping[str, str]) -> Facts | None:
    """Compare facts with the other side's names for buffers and variables: a renaming is no change."""
    text = golden.parts.get(FACTS)
    if text is None:
        return None
    try:
        return from_json(_with_names(json.loads(text), renamed))
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{FACTS} cannot be read: {error}") from error


def _cost(golden: Golden, renamed: Mapping[str, str]) -> KernelCost | str | None:
    text = golden.parts.get(COST)
    return None if text is None else read_cost(text, renamed)


def _with_names(data: dict[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
    """Facts as JSON, with other names where names of the kernel stand."""
    if not renamed:
        return data
    new = dict(data)
    for table, keys in _NAMING.items():
        new[table] = [{k: _renamed(v, renamed) if k in keys else v for k, v in entry.items()} for entry in data[table]]
    return new


def _renamed(value: Any, renamed: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _NAME.sub(lambda found: renamed.get(found[0], found[0]), value)
    if isinstance(value, list):
        return [_renamed(item, renamed) for item in value]
    return {**value, "text": _renamed(value["text"], renamed)}


def _header_words(before: Mapping[str, str], after: Mapping[str, str]) -> Iterable[str]:
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name) and name != "checkpoint":
            yield f"{name}: {before.get(name, 'none')} -> {after.get(name, 'none')}"


def text_in_words(text: TextDiff) -> str:
    """`only names differ`; `2 statements changed, 1 added: first T.copy(...) -> ...`."""
    if text.verdict != "changed":
        differing = ["names"] if text.counts[RENAMED] > text.respelled else []
        differing += ["the terms of equal indices"] if text.respelled else []
        differing += ["the order of statements"] if text.counts[MOVED] else []
        return f"only {' and '.join(differing)} differ{'s' if differing == ['the order of statements'] else ''}"
    kinds = {"nested": "moved in or out of a loop or branch", "moved": "moved"}
    counted = [
        (text.counts[kind], kinds.get(kind, kind)) for kind in ("changed", "added", "removed", "nested", "moved")
    ]
    parts = [f"{number} {word}" for number, word in counted if number]
    return f"statements: {', '.join(parts)}; the first: {_first(text)}"


def _first(text: TextDiff) -> str:
    row = next(row for row in text.rows if row.kind in ("changed", "added", "removed", "nested"))
    if row.left is None or row.right is None or row.kind != "changed":
        side = row.left or row.right
        assert side is not None
        return f"{row.kind} {_cut(side.text.strip())}"
    ours, theirs = row.spans()
    return f"{_cut(row.left.text.strip())} ({_words_at(row.left.text, ours)} -> {_words_at(row.right.text, theirs)})"


def _words_at(text: str, spans: tuple[tuple[int, int], ...]) -> str:
    return _cut(" ... ".join(text[start:end].strip() for start, end in spans)) or "nothing"


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_SHOWN else text[: _TEXT_SHOWN - 3] + "..."


def focused(comparison: GoldenComparison, at: str = "") -> GoldenComparison:
    """Add the text of one checkpoint, and in words that others differ. at: that one, `all`, or the most telling.

    Where nothing differs but what comes before lowering, that is said without its text: releases write tile operators
    differently.
    """
    differ = list(comparison.texts)
    if at == "all" or not differ:
        return comparison
    lowered = [name for name in (*Checkpoint, *differ) if name in differ and name not in BEFORE_LOWERING]
    early = not lowered and not comparison.changes
    shown = at or next(iter(lowered), "" if early else differ[0])
    texts = {name: text for name, text in comparison.texts.items() if name == shown}
    others = ", ".join(name for name in differ if name != shown)
    elsewhere = (f"differs{' too' if shown else ', all else is the same'}: {others}",) if others else ()
    return replace(comparison, texts=texts, elsewhere=elsewhere)


@dataclass(frozen=True)
class GoldenGroup:
    """Cases with the same change. names: of the cases, in order; the comparison is the first one's."""

    names: tuple[str, ...]
    comparison: GoldenComparison


def grouped(comparisons: Mapping[str, GoldenComparison]) -> list[GoldenGroup]:
    """Equal changes together, the largest groups of real changes first; what is the same is left out."""
    groups: dict[tuple[object, ...], list[str]] = {}
    for name, comparison in comparisons.items():
        if comparison.kind != SAME:
            groups.setdefault(comparison.signature, []).append(name)
    found = [GoldenGroup(tuple(names), comparisons[names[0]]) for names in groups.values()]
    return sorted(found, key=lambda group: (group.comparison.kind != "changed", -len(group.names)))
