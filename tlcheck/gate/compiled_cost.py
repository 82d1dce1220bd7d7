"""Find what nvcc makes of a kernel whose cost was counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tlcheck.cost.kernel_cost import KernelCost
from tlcheck.cost.occupancy import resident_blocks
from tlcheck.gate.nvcc import CompiledCuda
from tlcheck.gate.sass import classes
from tlcheck.lower.runs import Run
from tlcheck.targets.lookup import target


@dataclass(frozen=True, slots=True)
class CompiledCost:
    """A record of what a kernel asks for once it is compiled.

    nvcc: its version. registers: of a thread. spills, stack: bytes of a thread. resident: blocks that one
    multiprocessor holds at most; limiter: of these. seconds: that nvcc took. instructions: of the machine code, by
    class, as they stand in its text; opcodes: the same by opcode; both empty without nvdisasm. error: of
    nvcc, or empty.
    """

    nvcc: str
    registers: int
    spills: int
    stack: int
    resident: int
    limiter: str
    seconds: float
    instructions: Mapping[str, int]
    opcodes: Mapping[str, int]
    error: str = ""


@dataclass(frozen=True, slots=True)
class Costed:
    """A kernel with its cost.

    inputs: what it was executed on: `the case's` or `random` ones. compiled: None where nvcc was not asked.
    """

    run: Run
    inputs: str
    cost: KernelCost
    compiled: CompiledCost | None = None


def compiled_cost(version: str, compiled: CompiledCuda, cost: KernelCost, arch: str) -> CompiledCost:
    """Add how many blocks fit now that registers are known."""
    resident, limiter = resident_blocks(target(arch), cost.threads, cost.shared_bytes, compiled.registers)
    return CompiledCost(
        nvcc=version,
        registers=compiled.registers,
        spills=compiled.spills,
        stack=compiled.stack,
        resident=resident,
        limiter=limiter,
        seconds=compiled.seconds,
        instructions=classes(compiled.opcodes),
        opcodes=dict(compiled.opcodes),
        error=compiled.error,
    )
