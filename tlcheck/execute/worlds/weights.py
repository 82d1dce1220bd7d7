"""Describe how many blocks of a grid each block that runs stands for: those with the same guards and loop bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tlcheck.execute.memory.values import Array
from tlcheck.execute.schedule.launches import grid, kernels
from tlcheck.execute.worlds.blocks import Block, columns, coordinates, looked_at
from tlcheck.snapshot.ir import Function

_BALANCED = 1e-6  # of the spread of a loop bound, that its mean may be off


@dataclass(frozen=True, slots=True)
class Weights:
    """each: the blocks that each block stands for, itself included. of: blocks of the grid.

    like: of these, how many have the guards and loop bounds of a block that runs; the others go with the nearest ones,
    in between where that gives loop bounds their mean.
    """

    each: tuple[float, ...]
    of: int
    like: int


def weights(kernel: Function, sizes: Mapping[str, int], ran: Sequence[Block]) -> Weights:
    """ran: the blocks of the kernel that run. Large grids are sampled."""
    extents = grid(kernel, sizes)
    of = prod(extents)
    if len(ran) == of:
        return Weights((1.0,) * of, of, of)
    numbers, signature = _signatures(kernel, sizes)
    own = _signature(kernel, sizes, [x + extents[0] * (y + extents[1] * z) for x, y, z in ran])
    width = min(signature.shape[1], own.shape[1])
    apart = _distances(signature[:, :width], own[:, :width])
    least = apart.min(axis=1)
    among = apart == least[:, None]
    each = (among / among.sum(axis=1, keepdims=True)).sum(axis=0) * (of / len(numbers))
    like = round(float((least == 0).mean()) * of)
    if like < of:
        each = _balanced(each, own[:, :width], signature[:, :width].mean(axis=0))
    return Weights(tuple(each.tolist()), of, like)


def _balanced(each: Array, own: Array, mean: Array) -> Array:
    """The weights nearest to these with which loop bounds and guards have their mean in the grid, else loop bounds.

    What a block does is mostly linear in them. The same weights where there are none such, or only with negative ones.
    """
    spread = np.maximum(np.ptp(own, axis=0), 1)
    rows = (own - mean).T / spread[:, None]  # of which the weighted sum is to be 0
    apart = np.eye(len(own)) - 1 / len(own)  # changes of weights that leave their sum as it is
    off = _BALANCED * each.sum()
    for wanted in (rows, rows[spread > 1]):
        found = each + apart @ np.linalg.lstsq(wanted @ apart, -wanted @ each, rcond=None)[0]
        if np.abs(wanted @ found).max(initial=0.0) <= off and (found >= -off).all():
            balanced: Array = np.maximum(found, 0.0)
            return balanced
    return each


def representatives(kernel: Function, sizes: Mapping[str, int], most: int) -> list[Block]:
    """Return so many blocks at most: one of each class of guards and loop bounds, or classes from least to most."""
    extents = grid(kernel, sizes)
    numbers, signature = _signatures(kernel, sizes)
    _, firsts = np.unique(signature, axis=0, return_index=True)
    if len(firsts) > most:
        firsts = firsts[np.linspace(0, len(firsts) - 1, most).round().astype(np.int64)]
    at = coordinates(np.sort(numbers[firsts]), extents)
    return [(int(x), int(y), int(z)) for x, y, z in zip(*at, strict=True)]


def _signatures(kernel: Function, sizes: Mapping[str, int]) -> tuple[Array, Array]:
    """The numbers of the blocks that are looked at, and a row for each."""
    numbers = looked_at(prod(grid(kernel, sizes)))
    return numbers, _signature(kernel, sizes, numbers)


def _signature(kernel: Function, sizes: Mapping[str, int], numbers: Array | Sequence[int]) -> Array:
    """A row for each block: what its guards and loop bounds are. Columns that are the same everywhere stay."""
    at = coordinates(np.asarray(numbers), grid(kernel, sizes))
    found = list(columns(kernels(kernel)[-1].body, sizes, at, every=True))
    return np.column_stack(found) if found else np.zeros((len(at[0]), 0), np.int64)


def _distances(rows: Array, own: Array) -> Array:
    """Return how far each row is from each of our own, every column by its spread."""
    spread = np.maximum(np.ptp(rows, axis=0), 1) if len(rows) else 1
    found = np.zeros((len(rows), len(own)))
    for place, row in enumerate(own):
        found[:, place] = (np.abs(rows - row) / spread).sum(axis=1)
    return found
