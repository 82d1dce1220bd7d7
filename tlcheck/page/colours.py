"""Define what the colours of a picture mean. Every colour is light enough for dark text on it."""

from __future__ import annotations

import colorsys

import numpy as np
import numpy.typing as npt

Grid = npt.NDArray[np.int64]
_GOLDEN = 0.381966  # of the circle between the hues of two neighbouring warps: no two of a few are alike
_CHUNK = 16  # bytes that a swizzle moves together
_CHUNKS = 8  # in 128 bytes, the width of all banks
_STEPS = 64


def by_thread(threads: Grid, warp: int) -> tuple[Grid, tuple[str, ...]]:
    """A hue for each warp of so many threads, from dark to light by the lane. Returns places in the palette, -1 for no
    thread.
    """
    used, place = np.unique(threads, return_inverse=True)
    palette = [_colour(t // warp * _GOLDEN + 0.58, 0.62 + 0.28 * (t % warp) / warp, 0.62) for t in used.tolist()]
    return _places(place.reshape(threads.shape), threads), tuple(palette)


def by_bank(offsets: Grid, bits: int) -> tuple[Grid, tuple[str, ...]]:
    """A hue for each 16 bytes of the 128 that shared memory serves at once: a column of one hue is a bank conflict."""
    elements = max(1, _CHUNK * 8 // bits) if bits else 4
    place = offsets // elements % _CHUNKS
    palette = tuple(_colour(n / _CHUNKS, 0.76 if n % 2 else 0.84, 0.6) for n in range(_CHUNKS))
    return _places(place, offsets), palette


def by_place(offsets: Grid) -> tuple[Grid, tuple[str, ...]]:
    """Colour from one end of what is seen of memory to the other."""
    known = offsets[offsets >= 0]
    low, high = (int(known.min()), int(known.max())) if known.size else (0, 0)
    place = (offsets - low) * (_STEPS - 1) // max(high - low, 1)
    palette = tuple(_colour(0.60 - 0.48 * n / _STEPS, 0.70 + 0.18 * n / _STEPS, 0.55) for n in range(_STEPS))
    return _places(place, offsets), palette


def _places(place: Grid, values: Grid) -> Grid:
    return np.where(values >= 0, place, -1).astype(np.int64)


def _colour(hue: float, lightness: float, saturation: float) -> str:
    red, green, blue = colorsys.hls_to_rgb(hue % 1.0, lightness, saturation)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
