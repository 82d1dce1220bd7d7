"""What an execution is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tlcheck.execute.worlds.budget import Budget
from tlcheck.snapshot.checkpoint import Checkpoint

if TYPE_CHECKING:  # who asks need not import what executes, and NumPy
    from tlcheck.execute.memory.values import Array
    from tlcheck.execute.worlds import blocks, inputs
    from tlcheck.execute.worlds.source_runs import SourceRuns

SOURCE, LOWERED = Checkpoint.SOURCE, Checkpoint.DEVICE_TIR
ALL = 1 << 60  # blocks
_BLOCKS, _SEEDS = 4, (0, 1)


@dataclass(frozen=True)
class GivenInputs:
    """file: holds arrays in NumPy's format, one after the other. sets: each seed, with the places of its arrays there.

    where: the line of the case's `inputs`. updates: what the case says of outputs whose content before matters; None
    where it says nothing.
    """

    file: str
    sets: tuple[tuple[int, tuple[int, ...]], ...]
    where: str
    updates: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What to execute. blocks: at most this many, or these; checkpoint: the lowered side.

    given: tensors and numbers of the case's own, for each seed, by parameter; without them all is random. poisoned: of
    these, what begins as poison, and gives its shape alone. plain: all iterations of loops by themselves, as a
    witness needs it. course: sizes and draws; without one they are what takes the usual blocks everywhere. printed: the
    last checkpoint as the CUDA that is made of it (`program.generated`), not as TIR. contested: orders that the kernel
    leaves open are looked for where an output is wrong; not where it is known to hang on none. brief: verdicts alone,
    with floats as float64: nobody looks for who wrote a wrong element last. cost: whether the
    cost of the lowered kernel is counted too (`tlcheck/cost`). sources: where runs of sources are kept for
    kernels with an equal one, which the outcome does not hang on; None where none is expected.
    """

    blocks: int | tuple[blocks.Block, ...] = _BLOCKS
    seeds: tuple[int, ...] = _SEEDS
    budget: Budget = field(default_factory=Budget)
    checkpoint: Checkpoint = LOWERED
    given: Mapping[int, Mapping[str, Array]] | None = None
    poisoned: frozenset[str] = frozenset()
    plain: bool = False
    course: inputs.Course | None = None
    printed: bool = True
    contested: bool = True
    brief: bool = False
    cost: bool = False
    sources: SourceRuns | None = field(default=None, repr=False, compare=False)

    @property
    def is_usual(self) -> bool:
        """Whether it is for the usual blocks and inputs."""
        return (self.blocks, self.seeds) == (_BLOCKS, _SEEDS)

    @property
    def inputs(self) -> str:
        """What the kernel is executed on, in words."""
        return "random" if self.given is None else "the case's"
