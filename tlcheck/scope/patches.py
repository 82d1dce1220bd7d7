"""Blocks that read patches of an image: of which an image's part looks alike from the first pixel on.

An image is N x H x W x C. A row is a pixel of the output; it reads a patch around a pixel of the image, and zeros
where the patch leaves the image. Two blocks are alike if each of their rows lies equally far from the first one, with
the same part of its patch in the image (`execute.ops.tile.im2col`, PTX 5.5.3, "Im2col mode").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.memory.values import Array
from tlcheck.execute.stops import NotModelled

_MOST = 1 << 24  # numbers that tell blocks apart
Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Image:
    """An image. sizes, steps: of images, height and width; a step is from one to the next, in any unit."""

    sizes: tuple[int, int, int]
    steps: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Pixels:
    """The pixels that rows of blocks read first, (blocks, rows) each. offsets: how far patches go down and across."""

    images: Array
    down: Array
    across: Array
    offsets: tuple[range, range]


def pixels_of_rows(rows: Array, image: Image, form: Sequence[int]) -> Pixels:
    """The pixels of rows of T.im2col, (blocks, rows). form: kernel, stride, dilation, pad."""
    kernel, stride, dilation, pad = form
    _, height, width = image.sizes
    reach = (kernel - 1) * dilation + 1
    down, across = (height + 2 * pad - reach) // stride + 1, (width + 2 * pad - reach) // stride + 1
    if down <= 0 or across <= 0:
        raise NotModelled("an image that is smaller than the kernel")
    offsets = range(0, reach, dilation)
    y, x = rows % (down * across) // across * stride - pad, rows % across * stride - pad
    return Pixels(rows // (down * across), y, x, (offsets, offsets))


def pixels_of_box(
    first: Sequence[Array],
    image: Image,
    count: int,
    steps: tuple[int, int],
    corners: tuple[Range, Range],
    offsets: tuple[Range, Range],
) -> Pixels:
    """The pixels of a tensor map's box from the first ones on: images, height and width, (blocks,) each.

    steps: from one pixel to the next; corners: the lower and the upper one; offsets: the least and the largest. Each is
    for height and width.
    """
    left = np.broadcast_to(np.arange(count), (len(first[0]), count))
    places = []
    for axis in (2, 1):  # width goes first
        low, high = corners[axis - 1]
        step = steps[axis - 1]
        across = (image.sizes[axis] - 1 + high - low) // step + 1
        if across <= 0:
            raise NotModelled("a box without pixels")
        left = left + ((first[axis] - low) // step)[:, None]
        places.append(low + left % across * step)
        left = left // across
    reach = tuple([range(least, most + 1) for least, most in offsets])
    return Pixels(first[0][:, None] + left, places[1], places[0], (reach[0], reach[1]))


def classes_and_moves(pixels: Pixels, image: Image) -> tuple[Array, Array]:
    """The class of each block, and where its first pixel lies. Raises NotModelled for too much work."""
    count, rows = pixels.images.shape
    if count * rows * (2 + sum(map(len, pixels.offsets))) > _MOST:
        raise NotModelled("a grid of too many pixels")
    at = np.stack([pixels.images, pixels.down, pixels.across])
    places = np.tensordot(np.array(image.steps), at, 1)
    inside = [(pixels.images >= 0) & (pixels.images < image.sizes[0])]
    for axis, offsets in enumerate(pixels.offsets, start=1):
        for offset in offsets:
            inside.append((at[axis] + offset >= 0) & (at[axis] + offset < image.sizes[axis]))
    signature = np.concatenate([places - places[:, :1], *inside], axis=1)
    words = np.ascontiguousarray(signature.astype(np.int64)).view(np.dtype((np.void, signature.shape[1] * 8)))
    _, classes = np.unique(words.reshape(-1), return_inverse=True)
    return classes.reshape(-1), places[:, 0]
