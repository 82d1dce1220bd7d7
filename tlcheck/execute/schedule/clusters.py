"""Clusters: blocks that run at the same time and reach each other's shared memory (PTX 2.1, "Thread Hierarchy").

A cluster has the blocks of a box of the grid. Their ranks go x first (%cluster_ctarank). Where blocks of a cluster act
on one another, each rank is an agent from the beginning on, so that one block may wait for what another one does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from tlcheck.execute.memory.state import RunState, World
from tlcheck.execute.memory.values import Array
from tlcheck.execute.stops import NotModelled
from tlcheck.signatures.signature import Collective
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.ir import Attr, Block, Expr, Function, Launch
from tlcheck.snapshot.walk import expressions, postorder, statements

_KEY = "cluster_dims"
_NOTES = ("cluster_mask", "dst_block", "use_2cta")  # of tile operators and calls that concern other blocks
_NUMBER = re.compile(r"\d+")
Extents = tuple[int, int, int]
Coordinates = tuple[int, int, int]


@lru_cache(maxsize=64)
def cluster_of(function: Function) -> Extents:
    """The blocks of a cluster along each axis; 1, 1, 1 without clusters."""
    found = dict.fromkeys(_declared(function))
    if len(found) > 1 or (found and any(isinstance(s, Launch) for s in statements(function.body))):
        raise NotModelled("clusters of one of several kernels")
    return next(iter(found), (1, 1, 1))


def _declared(function: Function) -> Iterator[Extents]:
    notes: list[tuple[str, str]] = list(function.attrs)
    for stmt in statements(function.body):
        if isinstance(stmt, Block):
            notes += stmt.annotations
        elif isinstance(stmt, Launch):
            notes += stmt.attrs
        elif isinstance(stmt, Attr) and stmt.key == _KEY:
            raise NotModelled(f"the attribute {_KEY}")
    for key, value in notes:
        if key == _KEY:
            x, y, z = [*map(int, _NUMBER.findall(value)), 1, 1, 1][:3]
            if (x, y, z) != (1, 1, 1):
                yield x, y, z


@lru_cache(maxsize=64)
def acts_across(function: Function) -> bool:
    """Whether blocks of a cluster act on one another, or wait for one another."""
    return prod(cluster_of(function)) > 1 and any(map(_is_across, _calls(function)))


def _calls(function: Function) -> Iterator[Expr]:
    for stmt in statements(function.body):
        yield from (e for e in postorder(expressions(stmt)) if e.op == "call")


def _is_across(e: Expr) -> bool:
    signature = signature_of(e)
    if signature is not None and signature.collective is Collective.CLUSTER:
        return True
    notes = (*e.annotations, *e.computed)
    return any(key in _NOTES and value not in ("0", "False") for key, value in notes)


def rank_of(block: Coordinates, cluster: Extents) -> int:
    """The rank of a block in its cluster, x first."""
    x, y, z = (place % extent for place, extent in zip(block, cluster, strict=True))
    return x + cluster[0] * (y + cluster[1] * z)


def members(block: Coordinates, cluster: Extents) -> list[Coordinates]:
    """All blocks of a block's cluster, in the order of their ranks."""
    first = [place - place % extent for place, extent in zip(block, cluster, strict=True)]
    x, y, z = (range(start, start + extent) for start, extent in zip(first, cluster, strict=True))
    return [(i, j, k) for k in z for j in y for i in x]


def completed(blocks: Iterable[Coordinates], cluster: Extents) -> list[Coordinates]:
    """Blocks with all others of their clusters, one cluster after the other."""
    return list(dict.fromkeys(other for block in blocks for other in members(block, cluster)))


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of the worlds that run. size: blocks of one. rank: of each world. peers: the world of each rank of a
    world's cluster, (worlds, size); -1 for one that does not run.
    """

    size: int
    rank: Array
    peers: Array

    @classmethod
    def of(cls, state: RunState, function: Function) -> Clusters:
        """Return the clusters of a run; they are made at their first use."""
        found = state.shared.get("clusters")
        if found is None:
            found = state.shared["clusters"] = made(state.worlds, cluster_of(function))
        assert isinstance(found, cls)
        return found

    def world(self, world: int, rank: int) -> int:
        """The world of a block's peer. Raises NotModelled for one that does not run; IndexError for no such rank."""
        if not 0 <= rank < self.size:
            raise IndexError(rank)
        found = int(self.peers[world, rank])
        if found < 0:
            raise NotModelled("a cluster of which some blocks do not run")
        return found

    @property
    def leaders(self) -> Array:
        """The world of rank 0, of each world's cluster; of one that does not run, the first that does."""
        return np.asarray(np.where(self.peers >= 0, self.peers, len(self.rank)).min(axis=1))


def made(worlds: Sequence[World], cluster: Extents) -> Clusters:
    """The clusters that some worlds make."""
    number: Mapping[tuple[int, Coordinates], int] = {(w.seed, w.block): at for at, w in enumerate(worlds)}
    peers = [[number.get((w.seed, other), -1) for other in members(w.block, cluster)] for w in worlds]
    ranks = [rank_of(w.block, cluster) for w in worlds]
    return Clusters(prod(cluster), np.array(ranks, np.int64), np.array(peers, np.int64))
