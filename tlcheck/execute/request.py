"""Define what an execution is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tlcheck.execute.worlds.budget import Budget
from tlcheck.snapshot.checkpoint import Checkpoint

if TYPE_CHECKING:  # who asks need not import what executes, and NumPy
    from tlcheck.execute.memory.values import Array
    from tlcheck.execute.worlds import blocks, inputs
    from tlcheck.execute.worlds.source_runs import SourceRuns
    from tlcheck.snapshot.ir import Function

    Missing = Callable[[Function, Function, Mapping[str, int], Sequence[blocks.Block], int], Sequence[blocks.Block]]
    Overlap = Callable[[Function, Function, Mapping[str, int], blocks.Block], object]
    Representatives = Callable[[Function, Function, Mapping[str, int], Sequence[blocks.Block]], Sequence[blocks.Block]]

SOURCE, LOWERED = Checkpoint.SOURCE, Checkpoint.DEVICE_TIR
ALL = 1 << 60  # blocks
_BLOCKS, _SEEDS = 4, (0, 1)


@dataclass(frozen=True)
class GivenInputs:
    """file: holds arrays in NumPy's format, one after the other. sets: each seed, with the places of its arrays there.

    where: the line of the case's `inputs`. updates: what the case says of outputs whose content before matters; None
    where it says nothing. unknown: of each set, the parameters of which only shape and dtype are there. captured: the
    sets are calls of a script, which may have several shapes.
    """

    file: str
    sets: tuple[tuple[int, tuple[int, ...]], ...]
    where: str
    updates: tuple[str, ...] | None = None
    unknown: tuple[tuple[int, ...], ...] = ()
    captured: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """The choice of what to execute. blocks: at most this many, or these; checkpoint: the lowered side.

    given: tensors and numbers of the case's own, for each seed, by parameter; without them all is random. drawn: of
    these, what is random all the same, for each seed; captured: they are what calls of a script passed. poisoned: of
    these, what begins as poison, and gives its shape alone. plain: all iterations of loops by themselves, as a
    witness needs it. course: sizes and draws; without one they are what takes the usual blocks everywhere. printed: the
    last checkpoint as the CUDA that is made of it (`program.generated`), not as TIR. contested: orders that the kernel
    leaves open are looked for where an output is wrong; not where it is known to hang on none. brief: verdicts alone,
    with floats as float64: nobody looks for who wrote a wrong element last. cost: whether the
    cost of the lowered kernel is counted too (`tlcheck/cost`). sources: where runs of sources are kept for
    kernels with an equal one, which the outcome does not hang on; None where none is expected.
    representatives: finds those of some blocks that stand for the others; None where each stands for itself.
    missing: finds at most so many blocks without which those that run stand for others only; None where nobody asks.
    overlap: says of which tensor two blocks may write one element; None where nobody asks.
    further: requests for inputs of other shapes.
    """

    blocks: int | tuple[blocks.Block, ...] = _BLOCKS
    seeds: tuple[int, ...] = _SEEDS
    budget: Budget = field(default_factory=Budget)
    checkpoint: Checkpoint = LOWERED
    given: Mapping[int, Mapping[str, Array]] | None = None
    drawn: Mapping[int, frozenset[str]] = field(default_factory=dict, hash=False)
    captured: bool = False
    poisoned: frozenset[str] = frozenset()
    plain: bool = False
    course: inputs.Course | None = None
    printed: bool = True
    contested: bool = True
    brief: bool = False
    cost: bool = False
    sources: SourceRuns | None = field(default=None, repr=False, compare=False)
    representatives: Representatives | None = field(default=None, repr=False, compare=False)
    missing: Missing | None = field(default=None, repr=False, compare=False)
    overlap: Overlap | None = field(default=None, repr=False, compare=False)
    further: tuple[Request, ...] = field(default=(), repr=False, compare=False)

    @property
    def is_usual(self) -> bool:
        """Whether it is for the usual blocks and inputs."""
        return (self.blocks, self.seeds) == (_BLOCKS, _SEEDS)

    @property
    def inputs(self) -> str:
        """Return what the kernel is executed on, in words."""
        if self.given is None:
            distinct = () if self.course is None or self.course.draw is None else self.course.draw.distinct
            return "random" + (f", no two equal in {', '.join(distinct)}" if distinct else "")
        if not self.captured:
            return "the case's"
        always = sorted(frozenset.intersection(*(self.drawn.get(seed, frozenset()) for seed in self.seeds)))
        return f"the script's, {', '.join(always)} random" if always else "the script's"

    @property
    def is_own(self) -> bool:
        """Whether all that it is executed on is the author's: the case's own, or known to be what the script passed."""
        return self.given is not None and not any(self.drawn.get(seed) for seed in self.seeds)
