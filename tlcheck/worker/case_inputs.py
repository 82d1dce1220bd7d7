"""A case's own inputs, written for an execution on the CPU: arrays in NumPy's format, one after the other."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tlcheck.worker import device
from tlcheck.worker.gpu.task import Task
from tlcheck.worker.protocol import Job

_ONE_SET = 1 << 28  # bytes of a set beside which no further ones are made


def write(job: Job, enter: Callable[[str], None]) -> dict[str, Any]:
    """Write the sets of all seeds. Raises RequestError, with the line of `inputs`, where that raises."""
    device.pretend(job.arch)
    enter("import")
    import numpy as np
    import torch

    from tlcheck.worker.gpu import execution, kernel

    torch.set_num_threads(1)  # there is a worker for each processor, and sums have one order on all machines
    subject = kernel.load(Task("inputs", "", job.file, job.name, job.args, job.pythonpath, seeds=job.seeds))
    enter("inputs")
    sets: list[tuple[int, list[int]]] = []
    with Path(job.output).open("wb") as file:
        for seed, arrays in execution.arrays(subject, job.seeds):
            places = []
            for array in arrays:
                places.append(file.tell())
                np.save(file, array)
            sets.append((seed, places))
            if file.tell() > _ONE_SET:
                break
    case = subject.case
    updates = None if case.updates is None else list(case.updates)
    return {"sets": sets, "where": execution.where(case.inputs), "updates": updates, "digest": _digest(job.output)}


def _digest(path: str) -> str:
    found = hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()
