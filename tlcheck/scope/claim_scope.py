"""Define how far an agreed output reaches: which blocks, inputs and sizes it holds for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SOME: Final = "some"
ALL: Final = "all"
DRAWN: Final = "drawn"
GIVEN: Final = "given"


@dataclass(frozen=True, slots=True)
class Limit:
    """The reason why a scope ends before all blocks or all inputs.

    of: what it limits. reason: in words. line: in the source, 0 if it is not known.
    """

    of: Literal["blocks", "inputs"]
    reason: str
    line: int = 0

    @property
    def words(self) -> str:
        """`blocks: some did not run (line 12)`."""
        return f"{self.of}: {self.reason}" + (f" (line {self.line})" if self.line else "")


@dataclass(frozen=True, slots=True)
class ClaimScope:
    """The reach of an agreed output.

    blocks: `all` where each block of the grid ran, or does what one that ran does, at its own place; else `some`.
    inputs: `all` where both levels are the same formulas; else `drawn` by tlcheck, or `given` by the case or a captured
    call. sizes: `these`.
    not_taken: source lines (0: unknown) of branches and loops that no input reached. limits: why blocks or inputs are
    not all.
    """

    blocks: Literal["some", "all"]
    inputs: Literal["drawn", "given", "all"]
    sizes: Literal["these"] = "these"
    not_taken: tuple[int, ...] = ()
    limits: tuple[Limit, ...] = ()

    @property
    def is_everything(self) -> bool:
        """Whether it is all blocks and all inputs, of these sizes."""
        return self.blocks == ALL and self.inputs == ALL and not self.not_taken

    @property
    def words(self) -> str:
        """`all blocks, drawn inputs, these sizes; inputs: ... (line 12)`."""
        lines = ", ".join(str(line) for line in sorted(set(self.not_taken)) if line)
        taken = f"not taken: line {lines}" if lines else "branches not taken" if self.not_taken else ""
        where = f"{self.blocks} blocks, {self.inputs} inputs, {self.sizes} sizes"
        return "; ".join(filter(None, (where, taken, *(limit.words for limit in self.limits))))
