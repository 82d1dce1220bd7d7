"""Access sites, and what is counted at each, for each block that runs."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

import numpy as np

from tlcheck.execute.memory.values import Array
from tlcheck.snapshot.ir import Stmt

Space = Literal["global", "shared", "tensor cores", "arithmetic", "barrier"]
Operation = Literal["read", "write", "atomic", "multiply", "compute", "wait"]


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of one site: numbers, or arrays of one number for each block.

    requests: instructions of a warp (of a warpgroup for wgmma, of a thread for bulk copies).
    lanes: threads that take part in them. moved: bytes of sectors, or of wavefronts. useful: different bytes named.
    sectors: of 32 bytes, in global memory. least: the fewest that hold the useful bytes, request by request.
    wavefronts: of shared memory; ideal: how few they would be without bank conflicts.
    collisions: lanes that name the address of an earlier lane of their warp, in atomics.
    flops: operations of tensor cores, or floating-point operations of threads.
    """

    requests: Array | int = 0
    lanes: Array | int = 0
    moved: Array | int = 0
    useful: Array | int = 0
    sectors: Array | int = 0
    least: Array | int = 0
    wavefronts: Array | int = 0
    ideal: Array | int = 0
    collisions: Array | int = 0
    flops: Array | int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*[getattr(self, name) + getattr(other, name) for name in COLUMNS])


COLUMNS = tuple([column.name for column in fields(Tally)])


@dataclass(frozen=True, slots=True, eq=False)
class CountedSite:
    """A record of where a kernel does something that costs.

    stmt: the statement as lowered. buffer: its name, or empty. form: the instruction, such as `ldmatrix` or
    `m16n8k16 float16`. width: bytes of one lane, 0 where that says nothing.
    """

    stmt: Stmt | None
    space: Space
    operation: Operation
    buffer: str
    form: str
    width: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        return id(self.stmt), self.space, self.operation, self.buffer, self.form, self.width


@dataclass(eq=False)
class CountedSites:
    """All sites of a machine. counts: by site, (columns, worlds)."""

    worlds: int
    known: dict[tuple[object, ...], CountedSite] = field(default_factory=dict)
    counts: dict[tuple[object, ...], Array] = field(default_factory=dict)

    def add(self, site: CountedSite, counts: Array) -> None:
        """Add counts, (columns, worlds)."""
        key = site.key
        if key in self.counts:
            self.counts[key] += counts
        else:
            self.known[key] = site
            self.counts[key] = np.array(counts, np.int64)
