"""The file of a case's inputs: what is written is read again, to the bit, and takes no more room than it has to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tlcheck.execute.worlds.given import _mapped
from tlcheck.worker.case_inputs import _write

ZEROS = np.zeros((1024, 1024), np.float32)
ARRAYS = {
    "numbers": np.arange(12.0).reshape(3, 4),
    "another order": np.arange(12, dtype=np.int16).reshape(3, 4).T,
    "a scalar": np.asarray(7),
    "no element": np.zeros((0, 4), np.float16),
    "zeros": ZEROS,
    "a negative zero at the end": np.array([0.0] * 8 + [-0.0], np.float32),
    "an odd number of bytes": np.array([False] * 8 + [True]),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=list(ARRAYS))
def test_what_is_written_is_read(array: np.ndarray[Any, Any], tmp_path: Path) -> None:
    places = []
    with (tmp_path / "inputs").open("wb") as file:
        for one in (array, np.arange(3), array):
            places.append(file.tell())
            _write(file, one)
    for place, one in zip(places, (array, np.arange(3), array), strict=True):
        read = _mapped(tmp_path / "inputs", place)
        assert (read.dtype, read.shape, read.tobytes()) == (one.dtype, one.shape, one.tobytes())


def test_zeros_take_no_room(tmp_path: Path) -> None:
    with (tmp_path / "inputs").open("wb") as file:
        _write(file, ZEROS)
    found = (tmp_path / "inputs").stat()
    assert found.st_size > ZEROS.nbytes
    assert found.st_blocks * 512 < ZEROS.nbytes // 16


def test_other_arrays_have_another_hash(tmp_path: Path) -> None:
    others = [
        *ARRAYS.values(),
        ZEROS.astype(np.int32),
        ZEROS.reshape(-1),
        -ZEROS,
        np.arange(11.0, -1, -1).reshape(3, 4),
    ]
    with (tmp_path / "inputs").open("wb") as file:
        hashes = [_write(file, array) for array in others]
        assert hashes[0] == _write(file, others[0].copy())
    assert len({*hashes}) == len(others)
