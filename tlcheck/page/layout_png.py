"""A picture as PNG, drawn by Pillow (`pip install 'tlcheck[png]'`)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from tlcheck.errors import UsageError
from tlcheck.page.drawing import Box, Words, drawing
from tlcheck.page.picture import Picture

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw as Canvas

_SCALE = 2  # pixels of the file for one of the drawing: labels are small
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def render(picture: Picture) -> bytes:
    """A whole file. Raises UsageError without Pillow."""
    try:
        from PIL import Image, ImageDraw
    except ImportError:
        raise UsageError("PNG needs Pillow: pip install 'tlcheck[png]', or write SVG: -o FILE.svg") from None
    d = drawing(picture)
    image = Image.new("RGB", (d.width * _SCALE, d.height * _SCALE), "#ffffff")
    draw = ImageDraw.Draw(image)
    for box in d.cells:
        draw.rectangle(_corners(box), fill=box.fill)
    for line in d.lines:
        points = (line.x * _SCALE, line.y * _SCALE, line.x2 * _SCALE, line.y2 * _SCALE)
        draw.line(points, fill=line.colour, width=round(line.width))
    for box in d.frames:
        draw.rectangle(_corners(box), outline=box.fill, width=2 * _SCALE)
    _write(draw, d.texts)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _corners(box: Box) -> tuple[float, float, float, float]:
    """Pillow's rectangles have their second corner inside."""
    right, below = box.x + box.width, box.y + box.height
    return box.x * _SCALE, box.y * _SCALE, right * _SCALE - 1, below * _SCALE - 1


def _write(draw: Canvas, texts: tuple[Words, ...]) -> None:
    from PIL import ImageFont

    fonts = {size: ImageFont.load_default(size * _SCALE) for size in {t.size for t in texts}}
    for t in texts:
        place = (t.x * _SCALE, t.y * _SCALE)
        draw.text(place, t.text, fill=t.colour, font=fonts[t.size], anchor=_ANCHORS[t.anchor])
