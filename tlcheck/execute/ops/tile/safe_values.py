"""T.annotate_safe_value: what an element outside of a global tensor reads as.

The block annotation `safe_value_map` has it by the name of the buffer; 0 for every other buffer.
"""

from __future__ import annotations

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import annotation
from tlcheck.execute.ops.tile.annotations import entries
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Block


@annotation("safe_value_map")
def safe_values(block: Block, program: KernelProgram) -> None:
    """Loads out of bounds give the value of their buffer in this block."""
    for name, value in entries(dict(block.annotations)["safe_value_map"]).items():
        for buffer in program.function.buffers:
            if buffer.name == name:
                program.addresses.safe_values[program.pointers.root(buffer.data.uid)] = _number(value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise NotModelled(f"safe value {text}") from None
