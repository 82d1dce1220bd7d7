"""A fragment read backwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class FragmentTable:
    """A fragment read backwards: `elements[thread * registers + local]` is the logical element (row-major) held
    there, or -1.
    """

    registers: int
    threads: int
    elements: npt.NDArray[np.int64]

    def at(self, thread: npt.NDArray[np.int64], local: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The elements held by registers `local` of `thread`; where there is none, a negative number of its own."""
        inside = (thread >= 0) & (thread < self.threads) & (local >= 0) & (local < self.registers)
        slot = np.where(inside, thread * self.registers + local, 0)
        held = np.where(inside, self.elements[slot], -1)
        return np.where(held >= 0, held, -1 - np.abs(thread * (1 << 20) + local))
