"""The machine: a kernel and a state, and running the one in the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.ma  # np.unique imports it: better here than while the first kernel runs

from tlcheck.execute.compile import registry
from tlcheck.execute.compile.annotated_layouts import annotate
from tlcheck.execute.compile.pointers import pointers_of
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.events import Observer, Observers
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.codes import Step
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import RunState, Tensor, World
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.execute.schedule.clusters import Clusters, acts_across
from tlcheck.execute.stops import Illegal, NotModelled
from tlcheck.program.observed import spinning
from tlcheck.snapshot.ir import Function

registry.load()


class Machine:
    """A kernel in the worlds in which it runs. pointers: of the kernel; see `RunState` for what a run leaves."""

    def __init__(
        self,
        function: Function,
        threads: tuple[int, int, int],
        worlds: Sequence[World],
        tensors: Mapping[str, Tensor],
        scalars: Mapping[str, int | float],
        options: Options,
        left: Mapping[str, Pages] | None = None,
        seeds: Sequence[int] = (),
    ) -> None:
        """threads: of a block, x first. scalars: as for a `KernelProgram`; the others as for a `RunState`."""
        self.function, self.options, self.worlds = function, options, tuple(worlds)
        self.pointers, self._left = pointers_of(function), dict(left or {})
        self.scalars, self.extents = scalars, threads
        self.state = RunState(options, prod(threads), worlds, tensors, self.pointers.free, self._left, seeds)
        if options.source:
            annotate(self.program())

    def program(self, *observers: Observer) -> KernelProgram:
        """The kernel, to be compiled for these observers."""
        return KernelProgram(self.function, self.state, self.scalars, self.extents, Observers(*observers))

    def run(self, *observers: Observer) -> None:
        """Run the kernel once in all worlds."""
        program, state = self.program(*observers), self.state
        agents_of(state).turned = program.observers.turned
        for root, memory in state.memory.items():
            program.observers.allocated(root, memory)
        with np.errstate(all="ignore", over="call", call=self._note_overflow):
            step = program.step(self.function.body)
            try:
                self._begin(program, step)
                for look in state.endings:
                    look()
            except Illegal as illegal:
                illegal.stmt = illegal.stmt or state.at
                if illegal.world < len(self.worlds):  # else one of many iterations at once, and a plain run follows
                    world = self.worlds[illegal.world]
                    illegal.block, illegal.seed = world.block, world.seed
                raise
            except KeyError as missing:
                if missing.args[0] not in state.loops:
                    raise
                raise NotModelled(f"variable {state.loops[missing.args[0]]} without a value") from None
            finally:
                program.forget()
        program.observers.ended()

    def _begin(self, program: KernelProgram, step: Step) -> None:
        """Run the kernel: blocks beside one another where they act on others of their cluster by rank, or where a loop
        waits for memory that another block may change.
        """
        worlds, threads = len(self.worlds), self.state.threads
        across = acts_across(self.function)
        if not across and (worlds == 1 or not spinning(self.function)):
            step.run(Frame(dict(program.parameters), worlds, threads))
            return
        number = Clusters.of(self.state, self.function).rank if across else np.arange(worlds)
        masks = [np.repeat((number == one)[:, None], threads, axis=1) for one in np.unique(number).tolist()]
        frames = [Frame(dict(program.parameters), worlds, threads, mask) for mask in masks]
        agents_of(self.state).fork([(frame, step.run) for frame in frames], last=True, blocks=not across)

    def _note_overflow(self, kind: str, flags: int) -> None:
        self.state.overflowed = True

    def rest(self) -> None:
        """After the run, drop what only a running kernel needs: memory of its blocks, and what handlers have kept."""
        self.state.memory = {root: found for root, found in self.state.memory.items() if isinstance(found, Pages)}
        self.state.shared.clear()
        self.state.endings.clear()

    def pages(self, name: str) -> Pages:
        """The global tensor of a parameter. Raises KeyError where the kernel has none of that name."""
        return self.after()[name]

    def after(self) -> dict[str, Pages]:
        """All global tensors, by name, as they are now."""
        own = {name: self.state.memory[root] for root, name in self.pointers.free if root in self.state.memory}
        return self._left | {name: pages for name, pages in own.items() if isinstance(pages, Pages)}
