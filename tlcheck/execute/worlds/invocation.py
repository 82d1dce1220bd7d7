"""One call of a function: its kernels one after the other, the last one in the worlds that are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import zip_longest

from tlcheck.execute.events import Observer
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.observe.untried_ways import UntriedWays
from tlcheck.execute.schedule.launches import kernels, threads_of
from tlcheck.execute.stops import OutOfStatements
from tlcheck.execute.worlds.batches import all_blocks
from tlcheck.execute.worlds.blocks import Block
from tlcheck.execute.worlds.budget import Budget
from tlcheck.snapshot.ir import Function, Stmt

Needed = Mapping[Block, Set[int]]  # blocks that run, with their seeds
Observing = Callable[[Machine], Iterable[Observer]]  # the observers of a machine that is about to run


class Invocation:
    """A call that has not run yet; afterwards what it has left, and what was noticed.

    kernel: the last one of the function. machine: that of its last worlds. left: the tensors, by name. spent:
    statements. untried: of the source, see `UntriedWays`. looked_at, overflowed, strayed, asked: see `RunState`.
    """

    def __init__(
        self,
        function: Function,
        batches: Sequence[Sequence[World]],
        tensors: Mapping[str, Tensor],
        scalars: Mapping[str, int | float],
        options: Options,
        left: Mapping[str, Pages] | None = None,
        needed: Sequence[Needed | None] = (),
    ) -> None:
        """batches: the worlds of the last kernel: blocks that differ in how much they do would have to wait for one
        another. tensors, scalars: as for a `Machine`. left: the tensors that are there already. needed: the blocks to
        run of each kernel before the last one; None for all.
        """
        *self._earlier, self.kernel = kernels(function)
        self._ahead, self.worlds = batches[:-1], batches[-1]
        self._tensors, self._scalars, self.options, self._needed = tensors, scalars, options, needed
        self._seeds = tuple(dict.fromkeys(world.seed for worlds in (self.worlds, *self._ahead) for world in worlds))
        self.left: Mapping[str, Pages] = dict(left or {})
        self.spent = 0
        self.overflowed = False
        self.untried: dict[int, int] = {}
        self.looked_at: set[str] = set()
        self.asked: set[str] = set()
        self.strayed: set[Stmt] = set()

    def run(self, observing: Observing | None = None) -> None:
        """Run all of it."""
        self._run_earlier(observing)
        spent, batches = 0, []
        for worlds in self._ahead:
            self.machine = self.made(self.kernel, worlds)
            batches.append(self._run(self.machine, observing))
            spent += self.machine.state.spent
            _drop(self.machine)
        self.machine = self.made(self.kernel, self.worlds)
        self.machine.state.spend(self.spent)
        untried = self._run(self.machine, observing)
        self.untried |= {key: line for key, line in untried.items() if all(key in there for there in batches)}
        self.spent = self.machine.state.spent + spent  # a budget is for blocks that run together

    def made(self, kernel: Function, worlds: Sequence[World]) -> Machine:
        """A machine of a kernel, which begins with what is left now."""
        return Machine(
            kernel, threads_of(kernel), worlds, self._tensors, self._scalars, self.options, self.left, self._seeds
        )

    def _run_earlier(self, observing: Observing | None) -> None:
        """Run the kernels before the last one, each in its blocks."""
        options, seeds = self.options, tuple(dict.fromkeys(world.seed for world in self.worlds))
        budget = Budget(options.statements, options.bytes)
        for kernel, needed in zip_longest(self._earlier, self._needed[: len(self._earlier)]):
            for batch in all_blocks(kernel, seeds, self._scalars, options.source, budget, needed):
                machine = self.made(kernel, [World(*world) for world in batch])
                self.untried |= self._run(machine, observing)
                self.spent += machine.state.spent
                if self.spent > options.statements:
                    raise OutOfStatements
                _drop(machine)

    def _run(self, machine: Machine, observing: Observing | None) -> Mapping[int, int]:
        """Run a kernel. Returns what it has not tried."""
        observers, ways = [] if observing is None else observing(machine), UntriedWays()
        try:
            machine.run(*observers, *([ways] if self.options.source else []))
        finally:
            self.asked |= machine.state.asked
        self.looked_at |= machine.state.looked_at
        self.strayed |= machine.state.strayed
        self.overflowed |= machine.state.overflowed
        self.left = machine.after()
        return ways.untried


def _drop(machine: Machine) -> None:
    """Keep nothing that others do not need."""
    machine.rest()
    machine.state.memory.clear()
