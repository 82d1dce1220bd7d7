"""Values as they are handed to what computes with them."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.memory.values import for_blas


@pytest.mark.parametrize("axes", [(0, 1, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0)])
def test_blas_gets_matrices_with_neighbours_side_by_side(axes: tuple[int, int, int]) -> None:
    """Others are multiplied by a loop of NumPy's, which takes a hundred times as long."""
    given = np.arange(24.0).reshape(2, 3, 4).transpose(axes)
    found = for_blas(given)
    assert np.array_equal(found, given)
    assert found.itemsize in found.strides[-2:]
    assert (found is given) == (given.itemsize in given.strides[-2:])
