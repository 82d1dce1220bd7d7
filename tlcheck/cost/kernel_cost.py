"""Define what is known of a kernel's cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SiteCost:
    """One access site, in all blocks of the grid.

    line: in the kernel's file; tir_line: of `tlcheck dump --at device-tir`; 0 where unknown. space: `global`, `shared`,
    `tensor cores`, `arithmetic` or `barrier`. operation: `read`, `write`, `atomic`, `multiply`, `compute` or `wait`.
    instruction: `load`, `ldmatrix x4`, `cp.async`, `bulk copy`, `wgmma m64n128k16 float16`, ...; of arithmetic the
    dtype. width: bytes that one thread moves with one instruction, 0 for those of many threads. requests: instructions
    of warps (wgmma: of warpgroups; bulk copies: of one thread). lanes: threads that take part in them. sectors: of 32
    bytes, on AMD 64; least: the fewest that hold the bytes asked for. wavefronts: of 128 bytes of shared memory; ideal:
    how few they would be without bank conflicts. useful, moved: bytes. collisions: lanes whose atomic goes to the
    address of an earlier lane of their warp. flops: of tensor cores, or floating-point operations of threads. share: of
    the kernel's work, in clocks of the unit that does it. limit: what keeps it from being cheaper, or empty. advice:
    one sentence, or empty.
    """

    line: int
    tir_line: int
    space: str
    operation: str
    buffer: str
    instruction: str
    width: int
    requests: int
    lanes: int
    useful: int
    moved: int
    sectors: int
    least: int
    wavefronts: int
    ideal: int
    collisions: int
    flops: int
    share: float = 0.0
    limit: str = ""
    advice: str = ""

    @property
    def access(self) -> str:
        """The access in words: `read s (shared: load, 4 bytes a thread)`."""
        width = f", {self.width} bytes a thread" if self.width else ""
        if self.space == "barrier":
            return self.instruction
        if self.space == "arithmetic":
            return f"{self.instruction} arithmetic"
        if self.space == "tensor cores":
            return f"{self.instruction} into {self.buffer}"
        return f"{self.operation} {self.buffer} ({self.space}: {self.instruction}{width})"

    @property
    def sectors_per_request(self) -> float:
        """Count the sectors per request of global memory."""
        return self.sectors / self.requests if self.requests else 0.0

    @property
    def conflict(self) -> float:
        """Return how many times as many wavefronts as without bank conflicts."""
        return self.wavefronts / self.ideal if self.ideal else 1.0


@dataclass(frozen=True, slots=True)
class Floor:
    """A bound: seconds that no kernel with this work stays below. unit: `memory`, `tensor cores` or `shared memory`.

    amount: bytes or operations. peak: a second.
    """

    unit: str
    amount: float
    peak: float
    seconds: float


@dataclass(frozen=True, slots=True)
class KernelCost:
    """The cost of one launch.

    blocks: that ran; of: in the grid; like: of these, that have the guards and loop bounds of one that ran. sizes:
    chosen for symbolic ones. threads, shared_bytes: of a block; the latter 0 where unknown. resident: blocks that one
    multiprocessor holds at most, before registers are known, 0 where the kernel cannot be launched; limiter: of these,
    `shared memory`, `threads` or `blocks`. in_flight: bytes of asynchronous copies under way at once, in the block with
    the most. global_bytes: in sectors; once: each tensor once, as far as it is asked for. flops: of tensor cores, by
    dtype; arithmetic: floating-point operations of threads, likewise. intensity: operations for each byte of `once`.
    floors: by the published peaks of `part`, the highest first; none where the arch has no published ones.
    """

    blocks: int
    of: int
    like: int
    sizes: Mapping[str, int]
    threads: int
    shared_bytes: int
    resident: int
    limiter: str
    in_flight: int
    global_bytes: int
    once: int
    flops: Mapping[str, int]
    arithmetic: Mapping[str, int]
    intensity: float
    part: str
    floors: tuple[Floor, ...]
    sites: tuple[SiteCost, ...]
