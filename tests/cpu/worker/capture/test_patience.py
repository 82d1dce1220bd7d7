"""How long a script computes without a GPU."""

from __future__ import annotations

import os
import time

import pytest

from tlcheck.worker.capture.patience import Patience
from tlcheck.worker.capture.unseen import NoTimeError


@pytest.mark.parametrize(
    ("sides", "own", "lowering", "limit"),
    [
        (1, 149, 150, ""),
        (1, 150, 0, "150 s"),
        (1, 100, 199, ""),
        (1, 100, 200, "300 s with the lowering of its kernels"),
        (2, 74, 75, ""),
        (2, 75, 0, "75 s"),
        (2, 50, 100, "150 s with the lowering of its kernels"),
    ],
)
def test_a_script_has_its_own_seconds_and_some_for_its_kernels(
    monkeypatch: pytest.MonkeyPatch, sides: int, own: float, lowering: float, limit: str
) -> None:
    monkeypatch.setattr(time, "process_time", lambda: 7.0)
    monkeypatch.setattr(os, "times", lambda: (4.0, 3.0, 1.0, 1.0, 99.0))
    patience = Patience(300, sides)
    monkeypatch.setattr(time, "process_time", lambda: 7.0 + own)
    monkeypatch.setattr(os, "times", lambda: (4.0 + own, 3.0, 1.0 + lowering, 1.0, 999.0))
    assert patience.over() == limit


def test_a_test_ends_when_lowering_its_kernels_has_used_up_the_time_of_its_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A script has no such end: nothing else would run instead."""
    monkeypatch.setattr(time, "process_time", lambda: 0.0)
    monkeypatch.setattr(os, "times", lambda: (0.0, 0.0, 0.0, 0.0, 0.0))
    script, test = Patience(300), Patience(300)
    test.begin_test()
    monkeypatch.setattr(os, "times", lambda: (0.0, 0.0, 299.0, 0.0, 0.0))
    test.require()
    monkeypatch.setattr(os, "times", lambda: (0.0, 0.0, 300.0, 0.0, 0.0))
    script.require()
    with pytest.raises(
        NoTimeError, match=r"^its file takes more than 300 s with the lowering of its kernels \(a longer"
    ):
        test.require()
