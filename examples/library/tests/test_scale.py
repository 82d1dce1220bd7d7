"""Tests as a library has them: they need a GPU."""

import pytest
import torch
from scale import scale


@pytest.mark.parametrize("n", [64, 256])
def test_scale(n):
    a = torch.randn(n, device="cuda")
    torch.testing.assert_close(scale(n, 2.0)(a), a * 2.0)
