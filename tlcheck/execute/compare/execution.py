"""Define what came of an execution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who reads it need not import what executes, and NumPy
    from tlcheck.execute.compare.counting import Counted
    from tlcheck.execute.compare.faults import Fault
    from tlcheck.execute.compare.formula_equality import Formulas
    from tlcheck.execute.compare.output_outcome import OutputOutcome
    from tlcheck.execute.memory.pages import Stored
    from tlcheck.execute.observe.races import Contest, Race
    from tlcheck.execute.stops import Illegal
    from tlcheck.execute.worlds import blocks
    from tlcheck.reasons import Reason


@dataclass(frozen=True, slots=True)
class Execution:
    """A record of what was executed, and the verdict on each output. of: blocks of the grid. sizes: chosen for symbolic
    ones.

    statements: executed of source and lowered. illegal: an access that stopped the lowered side. ordered: buffers
    whose accesses were watched, and why their order is not known, or nothing where it is. races: pairs of accesses that
    nothing orders. contested: such pairs that the author has not ordered either, with what races in the source. lawful:
    buffers all of whose accesses were legal. unreached: source lines (0: unknown) of branches that were not taken as
    written and of loops that ended early, where memory decides. left: what the source left of each output,
    for the first seed. faults: of the source itself. digest: of all that it left, and of what it was run on; equal ones
    say that two kernels do the same there. rounded: whether one block was also run with floats in their own types.
    counts: what the lowered kernel costs, where that is asked for. also: sizes with which less was executed, and
    agreed. same_elements: whether both levels wrote the same elements of each output; None where blocks ran
    one by one. formulas: the outputs that are equal for all inputs; None where nobody has looked.
    """

    outputs: tuple[OutputOutcome, ...]
    blocks: tuple[blocks.Block, ...] = ()
    of: int = 0
    seeds: tuple[int, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    statements: tuple[int, int] = (0, 0)
    illegal: Illegal | None = None
    ordered: Mapping[str, Reason] = field(default_factory=dict)
    races: tuple[Race, ...] = ()
    contested: tuple[tuple[Race, Contest], ...] = ()
    lawful: tuple[str, ...] = ()
    unreached: tuple[int, ...] = ()
    left: Mapping[str, Stored] = field(default_factory=dict, compare=False)
    digest: str = field(default="", compare=False)
    rounded: bool = False
    faults: tuple[Fault, ...] = ()
    counts: Counted | None = field(default=None, compare=False)
    also: tuple[tuple[tuple[str, int], ...], ...] = ()
    same_elements: bool | None = None
    formulas: Formulas | None = None

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found that a witness has to be given for."""
        refuted = any(outcome.verdict == "refuted" for outcome in self.outputs)
        return self.illegal is None and not self.races and not refuted

    @property
    def is_refuted(self) -> bool:
        """Whether a fault of the source is certain."""
        return any(not fault.open and not fault.warning for fault in self.faults)

    @property
    def is_settled(self) -> bool:
        """Whether all outputs agreed, and nothing else is to be said."""
        agreed = all(outcome.verdict == "agreed" for outcome in self.outputs)
        return agreed and self.is_clean and all(fault.warning for fault in self.faults)
