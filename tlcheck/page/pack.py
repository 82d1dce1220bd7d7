"""A page's data as small JSON: every distinct line, picture and text once, and numbers in place of them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from tlcheck.golden.textdiff import KINDS, Row, TextDiff, TextLine
from tlcheck.page.layout_svg import legend
from tlcheck.page.picture import Picture
from tlcheck.page.shown import Entry, Page, Plate, Remark, Tag, View


def packed(page: Page) -> dict[str, Any]:
    """The page's data, with numbers in place of what there is several times."""
    return _Pack().page(page)


def embedded(data: Any) -> str:
    """JSON, compressed, as base64: it can hold nothing that a browser would take for markup."""
    text = json.dumps(data, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


class _Table:
    """Things by number, equal ones once."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def number(self, key: Hashable, entry: Any) -> int:
        found = self._numbers.setdefault(key, len(self.entries))
        if found == len(self.entries):
            self.entries.append(entry)
        return found


class _Pack:
    def __init__(self) -> None:
        self._lines, self._views, self._pictures = _Table(), _Table(), _Table()

    def page(self, page: Page) -> dict[str, Any]:
        entries = [self._entry(entry) for entry in page.entries]
        places = {entry.title: place for place, entry in enumerate(page.entries)}
        return {
            "title": page.title,
            "verdict": page.verdict,
            "tone": page.tone,
            "sides": page.sides,
            "notes": list(page.notes),
            "made": list(page.made),
            "kinds": KINDS,
            "entries": entries,
            "clusters": [
                {"words": list(c.words), "tag": _tag(c.tag), "members": [places[m] for m in c.members if m in places]}
                for c in page.clusters
            ],
            "lines": self._lines.entries,
            "views": self._views.entries,
            "pictures": self._pictures.entries,
        }

    def _entry(self, entry: Entry) -> dict[str, Any]:
        return {
            "file": entry.file,
            "name": entry.name,
            "target": entry.target,
            "tags": [_tag(tag) for tag in entry.tags],
            "words": list(entry.words),
            "remarks": [_remark(remark) for remark in entry.remarks],
            "views": [self._view(view) for view in entry.views],
            "plates": [self._plate(plate) for plate in entry.plates],
            "claims": [[kind, [_tag(tag) for tag in tags]] for kind, tags in entry.claims.items()],
            "passes": [_tag(tag) for tag in entry.passes],
        }

    def _view(self, view: View) -> dict[str, Any]:
        head = {"name": view.name, "note": view.note, "syntax": view.syntax}
        text = self._rows(view.diff) if view.diff is not None else {"lines": self._numbered(view.lines)}
        return {**head, "text": self._views.number(json.dumps(text), text)}

    def _numbered(self, lines: Sequence[str]) -> list[int]:
        return [self._lines.number(line, line) for line in lines]

    def _rows(self, diff: TextDiff) -> dict[str, Any]:
        """rows: kind, line and line of each in turn; -1 for none. spans: row -> flat ranges on either side."""
        rows: list[int] = []
        spans: dict[int, list[list[int]]] = {}
        for place, row in enumerate(diff.rows):
            rows += [KINDS.index(row.kind), self._side(row.left), self._side(row.right)]
            found = _spans(row)
            if any(found):
                spans[place] = found
        return {"rows": rows, "spans": spans, "verdict": diff.verdict}

    def _side(self, side: TextLine | None) -> int:
        return -1 if side is None else self._lines.number(side.text, side.text)

    def _plate(self, plate: Plate) -> dict[str, Any]:
        found = {"picture": plate.picture, "before": plate.before}
        numbers = {name: self._picture(p) for name, p in found.items() if p is not None}
        return {"buffer": plate.buffer, "missing": plate.missing, **numbers}

    def _picture(self, picture: Picture) -> int:
        data = _picture(picture)
        return self._pictures.number(json.dumps(data), data)


def _tag(tag: Tag) -> list[str]:
    return [tag.word, tag.tone]


def _remark(remark: Remark) -> dict[str, Any]:
    spots = [[spot.view, spot.line] for spot in remark.spots]
    said = {"title": remark.title, "tone": remark.tone, "lines": list(remark.lines), "code": list(remark.code)}
    return {**said, "spots": spots}


def _spans(row: Row) -> list[list[int]]:
    """Return what differs on either side, in UTF-16 units: those that JavaScript counts."""
    sides = zip((row.left, row.right), row.spans(), strict=True)
    return [[_units(side.text, n) for span in spans for n in span] if side else [] for side, spans in sides]


def _units(text: str, place: int) -> int:
    return place if text.isascii() else len(text[:place].encode("utf-16-le", "surrogatepass")) // 2


def _picture(p: Picture) -> dict[str, Any]:
    indices = p.window.indices
    rows = indices[-1][:, 0] if len(indices) == 1 else indices[-2][:, 0]
    return {
        "title": p.title,
        "kind": p.kind,
        "legend": legend(p),
        "rows": _differences(rows),
        "columns": _differences(indices[-1][0]),
        "values": _differences(p.values.ravel()),
        "registers": None if p.registers is None else _differences(p.registers.ravel()),
        "colours": _differences(p.colours.ravel()),
        "palette": p.palette,
        "name": p.buffer,
        "line": len(indices) == 1,
        "leading": [int(index[0, 0]) for index in indices[:-2]],
        "vector": p.vector,
        "notes": p.notes,
        "marks": [[m.row, m.column, m.kind, m.text] for m in p.marks],
    }


def _differences(values: Any) -> list[int]:
    """Each number as what it is more than the one before: regular layouts become repetitive, and so small."""
    found: list[int] = np.diff(values, prepend=0).tolist()
    return found
