"""The text of a function line by line, with the variables in it resolved: which declaration each name means.

Works on the text alone, so that goldens of two git revisions compare without TileLang and without snapshots. Names
that differ stand for the same thing if they mean declarations that correspond; see `textdiff`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tlcheck.golden.indices import simpler

LAYOUT = "# layout "
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[A-Za-z_]\w*(?:\.\w+)*|\d[\w.]*(?:(?<=e)[+-]\d+)?|//|[=!<>]=|->|[^\w\s]|\s+|\w+'
)
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)*")
_FOR = re.compile(r"for ([\w.]+) in ")
_BIND = re.compile(r"([A-Za-z_][\w.]*) = ")
_PARAMETER = re.compile(r"([A-Za-z_][\w.]*): T\.")
_FUNCTION = re.compile(r"def ([\w.]+)\(")
_NUMBER = re.compile(r"\d[\w.]*(?:(?<=e)[+-]\d+)?")
_MARK = "\0"


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A text to compare. All tuples have one entry for each line; places of lines count from 0.

    lines: as they were. texts: without indentation. forms: with simpler indices. depths: of indentation. parents: the
    enclosing line, -1 at the top. keys: the form with each variable replaced by a mark. shapes: the key with numbers
    replaced too. refs: for each mark the declaration that it means. declared: those that the line makes, name ->
    number. owners: declaration -> line.
    """

    lines: tuple[str, ...]
    texts: tuple[str, ...]
    forms: tuple[str, ...]
    depths: tuple[int, ...]
    parents: tuple[int, ...]
    keys: tuple[str, ...]
    shapes: tuple[str, ...]
    refs: tuple[tuple[int, ...], ...]
    declared: tuple[dict[str, int], ...]
    owners: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.texts)


def tokens(text: str) -> list[str]:
    """Words, numbers, strings, operators and white space; joined they are the text again."""
    return _TOKEN.findall(text)


def document(lines: Sequence[str]) -> TextDocument:
    """Read the lines of one text."""
    texts = tuple([line.lstrip(" ") for line in lines])
    depths = tuple([len(line) - len(text) for line, text in zip(lines, texts, strict=True)])
    forms = tuple([simpler(text) for text in texts])
    scopes = _Scopes()
    for form, depth in zip(forms, depths, strict=True):
        scopes.read(form, depth)
    shapes = _cached(lambda key: _NUMBER.sub("0", key))
    parents = [-1] * len(depths)
    open_lines: list[int] = []
    for place, depth in enumerate(depths):
        while open_lines and depths[open_lines[-1]] >= depth:
            open_lines.pop()
        parents[place] = open_lines[-1] if open_lines else -1
        open_lines.append(place)
    return TextDocument(
        tuple(lines),
        texts,
        forms,
        depths,
        tuple(parents),
        tuple(scopes.keys),
        tuple([shapes(key) for key in scopes.keys]),
        tuple(scopes.refs),
        tuple(scopes.declared),
        tuple(scopes.owners),
    )


def _cached(function: Callable[[str], str]) -> Callable[[str], str]:
    known: dict[str, str] = {}

    def call(text: str) -> str:
        if text not in known:
            known[text] = function(text)
        return known[text]

    return call


class _Scopes:
    """Goes down the lines and keeps what each visible name means."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.refs: list[tuple[int, ...]] = []
        self.declared: list[dict[str, int]] = []
        self.owners: list[int] = []
        self._visible: dict[str, list[int]] = {}  # name -> its declarations, innermost last
        self._open: list[tuple[int, str]] = []  # depth and name, innermost last
        self._pieces: dict[str, list[str]] = {}  # of a text: what is between names and names, in turn

    def read(self, text: str, depth: int) -> None:
        while self._open and self._open[-1][0] > depth:
            self._visible[self._open.pop()[1]].pop()
        made: dict[str, int] = {}
        after = {} if text.startswith(LAYOUT) else _bound(text)
        local = _layout_variables(text)
        for name in (*_outer(text), *local):
            made[name] = self._declare(name, depth + 1)
        key, refs = self._resolve(text, after)
        for name in after:
            made[name] = self._declare(name, depth)
            refs.insert(0, made[name])
        for name in local:  # they are known on this line only
            self._visible[name].pop()
            self._open.remove((depth + 1, name))
        self.keys.append(key)
        self.refs.append(tuple(refs))
        self.declared.append(made)

    def _declare(self, name: str, depth: int) -> int:
        self.owners.append(len(self.keys))
        self._visible.setdefault(name, []).append(len(self.owners) - 1)
        self._open.append((depth, name))
        return len(self.owners) - 1

    def _resolve(self, text: str, after: dict[str, None]) -> tuple[str, list[int]]:
        """The key and the declarations of a line, without those that it makes for the lines after it."""
        pieces = self._pieces.get(text)
        if pieces is None:
            pieces = self._pieces[text] = _pieces(text)
        parts, refs = pieces.copy(), []
        for number in range(1, len(parts), 2):
            meant = self._visible.get(parts[number])
            if number == 1 and after:
                parts[number] = _MARK
            elif meant:
                parts[number] = _MARK
                refs.append(meant[-1])
        return "".join(parts), refs


def _bound(text: str) -> dict[str, None]:
    """The name that a line binds for those after it."""
    found = _BIND.match(text)
    return {found[1]: None} if found else {}


def _outer(text: str) -> Iterator[str]:
    """The names that a line declares for itself and the lines in it."""
    if found := _FOR.match(text):
        yield found[1]
    elif found := _FUNCTION.match(text):
        yield found[1]
        yield from dict.fromkeys(name for name in _PARAMETER.findall(text) if name != found[1])


def _layout_variables(text: str) -> list[str]:
    if not text.startswith(LAYOUT):
        return []
    domain = text.partition("(")[2].partition(")")[0]
    return list(dict.fromkeys(_NAME.findall(domain)))


def _pieces(text: str) -> list[str]:
    """Return what is between names and the names in turn; words inside strings and of the language are no names."""
    parts = [""]
    start = len(LAYOUT) if text.startswith(LAYOUT) else 0
    parts[0] = text[:start]
    for token in tokens(text[start:]):
        if _NAME.fullmatch(token) and token not in _WORDS:
            parts += [token, ""]
        else:
            parts[-1] += token
    return parts


_WORDS = frozenset(
    "for in if elif else while with def pass and or not True False thread local from on replicas".split()
)
