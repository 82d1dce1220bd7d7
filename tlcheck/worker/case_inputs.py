"""A case's own inputs, written for an execution on the CPU: arrays in NumPy's format, one after the other."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tlcheck.worker import assumed_device
from tlcheck.worker.jobs import InputsJob

_ONE_SET = 1 << 28  # bytes of a set beside which no further ones are made


def write(job: InputsJob, enter: Callable[[str], None]) -> dict[str, Any]:
    """Write the sets of all seeds. Raises RequestError, with the line of `inputs`, where that raises."""
    assumed_device.pretend(job.arch)
    enter("import")
    import torch

    from tlcheck.worker.gpu import case_arrays, kernel

    torch.set_num_threads(1)  # there is a worker for each processor, and sums have one order on all machines
    subject = kernel.load(job.file, job.name, job.args, job.pythonpath)
    enter("inputs")
    sets: list[tuple[int, list[int]]] = []
    digest = hashlib.sha256()
    with Path(job.output).open("wb") as file:
        for seed, arrays in case_arrays.arrays(subject, job.seeds):
            places = []
            for array in arrays:
                places.append(file.tell())
                digest.update(_write(file, array))
            sets.append((seed, places))
            if file.tell() > _ONE_SET:
                break
    case = subject.case
    updates = None if case.updates is None else list(case.updates)
    return {"sets": sets, "where": case_arrays.where(case.inputs), "updates": updates, "digest": digest.hexdigest()}


def _write(file: BinaryIO, array: np.ndarray[Any, Any]) -> bytes:
    """Write an array, in C order, and hash it. Of zeros only the header is: what outputs begin with may be gigabytes,
    and a hole in a file reads as zeros.
    """
    array = np.ascontiguousarray(array).reshape(array.shape)
    digest = hashlib.sha256()
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    digest.update(repr((array.dtype.str, array.shape)).encode())
    content = array.reshape(-1).view(np.uint8)
    # zeros alone become a hole in the file
    whole = content.size // 8 * 8
    if bool(content[:whole].view(np.uint64).any() or content[whole:].any()):
        digest.update(content.data)
        file.write(content.data)
    else:
        file.truncate(file.seek(content.size, os.SEEK_CUR))
    return digest.digest()
