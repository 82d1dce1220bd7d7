"""Describe how the memory of a target's family moves what a warp asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.cost import geometry
from tlcheck.execute.observe.cost.lds import Lds
from tlcheck.targets.target import AMD, Target

_HALF_WORD = 2


class MemoryRules(Protocol):
    """lanes: of a warp. sector: bytes of global memory that are moved together. vectors: whether one instruction adds
    several floats of 32 bits.
    """

    @property
    def lanes(self) -> int: ...

    @property
    def sector(self) -> int: ...

    @property
    def vectors(self) -> bool: ...

    def wavefronts(self, starts: Array, width: int, *, loads: bool) -> tuple[Array, Array]:
        """Passes through the banks that each warp takes, and how few they would be without conflicts."""

    def copied(self, starts: Array, sources: Array, width: int) -> tuple[Array, Array]:
        """The same of copies of 16 bytes from the addresses `sources` of global memory."""

    def line(self, width: int, *, loads: bool) -> int:
        """Bytes of one pass."""

    def swapped(self, name: str, width: int, *, shared: bool) -> bool:
        """Whether an atomic on floats, by the name of its call, is a loop of a load and a compare-and-swap."""


@dataclass(frozen=True)
class _Nvidia:
    """See `geometry`."""

    vectors: bool
    lanes: int = geometry.LANES
    sector: int = geometry.SECTOR

    def wavefronts(self, starts: Array, width: int, *, loads: bool) -> tuple[Array, Array]:
        return geometry.wavefronts(starts, width, loads=loads)

    def copied(self, starts: Array, sources: Array, width: int) -> tuple[Array, Array]:
        return geometry.copied(starts, sources, width)

    def line(self, width: int, *, loads: bool) -> int:
        return geometry.LINE

    def swapped(self, name: str, width: int, *, shared: bool) -> bool:
        return shared or width == _HALF_WORD or "max" in name or "min" in name


def rules_of(target: Target) -> MemoryRules:
    """The rules of a target."""
    if target.family == AMD:
        return Lds(target.arch)
    return _Nvidia(vectors=target.capability >= (9, 0))  # red.v2.f32, red.v4.f32
