"""Fragments that LayoutInference lays out for a loop over part of them: the rest is in no thread's registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tlcheck.snapshot.ir import Alloc, Block, Expr, Function
from tlcheck.snapshot.walk import statements


@dataclass(frozen=True)
class UnheldFragment:
    """A fragment with a layout of fewer elements than it has."""

    name: str
    elements: int
    held: int

    @property
    def words(self) -> str:
        return f"it gives {self.name} a layout for {self.held} of its {self.elements} elements"


def unheld_fragments(function: Function) -> tuple[UnheldFragment, ...]:
    """Return these fragments of a function that LayoutInference has laid out."""
    found = [*statements(function.body)]
    shapes = {each.buffer.data.uid: each.buffer.shape for each in found if isinstance(each, Alloc)}
    unheld = []
    for data, layout in (each for block in found if isinstance(block, Block) for each in block.layouts):
        shape = shapes.get(data.uid, ())
        elements, held = _size(shape), _size(layout.input_shape)
        is_whole = layout.thread is None or len(shape) != len(layout.input_shape)
        if not is_whole and elements and held and held < elements:
            unheld.append(UnheldFragment(str(data.value), elements, held))
    return tuple(dict.fromkeys(unheld))


def _size(shape: Sequence[Expr]) -> int | None:
    """The number of elements; None where it is not constant."""
    values = [extent.value for extent in shape]
    return prod(v for v in values if isinstance(v, int)) if all(isinstance(v, int) for v in values) else None
