"""A picture as SVG: one path for each colour, so that thousands of cells stay small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from tlcheck.page.picture import Picture

_FONT = "ui-monospace,Menlo,Consolas,monospace"
_HEIGHT, _CHARACTER, _SIZE = 16, 5.4, 9  # of a cell; of a character at that size
_LEFT, _TOP, _MARGIN, _LINE = 44, 46, 12, 16
_EVERY = 8  # columns with a number above
_LONGEST = 0.6  # of the font's size, a character's width
INK, FAINT, RED, WRONG = "#1c2024", "#6b7280", "#d1121f", "#ff5a5f"
FRAMES = {"lane": INK, "written": RED, "intended": RED}


@dataclass(frozen=True)
class Rectangle:
    x: float
    y: float
    width: float
    height: float
    fill: str


@dataclass(frozen=True)
class Line:
    x: float
    y: float
    x2: float
    y2: float
    colour: str
    width: float = 1


@dataclass(frozen=True)
class Words:
    """anchor: `start`, `middle` or `end` of the text is at x; y is its base line."""

    x: float
    y: float
    text: str
    size: float = 11
    colour: str = INK
    anchor: str = "start"


@dataclass(frozen=True)
class Drawing:
    """A drawing, in the order in which it is drawn: cells, lines, frames, texts."""

    width: int
    height: int
    cells: tuple[Rectangle, ...]
    lines: tuple[Line, ...]
    frames: tuple[Rectangle, ...]
    texts: tuple[Words, ...]


def drawing(picture: Picture) -> Drawing:
    """Everything at its place; notes below, broken into lines."""
    labels = [[picture.label(r, c) for c in range(picture.columns)] for r in range(picture.rows)]
    cell = round(max(18, max(len(label) for row in labels for label in row) * _CHARACTER + 4))
    width = max(_LEFT + cell * picture.columns + _MARGIN, 480)
    below = _TOP + _HEIGHT * picture.rows + _MARGIN
    notes = [line for note in (legend(picture), *picture.notes) for line in _broken(note, width - 2 * _MARGIN)]
    title = _broken(picture.title, width - 2 * _MARGIN)
    shift = (len(title) - 1) * _LINE
    place = _Place(cell, _TOP + shift)
    texts = [Words(_MARGIN, 18 + n * _LINE, line, 12) for n, line in enumerate(title)]
    texts += [Words(_MARGIN, below + shift + 8 + n * _LINE, line, 11, FAINT) for n, line in enumerate(notes)]
    texts += [*_axes(picture, place), *_labels(labels, place)]
    height = below + shift + len(notes) * _LINE + _MARGIN
    frames = tuple(place.box(m.row, m.column, FRAMES[m.kind]) for m in picture.marks)
    return Drawing(width, height, tuple(_cells(picture, place)), tuple(_groups(picture, place)), frames, tuple(texts))


def legend(picture: Picture) -> str:
    """Return what the cells say."""
    if picture.registers is not None:
        return "thread:register of each element; a hue for each warp"
    text = "physical offset of each element, in elements"
    if picture.vector:
        text += f"; lines part what one x{picture.vector} instruction adds"
    if any(mark.kind == "written" for mark in picture.marks):
        text += "; red: where a wrong lane adds, framed red: where that belongs, framed black: the other lanes"
    return text


@dataclass(frozen=True)
class _Place:
    """A record of where the grid is. cell: width of one."""

    cell: int
    top: int

    def x(self, column: int) -> int:
        return _LEFT + column * self.cell

    def y(self, row: int) -> int:
        return self.top + row * _HEIGHT

    def box(self, row: int, column: int, fill: str) -> Rectangle:
        return Rectangle(self.x(column), self.y(row), self.cell, _HEIGHT, fill)


def _cells(picture: Picture, place: _Place) -> Iterator[Rectangle]:
    wrong = {(m.row, m.column) for m in picture.marks if m.kind == "written"}
    for row, colours in enumerate(picture.colours.tolist()):
        for column, colour in enumerate(colours):
            if colour >= 0:
                yield place.box(row, column, WRONG if (row, column) in wrong else picture.palette[colour])


def _labels(labels: list[list[str]], place: _Place) -> Iterator[Words]:
    for row, texts in enumerate(labels):
        for column, text in enumerate(texts):
            if text:
                x = place.x(column) + place.cell / 2
                yield Words(x, place.y(row) + 11.5, text, _SIZE, INK, "middle")


def _axes(picture: Picture, place: _Place) -> Iterator[Words]:
    """Indices of rows, and of some columns; of a one-dimensional buffer where each row begins."""
    indices = picture.window.indices
    for row in range(picture.rows):
        first = int(indices[-1][row, 0] if len(indices) == 1 else indices[-2][row, 0])
        if picture.window.inside[row, 0]:
            yield Words(_LEFT - 6, place.y(row) + 11.5, str(first), _SIZE, FAINT, "end")
    for column in range(0, picture.columns, _EVERY):
        if picture.window.inside[0, column]:
            text = str(int(indices[-1][0, column]))
            yield Words(place.x(column) + place.cell / 2, place.top - 5, text, _SIZE, FAINT, "middle")


def _groups(picture: Picture, place: _Place) -> Iterator[Line]:
    """Yield lines between neighbours that are not in one vector."""
    if not picture.vector:
        return
    group = (picture.values // picture.vector).tolist()
    for row in range(picture.rows):
        for column in range(picture.columns):
            x, y = place.x(column), place.y(row)
            if column and group[row][column] != group[row][column - 1]:
                yield Line(x, y, x, y + _HEIGHT, FAINT)
            if row and group[row][column] != group[row - 1][column]:
                yield Line(x, y, x + place.cell, y, FAINT)


def _broken(text: str, width: float) -> list[str]:
    """Into lines that fit."""
    size = max(20, int(width / (12 * _LONGEST)))
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > size:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def render(picture: Picture) -> str:
    """A whole file, with a white background: it is read outside of pages too."""
    d = drawing(picture)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {d.width} {d.height}" width="{d.width}" '
        f'height="{d.height}" font-family="{_FONT}" role="img">\n'
        f"<title>{_text(picture.title)}</title>\n"
        f'<rect width="{d.width}" height="{d.height}" fill="#fff"/>\n'
    )
    return head + "\n".join(_parts(d)) + "\n</svg>\n"


def _parts(d: Drawing) -> Iterator[str]:
    paths: dict[str, list[str]] = {}
    for box in d.cells:
        paths.setdefault(box.fill, []).append(f"M{box.x} {box.y}h{box.width}v{box.height}h-{box.width}z")
    yield from (f'<path fill="{fill}" d="{"".join(parts)}"/>' for fill, parts in paths.items())
    strokes: dict[tuple[str, float], list[str]] = {}
    for line in d.lines:
        strokes.setdefault((line.colour, line.width), []).append(f"M{line.x} {line.y}L{line.x2} {line.y2}")
    for (colour, width), parts in strokes.items():
        yield f'<path stroke="{colour}" stroke-width="{width}" d="{"".join(parts)}"/>'
    for box in d.frames:
        yield (
            f'<rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" fill="none" '
            f'stroke="{box.fill}" stroke-width="2"/>'
        )
    styles: dict[tuple[float, str, str], list[str]] = {}
    for t in d.texts:
        words = f'<text x="{t.x:g}" y="{t.y:g}">{_text(t.text)}</text>'
        styles.setdefault((t.size, t.colour, t.anchor), []).append(words)
    for (size, colour, anchor), found in styles.items():
        yield f'<g font-size="{size}" fill="{colour}" text-anchor="{anchor}">{"".join(found)}</g>'


def _text(text: str) -> str:
    """A name in a kernel may hold anything, also what XML cannot."""
    return escape("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text))
