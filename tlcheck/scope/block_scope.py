"""Classes of blocks: those of one class do the same, each at its own place of every tensor.

A number that depends on the block is a polynomial of the block's variables plus a part that does not depend on them.
The first part has a value for each block of the grid: such columns tell blocks apart. A number that a block reads from
memory has no column: it is whatever lies at the block's own place. Columns leave out two things only:

- how far an access to a tensor is moved, as far as all accesses to that tensor, at both levels, are moved alike;
- conditions that the other variables cannot change, and indices that they cannot lead out of their axis.

A block therefore does on its tensors what another one of its class does on tensors that are moved. If an expression
does not separate, each block is a class of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from tlcheck.execute.memory.values import Array
from tlcheck.execute.schedule.clusters import acts_across
from tlcheck.execute.schedule.launches import grid, kernels
from tlcheck.execute.stops import NotModelled
from tlcheck.execute.worlds.blocks import Block, coordinates
from tlcheck.scope.block_columns import BlockColumn, Level
from tlcheck.scope.claim_scope import Limit
from tlcheck.scope.overlaps import shared
from tlcheck.scope.widths import bits_of, is_compact
from tlcheck.snapshot.ir import Function

_MOST_BLOCKS = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class _Classes:
    """Columns that tell the blocks of a grid apart. limit: why blocks may differ all the same; None if they do not."""

    extents: tuple[int, int, int]
    columns: tuple[BlockColumn, ...]
    limit: Limit | None


def limit_of(source: Function, lowered: Function, sizes: Mapping[str, int], ran: Sequence[Block]) -> Limit | None:
    """Why blocks that did not run may differ from those that did; None if each does what one that ran does."""
    found = _classes(source, lowered, tuple(sizes.items()))
    if isinstance(found, Limit):
        return found
    return _missing(found.columns, _numbers(ran, found.extents)) or found.limit


def representatives(
    source: Function, lowered: Function, sizes: Mapping[str, int], ran: Sequence[Block]
) -> Sequence[Block]:
    """The first one of each class among blocks; all of them where classes are not known to do the same."""
    found = _classes(source, lowered, tuple(sizes.items()))
    if isinstance(found, Limit) or found.limit is not None:
        return ran
    numbers = _numbers(ran, found.extents)
    rows = [tuple([column.numbers[number] for column in found.columns]) for number in numbers]
    return [block for n, block in enumerate(ran) if rows[n] not in rows[:n]]


def missing(
    source: Function, lowered: Function, sizes: Mapping[str, int], ran: Sequence[Block], most: int
) -> Sequence[Block]:
    """The first block of each class of which none ran; none where these are more than `most`, or do not suffice."""
    found = _classes(source, lowered, tuple(sizes.items()))
    if isinstance(found, Limit) or found.limit is not None or not found.columns:
        return ()
    rows = np.column_stack([column.numbers for column in found.columns])
    _, first, classes = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    numbers = np.sort(np.delete(first, np.unique(classes.reshape(-1)[_numbers(ran, found.extents)])))
    x, y, z = coordinates(numbers, found.extents)
    return list(zip(x.tolist(), y.tolist(), z.tolist(), strict=True)) if len(numbers) <= most else ()


@lru_cache(maxsize=1)  # asked before a kernel runs over a field, and when its claims are made
def _classes(source: Function, lowered: Function, known: tuple[tuple[str, int], ...]) -> _Classes | Limit:
    """The classes of blocks of a kernel; why there are none."""
    sizes = dict(known)
    try:
        if len(kernels(source)) > 1 or len(kernels(lowered)) > 1:
            return Limit("blocks", "the function has several kernels")
        if acts_across(source) or acts_across(lowered):
            return Limit("blocks", "blocks of a cluster act on one another")
        extents = grid(source, sizes)
        if not 0 < prod(extents) <= _MOST_BLOCKS or extents != grid(lowered, sizes):
            return Limit("blocks", f"a grid of {prod(extents)} blocks is not looked at")
        bits = {str(b.data.value): bits_of(b, sizes) for b in source.buffers if is_compact(b, sizes)}
        tensors = {str(b.data.value) for function in (source, lowered) for b in function.buffers}
        levels = [Level(function, sizes, extents, bits, tensors) for function in (source, lowered)]
        columns = [column for level in levels for column in level.columns] + list(_moved(levels))
        return _Classes(extents, tuple(columns), shared(source, lowered, sizes, extents))
    except NotModelled as stopped:
        return Limit("blocks", f"not understood: {stopped.reason}")
    except RecursionError:
        return Limit("blocks", "nested too deeply")


def _numbers(ran: Sequence[Block], extents: tuple[int, int, int]) -> Array:
    return np.array([(z * extents[1] + y) * extents[0] + x for x, y, z in ran])


def _missing(columns: Sequence[BlockColumn], ran: Array) -> Limit | None:
    """The first column in which a block differs from all that ran; None where each class has one that ran."""
    for column in columns:
        new = ~np.isin(column.numbers, column.numbers[ran])
        if new.any():
            return Limit("blocks", f"{column.what} depends on the block", column.line)
    if columns:
        _, classes = np.unique(np.column_stack([c.numbers for c in columns]), axis=0, return_inverse=True)
        classes = classes.reshape(-1)
        if not np.isin(classes, classes[ran]).all():
            lines = [column.line for column in columns if column.line]
            return Limit(
                "blocks",
                "no block ran in which conditions hold together as in some that did not",
                max(lines, default=0),
            )
    return None


def _moved(levels: Sequence[Level]) -> Iterator[BlockColumn]:
    """Return by how much an access of a block is moved from the first one to the same tensor."""
    first: dict[str, Array] = {}
    for level in levels:
        for name, line, bits in level.moves:
            start = first.setdefault(name, bits)
            if not np.array_equal(start, bits):
                yield BlockColumn(bits - start, f"which part of {name} is accessed beside another part", line)
