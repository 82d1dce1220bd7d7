"""Two texts of a function as aligned rows: what is the same, only renamed, only moved, changed.

    compared = compare_texts(before.splitlines(), after.splitlines())
    for row in compared.rows: ...

A row has the line of either side; `row.spans()` marks the words that differ. `compared.verdict` says what all
differences together amount to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from tlcheck.golden.align import align
from tlcheck.golden.text_document import TextDocument, document, tokens

SAME, RENAMED, NESTED, CHANGED, MOVED, REMOVED, ADDED = KINDS = (
    "same",
    "renamed",
    "nested",
    "changed",
    "moved",
    "removed",
    "added",
)
_MANY_WORDS = 1200  # of a line, above which all between the equal ends counts as different

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line. number: from 1 on. text: with its indentation."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """A line of both texts, or one that only one of them has.

    kind: `same`; `renamed`, the same with other names, or equal indices in other terms; `nested`, the same inside
    other statements; `changed`; `moved`, the same at another place (a row for each place, with one side); `removed`;
    `added`.
    """

    kind: str
    left: TextLine | None
    right: TextLine | None

    def spans(self) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
        """Return where the text of either side differs, as ranges of characters; nothing where a side is missing."""
        if self.left is None or self.right is None or self.kind == SAME:
            return (), ()
        return differing_words(self.left.text, self.right.text)


@dataclass(frozen=True, slots=True)
class TextDiff:
    """The rows, and how many there are of each kind. renamed: old name -> new one of what is else the same.

    respelled: how many of the renamed rows differ in nothing but the terms of equal indices.
    """

    rows: tuple[Row, ...]
    counts: Counter[str]
    renamed: Mapping[str, str] = field(default_factory=dict)
    respelled: int = 0

    @property
    def verdict(self) -> str:
        """`same`, `names`, `order`, `names and order` (nothing else differs), or `changed`."""
        if any(self.counts[kind] for kind in (NESTED, CHANGED, REMOVED, ADDED)):
            return "changed"
        parts = [word for word, kind in (("names", RENAMED), ("order", MOVED)) if self.counts[kind]]
        return " and ".join(parts) or "same"


def compare_texts(before: Sequence[str], after: Sequence[str]) -> TextDiff:
    """Align the lines of two texts."""
    if list(before) == list(after):
        rows = [Row(SAME, TextLine(n, line), TextLine(n, line)) for n, line in enumerate(before, 1)]
        return TextDiff(tuple(rows), Counter({SAME: len(rows)}))
    a, b = document(before), document(after)
    comparison = _Comparison(a, b)
    rows = comparison.rows()
    return TextDiff(tuple(rows), Counter(row.kind for row in rows), comparison.renamed(), comparison.respelled)


def differing_words(left: str, right: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The ranges of characters in which two lines differ; whole words, indentation aside."""
    ours, theirs = _words(left), _words(right)
    start = max(1, _common(ours, theirs))
    end = _common(ours[start:][::-1], theirs[start:][::-1])
    first, second = ours[start : len(ours) - end], theirs[start : len(theirs) - end]
    if len(first) + len(second) > _MANY_WORDS:
        changes = [(0, len(first), 0, len(second))]
    else:
        codes = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
        changes = [(i, i_end, j, j_end) for tag, i, i_end, j, j_end in codes if tag != "equal"]
    mine = _ranges(ours, [(start + i, start + i_end) for i, i_end, _, _ in changes])
    return mine, _ranges(theirs, [(start + j, start + j_end) for _, _, j, j_end in changes])


def _words(line: str) -> list[str]:
    """The indentation, then the words."""
    text = line.lstrip(" ")
    return [line[: len(line) - len(text)], *tokens(text)]


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    for number, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return number
    return min(len(left), len(right))


def _ranges(words: Sequence[str], places: Sequence[Span]) -> tuple[Span, ...]:
    """Places of words as ranges of characters; those with nothing but white space between them become one."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    found: list[Span] = []
    for first, end in places:
        if first == end:
            continue
        if found and not "".join(words)[found[-1][1] : starts[first]].strip():
            found[-1] = (found[-1][0], starts[end])
        else:
            found.append((starts[first], starts[end]))
    return tuple(found)


class _Comparison:
    """Says of each pair of counterparts in how far they are the same."""

    def __init__(self, a: TextDocument, b: TextDocument) -> None:
        self._a, self._b = a, b
        self._pairs = align(a, b)
        self._back = [-1] * len(b)
        for place, other in enumerate(self._pairs):
            if other >= 0:
                self._back[other] = place
        self._meaning: dict[int, int] = {}  # declaration on the left -> on the right
        for place, other in enumerate(self._pairs):
            if other >= 0:
                self._declare(place, other)
        self._moved_from, self._moved_to = self._moves()
        self.respelled = 0  # rows until now

    def rows(self) -> list[Row]:
        found: list[Row] = []
        done = 0
        for place, other in enumerate(self._pairs):
            if other < 0:
                found.append(Row(MOVED if place in self._moved_from else REMOVED, self._left(place), None))
                continue
            found += [self._only_right(j) for j in range(done, other)]
            found.append(Row(self._kind(place, other), self._left(place), self._right(other)))
            done = other + 1
        return [*found, *(self._only_right(j) for j in range(done, len(self._b)))]

    def renamed(self) -> dict[str, str]:
        """Old name -> new name, by the first declaration of each that is else the same on both sides.

        A name that the right has too, in a declaration that is not the same, is no renamed one: of two buffers that
        were alike, one has changed, and the other's declaration only looks like the first one's from before.
        """
        found: dict[str, str] = {}
        changed = {name for names in self._b.declared for name in names}
        for place, other in enumerate(self._pairs):
            if other >= 0 and self._a.keys[place] == self._b.keys[other]:
                names = {declared: name for name, declared in self._b.declared[other].items()}
                changed.difference_update(names.values())
                for name, declared in self._a.declared[place].items():
                    found.setdefault(name, names[self._meaning[declared]])
        return {old: new for old, new in found.items() if old != new and old not in changed}

    def _left(self, place: int) -> TextLine:
        return TextLine(place + 1, self._a.lines[place])

    def _right(self, place: int) -> TextLine:
        return TextLine(place + 1, self._b.lines[place])

    def _only_right(self, place: int) -> Row:
        return Row(MOVED if place in self._moved_to else ADDED, None, self._right(place))

    def _declare(self, place: int, other: int) -> None:
        """The declarations of counterparts correspond: by name, the remaining ones in order."""
        ours, theirs = self._a.declared[place], self._b.declared[other]
        self._meaning.update((ours[name], theirs[name]) for name in ours if name in theirs)
        rest = [d for name, d in ours.items() if name not in theirs]
        others = [d for name, d in theirs.items() if name not in ours]
        self._meaning.update(zip(rest, others, strict=False))

    def _kind(self, place: int, other: int) -> str:
        if self._a.keys[place] != self._b.keys[other] or not self._means_the_same(place, other):
            return CHANGED
        if not self._stands_the_same(place, other):
            return NESTED
        if self._a.texts[place] == self._b.texts[other]:
            return SAME
        self.respelled += self._a.forms[place] == self._b.forms[other]
        return RENAMED

    def _means_the_same(self, place: int, other: int) -> bool:
        ours, theirs = self._a.refs[place], self._b.refs[other]
        if all(self._meaning.get(x, -1) == y for x, y in zip(ours, theirs, strict=True)):
            return True
        same_text = self._a.forms[place] == self._b.forms[other]
        return same_text and all(map(self._may_mean, ours, theirs))

    def _may_mean(self, ours: int, theirs: int) -> bool:
        """Two declarations of one name, of which one at least has no counterpart: the difference shows there."""
        meant = self._meaning.get(ours, -1)
        return meant == theirs or meant < 0 or self._back[self._b.owners[theirs]] < 0

    def _stands_the_same(self, place: int, other: int) -> bool:
        """Whether the innermost enclosing lines that have counterparts are counterparts."""
        outer = _first(self._a.parents[place], self._a.parents, lambda p: self._pairs[p] >= 0)
        around = _first(self._b.parents[other], self._b.parents, lambda p: self._back[p] >= 0)
        return around == (self._pairs[outer] if outer >= 0 else -1)

    def _moves(self) -> tuple[set[int], set[int]]:
        """Lines that are on either side, at places that are no counterparts."""
        waiting: dict[tuple[object, ...], list[int]] = {}
        for other in range(len(self._b) - 1, -1, -1):
            if self._back[other] < 0:
                waiting.setdefault((self._b.depths[other], self._b.keys[other]), []).append(other)
        gone, come = set(), set()
        for place in range(len(self._a)):
            candidates = waiting.get((self._a.depths[place], self._a.keys[place]), [])
            if self._pairs[place] >= 0 or not candidates:
                continue
            self._declare(place, candidates[-1])
            if self._means_the_same(place, candidates[-1]):
                gone.add(place)
                come.add(candidates.pop())
        return gone, come


def _first(place: int, parents: Sequence[int], wanted: Callable[[int], bool]) -> int:
    while place >= 0 and not wanted(place):
        place = parents[place]
    return place
