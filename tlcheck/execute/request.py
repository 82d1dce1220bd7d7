"""What an execution is asked for, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tlcheck.execute.worlds.budget import Budget
from tlcheck.snapshot.checkpoint import Checkpoint

if TYPE_CHECKING:  # who asks need not import what executes, and NumPy
    from tlcheck.execute.compare.outcome import OutputOutcome, Written
    from tlcheck.execute.memory.values import Array
    from tlcheck.execute.observe.races import Contest, Race
    from tlcheck.execute.reasons import Illegal
    from tlcheck.execute.worlds import blocks, inputs

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
    leaves open are looked for where an output is wrong; not where it is known to hang on none.
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

    @property
    def is_usual(self) -> bool:
        """Whether it is for the usual blocks and inputs."""
        return (self.blocks, self.seeds) == (_BLOCKS, _SEEDS)

    @property
    def inputs(self) -> str:
        """What the kernel is executed on, in words."""
        return "random" if self.given is None else "the case's"


@dataclass(frozen=True, slots=True)
class Execution:
    """What was executed, and the verdict on each output. of: blocks of the grid. sizes: chosen for symbolic ones.

    statements: executed as written and as lowered. illegal: an access that stopped the lowered side. ordered: buffers
    whose accesses were watched, and why their order is not known, or nothing where it is. races: pairs of accesses that
    nothing orders. contested: such pairs that the author has not ordered either, with what races as written. lawful:
    buffers all of whose accesses were legal. unreached: source lines (0: unknown) of branches that were not taken as
    written and of loops that ended early, where memory decides. left: what the kernel as written left of each output,
    for the first seed. digest: of all that it left, and of what it was run on; equal ones say that two kernels do the
    same there. rounded: whether one block was also run with floats in their own types.
    """

    outputs: tuple[OutputOutcome, ...]
    blocks: tuple[blocks.Block, ...] = ()
    of: int = 0
    seeds: tuple[int, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    statements: tuple[int, int] = (0, 0)
    illegal: Illegal | None = None
    ordered: Mapping[str, str] = field(default_factory=dict)
    races: tuple[Race, ...] = ()
    contested: tuple[tuple[Race, Contest], ...] = ()
    lawful: tuple[str, ...] = ()
    unreached: tuple[int, ...] = ()
    left: Mapping[str, Written] = field(default_factory=dict, compare=False)
    digest: str = field(default="", compare=False)
    rounded: bool = False

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found that a witness has to be given for."""
        refuted = any(outcome.verdict == "refuted" for outcome in self.outputs)
        return self.illegal is None and not self.races and not refuted

    def world_of(self, illegal: Illegal) -> tuple[tuple[int, int, int], int]:
        """The block and the seed in which an access stopped the lowered side."""
        seed, block = divmod(illegal.world, max(1, len(self.blocks)))
        return self.blocks[block], self.seeds[seed]
