"""Blocks that read patches of an image are alike where they read the same, moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from tlcheck.execute.stops import NotModelled
from tlcheck.scope.block_scope import limit_of, missing
from tlcheck.scope.claim_scope import Limit
from tlcheck.scope.patches import Image, Pixels, classes_and_moves, pixels_of_box, pixels_of_rows
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, Function, Seq, Store, Thread

HEIGHT, WIDTH, CHANNELS, ROWS = 6, 4, 8, 4
IMAGE = Image((2, HEIGHT, WIDTH), (HEIGHT * WIDTH, WIDTH, 1))


def read(pixels: Pixels, image: Image, block: int) -> Iterator[int | None]:
    """The element that each row reads with each offset; None outside of the image."""
    for n, y, x in zip(pixels.images[block], pixels.down[block], pixels.across[block], strict=True):
        for down in pixels.offsets[0]:
            for across in pixels.offsets[1]:
                at = int(n), int(y) + down, int(x) + across
                inside = all(0 <= place < size for place, size in zip(at, image.sizes, strict=True))
                yield sum(p * s for p, s in zip(at, image.steps, strict=True)) if inside else None


@pytest.mark.parametrize("rows", [1, 3, 4, 8, 24])
@pytest.mark.parametrize("form", [(3, 1, 1, 1), (3, 2, 1, 1), (2, 1, 2, 0), (1, 1, 1, 0)])
def test_blocks_of_one_class_read_the_same_moved(form: tuple[int, int, int, int], rows: int) -> None:
    numbers = rows * np.arange(60 // rows)[:, None] + np.arange(rows)  # some lie behind the last image
    pixels = pixels_of_rows(numbers, IMAGE, form)
    classes, moved = classes_and_moves(pixels, IMAGE)
    found = defaultdict(set)
    for block, kind in enumerate(classes.tolist()):
        start = int(moved[block])
        found[kind].add(tuple(None if at is None else at - start for at in read(pixels, IMAGE, block)))
    assert all(len(each) == 1 for each in found.values())
    assert rows != ROWS or len(found) < len(classes)


@pytest.mark.parametrize("form", [(3, 1, 1, 1), (3, 2, 1, 1), (5, 1, 1, 2), (2, 1, 2, 0)])
def test_a_box_has_the_pixels_of_the_rows(form: tuple[int, int, int, int]) -> None:
    kernel, stride, dilation, pad = form
    rows = pixels_of_rows(ROWS * np.arange(12)[:, None] + np.arange(ROWS), IMAGE, form)
    first = [each[:, 0] for each in (rows.images, rows.down, rows.across)]
    reach = (kernel - 1) * dilation
    corner = -pad, pad - reach
    box = pixels_of_box(first, IMAGE, ROWS, (stride, stride), (corner, corner), ((0, reach), (0, reach)))
    for ours, theirs in zip((box.images, box.down, box.across), (rows.images, rows.down, rows.across), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_too_many_pixels_are_not_looked_at() -> None:
    pixels = pixels_of_rows(np.broadcast_to(np.arange(1 << 12), (1 << 10, 1 << 12)), IMAGE, (3, 1, 1, 1))
    with pytest.raises(NotModelled):
        classes_and_moves(pixels, IMAGE)


def number(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def var(name: str, uid: int, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, uid)


def called(name: str, *args: Expr) -> Expr:
    return Expr("call", "handle", args, name)


def tensor(name: str, uid: int, *shape: int, scope: str = "global") -> Buffer:
    return Buffer(name, "float16", tuple(map(number, shape)), scope, var(name, uid, "handle"))


def region(buffer: Buffer, mode: int, *sizes: int) -> Expr:
    load = Expr("load", "float16", tuple(number(0) for _ in buffer.shape), None, 0, buffer)
    return called("region", load, number(mode), *map(number, sizes))


A, C = tensor("A", 11, 2, HEIGHT, WIDTH, CHANNELS), tensor("C", 12, 12)
S = tensor("S", 30, ROWS, CHANNELS, scope="shared")
BX, TX = var("bx", 1), var("tx", 2)


def kernel(copy: Expr) -> Function:
    """C[bx] = S[0, 0] by 12 blocks, after a copy to S."""
    one = Expr("load", "float16", (number(0), number(0)), None, 0, S)
    body = Seq((Evaluate(copy, line=3), Store(C, (BX,), one, line=7)))
    inner = Thread(TX, "threadIdx.x", number(32), body)
    return Function("main", (A.data, C.data), (A, C), (), Thread(BX, "blockIdx.x", number(12), inner))


def source(step: Expr = BX) -> Function:
    form = map(number, (0, 3, 1, 1, 1))
    return kernel(called("im2col", region(A, 1, 2, HEIGHT, WIDTH, CHANNELS), region(S, 2, ROWS, CHANNELS), step, *form))


def lowered(down: Expr, images: Expr, row: int = 2 * WIDTH * CHANNELS, offset: int = 1) -> Function:
    """The copy by a tensor map, with its first pixel, bytes of a row and the offset of the height."""
    map_, barrier = var("A_desc", 50, "handle"), var("barrier", 51, "handle")
    bytes_ = (2, 2 * CHANNELS, row, 2 * HEIGHT * WIDTH * CHANNELS)
    fields = (6, 4), (CHANNELS, WIDTH, HEIGHT, 2, *bytes_, 1, 1, 1, 1, -1, -1, -1, -1, ROWS, CHANNELS, 0, 0, 0, 0)
    made = called("create_tma_im2col_descriptor", *map(number, fields[0]), A.data, *map(number, fields[1]))
    to = called("address_of", Expr("load", "float16", (number(0), number(0)), None, 0, S))
    at = number(0), number(-1), down, images, number(1), number(offset), number(0)
    return replace(kernel(called("tma_load_im2col", map_, barrier, to, *at)), descriptors=((map_, made),))


def op(name: str, first: Expr, second: int) -> Expr:
    return Expr(name, "int32", (first, number(second)))


DOWN, IMAGES = op("sub", op("floormod", BX, HEIGHT), 1), op("floordiv", BX, HEIGHT)
RAN = ((0, 0, 0), (5, 0, 0), (11, 0, 0))


def test_blocks_of_a_convolution_are_alike_but_at_the_edges() -> None:
    ours = source(), lowered(DOWN, IMAGES)
    assert limit_of(*ours, {}, RAN) is not None
    assert list(missing(*ours, {}, RAN, 4)) == [(1, 0, 0)]
    assert not missing(*ours, {}, RAN, 0)
    assert limit_of(*ours, {}, (*RAN, (1, 0, 0))) is None


@pytest.mark.parametrize(
    ("down", "images", "other"),
    [
        (op("sub", op("floormod", BX, 5), 1), IMAGES, {}),
        (DOWN, op("floordiv", BX, 7), {}),
        (DOWN, op("floordiv", op("add", BX, 2), HEIGHT), {}),
        (Expr("min", "int32", (DOWN, number(2))), IMAGES, {}),
        (DOWN, IMAGES, {"row": 4 * WIDTH * CHANNELS}),
    ],
)
def test_a_box_that_moves_otherwise_is_not_alike(down: Expr, images: Expr, other: dict[str, int]) -> None:
    """All classes of the right kernel ran."""
    assert limit_of(source(), lowered(down, images, **other), {}, (*RAN, (1, 0, 0))) is not None


@pytest.mark.parametrize("changed", [op("add", BX, 1), Expr("mul", "int32", (BX, TX)), TX])
def test_rows_that_more_than_the_block_decides_are_not_alike(changed: Expr) -> None:
    assert limit_of(source(changed), lowered(DOWN, IMAGES), {}, (*RAN, (1, 0, 0))) is not None


def test_an_offset_beyond_the_pad_makes_other_edges() -> None:
    """The lowest row but one reads zeros, too."""
    found = limit_of(source(), lowered(DOWN, IMAGES, offset=3), {}, (*RAN, (1, 0, 0)))
    reason = "no block ran in which conditions hold together as in some that did not"
    assert found == Limit("blocks", reason, 3)
