"""A picture as SVG: one path for each colour, so that thousands of cells stay small."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from tlcheck.page.drawing import Drawing, drawing
from tlcheck.page.picture import Picture

_FONT = "ui-monospace,Menlo,Consolas,monospace"


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
