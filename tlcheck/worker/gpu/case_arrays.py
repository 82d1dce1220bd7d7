"""The ends of an execution on the CPU: a case's inputs as .npy files, and what it left against the reference.

Both without compiling anything: what TileLang makes of the kernel is executed by the controller in between. The folder
of a task holds a folder for each set of inputs; a parameter's file is called by its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tlcheck.case import Case, Variant
from tlcheck.worker.failures import RequestError
from tlcheck.worker.gpu import draws, verification
from tlcheck.worker.gpu.guarded_tensors import bits
from tlcheck.worker.gpu.loaded_case import CompiledKernel, LoadedCase
from tlcheck.worker.gpu.task import InputsTask, ReferTask


def write_inputs(subject: LoadedCase, task: InputsTask) -> list[dict[str, Any]]:
    """Write every set of inputs; plain data for each: `folder`, `label`, `seed`, and `count` of parameters."""
    found = []
    for folder, label, seed, values in _sets(subject, task):
        folder.mkdir()
        for place, value in enumerate(values):
            np.save(folder / f"{place}.npy", as_array(value))
        found.append({"folder": str(folder), "label": label, "seed": seed, "count": len(values)})
    return found


def arrays(subject: LoadedCase, seeds: Iterable[int]) -> Iterator[tuple[int, list[Any]]]:
    """The case's own inputs for each seed, as NumPy's. Raises RequestError that names the line of `inputs`."""
    (_, variant), *_ = draws.variants(subject.case, exact=False, referred=False)
    for seed in seeds:
        values = _made(subject, variant, seed, "cpu")
        yield seed, [as_array(value) for value in values]


def compare(subject: LoadedCase, task: ReferTask) -> Iterator[dict[str, Any]]:
    """Each set of inputs that was executed: what the source left against the reference."""
    executed = {Path(folder): whole for folder, whole in task.executed.items()}
    kinds = dict(draws.variants(subject.case, task.exact))
    for folder, label, seed, values in _sets(subject, task):
        if folder in executed:
            draw = draws.refer(subject, label, kinds[label], seed, values)
            launch = _Left(folder, task.names, draw.expected, executed[folder], subject.case)
            yield verification.Trial(subject, CompiledKernel(task.names, launch, ""), task, draw).run()


class _Left:
    """Leaves in the arguments what an execution on the CPU has left.

    Elements that no executed block writes are taken from the reference, so that they neither count nor hide others.
    """

    def __init__(self, folder: Path, names: tuple[str, ...], expected: Any, whole: bool, case: Case) -> None:
        if not whole and case.outcome is not None:
            raise RequestError("the case's outcome needs all blocks, and only some were executed", "blocks")
        self._folder, self._names, self._expected, self._whole = folder, names, expected, whole

    def __call__(self, *arguments: Any) -> None:
        for name, argument in zip(self._names, arguments, strict=True):
            place = self._names.index(name)
            elements = self._folder / f"{place}.elements.npy"
            if not elements.exists():
                continue
            if not self._whole and name in self._expected:
                argument.copy_(self._expected[name])
            values = torch.from_numpy(np.load(self._folder / f"{place}.values.npy"))
            put = values.to(argument.dtype)  # as bits: torch puts nothing into tensors of unsigned integers
            bits(argument).view(-1)[torch.from_numpy(np.load(elements))] = bits(put)


def _sets(subject: LoadedCase, task: InputsTask | ReferTask) -> Iterator[tuple[Path, str, int, tuple[Any, ...]]]:
    """The folder, label, seed and values of each set of inputs. Raises RequestError that names the line of `inputs`."""
    for seed in task.seeds:
        for label, variant in draws.variants(subject.case, task.exact, referred=False):
            if label in ("", draws.EXACT):
                values = _made(subject, variant, seed, task.device)
                yield Path(task.folder) / f"{label}{seed}", label, seed, values


def _made(subject: LoadedCase, variant: Variant, seed: int, device: str) -> tuple[Any, ...]:
    try:
        values = draws.make(subject, variant, seed, device)
    except Exception as error:
        raise RequestError(f"{where(variant.inputs)}: inputs raised {type(error).__name__}: {error}") from error
    for place, value in enumerate(values):
        if not torch.is_tensor(value) and np.asarray(value).dtype.kind not in "biuf":
            what = f"{type(value).__name__} as value {place + 1}, which is neither a tensor nor a number"
            raise RequestError(f"{where(variant.inputs)}: inputs gives {what}")
    return values


def where(function: Callable[..., Any] | None) -> str:
    """`file.py:12`, where a function begins."""
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else "the case"


def as_array(value: Any) -> Any:
    """A tensor's elements in a dtype that NumPy has: narrow floating-point ones become float32, which has them all."""
    if not torch.is_tensor(value):
        return np.asarray(value)
    value = value.detach().contiguous()
    if not value.is_floating_point() or value.dtype in (torch.float16, torch.float32, torch.float64):
        return value.numpy()
    if not value.reshape(-1).view(torch.uint8).any():  # outputs of gigabytes: these zeros take no memory
        return np.zeros(value.shape, np.float32)
    return value.float().numpy()
