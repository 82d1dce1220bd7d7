"""Who reads the operands of a wgmma, if a barrier of some warps has taken a warpgroup apart."""

from __future__ import annotations

import numpy as np
import pytest

from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.ops.thread.wgmma_operands import _of_readers, _readers


@pytest.mark.parametrize(
    ("threads", "active", "readers"),
    [
        (256, slice(None), [0, 128]),
        (256, slice(64, 128), [64, -1]),  # the second half of a warpgroup alone
        (256, slice(192, None), [-1, 192]),
        (160, slice(128, None), [-1, 128]),
    ],
)
def test_the_first_active_thread_of_a_warpgroup_reads(threads: int, active: slice, readers: list[int]) -> None:
    mask = np.zeros((1, threads), np.bool_)
    mask[:, active] = True
    frame = Frame({}, 1, threads, mask)
    assert _readers(frame).tolist() == [readers]
    named = _of_readers(np.arange(threads)[None], _readers(frame), frame)
    assert [n for n, r in zip(named[0].tolist(), readers, strict=True) if r >= 0] == [r for r in readers if r >= 0]
