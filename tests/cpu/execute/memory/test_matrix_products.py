"""Products of matrices are the same on every processor, NaNs included."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.memory.matrix_products import for_blas, product
from tlcheck.execute.memory.values import is_poison, poison, reason_of


def test_numbers_are_multiplied() -> None:
    a, b = np.arange(6.0).reshape(1, 2, 3), np.arange(12.0).reshape(1, 3, 4)
    assert (product(a, b) == a @ b).all()


def test_the_first_poison_of_the_row_is_kept_else_that_of_the_column() -> None:
    a, b = np.ones((3, 4)), np.ones((4, 2))
    a[0, 1], a[0, 3], a[1, 0] = poison(1), poison(2), np.nan
    b[2, 0], b[0, 0] = poison(3), poison(4)
    found = product(a, b)
    assert [[reason_of(value) for value in row if is_poison(np.array(value))] for row in found] == [[1, 1], [4], [4]]
    assert np.isnan(found[1, 1])
    assert found[2, 1] == 4.0


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0)])
def test_blas_gets_matrices_with_neighbours_side_by_side(axes: tuple[int, int, int]) -> None:
    """Others are multiplied by a loop of NumPy's, which takes a hundred times as long."""
    given = np.arange(24.0).reshape(2, 3, 4).transpose(axes)
    found = for_blas(given)
    assert np.array_equal(found, given)
    assert found.itemsize in found.strides[-2:]
    assert (found is given) == (given.itemsize in given.strides[-2:])
