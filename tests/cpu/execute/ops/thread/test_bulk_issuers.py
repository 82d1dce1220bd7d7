"""One thread of each block issues a bulk copy, with operands of its own."""

from __future__ import annotations

import numpy as np

from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.ops.thread.bulk_transfers import issuers


def test_a_block_that_issues_none_has_the_operands_of_one_that_does() -> None:
    mask = np.array([[False, True], [False, False]])
    ((chosen, pick),) = issuers(Frame({}, 2, 2, mask))
    assert chosen.tolist() == mask.tolist()
    of_blocks, of_lanes = np.array([[16], [4096]]), np.array([[0, 16], [2048, 4096]])
    assert np.array_equal(pick(of_blocks), [[16], [16]])
    assert np.array_equal(pick(of_lanes), [[16], [16]])
    assert pick(7) == 7


def test_blocks_that_all_issue_have_their_own_operands() -> None:
    ((_, pick),) = issuers(Frame({}, 2, 2, np.array([[False, True], [True, False]])))
    of_blocks = np.array([[16], [32]])
    assert pick(of_blocks) is of_blocks
    assert np.array_equal(pick(np.array([[0, 16], [32, 48]])), [[16], [32]])
