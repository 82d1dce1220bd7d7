"""A machine that kernels are lowered for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Family = Literal["nvidia", "amd"]
NVIDIA: Family = "nvidia"
AMD: Family = "amd"
Extents = tuple[int, int, int]  # x, y, z


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a kernel may ask of a device. Memory is in bytes, registers have 32 bits.

    static_shared: shared memory that a block declares, in all its arrays.
    shared: shared memory of a block, when it asks for more at launch.
    multiprocessor_shared: shared memory of one multiprocessor (AMD: compute unit).
    block: threads of a block along each axis.
    threads: threads of a block.
    resident_threads: threads of all blocks that run on one multiprocessor.
    resident_blocks: blocks that run on one multiprocessor.
    registers: registers of a thread.
    multiprocessor_registers: registers of one multiprocessor.
    grid: blocks along each axis.
    multiprocessors: multiprocessors of the usual part.
    shared_unit: bytes in multiples of which a block has shared memory.
    register_unit: registers in multiples of which a warp has them.
    register_files: parts of a multiprocessor (AMD: SIMDs) that each have a share of its registers and of its warps.
    """

    static_shared: int
    shared: int
    multiprocessor_shared: int
    block: Extents
    threads: int
    resident_threads: int
    resident_blocks: int
    registers: int
    multiprocessor_registers: int
    grid: Extents
    multiprocessors: int
    shared_unit: int = 1
    register_unit: int = 256
    register_files: int = 1


@dataclass(frozen=True, slots=True)
class Target:
    """One architecture.

    family: who makes it.
    arch: its name, as users write it: `sm_90`, `gfx942`.
    capability: major and minor version, as torch reports them.
    warp: threads of a warp (AMD: wavefront).
    limits: the most that a kernel may ask of it.
    library: folder of TileLang's device library (`tl_templates/`).
    measured: the row of the table of what that library does (`program/device_library.json`), a compute capability;
        None if the table has no rows for the family.
    instructions: the families of instructions that it has, as `signatures/` names what they need.
    formats: numbers whose bits its code takes for those of another format, by the names of dtypes.
    skips_ended: a barrier of a block waits only for threads that have not ended.
    """

    family: Family
    arch: str
    capability: tuple[int, int]
    warp: int
    limits: Limits
    library: str
    measured: int | None
    instructions: frozenset[str]
    formats: Mapping[str, str] = field(default_factory=dict, hash=False)
    skips_ended: bool = False

    @property
    def kind(self) -> str:
        """TVM's kind of target."""
        return "cuda" if self.family == NVIDIA else "hip"

    @property
    def tvm(self) -> dict[str, str]:
        """The target as TileLang takes it."""
        return {"kind": self.kind, "arch" if self.family == NVIDIA else "mcpu": self.arch}

    def __str__(self) -> str:
        return self.arch
