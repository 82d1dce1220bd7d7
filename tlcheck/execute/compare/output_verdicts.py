"""Judge each output of a kernel: what the source leaves, against what the lowered code leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tlcheck import reasons
from tlcheck.execute.compare import output_outcome as comparison
from tlcheck.execute.compare.apart import UNWRITTEN
from tlcheck.execute.compare.output_outcome import Difference, OutputOutcome
from tlcheck.execute.compare.roundings import coarser, finer, rounds
from tlcheck.execute.compare.specials import differences
from tlcheck.execute.compare.writers import Writer
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.plain import index_of
from tlcheck.execute.memory.state import World
from tlcheck.execute.observe.tracer import Tracing, UnknownTensor
from tlcheck.execute.stops import Illegal, Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.inputs import Draw
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.program.tickets import ticketed
from tlcheck.reasons import Reason

UNSET_MEMORY = "depends on memory that nothing wrote"
_ALL_NAN = Reason(reasons.ALL_NAN, "as written, all of it is NaN")
_OVERFLOW = Reason(reasons.OVERFLOW, "as written, numbers become larger than float64 holds")
_TIE = Reason(reasons.TIE, "tie: rounding decides what is chosen")
_IN_ORDER = Reason(reasons.ATOMICS_RETURN, "it depends on the order of atomics")


@dataclass(frozen=True)
class OutputVerdicts:
    """What both levels of a kernel leave on one draw."""

    levels: BothLevels
    draw: inputs.Draw

    def of(self, name: str, source: Invocation, lowered: Invocation) -> OutputOutcome:
        """The verdict on one output, over all seeds."""
        unknown = numberless = compared_elements = 0
        try:
            by_chance = self.levels.by_chance(self.draw)
        except Illegal as illegal:
            reason = Reason(reasons.UNSET, f"as written, with other numbers where nothing wrote: {illegal}")
            return OutputOutcome(name, "undecided", reason)
        for seed in dict.fromkeys(w.seed for w in self.levels.worlds):
            expected, got = source.left[name].outcome(seed), comparison.left_of(lowered.left, name, seed)
            others = [left[name].outcome(seed) for left in by_chance]
            elements, initial = expected.elements, expected.values
            for side in (got, *others):
                if side is not None and not np.array_equal(elements, side.elements):
                    elements = comparison.union(elements, side.elements)
                    initial = source.left[name].initial(seed, elements)
            compared = comparison.compare(expected, got, initial, elements, others)
            unknown += compared.unsettled
            numberless += comparison.numberless(compared)
            compared_elements += len(elements)
            if compared.differs.any():
                found = self._judged(name, compared, seed, lowered)
                if found.verdict != "agreed":
                    return replace(found, unset=unknown if found.verdict == "refuted" else 0)
        if not compared_elements:
            return OutputOutcome(name, "undecided", UNWRITTEN)
        if 2 * unknown >= compared_elements:
            part = "all" if unknown == compared_elements else f"{unknown / compared_elements:.0%}"
            unclear = self.levels.in_each_iteration is not None
            what = ", or on whether T.alloc_var sets a variable in each iteration" if unclear else ""
            reason = Reason(reasons.UNSET, f"as written, {part} of it {UNSET_MEMORY}{what}")
            return OutputOutcome(name, "undecided", reason, unset=unknown)
        if unknown + numberless == compared_elements:
            return OutputOutcome(name, "undecided", _ALL_NAN)
        return OutputOutcome(name, "agreed", unset=unknown)

    def _judged(self, name: str, compared: comparison.Compared, seed: int, lowered: Invocation) -> OutputOutcome:
        """The verdict where elements differ by more than the first bound."""
        if self.levels.roles.returning and name in ticketed(self.levels.source):
            return self._in_any_order(name, compared, seed, lowered)
        differs = compared.differs
        moved, overflowed = self.levels.jittered(name, seed, self.draw, compared.elements, compared.expected)
        rounding, ties = comparison.explained(compared, moved)
        endless = comparison.endless(compared) if overflowed or lowered.overflowed else np.zeros_like(differs)
        wrong = differs & ~rounding & ~ties & ~endless
        if wrong.any():
            return self._refuted(name, comparison.first(compared, wrong, seed, lowered.machine.state.reasons), lowered)
        if (differs & endless).any():
            return OutputOutcome(name, "undecided", _OVERFLOW)
        if (differs & ties).any():
            return OutputOutcome(name, "undecided", _TIE)
        return OutputOutcome(name, "agreed")

    def _in_any_order(self, name: str, compared: comparison.Compared, seed: int, lowered: Invocation) -> OutputOutcome:
        """The verdict where atomics return what was there: other threads may have come first than in the source.

        Other orders in the source tell what hangs on them. Values that are the same ones in each, at the same elements
        in whichever order, have to be so as lowered.
        """
        strays, lone = comparison.strays(compared.expected, compared.got), compared.by_source ^ compared.by_lowered
        if strays is None and not lone.any():
            return OutputOutcome(name, "agreed")
        strays = lone if strays is None else strays
        for order in (1, 2):
            invocation = self.levels.source_invocation(self.draw, order=order)
            invocation.run()
            left, values = invocation.left[name].outcome(seed), compared.initial.copy()
            elsewhere = not np.array_equal(left.elements, compared.elements[compared.by_source])
            values[compared.by_source] = values[compared.by_source] if elsewhere else left.values
            if elsewhere or comparison.strays(compared.expected, values) is not None:
                return OutputOutcome(name, "undecided", _IN_ORDER)
        return self._refuted(name, comparison.first(compared, strays, seed, lowered.machine.state.reasons), lowered)

    def _refuted(self, name: str, difference: Difference, lowered: Invocation) -> OutputOutcome:
        if not self.levels.plain:
            return OutputOutcome(name, "refuted", difference=difference)
        late = lowered.options.late
        writer = author = None
        if not self.levels.request.brief:
            writer = self._last_write(name, difference, self.levels.lowered_invocation(self.draw, late=late))
            author = self._last_write(name, difference, self.levels.source_invocation(self.draw))
        index = self._place(name, difference)
        found = replace(difference, writer=writer, author=author, index=index, early=not late)
        return OutputOutcome(name, "refuted", difference=found)

    def _last_write(self, name: str, difference: Difference, invocation: Invocation) -> Writer | None:
        """Return who writes an element last, in a run of its own; None also where the level has no such parameter."""
        tracing = Tracing(invocation.kernel, name, difference.seed, difference.element)
        try:
            invocation.run(tracing)
        except UnknownTensor:
            return None
        last = tracing.found
        if last is None:
            return None
        block = invocation.worlds[last.world or 0].block
        return Writer(block, -1 if last.lane is None else last.lane, last.origin)

    def with_own_types(self, outputs: Sequence[OutputOutcome]) -> list[OutputOutcome] | None:
        """The outputs after one block has run on the last inputs with floats in their own types: what agreed and loses
        more is refuted. None where that is not possible.
        """
        world, meant = self.levels.worlds[-1], not rounds(self.levels.lowered)
        source = self.levels.source_invocation(self.draw, worlds=[world], exact=False, costly=not meant)
        lowered = self.levels.lowered_invocation(self.draw, worlds=[world], exact=False)
        try:
            exact = self._exact(world)
            for invocation in (source, lowered):
                invocation.run()
                invocation.machine.rest()
        except Stopped:
            return None
        found = []
        for outcome in outputs:
            difference = None
            if outcome.verdict == "agreed" and not self.levels.roles.returning:
                difference = _rounded(outcome.name, world.seed, exact, source, lowered, meant=meant)
            found.append(outcome if difference is None else self._refuted(outcome.name, difference, lowered))
        return found

    def _exact(self, world: World) -> Mapping[str, Pages]:
        """The tensors that the source leaves in one world, of the known run if no other world has the seed."""
        if [each.seed for each in self.levels.worlds].count(world.seed) == 1:
            return self.levels.source_run[0].left
        invocation = self.levels.source_invocation(self.draw, worlds=[world])
        invocation.run()
        invocation.machine.rest()
        return invocation.left

    def with_special_numbers(self, outputs: Sequence[OutputOutcome]) -> list[OutputOutcome]:
        """The outputs after one block has run with NaN and infinities: what agreed and differs is refuted."""
        if self.levels.roles.returning:
            return list(outputs)
        wrong = {name: (found, draw) for name, found, draw in differences(self.levels, self.draw)}
        return [
            OutputOutcome(o.name, "refuted", difference=self._at_special_numbers(o.name, *wrong[o.name]))
            if o.verdict == "agreed" and o.name in wrong
            else o
            for o in outputs
        ]

    def _at_special_numbers(self, name: str, difference: Difference, draw: Draw) -> Difference:
        """A difference that such numbers show, with its place and who writes it."""
        found = replace(difference, index=self._place(name, difference))
        if self.levels.request.brief or not self.levels.plain:
            return found
        worlds = self.levels.worlds[-1:]
        writer = self._last_write(name, difference, self.levels.lowered_invocation(draw, worlds=worlds))
        author = self._last_write(name, difference, self.levels.source_invocation(draw, worlds=worlds))
        return replace(found, writer=writer, author=author)

    def _place(self, name: str, difference: Difference) -> tuple[int, ...]:
        """The logical index of an element that differs; its number where the tensor has strides."""
        buffer = next(b for b in self.levels.source.buffers if b.data.value == name)
        index = index_of(difference.element, inputs.extent(buffer, self.levels.sizes)) if not buffer.strides else ()
        return index or (difference.element,)


def _rounded(
    name: str, seed: int, exact: Mapping[str, Pages], source: Invocation, lowered: Invocation, *, meant: bool
) -> Difference | None:
    """Return how an output of the kernel as lowered loses more than in the source; None where it does not.

    meant: how it lacks a rounding that the source has.
    """
    tensor = exact[name]
    sides = [comparison.left_of(left, name, seed) for left in (exact, source.left, lowered.left)]
    wrong = (finer if meant else coarser)(sides[0], sides[1], sides[2], tensor.kind)
    if wrong is None:
        return None
    initial = tensor.initial(seed, sides[0].elements)
    compared = comparison.compare(sides[1] if meant else sides[0], sides[2], initial, sides[0].elements)
    found = comparison.first(compared, wrong, seed, lowered.machine.state.reasons)
    return replace(found, rounded=True, finer=meant)
