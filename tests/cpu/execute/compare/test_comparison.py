"""Test what differs after a little noise: rounding of sums that cancel, or a choice that noise decides."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.compare.output_outcome import Compared, explained

WRITTEN = np.ones(4, np.bool_)
EXPECTED = np.array([4.0, 1e-7, -3.0, 5.0])


@pytest.mark.parametrize(
    ("got", "noise", "rounding", "tie"),
    [
        pytest.param(1e-7 + 1e-12, 3e-12, True, False, id="a sum that cancels"),
        pytest.param(1e-7 + 9e-12, 3e-12, False, False, id="more than noise explains"),
        pytest.param(2.0, 2.0, False, True, id="another number is chosen"),
        pytest.param(1e-7 + 1e-15, 3e-14, True, False, id="nearly equal"),
    ],
)
def test_one_element(got: float, noise: float, rounding: bool, tie: bool) -> None:
    found, moved = EXPECTED.copy(), EXPECTED.copy()
    found[1], moved[1] = got, EXPECTED[1] + noise
    compared = Compared(np.arange(4), EXPECTED, EXPECTED, found, found != EXPECTED, WRITTEN, WRITTEN, 0)
    explains, ties = explained(compared, [moved])
    assert (bool(explains[1]), bool(ties[1])) == (rounding, tie)
    assert not explains[[0, 2, 3]].any()
