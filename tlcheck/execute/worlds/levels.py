"""Both levels of a kernel as one request runs them: sizes, blocks, inputs, and a machine for each level."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tlcheck import reasons
from tlcheck.execute.machine_options import Options, target_of
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import World
from tlcheck.execute.memory.values import Array
from tlcheck.execute.request import LOWERED, SOURCE, Request
from tlcheck.execute.schedule.launches import grid
from tlcheck.execute.stops import (
    AbsentLanes,
    Deadlock,
    Entangled,
    Illegal,
    NotModelled,
    SourceIllegal,
    Stopped,
)
from tlcheck.execute.worlds import blocks, inputs
from tlcheck.execute.worlds.admission import require_modelled
from tlcheck.execute.worlds.arguments import Arguments
from tlcheck.execute.worlds.batches import alike
from tlcheck.execute.worlds.choice import WorldChoice, cluster_of_both
from tlcheck.execute.worlds.invocation import Invocation, Observing
from tlcheck.execute.worlds.kernel_traits import draws_anywhere, has_integers, is_tiled, meets_all
from tlcheck.execute.worlds.source_runs import SourceRun, SourceRuns
from tlcheck.program.first_values import in_each_iteration
from tlcheck.program.observed import goes_by_memory
from tlcheck.program.release import UNKNOWN, Release
from tlcheck.program.roles import roles
from tlcheck.snapshot.ir import Buffer, Function, Snapshot

_NO_BARRIERS = "tl.disable_thread_storage_sync"
_FURTHER = (64, 1024, 16384)  # tried for one tensor after the other
_ZEROS = 1  # tried as well where an output has no number: all indices 0
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
        require_modelled(snapshot, self.checkpoint, self._target)
        self.tiled = is_tiled(self.lowered, self.checkpoint)
        self._arguments = Arguments(self.source, request.given or {}, request.poisoned, self._course, request.drawn)
        self.sizes = self._arguments.sizes
        self.roles = roles(self.source)
        own = {str(b.data.value) for b in self.source.buffers}  # of which the lowered kernel may write another one
        written = [name for name in pointers(roles(self.lowered).outputs) if name in own]
        self.outputs = tuple(dict.fromkeys((*pointers(self.roles.outputs), *written)))
        self.extents = grid(self.source, self.sizes)
        self.meet = meets_all(self.source) or meets_all(self.lowered)
        self.cluster = cluster_of_both(self.source, self.lowered, self.extents)
        self.plain |= self.meet
        self._from_end = True
        self._all_before = self.plain
        self.choice = WorldChoice(
            self.source, self.lowered, self.tiled, self.sizes, self.extents, self.cluster, self.meet, request
        )
        self.worlds = self.choice.worlds()
        self._together: dict[Function, list[list[World]]] = {}
        self.diverged: Illegal | None = None  # a barrier of the source that not all threads reach, if there is one
        self._before: Mapping[tuple[str, int], Pages] = {}  # what the source left, by the limit of integers
        self._source_run: tuple[Invocation, inputs.Draw] | None = None
        self._waits: tuple[Deadlock, inputs.Draw] | None = None  # of the source, on the first numbers that led there
        self._asked: set[str] = set()  # see `RunState`: by all runs of the source that were tried
        self._by_chance: dict[inputs.Draw, Sequence[Mapping[str, Pages]]] = {}  # see `by_chance`
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

    def with_source(self, source: Function) -> BothLevels:
        """The same levels with another form of the source, which has not run."""
        other = copy(self)
        other.source = source
        other._forget()
        return other

    def guarding_negatives(self) -> BothLevels:
        """The same levels, with a source in which no negative index but a constant counts from the end."""
        other = copy(self)
        other._from_end = False
        other._forget()
        return other

    def _forget(self) -> None:
        """Drop what runs of the source left."""
        self._source_run, self._by_chance, self._moved, self._together = None, {}, {}, {}

    @property
    def has_all_before(self) -> bool:
        """Whether all blocks of kernels before the last one run."""
        return self._all_before or all(some is None for some in self.choice.needed(self.worlds))

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
            partial(blocks.every, self.extents),
        )

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
        batches, needed = self._batches(self.source), () if self._all_before else self.choice.needed(self.worlds)
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
                if self.diverged is None and _may_be_repaired(illegal) and self.puts_barriers:
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
    def puts_barriers(self) -> bool:
        """Whether TileLang puts barriers between accesses of threads to shared memory."""
        return not self.snapshot.is_on(_NO_BARRIERS)

    @property
    def in_each_iteration(self) -> Function | None:
        """The source if its variables are set in each iteration, where that is not clear."""
        return in_each_iteration(self.source)

    def by_chance(self, draw: inputs.Draw) -> Sequence[Mapping[str, Pages]]:
        """The outputs in the source where integers that nobody has written have other values, and variables that may be
        set once or in each iteration are set in each; none where there can be neither. Raises Illegal where such
        integers take an access out of bounds.

        A further run begins with zeros in memory if such integers decide what is accessed: large ones lead out of a
        tensor, where 0 is read whatever they are.
        """
        if not self._has_integers and self.in_each_iteration is None:
            return ()
        if draw not in self._by_chance:
            invocation = self.source_invocation(draw, self.in_each_iteration, chance=True)
            invocation.run()
            runs = [invocation]
            if goes_by_memory(self.source):
                runs.append(self.source_invocation(draw, cleared=None))
                runs[-1].run()
            self._by_chance[draw] = tuple([{name: run.left[name] for name in self.outputs} for run in runs])
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
        needed = () if self._all_before else self.choice.needed(worlds or self.worlds)
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
            barriers=self.puts_barriers,
            alike=draws_anywhere(self.source),
            partial=source and self.diverged is not None,
            from_end=self._from_end,
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
        """The blocks that run together. Plainly all do: a witness names the world. So do those of clusters."""
        every = list(dict.fromkeys(world.block for world in self.worlds))
        return [every] if self.plain or prod(self.cluster) > 1 else alike(function, self.sizes, every)


def is_of_barrier(illegal: Illegal) -> bool:
    """Whether threads wait for others in vain, or a barrier has not the threads that it counts."""
    return isinstance(illegal, Deadlock) or "barrier" in illegal.what


def _may_be_repaired(illegal: Illegal) -> bool:
    """Whether TileLang may make something else of it that is right."""
    return is_of_barrier(illegal) and not isinstance(illegal, AbsentLanes)


def pointers(buffers: Sequence[Buffer]) -> tuple[str, ...]:
    """The names of the pointers of parameters: an execution knows them by these."""
    return tuple([str(b.data.value) for b in buffers])
