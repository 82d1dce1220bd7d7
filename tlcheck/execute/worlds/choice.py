"""Choose which blocks of a grid run, on how many sets of inputs, and what has to run before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from math import prod

from tlcheck import reasons
from tlcheck.errors import UsageError
from tlcheck.execute.memory.state import World
from tlcheck.execute.request import ALL, Request
from tlcheck.execute.schedule.clusters import acts_across, cluster_of, completed
from tlcheck.execute.schedule.launches import grid, kernels, threads_of
from tlcheck.execute.stops import NotModelled, OutOfBytes, OutOfStatements, Stopped
from tlcheck.execute.worlds import blocks
from tlcheck.execute.worlds.batches import statements_of
from tlcheck.execute.worlds.demand import Demand
from tlcheck.execute.worlds.effort import is_open, statements_needed, worlds_that_fit
from tlcheck.execute.worlds.invocation import Needed
from tlcheck.program.observed import counters, may_order
from tlcheck.snapshot.ir import Function

_MOST_BLOCKS = 1 << 16
_MOST_MEETING = 64  # blocks that all run where atomics may order or count them, or two be sent to one element
_PLAINLY = 4  # times as long as quickly: how kernels of clusters run again if their order is not clear
_MORE = 6  # blocks that run besides those that are asked for
_TILES = 3  # of a persistent cluster, whose loop over tiles counts once in its statements


@dataclass(frozen=True)
class WorldChoice:
    """What of a kernel runs for a request.

    tiled: whether the lowered side still has tile operators. extents: of the grid. cluster: blocks of one along each
    axis. meet: whether all blocks wait for one another.
    """

    source: Function
    lowered: Function
    tiled: bool
    sizes: Mapping[str, int]
    extents: blocks.Block
    cluster: blocks.Block
    meet: bool
    request: Request
    _known: dict[tuple[World, ...], Sequence[Needed | None]] = field(default_factory=dict)

    def worlds(self) -> list[World]:
        """Return as many blocks and seeds as the budget allows, known before anything runs. Raises Stopped."""
        chosen, size = self._chosen, prod(self.cluster)
        fit = self._fitting(len(chosen) * len(self.request.seeds))
        seeds = self.request.seeds[: max(1, fit // max(1, min(len(chosen), fit)))]
        each = fit // len(seeds) // size * size
        worlds = [World(seed, block) for seed in seeds for block in chosen[:each]]
        most = self.request.budget.work
        if most is None or not self._is_free:
            return worlds
        return self._few_clusters(worlds, most // _PLAINLY) if size > 1 else self._few(worlds, most)

    def _fitting(self, wanted: int) -> int:
        """Return how many worlds fit into the budget, `wanted` at most."""
        most = self.request.budget.statements
        if any(statements_needed(function, self.sizes) > most for function in (self.source, self.lowered)):
            raise OutOfStatements
        fit = min(self._that_fit(wanted))
        if fit < max(len(self._chosen) if self.meet else 1, prod(self.cluster)):
            raise OutOfBytes
        return fit

    def _few(self, worlds: list[World], most: int) -> list[World]:
        """The worlds; where they are much work, the first and the last block with the first seed, since they may race,
        and one with the last."""
        if self.work(worlds) <= most:
            return worlds
        first, *between, last = (worlds[0], *worlds[: len(worlds) // 2][1:-1], worlds[-1])
        other = replace(between[0] if between else last, seed=last.seed)
        fewer = list(dict.fromkeys((first, replace(last, seed=first.seed), other)))
        return fewer if self.work(fewer) <= most else list(dict.fromkeys((first, last)))

    def _few_clusters(self, worlds: list[World], most: int) -> list[World]:
        """The worlds; where they are much work, those of the first and the last cluster, or of the first alone."""
        size, is_persistent = prod(self.cluster), is_open(kernels(self.lowered)[-1])
        if not is_persistent and self.work(worlds) <= most:
            return worlds
        fewer = [*worlds[:size], *worlds[-size:]]
        work = self.work(fewer) * (_TILES if is_persistent else 1)
        return fewer if len(worlds) > size and work <= most else worlds[:size]

    def work(self, worlds: Sequence[World]) -> int:
        """Statements as lowered, of all threads in these worlds and in those that run before them."""
        *earlier, last = kernels(self.lowered)
        seeds = len(dict.fromkeys(world.seed for world in worlds))
        work = sum(statements_of(last, self.sizes, world.block) for world in worlds) * prod(threads_of(last))
        for kernel, wanted in zip_longest(earlier, self.needed(worlds)):
            every = prod(grid(kernel, self.sizes)) * seeds
            count = every if wanted is None else sum(map(len, wanted.values()))
            work += count * statements_needed(kernel, self.sizes) * prod(threads_of(kernel))
        return work

    def needed(self, worlds: Sequence[World]) -> Sequence[Needed | None]:
        """The blocks to run of each kernel before the last one; None for all: where blocks are asked for by name."""
        known = self._known.get(tuple(worlds))
        if known is None:
            known = self._known[tuple(worlds)] = [] if self._demand is None else _united(self._demand, worlds)
        return known

    @cached_property
    def _demand(self) -> Demand | None:
        """Return what of kernels before the last one has to run; None for all."""
        return Demand(self.source, self.sizes) if self._is_free and self._are_paired() else None

    def _are_paired(self) -> bool:
        """Whether both levels have the same kernels before the last one, by their grids."""
        sides = [[grid(k, self.sizes) for k in kernels(f)[:-1]] for f in (self.source, self.lowered)]
        return sides[0] == sides[1]

    @property
    def _is_free(self) -> bool:
        """Whether it is for us to choose blocks."""
        return isinstance(self.request.blocks, int) and self.request.blocks < ALL and not self.meet

    @cached_property
    def _chosen(self) -> Sequence[blocks.Block]:
        """The blocks to run, if the budget allows all of them. Raises UsageError for one that is not in the grid."""
        asked = ALL if self.meet else self.request.blocks
        meet = may_order(self.source) or bool(counters(self.source))  # the last block to come is one of all
        if isinstance(asked, int) and 0 < prod(self.extents) <= _MOST_MEETING and (meet or self._may_overlap()):
            asked = max(asked, prod(self.extents))
        if not isinstance(asked, int):
            return completed(self._named(asked), self.cluster)
        if prod(self.extents) <= 0:
            raise Stopped("a grid without blocks", reasons.NO_BLOCKS)
        if asked >= prod(self.extents):
            if prod(self.extents) > _MOST_BLOCKS:
                raise Stopped("more blocks than can run at once", reasons.GRID)
            return list(blocks.every(self.extents))
        found = blocks.chosen((self.source, self.lowered), self.sizes, asked)
        return completed(self._with_missing(found), self.cluster)

    def _named(self, asked: Sequence[blocks.Block]) -> list[blocks.Block]:
        """Those of some blocks that the last kernel has; one that only an earlier kernel has runs there in any case."""
        earlier = [grid(k, self.sizes) for f in (self.source, self.lowered) for k in kernels(f)[:-1]]
        for block in asked:
            if not any(blocks.is_in(block, extents) for extents in (self.extents, *earlier)):
                place, size = ",".join(map(str, block)), " x ".join(map(str, self.extents))
                raise UsageError(f"block {place} is not in the grid, which is {size} blocks")
        return [block for block in asked if blocks.is_in(block, self.extents)] or [(0, 0, 0)]

    def _with_missing(self, found: list[blocks.Block]) -> list[blocks.Block]:
        """Some blocks, with a few more if then one of each class runs, and the budget allows all with each seed."""
        find = self.request.missing if self.request.is_usual else None
        more = () if find is None else find(self.source, self.lowered, self.sizes, found, _MORE)
        every = sorted([*found, *more], key=lambda block: block[::-1])
        return every if more and self._are_affordable(every) else found

    def _are_affordable(self, some: Sequence[blocks.Block]) -> bool:
        """Whether these blocks may run with all seeds."""
        worlds, budget = [World(seed, block) for seed in self.request.seeds for block in some], self.request.budget
        fit = min(self._that_fit(len(worlds)))
        return fit >= len(worlds) and (budget.work is None or self.work(worlds) <= budget.work)

    def _that_fit(self, wanted: int) -> list[int]:
        """Return how many worlds fit into the memory at each level, `wanted` at most."""
        sides, budget = ((self.source, True), (self.lowered, self.tiled)), self.request.budget
        return [worlds_that_fit(f, prod(threads_of(f)), source, budget, wanted) for f, source in sides]

    def _may_overlap(self) -> bool:
        """Whether two blocks may write one element, on inputs of the author's: on drawn ones it is nobody's fault."""
        find = self.request.overlap
        if find is None or not self.request.is_own or len(kernels(self.source)) > 1 or len(kernels(self.lowered)) > 1:
            return False
        with suppress(NotModelled, RecursionError):  # nested too deeply
            return find(self.source, self.lowered, self.sizes, self.extents) is not None
        return False


def cluster_of_both(source: Function, lowered: Function, extents: blocks.Block) -> blocks.Block:
    """The blocks of a cluster along each axis, where they act on one another; 1, 1, 1 where they do not."""
    if not acts_across(source) and not acts_across(lowered):
        return 1, 1, 1
    found = {cluster_of(function) for function in (source, lowered)}
    if len(found) > 1 or any(e % c for e, c in zip(extents, next(iter(found)), strict=True)):
        raise NotModelled("clusters that the grid has no whole number of, or that lowering changes")
    return found.pop()


def _united(demand: Demand, worlds: Sequence[World]) -> list[Needed | None]:
    """Return what these worlds want of each kernel before the last one, None for all of its blocks."""
    found: list[dict[blocks.Block, set[int]] | None] = []
    for seed in dict.fromkeys(world.seed for world in worlds):
        for place, wanted in enumerate(demand.of([world.block for world in worlds if world.seed == seed])):
            known = found[place] if place < len(found) else {}
            if known is not None and wanted is not None:
                for block in wanted:
                    known.setdefault(block, set()).add(seed)
            found[place : place + 1] = [known if wanted is not None else None]
    return [None if some is None else dict(sorted(some.items(), key=lambda pair: pair[0][::-1])) for some in found]
