"""Tensors with guards on both sides, whose content can be poisoned and put back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

GUARD = 64 * 1024  # bytes before and after each tensor; more than a tile that is written one row too far
_ALIGN = 256  # bytes, as cudaMalloc gives at least
_GUARD_BYTE = 0xA5  # a small number in every dtype: adding to it changes it, which adding to NaN may not
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Quiet NaNs with a payload: arithmetic of the device makes others, so that an untouched element can be told.
_NAN = {1: 0x7F, 2: 0x7F5A, 4: 0x7FFA5A5A, 8: 0x7FFA5A5A5A5A5A5A}
_BFLOAT16_NAN = 0x7FDA
_INTEGER = {1: 0x5A, 2: 0x5A5A, 4: 0x5A5A5A5A, 8: 0x5A5A5A5A5A5A5A5A}


@dataclass(frozen=True)
class Stray:
    """Bytes changed outside of a tensor: how many, and where the first is, in elements from the tensor's start."""

    count: int
    offset: int


def bits(tensor: Any) -> Any:
    """The same memory as integers, one for each element."""
    return tensor.view(_INTEGERS[tensor.element_size()])


def poison_of(dtype: Any, other: bool = False) -> int:
    """The bits of a poisoned element. other: a second pattern, so that what is left of neither was never written."""
    size = torch.empty(0, dtype=dtype).element_size()
    first = _NAN[size] if dtype.is_floating_point else _INTEGER[size]
    if dtype is torch.bfloat16:
        first = _BFLOAT16_NAN
    sign = 1 << (8 * size - 1)
    return first - sign if other else first


class Guarded:
    """A copy of a tensor between guards. `tensor` is what a kernel gets."""

    def __init__(self, original: Any) -> None:
        self.original = original.contiguous()
        self._bytes = self.original.numel() * self.original.element_size()
        padded = -(-self._bytes // _ALIGN) * _ALIGN
        self._memory = torch.empty(GUARD + padded + GUARD, dtype=torch.uint8, device=original.device)
        inside = self._memory[GUARD : GUARD + self._bytes]
        self.tensor = inside.view(self.original.dtype).view(self.original.shape)

    def reset(self, poisoned: bool, other: bool = False) -> None:
        """The original content, or poison, between fresh guards. other: poison of the second pattern."""
        for guard in self._guards():
            guard.fill_(_GUARD_BYTE)
        if poisoned:
            bits(self.tensor).fill_(poison_of(self.tensor.dtype, other))
        else:
            self.tensor.copy_(self.original)

    def stray(self) -> Stray | None:
        """Return what was written outside of the tensor."""
        changed = [guard != _GUARD_BYTE for guard in self._guards()]
        count = sum(int(mask.sum()) for mask in changed)
        if not count:
            return None
        size = self.original.element_size()
        before, after = changed
        if bool(before.any()):
            return Stray(count, (int(before.nonzero()[-1]) - GUARD) // size)
        return Stray(count, (self._bytes + int(after.nonzero()[0])) // size)

    def unwritten(self, other: bool = False) -> Any:
        """Mask of the elements that still are poison."""
        return bits(self.tensor) == poison_of(self.tensor.dtype, other)

    def changed(self) -> bool:
        return not torch.equal(bits(self.tensor), bits(self.original))

    def _guards(self) -> tuple[Any, Any]:
        return self._memory[:GUARD], self._memory[GUARD + self._bytes :]


class Arena:
    """The parameters of one run, in order; what is no tensor is passed as it is."""

    def __init__(self, names: Sequence[str], values: Iterable[Any], poisoned: Iterable[str]) -> None:
        self._poisoned = frozenset(poisoned)
        self.names = tuple(names)
        self.given = tuple(values)
        self._guarded = {
            name: Guarded(value) for name, value in zip(names, self.given, strict=True) if torch.is_tensor(value)
        }

    def reset(self, other: bool = False) -> None:
        for name, guarded in self._guarded.items():
            guarded.reset(name in self._poisoned, other)

    @property
    def arguments(self) -> list[Any]:
        """Return what a kernel is called with."""
        pairs = zip(self.names, self.given, strict=True)
        return [self._guarded[name].tensor if name in self._guarded else value for name, value in pairs]

    def tensor(self, name: str) -> Any:
        return self._guarded[name].tensor

    def strays(self) -> Iterator[tuple[str, Stray]]:
        for name, guarded in self._guarded.items():
            if (stray := guarded.stray()) is not None:
                yield name, stray

    def unwritten(self, other: bool = False) -> dict[str, Any]:
        """Poisoned parameters with elements that still are poison, and the masks of these."""
        masks = {name: self._guarded[name].unwritten(other) for name in self._poisoned & self._guarded.keys()}
        return {name: mask for name, mask in masks.items() if bool(mask.any())}

    def changed(self, names: Iterable[str]) -> Iterator[str]:
        """Return the names whose tensors no longer hold what they were given with."""
        return (name for name in names if name in self._guarded and self._guarded[name].changed())
