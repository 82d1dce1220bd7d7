"""The same kernel as two toolchains have it written: whether both leave the same outputs on the same inputs.

TileLang traces a kernel's file before its first pass; what two releases trace may be two kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from tlcheck.execute.compare import output_outcome as comparison
from tlcheck.execute.compare.output_outcome import Difference
from tlcheck.execute.memory.plain import index_of
from tlcheck.execute.memory.values import is_poison
from tlcheck.execute.request import ALL, SOURCE, Request
from tlcheck.execute.stops import BudgetSpent
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.snapshot.ir import Snapshot

_SECONDS = 10.0  # of the processor, for all blocks of both kernels: nobody has asked for these
_NOTHING = "undefined (nothing wrote it, or what it is made of)"


def differing_output(before: Snapshot, after: Snapshot, request: Request) -> tuple[str, Difference] | None:
    """The first output, by its pointer, of which the later one leaves something else; expected is what was before.

    Raises Stopped for what cannot be executed. The blocks that the request asks for are compared; where these write
    other elements on either side, blocks have other parts of the work, and all of them are executed, for a few seconds:
    raises UncomparedPartsError where that does not do.
    """
    asked = replace(request, checkpoint=SOURCE)
    try:
        return _Sources(before, after, asked).difference()
    except _OtherPartsError:
        few = replace(asked.budget, seconds=min(asked.budget.seconds, _SECONDS))
        try:
            return _Sources(before, after, replace(asked, blocks=ALL, seeds=asked.seeds[:1], budget=few)).difference()
        except BudgetSpent as spent:
            raise UncomparedPartsError(str(spent)) from spent


class UncomparedPartsError(Exception):
    """The same blocks write other elements on either side, and to execute all blocks takes more than is allowed."""


class _OtherPartsError(Exception):
    """The same blocks write other elements on either side."""


class _Sources:
    """Both kernels on one set of blocks and inputs."""

    def __init__(self, before: Snapshot, after: Snapshot, request: Request) -> None:
        self._every = request.blocks == ALL
        self._old = levels_of(before, request)
        request = replace(request, course=self._old.course)
        self._new = BothLevels(after, request)
        if self._old.extents != self._new.extents and not self._every:
            raise _OtherPartsError
        self._seeds = tuple(dict.fromkeys(world.seed for world in self._old.worlds))
        if self._new.worlds != self._old.worlds and not self._every:
            blocks = tuple(dict.fromkeys(world.block for world in self._old.worlds))
            named = replace(request, blocks=blocks, seeds=self._seeds)
            self._old, self._new = BothLevels(before, named), BothLevels(after, named)

    def difference(self) -> tuple[str, Difference] | None:
        """The first output that differs."""
        was, draw = self._old.source_run
        now = self._new.source_invocation(draw)
        self._new.run(now, partial(self._new.source_invocation, draw))
        return next(self._differing(was, now, draw), None)

    def _differing(self, was: Invocation, now: Invocation, draw: inputs.Draw) -> Iterator[tuple[str, Difference]]:
        for name in self._old.outputs:
            for seed in self._seeds:
                found = self._compared(name, seed, was, now, draw)
                if found is not None:
                    yield name, found

    def _compared(self, name: str, seed: int, was: Invocation, now: Invocation, draw: inputs.Draw) -> Difference | None:
        """Return how one output differs, but by rounding. A number where there was none, or none any more, is no
        rounding.
        """
        expected, got = was.left[name].outcome(seed), comparison.left_of(now.left, name, seed)
        elements, initial = expected.elements, expected.values
        if not np.array_equal(elements, got.elements):
            if not self._every:
                raise _OtherPartsError
            elements = comparison.union(elements, got.elements)
            initial = was.left[name].initial(seed, elements)
        compared = comparison.compare(expected, got, initial, elements)
        wrong = compared.differs
        if compared.expected.dtype.kind == "f":
            wrong = wrong | (is_poison(compared.expected) != is_poison(compared.got))
        if not wrong.any() or self._old.roles.returning:
            return None
        compared = replace(compared, differs=wrong)
        moved, _ = self._old.jittered(name, seed, draw, compared.elements, compared.expected)
        rounding, ties = comparison.explained(compared, moved)
        wrong = wrong & ~rounding & ~ties
        return self._first(name, compared, wrong, seed) if wrong.any() else None

    def _first(self, name: str, compared: comparison.Compared, wrong: comparison.Mask, seed: int) -> Difference:
        found = comparison.first(compared, wrong, seed, [])
        buffer = next(b for b in self._old.source.buffers if b.data.value == name)
        index = () if buffer.strides else index_of(found.element, inputs.extent(buffer, self._old.sizes))
        place = int(np.searchsorted(compared.elements, found.element))
        unread = buffer in self._old.roles.unread
        sides = ((found.expected, compared.by_source), (found.got, compared.by_lowered))
        expected, got = (_NOTHING if s == "poison" or (unread and not w[place]) else s for s, w in sides)
        return replace(found, index=index or (found.element,), expected=expected, got=got)
