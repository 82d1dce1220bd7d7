"""Describe what one call of a kernel was given and what it left, kept in a file from which `tlcheck run` repeats it.

The file is a call as `tlcheck.worker.gpu.stored` reads it. Nothing here asks where the tensors are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tlcheck.files import put

_PLAIN = (int, float, str, type(None))
_MIB = 2**20
LABEL = "recorded inputs"


@dataclass(frozen=True)
class Parameters:
    """A kernel's parameters. names: in order. made: places of those that it makes itself and returns."""

    names: tuple[str, ...]
    made: tuple[int, ...]

    def given(self, args: Sequence[Any]) -> dict[int, Any] | None:
        """The arguments by place: all parameters, or those that are not made. None for another number of them."""
        every = range(len(self.names))
        places = every if len(args) == len(every) else [place for place in every if place not in self.made]
        return dict(zip(places, args, strict=True)) if len(args) == len(places) else None

    def returned(self, result: Any) -> dict[int, Any]:
        """Return what the kernel has made, by place."""
        results = list(result) if isinstance(result, (tuple, list)) else [result]
        return dict(zip(self.made, results, strict=True))


@dataclass(frozen=True)
class Keeper:
    """Keeps calls in `STEM-NUMBER.pt`, with `STEM-NUMBER.json`: fields of `tlcheck.lower.runs.RecordedCall`.

    limit: bytes of the tensors of one call.
    """

    stem: str
    limit: int

    def call(
        self, number: str, parameters: Parameters, launch: Callable[..., Any], args: Sequence[Any]
    ) -> tuple[Any, bool]:
        """Return what `launch(*args)` returns, and whether this was the call to keep. Raises what the launch raises."""
        given = parameters.given(args)
        if given is None or _in_graph():
            return launch(*args), False
        if problem := self._problem(parameters, given):
            self._say(number, missing=problem)
            return launch(*args), True
        before = {place: _copy(value) for place, value in given.items()}
        result = launch(*args)
        try:
            made = parameters.returned(result) if len(given) < len(parameters.names) else {}
            self._keep(number, parameters, given, before, made)
        except Exception as error:  # no reason to end the script, which will come upon a fault of the device itself
            self._say(number, missing=f"it could not be kept: {error}".splitlines()[0])
        return result, True

    def _problem(self, parameters: Parameters, given: Mapping[int, Any]) -> str:
        """Return why this call cannot be kept; empty if it can."""
        for place, value in given.items():
            if not isinstance(value, (torch.Tensor, *_PLAIN)):
                return f"its argument {parameters.names[place]} is a {type(value).__name__}"
        return self._too_large(sum(map(_bytes, given.values())))

    def _too_large(self, size: int) -> str:
        if size <= self.limit:
            return ""
        return f"its tensors have {size / _MIB:.1f} MiB, more than the {self.limit / _MIB:g} MiB of --record-limit"

    def _keep(
        self,
        number: str,
        parameters: Parameters,
        given: Mapping[int, Any],
        before: Mapping[int, Any],
        made: Mapping[int, Any],
    ) -> None:
        names = parameters.names
        after = {place: _copy(value) for place, value in {**given, **made}.items()}
        changed = [place for place in given if not _same(before[place], after[place])]
        outputs = {names[place]: after[place] for place in (*changed, *made)}
        size = sum(map(_bytes, (*before.values(), *outputs.values())))
        if problem := self._too_large(size) or _shared(names, given, changed):
            self._say(number, missing=problem)
            return
        inputs = [before[place] if place in given else _blank(after[place]) for place in range(len(names))]
        torch.save({"label": LABEL, "seed": 0, "inputs": inputs, "outputs": outputs}, self._file(number, "pt"))
        self._say(number, updates=[names[place] for place in changed], size=size)

    def _say(self, number: str, **fields: Any) -> None:
        put(self._file(number, "json"), json.dumps(fields))

    def _file(self, number: str, suffix: str) -> Path:
        return Path(f"{self.stem}-{number}.{suffix}")


def _in_graph() -> bool:
    """Whether a CUDA graph is being captured: nothing is launched then, and nothing may be copied."""
    return bool(torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing())


def _copy(value: Any) -> Any:
    """A tensor's content on the host, in memory of its own; copying waits for what its stream has to do."""
    return value.detach().to("cpu", copy=True) if torch.is_tensor(value) else value


def _blank(tensor: Any) -> Any:
    """Return a stand-in for what the kernel makes itself: of its shape, one element on disk."""
    return torch.zeros((), dtype=tensor.dtype, device="cpu").expand(tensor.shape)


def _bytes(value: Any) -> int:
    return int(value.numel() * value.element_size()) if torch.is_tensor(value) else 0


def _same(before: Any, after: Any) -> bool:
    """Bit by bit: a NaN is equal to itself."""
    if not torch.is_tensor(before):
        return True
    return bool(torch.equal(before.reshape(-1).view(torch.uint8), after.reshape(-1).view(torch.uint8)))


def _shared(names: Sequence[str], given: Mapping[int, Any], changed: Sequence[int]) -> str:
    """Return why the call would not be the same with tensors of their own: one that it changes shares memory with
    another.
    """
    ranges = {place: _memory(value) for place, value in given.items() if torch.is_tensor(value)}
    for place in changed:
        for other, (start, end) in ranges.items():
            if other != place and start < ranges[place][1] and ranges[place][0] < end:
                return f"{names[place]}, which it changes, shares memory with its argument {names[other]}"
    return ""


def _memory(tensor: Any) -> tuple[int, int]:
    """First address and the one after the last; the same for an empty tensor."""
    extent = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = int(tensor.data_ptr())
    return start, start + (int(extent) + 1) * int(tensor.element_size()) if tensor.numel() else start
