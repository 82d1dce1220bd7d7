"""One kernel executed as written and as lowered, on the same blocks and inputs, and its outputs compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tlcheck.errors import UsageError, fault
from tlcheck.execute import blocks, comparison, inputs, registry
from tlcheck.execute.arguments import Arguments
from tlcheck.execute.authors import Author, attributed, open_to_order
from tlcheck.execute.batches import alike
from tlcheck.execute.budget import statements_needed, worlds_that_fit
from tlcheck.execute.comparison import Difference, OutputOutcome, Written
from tlcheck.execute.demand import needed
from tlcheck.execute.glance import Suspected
from tlcheck.execute.launches import kernels, threads_of
from tlcheck.execute.machine import Machine, Machines, Options, World
from tlcheck.execute.memory import Pages
from tlcheck.execute.plain import index_of
from tlcheck.execute.pointers import workspaces
from tlcheck.execute.races import Race
from tlcheck.execute.reasons import MEMORY, Deadlock, Entangled, Illegal, NotModelled, Stopped, Unkept
from tlcheck.execute.request import ALL, LOWERED, SOURCE, Execution, Request
from tlcheck.execute.roundings import coarser, rounds
from tlcheck.execute.tracer import watched_for
from tlcheck.execute.traits import draws_anywhere, has_copies, is_tiled, release_of
from tlcheck.execute.values import kind_of
from tlcheck.execute.writers import Writer
from tlcheck.program.roles import roles
from tlcheck.snapshot.ir import Alloc, Buffer, Function, Snapshot
from tlcheck.snapshot.walk import statements

UNGUARDED = ("lower-tile-op", "type-cast")
_NO_BARRIERS = "tl.disable_thread_storage_sync"
_MOST_BLOCKS = 1 << 16
_FURTHER = (64, 1024, 16384)  # tried for one tensor after the other
_ZEROS = 1  # tried as well where an output has no number: all indices 0
_TRIED = 10_000  # statements, and four times what the kernel takes, that may go into trying
_ROUNDED = 20_000  # statements of both levels, up to which a kernel runs again with floats of its own types
_OTHER_SIZES = 16  # tried where a promise does not hold
_LARGER = (1024, 4096)  # sizes tried where the usual ones leave something out


def execute(snapshot: Snapshot, request: Request | None = None) -> Execution:
    """Run a kernel on both levels and compare. What cannot be judged is undecided with its reason.

    Raises UsageError for blocks that are not in the grid, and nothing else.
    """
    registry.load()
    try:
        return _judge(snapshot, request or Request()).execution()
    except UsageError:
        raise
    except Stopped as reason:
        return _undecided(snapshot, str(reason))
    except RecursionError:
        return _undecided(snapshot, "nested too deeply")
    except MemoryError:
        return _undecided(snapshot, MEMORY)
    except Exception as error:  # a fault of ours, or a snapshot that no compiler makes
        return _undecided(snapshot, fault(error))


def _undecided(snapshot: Snapshot, reason: str) -> Execution:
    function = snapshot.checkpoints.get(SOURCE)
    names = () if function is None else _names(roles(function).outputs)
    return Execution(tuple([OutputOutcome(name, "undecided", reason) for name in names]))


def _judge(snapshot: Snapshot, request: Request) -> _Judge:
    """The judge of a request, on a course that is the same whatever blocks, seeds and checkpoint it names."""
    if request.course is not None or request.given is not None or not _has_courses(snapshot):
        return _Judge(snapshot, request)
    default = Request()
    usual = replace(request, blocks=default.blocks, seeds=default.seeds)
    found = _farthest(snapshot, usual)
    return found if usual == request else _Judge(snapshot, replace(request, course=found.course))


def _has_courses(snapshot: Snapshot) -> bool:
    """Whether sizes or integers are to be chosen."""
    function = snapshot.checkpoints.get(SOURCE)
    return function is not None and bool(inputs.symbols(function) or inputs.integers(function))


def _farthest(snapshot: Snapshot, request: Request) -> _Judge:
    """The judge with the sizes that let the kernel as written do most, the smallest of them."""
    best = _keeping(snapshot, request)
    for size in _LARGER if inputs.symbols(snapshot.checkpoints[SOURCE]) else ():
        if not best.as_written[0].untried:
            break
        with suppress(Stopped):
            larger = _Judge(snapshot, replace(request, course=inputs.Course((size,))))
            best = min(best, larger, key=lambda judge: len(judge.as_written[0].untried))
    return best


def _keeping(snapshot: Snapshot, request: Request) -> _Judge:
    """The judge with the first sizes for which all holds that the kernel promises on its way. Raises Stopped."""
    first = _Judge(snapshot, request)
    try:
        _ = first.as_written
    except Stopped as stopped:
        found = next(_with_other_sizes(snapshot, request), None) if isinstance(stopped.__cause__, Unkept) else None
        if found is None:
            raise
        return found
    return first


def _with_other_sizes(snapshot: Snapshot, request: Request) -> Iterator[_Judge]:
    """Judges with further sizes, of which the kernel as written comes to its end."""
    for passed in range(1, _OTHER_SIZES):
        with suppress(Stopped):
            judge = _Judge(snapshot, replace(request, course=inputs.Course(passed=passed)))
            _ = judge.as_written
            yield judge


class _Judge:
    """One request: the kernel, its sizes, blocks and worlds."""

    def __init__(self, snapshot: Snapshot, request: Request) -> None:
        self._snapshot, self._request, self._plain = snapshot, request, request.plain
        self._course = request.course or inputs.Course()
        for name in (SOURCE, request.checkpoint):
            if name not in snapshot.checkpoints:
                raise Stopped(f"the snapshot has no checkpoint {name}")
        self._until = time.process_time() + request.budget.seconds
        self._written = snapshot.checkpoints[SOURCE]
        self._lowered = snapshot.checkpoints[request.checkpoint]
        self._tiled = is_tiled(self._lowered, request.checkpoint)
        self._arguments = Arguments(snapshot, self._written, request.given or {}, request.poisoned, self._course)
        self._sizes = self._arguments.sizes
        self._roles = roles(self._written)
        self._outputs = _names(self._roles.outputs)
        self._extents = blocks.grid(self._written, self._sizes)
        self._blocks = self._chosen()
        self.worlds = self._fitting()
        self._together: dict[Function, list[list[World]]] = {}
        self._before: dict[tuple[str, int], Pages] = {}  # what the kernel as written left, by the limit of integers

    def execution(self) -> Execution:
        """Run both sides and compare every output. What is found in a quick run is looked at in a plain one."""
        written, draw = self.as_written
        if not self._plain:
            with suppress(Suspected):
                found = self._compared(written, draw)
                if found.is_clean:
                    return found
            self._plain = True
            if any(some is not None for some in self._needed):
                del self.as_written
                written, draw = self.as_written
        return self._compared(written, draw)

    @cached_property
    def _needed(self) -> Sequence[Sequence[blocks.Block] | None]:
        """The blocks to run of each kernel before the last one, None for all: where only the usual ones were asked for.

        A plain run has all of them.
        """
        if not isinstance(self._request.blocks, int) or self._request.blocks >= ALL or not self._are_paired():
            return ()
        return needed(self._written, self._sizes, list(dict.fromkeys(world.block for world in self.worlds)))

    def _are_paired(self) -> bool:
        """Whether both levels have the same kernels before the last one, by their grids."""
        sides = [[blocks.grid(k, self._sizes) for k in kernels(f)[:-1]] for f in (self._written, self._lowered)]
        return sides[0] == sides[1]

    def _compared(self, written: Machine, draw: inputs.Draw) -> Execution:
        try:
            lowered = self._machine(self._lowered, self._tiled, draw)
            if self._request.checkpoint == LOWERED and not self._tiled:  # before that there are no barriers
                lowered.watched(self._stored(), every=bool(written.steered))
            self._run(lowered, partial(self._machine, self._lowered, self._tiled, draw))
        except Illegal as illegal:
            stopped = [OutputOutcome(n, "undecided", f"as lowered: {illegal}") for n in self._outputs]
            report = self._report(tuple(stopped), written.spent, 0)
            return replace(report, illegal=illegal, left=self._left_by(written))
        outputs = [self._output(name, written, lowered, draw) for name in self._outputs]
        settled = lowered.is_settled and not self._roles.returning
        early, stop = (0, None) if settled else self._with_early_copies(written, outputs, draw)
        stop = stop or self._hang(lowered, draw)
        rounded = stop is None and written.spent + lowered.spent <= _ROUNDED and rounds(self._lowered)
        if rounded:
            rounded = self._with_own_types(written, outputs, draw)
        authors = cache(partial(self._authors, draw))
        outputs = [self._where_ordered(outcome, authors) for outcome in outputs]
        report = self._report(tuple(outputs), written.spent, lowered.spent + early)
        whose = attributed(lowered.watches, authors)
        lawful = tuple(sorted(lowered.looked_at)) if lowered.watches and stop is None else ()
        races = tuple([replace(race, index=self._index_of(race)) for race in whose.races])
        contested = tuple([(replace(race, index=self._index_of(race)), own) for race, own in whose.contested])
        report = replace(report, illegal=stop, lawful=lawful, rounded=rounded, left=self._left_by(written))
        return replace(report, ordered=whose.ordered, races=races, contested=contested)

    def _run(self, machine: Machine, another: Callable[..., Machine]) -> None:
        """Run a level of the kernel. Raises Illegal for what threads of one block wait for, which others had hidden.

        another: makes such a machine, for other worlds.
        """
        try:
            machine.run()
            machine.rest()
        except Entangled:
            for world in self.worlds:
                with suppress(NotModelled):
                    self._run_alone(another(worlds=[world]), world)
            raise

    def _run_alone(self, machine: Machine, world: World) -> None:
        """Run a machine of one world."""
        try:
            machine.run()
        except Illegal as illegal:
            illegal.world = self.worlds.index(world)
            raise

    def _hang(self, lowered: Machine, draw: inputs.Draw) -> Deadlock | None:
        """A deadlock that takes another order of branches: of each that may be overtaken, one in which it is."""
        for warp in sorted({warp for watch in lowered.watches for warp in watch.overtaken}):
            try:
                self._machine(self._lowered, self._tiled, draw, behind=warp).run()
            except Deadlock as deadlock:
                return replace(deadlock, what=f"{deadlock.what}, where the branch of warp {warp} comes last")
            except Stopped:
                continue
        return None

    def _index_of(self, race: Race) -> tuple[int, ...]:
        """The logical index of the element that a race is about."""
        tensor = next((b for b in self._written.buffers if str(b.data.value) == race.parameter), None)
        return race.index if tensor is None else index_of(race.index[0], inputs.extent(tensor, self._sizes))

    def _stored(self) -> frozenset[str]:
        """The parameters that the kernel writes, on either side."""
        return frozenset((*self._outputs, *_names(roles(self._lowered).outputs)))

    def _with_early_copies(
        self, written: Machine, outputs: list[OutputOutcome], draw: inputs.Draw
    ) -> tuple[int, Illegal | None]:
        """Run a kernel with asynchronous copies once more, with these as early as they may be.

        What agreed and does not now is refuted. Races are seen in either schedule: nobody watches. The statements that
        it took, and what stopped it.
        """
        if self._request.checkpoint != LOWERED or not has_copies(self._lowered):
            return 0, None
        machine = self._machine(self._lowered, False, draw, late=False)
        illegal: Illegal | None = None
        try:
            machine.run()
        except Illegal as stopped:
            illegal = stopped
        for place, outcome in enumerate(outputs):
            if outcome.verdict == "agreed" and illegal is not None:
                reason = f"with copies as early as they may be: {illegal}"
                outputs[place] = OutputOutcome(outcome.name, "undecided", reason)
            elif outcome.verdict == "agreed":
                outputs[place] = self._output(outcome.name, written, machine, draw)
        return machine.spent, illegal

    def _with_own_types(self, before: Machine, outputs: list[OutputOutcome], draw: inputs.Draw) -> bool:
        """Run one block on the last inputs with floats in their own types: what agreed and loses more is refuted.

        before: the kernel as written has run in all worlds. Whether that was possible.
        """
        world, kinds = self.worlds[-1], {str(b.data.value): kind_of(b.dtype) for b in self._written.buffers}
        exact = self._exactly(world, before, draw)
        written = self._machine(self._written, True, draw, worlds=[world], exact=False, costly=True)
        lowered = self._machine(self._lowered, self._tiled, draw, worlds=[world], exact=False)
        try:
            for machine in (exact, written, lowered):
                machine.run()
                machine.rest()
        except Stopped:
            return False
        for place, outcome in enumerate(outputs):
            if outcome.verdict != "agreed" or self._roles.returning:
                continue
            name = outcome.name
            sides = [comparison.left_by(m, name, world.seed) for m in (exact, written, lowered)]
            wrong = coarser(sides[0], sides[1], sides[2], kinds[name])
            if wrong is not None:
                initial = exact.pages(name).initial(world.seed, sides[0].elements)
                compared = comparison.compare(sides[0], sides[2], initial, sides[0].elements)
                found = comparison.first(compared, wrong, world.seed, lowered.reasons)
                outputs[place] = self._refuted(name, replace(found, rounded=True), lowered, draw)
        return True

    def _exactly(self, world: World, before: Machine, draw: inputs.Draw) -> Machine:
        """The kernel as written in one world. What earlier kernels of its function left is taken from the run `before`,
        unless the last one writes there as well."""
        *earlier, last = kernels(self._written)
        mine = set(_names(roles(last).outputs))
        again = any(mine & set(_names(roles(kernel).outputs)) for kernel in earlier)
        if again or not earlier or workspaces(self._written):
            return self._machine(self._written, True, draw, worlds=[world])
        left = {name: pages for name, pages in before.after().items() if name not in mine}
        return self._machine(last, True, draw, worlds=[world], left=left)

    def _where_ordered(self, outcome: OutputOutcome, authors: Callable[[], Sequence[Author]]) -> OutputOutcome:
        """An output whose value hangs on an order that the kernel does not say is not refuted for it."""
        if outcome.verdict != "refuted" or not self._plain:
            return outcome
        reason = open_to_order(authors(), outcome.name, frozenset(_names(self._roles.written)))
        return OutputOutcome(outcome.name, "undecided", reason) if reason else outcome

    def _authors(self, draw: inputs.Draw) -> list[Author]:
        """Who watched the kernel as written, once more, for races of its own."""
        machine = self._machine(self._written, True, draw)
        allocated = [stmt.buffer for stmt in statements(self._written.body) if isinstance(stmt, Alloc)]
        shared = [b.name for b in allocated if b.scope.startswith(("shared", "local.fragment"))]
        machine.watched(frozenset((*shared, *_names(self._written.buffers))), Author, every=True)
        machine.run()
        return [watch for watch in machine.watches if isinstance(watch, Author)]

    def _left_by(self, written: Machine) -> dict[str, Written]:
        seed = self.worlds[0].seed
        return {name: comparison.outcome(written.pages(name), seed) for name in self._outputs}

    def _report(self, outputs: tuple[OutputOutcome, ...], written: int, lowered: int) -> Execution:
        return Execution(
            outputs,
            tuple(dict.fromkeys(w.block for w in self.worlds)),
            prod(self._extents),
            tuple(dict.fromkeys(w.seed for w in self.worlds)),
            tuple(self._sizes.items()),
            (written, lowered),
            unreached=tuple(sorted(self.as_written[0].untried.values())),
        )

    def _chosen(self) -> Sequence[blocks.Block]:
        if not isinstance(self._request.blocks, int):
            return self._named(self._request.blocks)
        if prod(self._extents) <= 0:
            raise Stopped("a grid without blocks")
        if self._request.blocks >= prod(self._extents):
            if prod(self._extents) > _MOST_BLOCKS:
                raise Stopped("more blocks than can run at once")
            return list(self.every_block())
        return blocks.chosen((self._written, self._lowered), self._sizes, self._request.blocks)

    def _named(self, named: Sequence[blocks.Block]) -> Sequence[blocks.Block]:
        """Those of them that are in the grid; one that only an earlier kernel has is executed there in any case.

        Raises UsageError for one that no kernel has.
        """
        earlier = [blocks.grid(k, self._sizes) for f in (self._written, self._lowered) for k in kernels(f)[:-1]]
        for block in named:
            if not any(blocks.is_in(block, grid) for grid in (self._extents, *earlier)):
                place, grid = ",".join(map(str, block)), " x ".join(map(str, self._extents))
                raise UsageError(f"block {place} is not in the grid, which is {grid} blocks")
        return [block for block in named if blocks.is_in(block, self._extents)] or [(0, 0, 0)]

    def every_block(self) -> Iterator[blocks.Block]:
        """All blocks of the grid, x first."""
        x, y, z = (range(extent) for extent in self._extents)
        return ((i, j, k) for k in z for j in y for i in x)

    def machines(self, *, early: bool) -> Machines:
        """Both levels, on inputs that keep the kernel as written in bounds. early: copies are, as lowered."""
        self._plain = True  # each statement for itself, whoever watches it
        _, draw = self.as_written
        names = {str(b.data.value): b for b in self._written.buffers}
        return Machines(
            lambda: self._machine(self._written, True, draw),
            lambda: self._machine(self._lowered, self._tiled, draw, late=not early),
            {name: inputs.extent(buffer, self._sizes) for name, buffer in names.items()},
            tuple(dict.fromkeys(world.block for world in self.worlds)),
            self.every_block,
        )

    def _fitting(self) -> list[World]:
        """As many blocks and seeds as the budget allows, known before anything runs."""
        budget = self._request.budget
        sides = ((self._written, True), (self._lowered, self._tiled))
        if any(statements_needed(function, self._sizes) > budget.statements for function, _ in sides):
            raise Stopped("more statements than allowed")
        wanted = len(self._blocks) * len(self._request.seeds)
        fit = min(worlds_that_fit(f, prod(threads_of(f)), written, budget, wanted) for f, written in sides)
        if fit == 0:
            raise Stopped("more memory than allowed")
        seeds = self._request.seeds[: max(1, fit // max(1, min(len(self._blocks), fit)))]
        return [World(seed, block) for seed in seeds for block in self._blocks[: fit // len(seeds)]]

    @property
    def course(self) -> inputs.Course:
        """The course that this request takes."""
        return replace(self._course, draw=self.as_written[1])

    @cached_property
    def as_written(self) -> tuple[Machine, inputs.Draw]:
        """The kernel as written, on inputs that keep its accesses in bounds and take it everywhere, if some can."""
        machine, draw = self._in_bounds()
        left, lacks = _TRIED + 4 * machine.spent, self._lacks(machine)
        for name, below in product(self._steering(), (*_FURTHER, *([_ZEROS] if lacks[0] else []))):
            if not any(lacks) or left < 0:
                break
            wider = draw.with_limit(name, below)
            other = self._machine(self._written, True, wider)
            with suppress(Stopped):
                other.run()
                other.rest()
                left -= other.spent
                if self._lacks(other) < lacks:
                    machine, draw, lacks = other, wider, self._lacks(other)
        return machine, draw

    def _lacks(self, machine: Machine) -> tuple[int, int]:
        """How many outputs have no number at all, and how many branches and loops have been left out."""
        seeds = dict.fromkeys(w.seed for w in self.worlds)
        left = [[comparison.outcome(machine.pages(name), seed) for seed in seeds] for name in self._outputs]
        return sum(not any(w.has_number for w in of_one) for of_one in left), len(machine.untried)

    def _steering(self) -> list[str]:
        """The integer tensors that are drawn: numbers in them may decide how often a loop runs."""
        if self._request.given or self._course.draw is not None:
            return []
        unread = _names(self._roles.written)
        return [name for name in inputs.integers(self._written) if name not in unread]

    def _in_bounds(self) -> tuple[Machine, inputs.Draw]:
        problem: Illegal | None = None
        for draw in self._arguments.draws:
            machine = self._machine(self._written, True, draw)
            try:
                self._run(machine, partial(self._machine, self._written, True, draw))
                self._before = {(name, draw.limit(name)): left for name, left in machine.after().items()}
                return machine, draw
            except Illegal as illegal:
                problem = illegal
        line = f" (line {problem.line})" if problem is not None and problem.line else ""
        raise Stopped(f"the author's, on all inputs tried: as written, {problem}{line}") from problem

    def _machine(
        self,
        function: Function,
        written: bool,
        draw: inputs.Draw,
        worlds: Sequence[World] = (),
        left: Mapping[str, Pages] | None = None,
        **special: Any,
    ) -> Machine:
        """A machine that has not run yet. left: tensors after earlier kernels. special: `Options` of this one."""
        budget = self._request.budget
        options = Options(
            written=written,
            early=not written and self._request.checkpoint in UNGUARDED,
            midway=written and function is self._lowered and function is not self._written,
            release=release_of(self._snapshot),
            statements=budget.statements,
            bytes=budget.bytes,
            until=self._until,
            plain=self._plain,
            printed=not written and self._request.printed and self._request.checkpoint == LOWERED,
            barriers=not self._snapshot.is_on(_NO_BARRIERS),
            needed=() if self._plain else self._needed,
            alike=draws_anywhere(self._written),
            **special,
        )
        tensors = self._arguments.tensors(draw, self._before)
        values = self._arguments.numbers(self.worlds[0].seed)
        *ahead, worlds = [worlds] if worlds else self._batches(function)
        return Machine(function, threads_of(function), worlds, tensors, values, options, left, ahead)

    def _batches(self, function: Function) -> list[list[World]]:
        """The worlds that run together. Plainly all do: a witness names the world."""
        if self._plain:
            return [self.worlds]
        if function not in self._together:
            self._together[function] = self._alike(function)
        return self._together[function]

    def _alike(self, function: Function) -> list[list[World]]:
        seeds = dict.fromkeys(w.seed for w in self.worlds)
        every = [tuple(dict.fromkeys(w.block for w in self.worlds if w.seed == seed)) for seed in seeds]
        if any(blocks != every[0] for blocks in every):
            return [self.worlds]
        parts = alike(function, self._sizes, every[0])
        return [[World(seed, block) for seed in seeds for block in part] for part in parts]

    def _output(self, name: str, written: Machine, lowered: Machine, draw: inputs.Draw) -> OutputOutcome:
        """The verdict on one output, over all seeds."""
        unknown = numberless = compared_elements = 0
        for seed in dict.fromkeys(w.seed for w in self.worlds):
            expected, got = comparison.outcome(written.pages(name), seed), comparison.left_by(lowered, name, seed)
            elements, initial = expected.elements, expected.values
            if not np.array_equal(elements, got.elements):
                elements = comparison.union(elements, got.elements)
                initial = written.pages(name).initial(seed, elements)
            compared = comparison.compare(expected, got, initial, elements)
            unknown += compared.unsettled
            numberless += comparison.numberless(compared)
            compared_elements += len(elements)
            if compared.differs.any():
                found = self._judged(name, compared, seed, lowered, draw)
                if found.verdict != "agreed":
                    return found
        if not compared_elements:
            return OutputOutcome(name, "undecided", "the blocks that ran write none of it")
        if 2 * unknown >= compared_elements:
            part = "all" if unknown == compared_elements else f"{unknown / compared_elements:.0%}"
            return OutputOutcome(name, "undecided", f"as written, {part} of it depends on memory that nothing wrote")
        if unknown + numberless == compared_elements:
            return OutputOutcome(name, "undecided", "as written, all of it is NaN")
        return OutputOutcome(name, "agreed")

    def _judged(
        self, name: str, compared: comparison.Compared, seed: int, lowered: Machine, draw: inputs.Draw
    ) -> OutputOutcome:
        """The verdict where elements differ by more than the first bound."""
        if self._roles.returning:
            return self._in_any_order(name, compared, seed, lowered, draw)
        differs, overflowed = compared.differs, False
        moved = []
        for jitter in (1, 2):
            machine = self._machine(self._written, True, draw, jitter=jitter)
            machine.run()
            overflowed |= machine.overflowed
            left = comparison.outcome(machine.pages(name), seed)
            values = compared.expected.astype(np.float64)
            at = np.searchsorted(compared.elements, left.elements)
            inside = (at < len(values)) & (compared.elements[np.minimum(at, len(values) - 1)] == left.elements)
            values[at[inside]] = left.values[inside]
            moved.append(values)
        rounding, ties = comparison.explained(compared, moved)
        endless = comparison.endless(compared) if overflowed else np.zeros_like(differs)
        wrong = differs & ~rounding & ~ties & ~endless
        if wrong.any():
            return self._refuted(name, comparison.first(compared, wrong, seed, lowered.reasons), lowered, draw)
        if (differs & endless).any():
            return OutputOutcome(name, "undecided", "as written, numbers become larger than float64 holds")
        if (differs & ties).any():
            return OutputOutcome(name, "undecided", "tie: rounding decides what is chosen")
        return OutputOutcome(name, "agreed")

    def _in_any_order(
        self, name: str, compared: comparison.Compared, seed: int, lowered: Machine, draw: inputs.Draw
    ) -> OutputOutcome:
        """The verdict where atomics return what was there: other threads may have come first than as written.

        Other orders as written tell what hangs on them. Values that are the same ones in each, at the same elements
        in whichever order, have to be so as lowered.
        """
        strays, lone = comparison.strays(compared.expected, compared.got), compared.written ^ compared.lowered
        if strays is None and not lone.any():
            return OutputOutcome(name, "agreed")
        strays = lone if strays is None else strays
        for order in (1, 2):
            machine = self._machine(self._written, True, draw, order=order)
            machine.run()
            left, values = comparison.outcome(machine.pages(name), seed), compared.initial.copy()
            elsewhere = not np.array_equal(left.elements, compared.elements[compared.written])
            values[compared.written] = values[compared.written] if elsewhere else left.values
            if elsewhere or comparison.strays(compared.expected, values) is not None:
                return OutputOutcome(name, "undecided", "it depends on the order of atomics")
        return self._refuted(name, comparison.first(compared, strays, seed, lowered.reasons), lowered, draw)

    def _refuted(self, name: str, difference: Difference, lowered: Machine, draw: inputs.Draw) -> OutputOutcome:
        if not self._plain:
            return OutputOutcome(name, "refuted", "", difference)
        late = lowered.options.late
        writer = self._last_write(name, difference, self._machine(self._lowered, self._tiled, draw, late=late))
        author = self._last_write(name, difference, self._machine(self._written, True, draw))
        buffer = next(b for b in self._written.buffers if b.data.value == name)
        index = index_of(difference.element, inputs.extent(buffer, self._sizes)) if not buffer.strides else ()
        index = index or (difference.element,)
        found = replace(difference, writer=writer, author=author, index=index, early=not late)
        return OutputOutcome(name, "refuted", "", found)

    def _last_write(self, name: str, difference: Difference, machine: Machine) -> Writer | None:
        """Who writes an element last, in a run of its own; None also where the level has no such parameter."""
        try:
            tracer, query = watched_for(machine, name, difference.seed, difference.element)
        except KeyError:
            return None
        machine.run()
        last = tracer.found.get(query)
        if last is None:
            return None
        block = machine.worlds[last.world or 0].block
        return Writer(block, -1 if last.lane is None else last.lane, last.origin)


def _names(buffers: Sequence[Buffer]) -> tuple[str, ...]:
    """The names of the pointers of parameters: an execution knows them by these."""
    return tuple([str(b.data.value) for b in buffers])


def machines(snapshot: Snapshot, request: Request, *, early: bool = False) -> Machines:
    """The two levels of a request, to be run by whoever watches them.

    Raises Stopped for what cannot be executed, and UsageError for blocks that are not in the grid.

    early: with asynchronous copies as early as they may be, as lowered.
    """
    registry.load()
    return _judge(snapshot, request).machines(early=early)


def course_of(snapshot: Snapshot, request: Request) -> inputs.Course | None:
    """The course that a request takes, for others that are to take the same; None where there is nothing to choose."""
    registry.load()
    with suppress(Stopped):
        return _judge(snapshot, request).course if request.given is None and _has_courses(snapshot) else None
    return None
