"""Tensors of which only what a run touches is real."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.memory.pages import PAGE_BITS, Pages
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.execute.stops import OutOfBytes

PAGE = 1 << PAGE_BITS


def _squares(seed: int, numbers: Array) -> Array:
    found: Array = (numbers * numbers + seed).astype(np.float64)
    return found


def _pages(size: int, seeds: tuple[int, ...] = (0,)) -> Pages:
    return Pages(kind_of("float32"), size, seeds, _squares, 1 << 40)


def _read(pages: Pages, numbers: Array) -> Array:
    return pages.take(pages.locate(numbers, pages.kind, 0), pages.kind)


def test_a_tile_of_long_rows_makes_little_real() -> None:
    """64 columns of 512 rows of 8192: of each row a page, not the row."""
    pages, width, rows, columns = _pages(1 << 22), 8192, 512, 64
    tile = np.arange(rows)[:, None, None] * width + 1000 + np.arange(columns)
    assert np.array_equal(_read(pages, tile), _squares(0, tile))
    assert pages.flat.size <= 2 * rows * PAGE


def test_each_seed_has_its_own_elements_in_one_look() -> None:
    pages = _pages(10 * PAGE, (3, 5, 3))
    numbers = np.array([0, PAGE - 1, PAGE, 7 * PAGE + 1]).reshape(-1, 1, 1)
    found = _read(pages, numbers)
    assert found[:, :, 0].tolist() == [[n * n + seed for seed in (3, 5, 3)] for n in numbers.reshape(-1).tolist()]


def test_nothing_is_behind_the_last_element() -> None:
    pages = _pages(PAGE + 3)
    assert _read(pages, np.array([PAGE + 2])).item() == (PAGE + 2) ** 2
    assert pages.touched(0).tolist() == [PAGE, PAGE + 1, PAGE + 2]
    assert np.isnan(pages.flat[pages.position_of(0, PAGE + 2) + 1])


@pytest.mark.parametrize("count", [1, 3, 64, 96, 512, 576])
@pytest.mark.parametrize("first", [0, 1, 32, PAGE - 32, PAGE - 1])
def test_runs_lie_where_their_elements_do(first: int, count: int) -> None:
    """Also where they are longer than a page, or cross one."""
    element = (first + np.array([0, 5])[:, None] * 1152 + np.arange(count)).reshape(-1, 1, 1)
    pages = _pages(1 << 14)
    assert np.array_equal(pages.locate_runs(element, count), pages.locate(element, pages.kind, 0))


def test_a_large_tensor_has_larger_pages() -> None:
    """Its table takes 8 MiB for each seed, not a multiple of the tensor's size."""
    pages = _pages(1 << 34)
    assert pages.table.nbytes <= 1 << 24
    last = np.array([(1 << 34) - 1])
    assert np.array_equal(_read(pages, last).reshape(-1), _squares(0, last))


def test_what_is_left_follows_later_writes() -> None:
    pages = _pages(4 * PAGE)
    for element in (3, PAGE + 1):
        pages.put(pages.locate(np.array([[[element]]]), pages.kind, 0), 1.0, None, pages.kind)
        assert pages.outcome(0).elements.tolist()[-1] == element
    pages.accumulate(pages.locate(np.array([3]), pages.kind, 0).reshape(-1), 1.0, np.add, pages.kind)
    assert pages.outcome(0).values.tolist() == [2.0, 1.0]


def test_a_tensor_grows_to_its_limit_and_not_beyond() -> None:
    """Five pages fit, which are four times one page, and one more."""
    pages = Pages(kind_of("float32"), 1000 * PAGE, (0,), _squares, 5 * PAGE * 9)
    for page in (0, 100, 200, 300, 400):
        assert _read(pages, np.array([page * PAGE])).item() == (page * PAGE) ** 2
    with pytest.raises(OutOfBytes):
        _read(pages, np.array([500 * PAGE]))
