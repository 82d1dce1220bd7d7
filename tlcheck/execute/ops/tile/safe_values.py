"""T.annotate_safe_value: what an element outside of a global tensor reads as.

The block annotation `safe_value_map` has it by the name of the buffer; 0 for every other buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlcheck.execute.compile.registry import annotation
from tlcheck.execute.ops.tile.annotations import entries
from tlcheck.execute.reasons import NotModelled
from tlcheck.snapshot.ir import Block

if TYPE_CHECKING:
    from tlcheck.execute.schedule.machine import Machine


@annotation("safe_value_map")
def safe_values(block: Block, machine: Machine) -> None:
    """Loads out of bounds give the value of their buffer in this block."""
    for name, value in entries(dict(block.annotations)["safe_value_map"]).items():
        for buffer in machine.function.buffers:
            if buffer.name == name:
                machine.safe_values[machine.pointers.root(buffer.data.uid)] = _number(value)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise NotModelled(f"safe value {text}") from None
