"""Sizes beside the usual ones: at which a tail, a row's alignment, an axis of one element, or a large index shows.

Each symbolic size is 16 above a tile, one above, one below, and 1. The tile is the largest constant by which the source
divides the size, for its grid or a loop. All are different, and but for the first odd, so that no row of them is a
multiple of 16 bytes. Where that breaks a promise (T.assume), the size is a multiple of the tile instead. Then one size
that no loop goes by makes a tensor larger than 32 bits can index.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod

from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.schedule.launches import grid, kernels
from tlcheck.execute.worlds import inputs
from tlcheck.snapshot.ir import For, Function
from tlcheck.snapshot.operators import INTEGER_DIVISIONS
from tlcheck.snapshot.walk import expressions, postorder, statements

_TILE = 64  # of what nothing divides
_BEYOND = 2**31
_MEMORY = 1 << 36  # bytes of a device


def others(function: Function, usual: Mapping[str, int], most: Sequence[int]) -> Iterator[dict[str, int]]:
    """Sets of sizes; numbers that are none are as usual. most: blocks along each axis of the target's largest grid.

    There is none where the kernel ran without a size that its tensors have.
    """
    names = inputs.axes(function)
    if not usual.keys() >= set(names):
        return
    tiles = [_tile(function, name) for name in names]
    sets = [
        dict(zip(names, _different([tile + 16 for tile in tiles], 16), strict=True)),
        dict(zip(names, _different([tile + 1 | 1 for tile in tiles], 2), strict=True)),
        dict(zip(names, _different([max(tile - 1, 2) | 1 for tile in tiles], 2), strict=True)),
        dict.fromkeys(names, 1),
    ]
    multiples = dict(zip(names, [tile * (2 + place) for place, tile in enumerate(tiles)], strict=True))
    sets += [dict([pair]) for pair in _large(function, names, usual)]
    for sizes in _each_once((_kept(function, usual, chosen, multiples) for chosen in sets), usual):
        grids = [grid(kernel, sizes) for kernel in kernels(function)]
        small = all(count <= limit for blocks in grids for count, limit in zip(blocks, most, strict=True))
        if small and sum(inputs.span(b, sizes) * kind_of(b.dtype).bits // 8 for b in function.buffers) <= _MEMORY:
            yield sizes


def _kept(
    function: Function, usual: Mapping[str, int], chosen: Mapping[str, int], multiples: Mapping[str, int]
) -> dict[str, int]:
    """The sizes that are chosen, one after the other, where the author's promises hold with them."""
    found = dict(usual)
    for name, size in chosen.items():
        tried = ({**found, name: other} for other in (size, multiples[name]))
        found = next((sizes for sizes in tried if inputs.sizes(function, sizes) is not None), found)
    return found


def _each_once(sets: Iterable[dict[str, int]], usual: Mapping[str, int]) -> Iterator[dict[str, int]]:
    known = [dict(usual)]
    for sizes in sets:
        if sizes not in known:
            known.append(sizes)
            yield sizes


def _large(function: Function, names: list[str], usual: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The first size that only the grid goes by, so large that elements of a tensor are beyond 32 bits."""
    loops = [e for stmt in statements(function.body) if isinstance(stmt, For) for e in (stmt.start, stmt.extent)]
    looped = {e.value for e in postorder(loops) if e.op == "var"}
    for buffer in function.buffers:
        extents = inputs.extent(buffer, usual)
        for axis, extent in zip(buffer.shape, extents, strict=True):
            others = prod(extents) // max(extent, 1)
            if axis.op == "var" and axis.value in names and axis.value not in looped and others > 1:
                yield str(axis.value), (_BEYOND // others + _tile(function, str(axis.value)) + 1) | 1
                return


def _tile(function: Function, name: str) -> int:
    """The largest constant by which something is divided that a size is part of."""
    every = postorder(e for stmt in statements(function.body) for e in expressions(stmt))
    divided = [e.args for e in every if e.op in INTEGER_DIVISIONS and e.args[1].op == "int"]
    by = [int(d.value or 1) for e, d in divided if any(p.op == "var" and p.value == name for p in postorder([e]))]
    return largest if (largest := max(by, default=1)) > 1 else _TILE


def _different(sizes: Sequence[int], step: int) -> list[int]:
    """The sizes, each made larger by steps until no two are equal."""
    found: list[int] = []
    for size in sizes:
        while size in found:
            size += step
        found.append(size)
    return found
