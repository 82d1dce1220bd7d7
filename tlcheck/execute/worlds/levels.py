"""Both levels of a kernel as one request runs them: sizes, blocks, inputs, and a machine for each level."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, product, zip_longest
from math import prod
from typing import Any

import numpy as np

from tlcheck import reasons
from tlcheck.errors import UsageError
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import World
from tlcheck.execute.memory.values import Array
from tlcheck.execute.options import Options, target_of
from tlcheck.execute.reasons import (
    Deadlock,
    Entangled,
    Illegal,
    NotModelled,
    OutOfBytes,
    OutOfStatements,
    SourceIllegal,
    Stopped,
)
from tlcheck.execute.request import ALL, LOWERED, SOURCE, Request
from tlcheck.execute.schedule.clusters import acts_across, cluster_of, completed
from tlcheck.execute.schedule.launches import grid, kernels, threads_of
from tlcheck.execute.worlds import blocks, inputs
from tlcheck.execute.worlds.arguments import Arguments
from tlcheck.execute.worlds.batches import alike, statements_of
from tlcheck.execute.worlds.costs import is_open, statements_needed, worlds_that_fit
from tlcheck.execute.worlds.demand import Demand
from tlcheck.execute.worlds.invocation import Invocation, Needed, Observing
from tlcheck.execute.worlds.source_runs import SourceRun, SourceRuns
from tlcheck.execute.worlds.traits import draws_anywhere, has_integers, is_tiled, meets_all
from tlcheck.program.dependent_launch import access_ahead
from tlcheck.program.first_values import in_each_iteration
from tlcheck.program.generated import lost_values, refusals
from tlcheck.program.observed import counters, may_order
from tlcheck.program.release import UNKNOWN, Release
from tlcheck.program.restrict import read_early
from tlcheck.program.roles import roles
from tlcheck.snapshot.ir import Buffer, Function, Snapshot
from tlcheck.snapshot.walk import statements

_NO_BARRIERS = "tl.disable_thread_storage_sync"
_MOST_BLOCKS = 1 << 16
_MOST_MEETING = 64  # blocks that all run where atomics may order or count them, or two be sent to one element
_FURTHER = (64, 1024, 16384)  # tried for one tensor after the other
_ZEROS = 1  # tried as well where an output has no number: all indices 0
_PLAINLY = 4  # times as long as quickly: how kernels run whose blocks act on one another
_MORE = 4  # blocks that run besides those that are asked for
_TILES = 3  # of a persistent cluster, whose loop over tiles counts once in its statements
_TRIED = 10_000  # statements, and four times what the kernel takes, that may go into trying


@dataclass(frozen=True)
class Invocations:
    """Invocations of one kernel that have not run yet, in the same worlds each time.

    shapes: of parameters, by name. chosen: the blocks that run; every_block: all of the grid.
    """

    source: Callable[[], Invocation]
    lowered: Callable[[], Invocation]
    shapes: Mapping[str, tuple[int, ...]]
    chosen: tuple[blocks.Block, ...]
    every_block: Callable[[], Iterator[blocks.Block]]


class BothLevels:
    """The source and the lowered kernel, on the blocks and inputs of one request.

    plain: each statement for itself, as a witness needs it; else quickly.
    """

    def __init__(self, snapshot: Snapshot, request: Request) -> None:
        self.snapshot, self.request, self.plain = snapshot, request, request.plain
        self.checkpoint = request.checkpoint
        self._course = request.course or inputs.Course()
        for name in (SOURCE, request.checkpoint):
            if name not in snapshot.checkpoints:
                raise Stopped(f"the snapshot has no checkpoint {name}", reasons.INCOMPLETE)
        self._target = target_of(snapshot)
        self._until = time.process_time() + request.budget.seconds
        self.source = snapshot.checkpoints[SOURCE]
        self.lowered = snapshot.checkpoints[request.checkpoint]
        for function in (self.source, self.lowered):
            for lost in chain.from_iterable(map(lost_values, statements(function.body))):
                raise NotModelled(f"the value of {lost.value}, which returns none")
            ahead = access_ahead(kernels(function))
            if ahead is not None:
                where = f" (line {ahead[1]})" if ahead[1] else ""
                raise NotModelled(
                    f"an access of {ahead[0]} before T.pdl_sync, while the kernel ahead may still run{where}"
                )
        printed = self.checkpoint == LOWERED
        for refused in refusals(self.lowered, Release.among(snapshot.toolchain), self._target) if printed else ():
            raise NotModelled(refused, reasons.CUDA)
        early = read_early(self.lowered, snapshot.cuda) if printed and self._target.kind == "cuda" else None
        if early is not None:
            where = f" (line {early[1]})" if early[1] else ""
            what = f"{early[0]} is __restrict__: nvcc may read before a barrier what another thread stores{where}"
            raise NotModelled(what, reasons.CUDA)
        self.tiled = is_tiled(self.lowered, self.checkpoint)
        self._arguments = Arguments(self.source, request.given or {}, request.poisoned, self._course, request.drawn)
        self.sizes = self._arguments.sizes
        self.roles = roles(self.source)
        own = {str(b.data.value) for b in self.source.buffers}  # of which the lowered kernel may write another one
        written = [name for name in pointers(roles(self.lowered).outputs) if name in own]
        self.outputs = tuple(dict.fromkeys((*pointers(self.roles.outputs), *written)))
        self.extents = grid(self.source, self.sizes)
        self.meet = meets_all(self.source) or meets_all(self.lowered)
        self.cluster = self._cluster()
        self.plain |= self.meet or prod(self.cluster) > 1
        self._all_before = self.plain
        self._blocks = self._chosen()
        self._needed_by: dict[tuple[World, ...], Sequence[Needed | None]] = {}
        self.worlds = self._fitting()
        self._together: dict[Function, list[list[World]]] = {}
        self.diverged: Illegal | None = None  # a barrier of the source that not all threads reach, if there is one
        self._before: Mapping[tuple[str, int], Pages] = {}  # what the source left, by the limit of integers
        self._source_run: tuple[Invocation, inputs.Draw] | None = None
        self._waits: tuple[Deadlock, inputs.Draw] | None = None  # of the source, on the first numbers that led there
        self._asked: set[str] = set()  # see `RunState`: by all runs of the source that were tried
        self._by_chance: dict[inputs.Draw, Mapping[str, Pages]] = {}  # see `by_chance`
        self._moved: dict[tuple[inputs.Draw, int], tuple[Mapping[str, Pages], bool]] = {}  # see `jittered`

    def plainly(self) -> BothLevels:
        """The same levels, each statement for itself."""
        other = copy(self)
        other.plain = True
        return other

    def of_first_seed(self) -> BothLevels:
        """The same levels, with the inputs of the first seed alone."""
        other = copy(self)
        other.worlds = [world for world in self.worlds if world.seed == self.worlds[0].seed]
        other._together = {}
        return other

    def of_representatives(self) -> BothLevels:
        """The same levels, with the blocks alone that stand for the others."""
        find = self.request.representatives
        if find is None or self.meet:
            return self
        kept = find(self.source, self.lowered, self.sizes, list(dict.fromkeys(world.block for world in self.worlds)))
        other = copy(self)
        other.worlds = [world for world in self.worlds if world.block in kept]
        other._together = {}
        return other

    def with_all_before(self) -> BothLevels:
        """The same levels, with all blocks of kernels before the last one."""
        if self.has_all_before:
            return self
        other = copy(self)
        other._all_before, other._source_run, other._by_chance, other._moved = True, None, {}, {}
        return other

    @property
    def has_all_before(self) -> bool:
        """Whether all blocks of kernels before the last one run."""
        return self._all_before or all(some is None for some in self._needed(self.worlds))

    @property
    def _is_chosen(self) -> bool:
        """Whether it is for us to choose blocks."""
        return isinstance(self.request.blocks, int) and self.request.blocks < ALL and not self.meet

    @cached_property
    def _demand(self) -> Demand | None:
        """Return what of kernels before the last one has to run; None for all."""
        return Demand(self.source, self.sizes) if self._is_chosen and self._are_paired() else None

    def _needed(self, worlds: Sequence[World]) -> Sequence[Needed | None]:
        """The blocks to run of each kernel before the last one; None for all: where blocks are asked for by name."""
        known = self._needed_by.get(tuple(worlds))
        if known is None:
            known = self._needed_by[tuple(worlds)] = [] if self._demand is None else _united(self._demand, worlds)
        return known

    def _are_paired(self) -> bool:
        """Whether both levels have the same kernels before the last one, by their grids."""
        sides = [[grid(k, self.sizes) for k in kernels(f)[:-1]] for f in (self.source, self.lowered)]
        return sides[0] == sides[1]

    def _chosen(self) -> Sequence[blocks.Block]:
        asked = ALL if self.meet else self.request.blocks
        meet = may_order(self.source) or bool(counters(self.source))  # the last block to come is one of all
        if isinstance(asked, int) and 0 < prod(self.extents) <= _MOST_MEETING and (meet or self._may_overlap()):
            asked = max(asked, prod(self.extents))
        if not isinstance(asked, int):
            # a block that only an earlier kernel has is executed there in any case
            earlier = [grid(k, self.sizes) for f in (self.source, self.lowered) for k in kernels(f)[:-1]]
            for block in asked:
                if not any(blocks.is_in(block, extents) for extents in (self.extents, *earlier)):
                    place, size = ",".join(map(str, block)), " x ".join(map(str, self.extents))
                    raise UsageError(f"block {place} is not in the grid, which is {size} blocks")
            inside = [block for block in asked if blocks.is_in(block, self.extents)] or [(0, 0, 0)]
            return completed(inside, self.cluster)
        if prod(self.extents) <= 0:
            raise Stopped("a grid without blocks", reasons.NO_BLOCKS)
        if asked >= prod(self.extents):
            if prod(self.extents) > _MOST_BLOCKS:
                raise Stopped("more blocks than can run at once", reasons.GRID)
            return list(self.every_block())
        found = blocks.chosen((self.source, self.lowered), self.sizes, asked)
        return completed(self._with_missing(found), self.cluster)

    def _with_missing(self, found: list[blocks.Block]) -> list[blocks.Block]:
        """Some blocks, with a few more if then one of each class runs."""
        find = self.request.missing if self.request.is_usual else None
        more = () if find is None else find(self.source, self.lowered, self.sizes, found, _MORE)
        return sorted([*found, *more], key=lambda block: block[::-1])

    def _may_overlap(self) -> bool:
        """Whether two blocks may write one element, on inputs of the author's: on drawn ones it is nobody's fault."""
        find = self.request.overlap
        if find is None or not self.request.is_own or len(kernels(self.source)) > 1 or len(kernels(self.lowered)) > 1:
            return False
        with suppress(NotModelled, RecursionError):  # nested too deeply
            return find(self.source, self.lowered, self.sizes, self.extents) is not None
        return False

    def _cluster(self) -> blocks.Block:
        """The blocks of a cluster along each axis, where they act on one another; 1, 1, 1 where they do not."""
        if not acts_across(self.source) and not acts_across(self.lowered):
            return 1, 1, 1
        found = {cluster_of(function) for function in (self.source, self.lowered)}
        if len(found) > 1 or any(e % c for e, c in zip(self.extents, next(iter(found)), strict=True)):
            raise NotModelled("clusters that the grid has no whole number of, or that lowering changes")
        return found.pop()

    def every_block(self) -> Iterator[blocks.Block]:
        """All blocks of the grid, x first."""
        x, y, z = (range(extent) for extent in self.extents)
        return ((i, j, k) for k in z for j in y for i in x)

    def invocations(self, *, early: bool = False) -> Invocations:
        """Both levels plainly, on inputs that keep the source in bounds. early: copies are, as lowered."""
        levels = self.plainly().with_all_before()
        _, draw = levels.source_run
        names = {str(b.data.value): b for b in self.source.buffers}
        return Invocations(
            lambda: levels.source_invocation(draw),
            lambda: levels.lowered_invocation(draw, late=not early),
            {name: inputs.extent(buffer, self.sizes) for name, buffer in names.items()},
            tuple(dict.fromkeys(world.block for world in self.worlds)),
            self.every_block,
        )

    def _fitting(self) -> list[World]:
        """Return as many blocks and seeds as the budget allows, known before anything runs."""
        budget = self.request.budget
        sides = ((self.source, True), (self.lowered, self.tiled))
        if any(statements_needed(function, self.sizes) > budget.statements for function, _ in sides):
            raise OutOfStatements
        wanted = len(self._blocks) * len(self.request.seeds)
        fit = min(worlds_that_fit(f, prod(threads_of(f)), source, budget, wanted) for f, source in sides)
        if fit < (len(self._blocks) if self.meet else 1):
            raise OutOfBytes
        size = prod(self.cluster)
        if fit < size:
            raise OutOfBytes
        seeds = self.request.seeds[: max(1, fit // max(1, min(len(self._blocks), fit)))]
        # with much work: the first and the last block with the first seed, since they may race, and one with the last
        each = fit // len(seeds) // size * size
        worlds = [World(seed, block) for seed in seeds for block in self._blocks[:each]]
        most = self.request.budget.work
        if most is not None and size > 1:
            most //= _PLAINLY
        endless = size > 1 and is_open(kernels(self.lowered)[-1])  # persistent clusters, each with many tiles
        if most is None or not self._is_chosen or (not endless and self._work(worlds) <= most):
            return worlds
        if size > 1:
            fewer = [*worlds[:size], *worlds[-size:]]
            work = self._work(fewer) * (_TILES if endless else 1)
            return fewer if len(worlds) > size and work <= most else worlds[:size]
        first, *between, last = (worlds[0], *worlds[: len(worlds) // 2][1:-1], worlds[-1])
        other = replace(between[0] if between else last, seed=last.seed)
        fewer = list(dict.fromkeys((first, replace(last, seed=first.seed), other)))
        return fewer if self._work(fewer) <= most else list(dict.fromkeys((first, last)))

    def _work(self, worlds: Sequence[World]) -> int:
        """Statements as lowered, of all threads in these worlds and in those that run before them."""
        *earlier, last = kernels(self.lowered)
        seeds = len(dict.fromkeys(world.seed for world in worlds))
        work = sum(statements_of(last, self.sizes, world.block) for world in worlds) * prod(threads_of(last))
        for kernel, wanted in zip_longest(earlier, self._needed(worlds)):
            every = prod(grid(kernel, self.sizes)) * seeds
            count = every if wanted is None else sum(map(len, wanted.values()))
            work += count * statements_needed(kernel, self.sizes) * prod(threads_of(kernel))
        return work

    def distinct(self, draw: inputs.Draw) -> inputs.Draw:
        """The draw, with no two equal integers in the tensors whose elements are themselves indices."""
        return replace(draw, distinct=tuple(name for name, _ in draw.ranges if name in self._steering_names))

    @property
    def _steering_names(self) -> list[str]:
        unread = pointers(self.roles.unread)
        return [name for name in inputs.integers(self.source) if name not in unread]

    @property
    def course(self) -> inputs.Course:
        """The course that this request takes."""
        return replace(self._course, draw=self.source_run[1])

    @property
    def source_run(self) -> tuple[Invocation, inputs.Draw]:
        """The source, on inputs that keep its accesses in bounds and take it everywhere, if some can."""
        if self._source_run is None:
            self._source_run = self._everywhere() if self.request.sources is None else self._kept(self.request.sources)
        return self._source_run

    def _kept(self, runs: SourceRuns) -> tuple[Invocation, inputs.Draw]:
        """The run of an equal source, on the same inputs in the same worlds, or one that is made and kept."""
        release = Release.among(self.snapshot.toolchain)
        batches, needed = self._batches(self.source), () if self._all_before else self._needed(self.worlds)
        alike = replace(self._options(self.source, True), until=0.0, release=UNKNOWN)
        drawn = sorted((seed, sorted(names)) for seed, names in self.request.drawn.items())
        asked = self._course, self.request.seeds, drawn, sorted(self.request.poisoned), batches, needed, alike
        called = sorted(self.sizes.items())
        key = runs.key(self.source, self.request.given, asked, called)
        found = runs.find(key, release)
        if found is None:
            invocation, draw = self._everywhere()
            found = SourceRun(invocation, draw, self._before, asks=bool(self._asked | invocation.asked))
            if self.diverged is None and self._waits is None:  # else their statements are this source's own
                runs.keep(key, release, found)
        self._before, self._by_chance, self._moved = found.before, found.by_chance, found.moved
        return found.invocation, found.draw

    def _everywhere(self) -> tuple[Invocation, inputs.Draw]:
        """The source on inputs that take it everywhere, if some can."""
        invocation, draw = self._in_bounds()
        left, lacks = _TRIED + 4 * invocation.spent, self._lacks(invocation)
        for name, below in product(self._steering(), (*_FURTHER, *([_ZEROS] if lacks[0] else []))):
            if not any(lacks) or left < 0:
                break
            wider = draw.with_limit(name, below)
            other = self.source_invocation(wider)
            with suppress(Stopped):
                try:
                    other.run()
                finally:
                    self._asked |= other.asked
                other.machine.rest()
                left -= other.spent
                if self._lacks(other) < lacks:
                    invocation, draw, lacks = other, wider, self._lacks(other)
        return invocation, draw

    def _lacks(self, invocation: Invocation) -> tuple[int, int]:
        """Return how many outputs have no number at all, and how many branches and loops have been left out."""
        seeds = dict.fromkeys(w.seed for w in self.worlds)
        left = [[invocation.left[name].outcome(seed) for seed in seeds] for name in self.outputs]
        return sum(not any(w.has_number for w in of_one) for of_one in left), len(invocation.untried)

    def _steering(self) -> list[str]:
        """The integer tensors that are drawn: numbers in them may decide how often a loop runs."""
        if self._course.draw is not None:
            return []
        if self.request.given is None:
            return self._steering_names
        return [name for name in self._steering_names if any(name in names for names in self.request.drawn.values())]

    def _in_bounds(self) -> tuple[Invocation, inputs.Draw]:
        problem: Illegal | None = None
        draws = list(self._arguments.draws)
        while draws:
            draw = draws.pop(0)
            invocation = self.source_invocation(draw)
            try:
                self.run(invocation, partial(self.source_invocation, draw))
                if draw.signed and invocation.strayed:
                    draws = [other for other in draws if not other.signed]
                    continue  # where negative numbers lead, nothing is written
                self._before = {(name, draw.limit(name)): left for name, left in invocation.left.items()}
                return invocation, draw
            except Illegal as illegal:
                problem = illegal
                if isinstance(illegal, Deadlock) and illegal.buffer != "?" and self._waits is None:
                    self._waits = illegal, draw
                self._asked |= invocation.asked
                if self.diverged is None and is_of_barrier(illegal) and not self.snapshot.is_on(_NO_BARRIERS):
                    self.diverged = illegal  # TileLang may make a barrier of fewer threads of it
                    draws.insert(0, draw)
        problem = self.diverged or problem
        assert problem is not None
        line = f" (line {problem.line})" if problem.line else ""
        text = f"the author's, on all inputs tried: as written, {problem}{line}"
        hangs = isinstance(problem, Deadlock) and self._hangs_as_lowered(self._arguments.draws[-1])
        raise SourceIllegal(text, problem, problem.block, hangs) from problem

    @cached_property
    def endless(self) -> Deadlock | None:
        """A wait that has no end at either level, on numbers that are larger than those which run: with these some
        branch or loop is not reached.
        """
        source, _ = self.source_run
        if self._waits is None or not source.untried or not self._hangs_as_lowered(self._waits[1]):
            return None
        return self._waits[0]

    def _hangs_as_lowered(self, draw: inputs.Draw) -> bool:
        """Whether threads of the lowered kernel wait for what never happens, whenever asynchronous copies land."""
        for late in (True, False):
            try:
                self.lowered_invocation(draw, late=late).run()
            except Deadlock:
                return True
            except Stopped:
                continue
        return False

    def source_invocation(self, draw: inputs.Draw, kernel: Function | None = None, **special: Any) -> Invocation:
        """An invocation of the source, or of another form of it, that has not run yet."""
        return self._invocation(kernel or self.source, True, draw, **special)

    def lowered_invocation(self, draw: inputs.Draw, **special: Any) -> Invocation:
        """An invocation of the kernel as lowered that has not run yet."""
        return self._invocation(self.lowered, self.tiled, draw, **special)

    def jittered(
        self, name: str, seed: int, draw: inputs.Draw, elements: Array, values: Array
    ) -> tuple[list[Array], bool]:
        """The values of an output's elements in the source with every number slightly changed, in two ways; whether
        numbers became larger than float64 holds. values: without that."""
        moved, overflowed = [], False
        for jitter in (1, 2):
            tensors, endless = self._with_jitter(draw, jitter)
            overflowed |= endless
            left, found = tensors[name].outcome(seed), values.astype(np.float64)
            at = np.searchsorted(elements, left.elements)
            inside = (at < len(found)) & (elements[np.minimum(at, len(found) - 1)] == left.elements)
            found[at[inside]] = left.values[inside]
            moved.append(found)
        return moved, overflowed

    def _with_jitter(self, draw: inputs.Draw, jitter: int) -> tuple[Mapping[str, Pages], bool]:
        """The outputs in the source with every number slightly changed; whether numbers became too large."""
        if (draw, jitter) not in self._moved:
            invocation = self.source_invocation(draw, jitter=jitter)
            invocation.run()
            self._moved[draw, jitter] = {name: invocation.left[name] for name in self.outputs}, invocation.overflowed
        return self._moved[draw, jitter]

    @cached_property
    def _has_integers(self) -> bool:
        return has_integers(self.source)

    @property
    def in_each_iteration(self) -> Function | None:
        """The source if its variables are set in each iteration, where that is not clear."""
        return in_each_iteration(self.source)

    def by_chance(self, draw: inputs.Draw) -> Mapping[str, Pages]:
        """The outputs in the source where integers that nobody has written have other values, and variables that may be
        set once or in each iteration are set in each; none where there can be neither. Raises Illegal where such
        integers take an access out of bounds.
        """
        if not self._has_integers and self.in_each_iteration is None:
            return {}
        if draw not in self._by_chance:
            invocation = self.source_invocation(draw, self.in_each_iteration, chance=True)
            invocation.run()
            self._by_chance[draw] = {name: invocation.left[name] for name in self.outputs}
        return self._by_chance[draw]

    def run(
        self, invocation: Invocation, another: Callable[..., Invocation], observing: Observing | None = None
    ) -> None:
        """Run a level of the kernel. Raises Illegal for what threads of one block wait for, which others had hidden.

        another: makes such an invocation, for other worlds.
        """
        try:
            invocation.run(observing)
            invocation.machine.rest()
        except Entangled:
            for world in self.worlds:
                with suppress(NotModelled):
                    try:
                        another(worlds=[world]).run()
                    except Illegal as illegal:
                        illegal.world = self.worlds.index(world)
                        raise
            raise

    def _invocation(
        self,
        function: Function,
        source: bool,
        draw: inputs.Draw,
        worlds: Sequence[World] = (),
        batches: Sequence[Sequence[World]] = (),
        left: Mapping[str, Pages] | None = None,
        before: Mapping[str, Pages] | None = None,
        **special: Any,
    ) -> Invocation:
        """An invocation that has not run yet. worlds, batches: other ones than usual. left: tensors after earlier
        kernels. before: what another run with this draw left. special: `Options` of this one.
        """
        options = self._options(function, source, **special)
        drawn = {(name, draw.limit(name)): pages for name, pages in (before or {}).items()}
        tensors = self._arguments.tensors(draw, drawn if draw.special or draw.ends or draw.residues else self._before)
        values = self._arguments.numbers(self.worlds[0].seed)
        batches = batches or ([worlds] if worlds else self._batches(function))
        needed = () if self._all_before else self._needed(worlds or self.worlds)
        return Invocation(function, batches, tensors, values, options, left, needed)

    def _options(self, function: Function, source: bool, **special: Any) -> Options:
        budget = self.request.budget
        return Options(
            source=source,
            early=not source and self.checkpoint.is_unguarded,
            midway=source and function is self.lowered and function is not self.source,
            release=Release.among(self.snapshot.toolchain),
            target=self._target,
            statements=budget.statements,
            bytes=budget.bytes,
            until=self._until,
            plain=self.plain,
            printed=not source and self.request.printed and self.checkpoint == LOWERED,
            barriers=not self.snapshot.is_on(_NO_BARRIERS),
            alike=draws_anywhere(self.source),
            partial=source and self.diverged is not None,
            **special,
        )

    def _batches(self, function: Function) -> list[list[World]]:
        """The worlds that run together."""
        if self.plain:
            return [self.worlds]
        if function not in self._together:
            parts = self.parts(function)
            self._together[function] = [[world for world in self.worlds if world.block in part] for part in parts]
        return self._together[function]

    def parts(self, function: Function) -> list[list[blocks.Block]]:
        """The blocks that run together. Plainly all do: a witness names the world."""
        every = list(dict.fromkeys(world.block for world in self.worlds))
        return [every] if self.plain else alike(function, self.sizes, every)


def is_of_barrier(illegal: Illegal) -> bool:
    """Whether threads wait for others in vain, or a barrier has not the threads that it counts."""
    return isinstance(illegal, Deadlock) or "barrier" in illegal.what


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


def pointers(buffers: Sequence[Buffer]) -> tuple[str, ...]:
    """The names of the pointers of parameters: an execution knows them by these."""
    return tuple([str(b.data.value) for b in buffers])
