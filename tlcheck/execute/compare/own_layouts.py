"""Find the elements that a layout of the author's puts outside of their memory: `T.annotate_layout`."""

from __future__ import annotations

from tlcheck.program.layouts import negative
from tlcheck.snapshot.ir import Block, Function
from tlcheck.snapshot.walk import statements

Index = tuple[int, ...]


def outside(source: Function, buffer: str) -> tuple[Index, Index] | None:
    """The first element that the source's layout of a buffer puts at a negative index, and that index; None for none.

    TileLang makes the memory of a tile as large as the greatest index says: a negative one is never within.
    """
    blocks = [stmt for stmt in statements(source.body) if isinstance(stmt, Block)]
    own = [layout for block in blocks for data, layout in block.layouts if str(data.value) == buffer]
    return next(filter(None, map(negative, own)), None)
