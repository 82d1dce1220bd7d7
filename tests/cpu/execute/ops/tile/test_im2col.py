"""T.im2col, against patches cut out of a padded image."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Array, Kernel, call, multiply, number, random, region
from tlcheck.execute.stops import NotModelled

IMAGES, HEIGHT, WIDTH, CHANNELS = 2, 7, 6, 4


def patches(image: Array, kernel: int, stride: int, dilation: int, pad: int) -> Array:
    wide = np.pad(image, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    reach = (kernel - 1) * dilation + 1
    rows = []
    for one in wide:
        for y in range(0, one.shape[0] - reach + 1, stride):
            for x in range(0, one.shape[1] - reach + 1, stride):
                rows.append(one[y : y + reach : dilation, x : x + reach : dilation].reshape(-1))
    return np.array(rows)


@pytest.mark.parametrize("name", ["im2col", "c2d_im2col"])
@pytest.mark.parametrize(
    ("kernel_size", "stride", "dilation", "pad"), [(3, 1, 1, 1), (3, 2, 1, 0), (2, 1, 2, 2), (1, 1, 1, 0)]
)
def test_blocks_of_the_matrix(kernel_size: int, stride: int, dilation: int, pad: int, name: str) -> None:
    """All rows, eight at a time, and all columns, four at a time."""
    image = random("float16", IMAGES, HEIGHT, WIDTH, CHANNELS)
    expected = patches(image, kernel_size, stride, dilation, pad)
    rows, columns = expected.shape
    kernel = Kernel(blocks=-(-rows // 8))
    source, target = kernel.tensor("A", "float16", image), kernel.tensor("B", "float16", np.zeros((rows, columns)))
    tile = kernel.tile("s", "float16", (8, 4))
    form = [number(n) for n in (kernel_size, stride, dilation, pad)]
    steps = []
    for part in range(columns // 4):
        steps.append(call(name, region(source), region(tile), kernel.bx, number(part), *form))
        start = (multiply(kernel.bx, 8), part * 4)
        steps.append(call("copy", region(tile), region(target, start, (8, 4))))
    assert np.array_equal(kernel.run(*steps)["B"], expected)


def test_other_images_are_not_modelled() -> None:
    kernel = Kernel()
    source, tile = kernel.tensor("A", "float16", [4, 4]), kernel.tile("s", "float16", (4, 4))
    with pytest.raises(NotModelled, match="im2col"):
        kernel.run(call("im2col", region(source), region(tile), *[number(1)] * 6))
