"""The interpreter: the source of a kernel, alone, in the blocks that are asked for."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from math import prod

from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options, target_of
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.state import World
from tlcheck.execute.observe.kernel_console import Console, Say
from tlcheck.execute.request import SOURCE, Request
from tlcheck.execute.schedule.clusters import acts_across, cluster_of, completed
from tlcheck.execute.schedule.launches import grid, kernels, threads_of
from tlcheck.execute.stops import Illegal, Stopped
from tlcheck.execute.worlds.arguments import Arguments
from tlcheck.execute.worlds.batches import all_blocks
from tlcheck.execute.worlds.blocks import Block, chosen
from tlcheck.execute.worlds.inputs import Course, Draw
from tlcheck.program.roles import roles
from tlcheck.reasons import INCOMPLETE
from tlcheck.snapshot.ir import Snapshot


def interpret(snapshot: Snapshot, request: Request, say: Say | None = None) -> Execution:
    """Run a source kernel on the inputs of the first seed, as far as the budget goes.

    say: what to do with what T.print prints; with None `breakpoint()` means nothing either.

    Raises Stopped for what cannot be run to its end.
    """
    if SOURCE not in snapshot.checkpoints:
        raise Stopped(f"the snapshot has no checkpoint {SOURCE}", INCOMPLETE)
    return _Interpreter(snapshot, request).execution(say)


class _Interpreter:
    """One request."""

    def __init__(self, snapshot: Snapshot, request: Request) -> None:
        self._function, self._request = snapshot.checkpoints[SOURCE], request
        self._target = target_of(snapshot)
        self._arguments = Arguments(
            self._function,
            request.given or {},
            request.poisoned,
            request.course or Course(),
            request.drawn,
        )
        self._seed = request.seeds[0]

    def execution(self, say: Say | None) -> Execution:
        """Run it, on drawn inputs first without a word: some may lead out of bounds."""
        *draws, last = self._arguments.draws
        for draw in draws:
            try:
                self._run(draw, None)
            except Illegal:
                continue
            return self._run(draw, say)
        return self._run(last, say)

    def _run(self, draw: Draw, say: Say | None) -> Execution:
        """Raises Stopped."""
        left: dict[str, Pages] = {}
        blocks: list[tuple[int, int, int]] = []
        numbers, budget, spent = self._arguments.numbers(self._seed), self._request.budget, 0
        until = time.process_time() + budget.seconds
        options = Options(
            source=True,
            exact=False,
            target=self._target,
            statements=budget.statements,
            bytes=budget.bytes,
            until=until,
        )
        *earlier, last = kernels(self._function)
        for kernel in (*earlier, last):
            needed = self._asked() if kernel is last else None
            batches = all_blocks(kernel, (self._seed,), numbers, True, budget, needed)
            blocks = [block for batch in batches for _, block in batch]
            for batch in batches:
                worlds = [World(*world) for world in batch]
                tensors = self._arguments.tensors(draw)
                machine = Machine(kernel, threads_of(kernel), worlds, tensors, numbers, options, left)
                machine.run(*([] if say is None else [Console(machine, say)]))
                left, spent = machine.after(), spent + machine.state.spent
        outputs = [str(b.data.value) for b in roles(self._function).outputs]
        values = {name: left[name].outcome(self._seed) for name in outputs}
        of = prod(grid(self._function, numbers))
        return Execution((), tuple(blocks), of, (self._seed,), statements=(spent, 0), left=values)

    def _asked(self) -> Mapping[Block, Set[int]] | None:
        """The blocks of the last kernel that the request names or has room for; None for all."""
        asked, sizes = self._request.blocks, self._arguments.sizes
        if isinstance(asked, int):
            if asked >= prod(grid(self._function, sizes)):
                return None
            asked = tuple(chosen((self._function,), sizes, asked))
        if acts_across(self._function):
            asked = tuple(completed(asked, cluster_of(self._function)))
        return {block: {self._seed} for block in asked}
