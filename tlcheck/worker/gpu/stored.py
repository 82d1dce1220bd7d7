"""Inputs and outputs of a case on disk, one file for each set of inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tlcheck.worker.failures import RequestError
from tlcheck.worker.gpu.task import VerifyTask


@dataclass(frozen=True)
class StoredCall:
    """outputs: what of them is determined, as `Case.outcome` has it."""

    label: str
    seed: int
    inputs: tuple[Any, ...]
    outputs: Mapping[str, Any]


def write(task: VerifyTask, label: str, seed: int, inputs: Sequence[Any], outputs: Mapping[str, Any]) -> None:
    """Keep one run; torch's own format, which is read without unpickling code."""
    folder = _folder(task.record, task)
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "label": label,
        "seed": seed,
        "inputs": [_host(value) for value in inputs],
        "outputs": {name: _host(value) for name, value in outputs.items()},
    }
    torch.save(content, folder / f"{label or 'inputs'}-{seed}.pt")


def read(task: VerifyTask) -> Iterator[StoredCall]:
    """All calls of a case that were kept, one in memory at a time. Raises RequestError where there is none."""
    files = sorted(_folder(task.replay, task).glob("*.pt"))
    if not files:
        raise RequestError(f"no trace of this case in {task.replay}")
    for file in files:
        yield _load(file, task.device)


def recorded(kernel_file: str, name: str, device: str) -> StoredCall:
    """The call that a case names, in a file beside the kernel file. Raises RequestError where there is none."""
    file = Path(kernel_file).parent / name
    if not file.is_file():
        raise RequestError(f"the case names a recorded call that is not there: {file}")
    return _load(file, device)


def _load(file: Path, device: str) -> StoredCall:
    content = torch.load(file, map_location=device, weights_only=True)
    inputs = (value.contiguous() if torch.is_tensor(value) else value for value in content["inputs"])
    return StoredCall(content["label"], content["seed"], tuple(inputs), content["outputs"])


def _folder(root: str, task: VerifyTask) -> Path:
    return Path(root) / f"{Path(task.file).stem}-{task.name}"


def _host(value: Any) -> Any:
    return value.cpu() if torch.is_tensor(value) else value
