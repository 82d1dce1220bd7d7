"""Whether two blocks may write one element of a tensor, or one writes what the other reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from tlcheck.execute.worlds.blocks import coordinates
from tlcheck.execute.worlds.demand import AccessBox, boxes
from tlcheck.program.roles import only_added_to, roles
from tlcheck.scope.claim_scope import Limit
from tlcheck.scope.widths import bits_of
from tlcheck.snapshot.ir import Function

_MOST_CELLS = 1 << 22  # of the boxes that blocks write


def shared(
    source: Function, lowered: Function, sizes: Mapping[str, int], extents: tuple[int, int, int]
) -> Limit | None:
    """A tensor of which two blocks may write one element, or one writes what the other reads; None if there is none.

    Several may add to one element: sums have no order, and nobody reads them.
    """
    sides = [roles(function) for function in (source, lowered)]
    names = [[{str(b.data.value) for b in found} for found in (side.outputs, side.updated)] for side in sides]
    if not (names[1][0] <= names[0][0] and names[1][1] <= names[0][1]):
        return Limit("blocks", "the lowered kernel accesses its outputs in another way than the source does")
    every = np.array(coordinates(np.arange(prod(extents)), extents))
    found = boxes(source, sizes, every)
    sums = only_added_to(source) & only_added_to(lowered)
    for buffer in sides[0].outputs:
        if str(buffer.data.value) in sums:
            continue
        of_it = [box for box in found if box.tensor == buffer.data.uid]
        if not _are_apart(of_it, bits_of(buffer, sizes), prod(extents)):
            return Limit("blocks", f"two blocks may write one element of {buffer.name}")
    return None


def _are_apart(found: Sequence[AccessBox], size: int, blocks: int) -> bool:
    """Whether no two blocks access the same elements of a tensor of so many bits, as far as boxes of one view say."""
    views = {(box.shape, box.bits) for box in found}
    if len(views) != 1 or any(box.first is None for box in found):
        return False
    shape, bits = views.pop()
    if prod(shape) * bits != size:
        return False
    first = np.min([np.broadcast_to(np.asarray(box.first), (len(shape), blocks)) for box in found], axis=0)
    after = np.max([np.broadcast_to(np.asarray(box.last), (len(shape), blocks)) for box in found], axis=0) + 1
    limits = np.array(shape, np.int64).reshape(-1, 1)
    first, after = np.clip(first, 0, limits), np.clip(after, 0, limits)
    cuts = [np.unique(np.concatenate([first[n], after[n]])) for n in range(len(shape))]
    if prod(map(len, cuts)) > _MOST_CELLS:
        return False
    taken = np.zeros([max(1, len(cut) - 1) for cut in cuts], np.bool_)
    low = [np.searchsorted(cut, first[n]) for n, cut in enumerate(cuts)]
    high = [np.searchsorted(cut, after[n]) for n, cut in enumerate(cuts)]
    for block in range(blocks):
        part = taken[tuple([slice(low[n][block], high[n][block]) for n in range(len(shape))])]
        if part.any():
            return False
        part[...] = True
    return True
