"""Find what one access by a wave moves on CDNA: passes through the banks of LDS, requests of 64 bytes of global memory.

An instruction takes the lanes of a wave in phases; lanes of different phases do not conflict. Which lanes those are:

- gfx942, 16 bytes: ROCm's documentation of Composable Kernel, "Understanding AMD GPU LDS and Bank Conflicts".
- gfx950, reads of 8 and 16 bytes, writes of 8: measured with counters on an MI355X by HipKittens (arXiv 2511.08083,
  `analysis/paper_experiments/phases`, f09e9685).
- All others: neighbours, 128 bytes a phase, 32 banks. Nobody has published a measurement of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.cost.geometry import BANKS, LINE, WORD, conflicts, words_of
from tlcheck.targets.amd import WARP as WAVE

REQUEST = 64  # bytes (ROCm documentation of rocprofiler-compute, "L2 cache")
_QUAD, _PAIR = 16, 8  # bytes of a lane
_Phases = tuple[int, Array]  # banks, and the lanes of each phase


def _halves(*lanes: int) -> Array:
    """Phases of both halves of a wave, of the first lanes of fours in one of the first half."""
    fours = np.array(lanes).reshape(-1, 1) + np.arange(4)
    return np.concatenate([fours.reshape(1, -1), fours.reshape(1, -1) + WAVE // 2])


_READ_QUAD_942 = np.concatenate([_halves(first, second) for first, second in ((0, 20), (4, 16), (8, 28), (12, 24))])
_READ_QUAD_950 = np.concatenate([_halves(0, 12, 20, 24), _halves(4, 8, 16, 28)])
_KNOWN: dict[tuple[str, bool, int], _Phases] = {
    ("gfx942", True, _QUAD): (BANKS, _READ_QUAD_942),
    ("gfx950", True, _QUAD): (2 * BANKS, _READ_QUAD_950),
    ("gfx950", True, _PAIR): (2 * BANKS, np.arange(WAVE).reshape(2, -1)),
}


@dataclass(frozen=True)
class Lds:
    """The rules of one arch."""

    arch: str
    lanes: int = WAVE
    sector: int = REQUEST
    vectors: bool = False  # no instruction adds several floats of 32 bits

    def wavefronts(self, starts: Array, width: int, *, loads: bool) -> tuple[Array, Array]:
        """Passes through the banks that each wave takes, and how few they would be without conflicts."""
        banks, lanes = self._phases(width, loads)
        words = words_of(starts, width).reshape(len(starts), WAVE, -1)[:, lanes]
        each = conflicts(words.reshape(len(starts) * len(lanes), -1), banks).reshape(len(starts), -1)
        return each.sum(axis=-1), (each > 0).sum(axis=-1)

    def copied(self, starts: Array, sources: Array, width: int) -> tuple[Array, Array]:
        """A direct copy writes as any store."""
        return self.wavefronts(starts, width, loads=False)

    def line(self, width: int, *, loads: bool) -> int:
        """Bytes of one pass."""
        return self._phases(width, loads)[0] * WORD

    def swapped(self, name: str, width: int, *, shared: bool) -> bool:
        """Whether an atomic on floats is a loop of a compare-and-swap (hip_library: what clang makes of it)."""
        return not shared and ("max" in name or "min" in name)

    def _phases(self, width: int, loads: bool) -> _Phases:
        known = _KNOWN.get((self.arch, loads, width))
        return known or (BANKS, np.arange(WAVE).reshape(-1, min(BANKS, LINE // max(width, WORD))))
