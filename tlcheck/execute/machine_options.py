"""Define what a run is like, besides its kernel, worlds and memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tlcheck import reasons
from tlcheck.execute.field import Field
from tlcheck.execute.stops import NotModelled
from tlcheck.program.release import UNKNOWN, Release
from tlcheck.snapshot.ir import Snapshot
from tlcheck.targets.lookup import TARGETS, USUAL
from tlcheck.targets.target import Target

ABSENT = -1  # as the number of an allocation


@dataclass(frozen=True, slots=True)
class Options:
    """source: the kernel has tile operators and T.Parallel. exact: floats are float64, whatever their dtype, or
    elements of a field.

    early: before VectorizeLoop, when guards may be missing, and copies are narrower than the instructions that they
    become.
    late: asynchronous copies land when they are waited for, otherwise at once.
    midway: the tile operators are no longer the author's: copies that a pass made asynchronous have to be waited for.
    statements, bytes: the budget. until: seconds of this process at which it ends.
    costly: sums in the source cost what rounding each of their terms may, where floats are not exact.
    jitter: 0, or the number of a run in which all floats are changed a little: an even one as in the run before it, the
    other way, so that a sum of which nothing should be left is above zero in one of the two and below in the other.
    order: in which lanes' atomics act: as they are numbered (0), from the last one on (1), every other one first (2).
    behind: a warp whose branch lets all others go first (`agents`).
    target: what it was lowered for. release: TileLang's, whose library and conventions the lowered kernel uses.
    plain: every iteration by itself.
    barriers: TileLang puts them between accesses to shared memory where the author has not.
    printed: as the CUDA that is made of it: integers are promoted, for example (`program.generated`).
    wide: sums and products of int32 have 64 bits, and so have floats that become int32.
    alike: all random numbers of a block are the same one.
    chance: integers that nobody has written have other values.
    cleared: the allocations of a block that begin as zeros, by number; None for all. ABSENT: what a shuffle reads of
    lanes that take no part.
    partial: T.sync_threads in a branch counts the threads that take it.
    from_end: indices of the source that are negative for certain count from the end; else constants alone do.
    """

    source: bool
    early: bool = False
    midway: bool = False
    exact: bool | Field = True
    costly: bool = False
    late: bool = True
    release: Release = UNKNOWN
    target: Target = TARGETS[USUAL[-1]]
    statements: int = 10**9
    bytes: int = 1 << 32
    until: float = math.inf
    jitter: int = 0
    plain: bool = True
    behind: int | None = None
    order: int = 0
    barriers: bool = True
    printed: bool = False
    wide: bool = False
    alike: bool = False
    chance: bool = False
    cleared: frozenset[int] | None = frozenset()
    partial: bool = False
    from_end: bool = True

    @property
    def field(self) -> Field | None:
        """Return where floats are elements of a field; None where they are numbers."""
        return self.exact if isinstance(self.exact, Field) else None

    def among(self, worlds: int, times: int = 1) -> Options:
        """Return the options for so many worlds, each of them there `times` times."""
        return self if self.field is None else replace(self, exact=self.field.among(worlds, times))

    @property
    def is_cuda(self) -> bool:
        """Whether it is as the CUDA that is made of the kernel; HIP differs from TIR elsewhere."""
        return self.printed and self.target.kind == "cuda"


def target_of(snapshot: Snapshot) -> Target:
    """Return what a snapshot was lowered for. Raises NotModelled for a target that is not known."""
    found = TARGETS.get(snapshot.target)
    if found is None:
        raise NotModelled(f"{snapshot.target or 'an unknown target'}, which is not modelled", reasons.TARGET)
    return found
