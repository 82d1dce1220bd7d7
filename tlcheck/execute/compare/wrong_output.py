"""An output that is wrong, and where that begins."""

from __future__ import annotations

from dataclasses import dataclass

from tlcheck.execute.compare.onset import Onset
from tlcheck.execute.compare.origin import ValueOrigin
from tlcheck.execute.compare.output_outcome import Difference
from tlcheck.execute.compare.sum_terms import UnequalTerm
from tlcheck.execute.compare.trace import Traced
from tlcheck.program.generated import Departure


@dataclass(frozen=True, slots=True)
class WrongOutput:
    """A record of where an output becomes wrong, and how.

    difference: at the onset; how many elements differ is counted at the end. onset: None where the output is not wrong
    in the blocks that write this element alone. departure: the difference between CUDA and TIR, if the TIR is right.
    traced: None where the element cannot be traced, or has another value alone than among all blocks, or rounded.
    origin: None where it is not known for certain. terms: of a sum, those that are added too often, or not at all.
    wraps: the operation of small integers without whose wrapping the source would leave this too; empty for none.
    """

    difference: Difference
    onset: Onset | None = None
    departure: Departure | None = None
    traced: Traced | None = None
    origin: ValueOrigin | None = None
    terms: tuple[UnequalTerm, ...] = ()
    wraps: str = ""
