"""Find which memory of a block that nothing set an output depends on: the output is known where that memory is zeros.

A read of memory that nothing set is no fault by itself: a kernel may drop what it made of it. So the source runs again,
with one allocation after the other cleared, and with other values where nothing is written.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np

from tlcheck import reasons
from tlcheck.execute.compare import output_outcome as comparison
from tlcheck.execute.compare.counterparts import Counterparts
from tlcheck.execute.observe.attribution import Attributed
from tlcheck.execute.observe.races import Race
from tlcheck.execute.observe.uninitialized import UnsetRead, UnsetReads
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.reasons import Reason

_MOST = 8  # allocations that are cleared one by one
_Pair = tuple[Invocation, Invocation]  # with both values of what nothing wrote
_NONE: frozenset[int] = frozenset()


class UnsetMemory:
    """The memory of the source's blocks that is read and that nothing set, on one draw."""

    def __init__(self, levels: BothLevels, draw: inputs.Draw) -> None:
        """levels: those that run plainly. Everything else may raise Stopped."""
        self._levels, self._draw = levels, draw
        self._runs: dict[frozenset[int] | None, _Pair] = {}

    def reads(self, output: str, most: bool) -> list[UnsetRead]:
        """The reads of what the output depends on, in order; none where it depends on something else as well.

        most: more than half of the output depends on such memory.
        """
        before, least = self._unknown(output, _NONE), self._unknown(output, None)
        if (2 * least >= self._elements(output)) if most else (least >= before):
            return []
        alone = {root for root in self._roots[:_MOST] if self._unknown(output, frozenset((root,))) < before}
        if not alone and not most:
            return []
        return [read for read in self._found if read.uid in alone or not alone]

    def share(self, output: str) -> str:
        """`all elements of`, `12 of 64 elements of`: how much of an output depends on such memory.

        `elements of` where it does with the inputs of another seed alone.
        """
        unknown, every = self._unknown(output, _NONE), self._elements(output)
        if not unknown:
            return "elements of"
        return "all elements of" if unknown == every else f"{unknown:,} of {every:,} elements of"

    @cached_property
    def _found(self) -> list[UnsetRead]:
        reading = UnsetReads()
        self._levels.source_invocation(self._draw).run(reading)
        return reading.found

    @cached_property
    def _roots(self) -> list[int]:
        return list(dict.fromkeys(read.uid for read in self._found))

    def _run(self, cleared: frozenset[int] | None) -> _Pair:
        """Both runs with these allocations cleared, None for all."""
        if cleared not in self._runs:
            one, other = (
                self._levels.source_invocation(self._draw, cleared=cleared, chance=chance) for chance in (False, True)
            )
            one.run()
            other.run()
            self._runs[cleared] = one, other
        return self._runs[cleared]

    def _elements(self, output: str) -> int:
        one, _ = self._run(_NONE)
        return len(one.left[output].outcome(self._levels.worlds[0].seed).elements)

    def _unknown(self, output: str, cleared: frozenset[int] | None) -> int:
        """Return how many elements of an output depend on what nothing wrote; all where different ones are written."""
        seed = self._levels.worlds[0].seed
        runs = *self._run(cleared), self._run(None)[0]
        one, other, zeros = (invocation.left[output].outcome(seed) for invocation in runs)
        if any(not np.array_equal(one.elements, side.elements) for side in (other, zeros)) or not len(one.elements):
            return self._elements(output)
        return comparison.compare(one, one, one.values, one.elements, [other, zeros]).unsettled


def without_unset(whose: Attributed, levels: BothLevels, draw: inputs.Draw) -> Attributed:
    """The races without reads of a buffer in which the source has set nothing yet, when the same statement reads it.

    As lowered another buffer may lie in that memory. Its value is read there in any order, and is not meant.
    """
    if not whose.races:
        return whose
    places = Counterparts(levels.source, levels.lowered)
    stale = [race for race in whose.races if _reads_another(race, places)]
    if not stale:
        return whose
    reading = UnsetReads()
    with suppress(Stopped):
        levels.plainly().source_invocation(draw).run(reading)
    bare = [read for read in reading.found if read.bare]
    own = {race: read for race in stale for read in bare if _is_same_read(race, read, places)}
    ordered = {race.name: _told(read) for race, read in own.items()}
    kept = tuple(race for race in whose.races if race not in own)
    return replace(whose, ordered={**whose.ordered, **ordered}, races=kept)


def _is_same_read(race: Race, read: UnsetRead, places: Counterparts) -> bool:
    """Whether a read of the source may be the one that races as lowered: of the buffer, by no other statement."""
    if places.name(race.buffer) != places.name(read.buffer):
        return False
    stmts = places.of(race.second.origin.stmt)
    return not stmts or any(stmt is read.stmt for stmt in stmts)


def _reads_another(race: Race, places: Counterparts) -> bool:
    """Whether shared memory is read under one buffer's name after a write under another one's."""
    if race.parameter or (race.first.kind, race.second.kind) != ("write", "read"):
        return False
    stmt, name = race.first.origin.stmt, places.name(race.buffer)
    written = places.accessed(stmt).writes | places.added(stmt)
    return bool(written) and name not in written


def _told(read: UnsetRead) -> Reason:
    where = f" (line {read.stmt.line})" if read.stmt is not None and read.stmt.line else ""
    return Reason(reasons.UNSET, f"as written, nothing has set {read.buffer}, which is read{where}")
