"""Tile operators that only some threads of the block reach as written: what they do, and for whom.

All threads of a block do a tile operator together. TileLang shares it out among those that it expects there
(`program.parted_tiles`); if others are missing, their share is. Whole warps that it expects are a warp group by hand,
which is meant, unless other threads read a fragment that these alone have set.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tlcheck import reasons
from tlcheck.execute.compare.faults import Fault, Faults
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.observe.attribution import Attributed
from tlcheck.execute.observe.races import Race
from tlcheck.execute.observe.tile_threads import Participation, PartReached, TileThreadsOfRun
from tlcheck.execute.stops import Illegal, Stopped
from tlcheck.execute.worlds import inputs
from tlcheck.execute.worlds.levels import BothLevels, is_of_barrier
from tlcheck.program.flow import Flow
from tlcheck.program.parted_tiles import parted_tiles, read_by, said, tiles, uses_any, written_by
from tlcheck.reasons import Reason
from tlcheck.snapshot.ir import Stmt
from tlcheck.snapshot.walk import allocated

_ALL: Mask = np.ones(1, np.bool_)


@dataclass(frozen=True)
class PartialTiles:
    """These operators on one draw, looked for where something is wrong as lowered."""

    levels: BothLevels
    draw: inputs.Draw

    @cached_property
    def found(self) -> tuple[PartReached, ...]:
        """Return those of which nobody says what they do, seen in a run of the source; what is broken first."""
        if not parted_tiles(self.levels.source):
            return ()
        reaching = TileThreadsOfRun()
        with suppress(Stopped):
            self.levels.plainly().source_invocation(self.draw).run(reaching)
        crossed = self._crossed(reaching)
        parts = [
            replace(part, participation=Participation.OPEN)
            if part.participation == Participation.MEANT and part.tile.stmt in crossed
            else part
            for part in reaching.parts
        ]
        return tuple(part for part in parts if part.participation != Participation.MEANT)

    def of_refuted(self, outcome: OutputOutcome) -> OutputOutcome:
        """An output that depends on such an operator is not refuted for it."""
        if outcome.verdict != "refuted" or not self.levels.plain or not self.found:
            return outcome
        writers = Flow(self.levels.source, outcome.name).writers
        part = next((part for part in self.found if uses_any(part.tile, writers)), None)
        return outcome if part is None else OutputOutcome(outcome.name, "undecided", reason_of(part))

    def without_own(self, whose: Attributed) -> Attributed:
        """The races without those of such operators: nothing is known of the order there."""
        own = {id(race): part for race in whose.races if (part := self._part_of(race)) is not None}
        if not own:
            return whose
        ordered = {race.name: reason_of(own[id(race)]) for race in whose.races if id(race) in own}
        kept = tuple(race for race in whose.races if id(race) not in own)
        return replace(whose, ordered={**whose.ordered, **ordered}, races=kept)

    def of_stop(self, illegal: Illegal) -> PartReached | None:
        """The operator in whose branch or loop threads of the lowered kernel wait for those that do not come; or one
        that single threads reach, where its tile is left.
        """
        found = self.found
        if not is_of_barrier(illegal):
            found = tuple(p for p in found if p.participation == Participation.BROKEN and self._uses(p, illegal.buffer))
        return next((part for part in found if part.tile.covers(illegal.line)), None)

    def _uses(self, part: PartReached, name: str) -> bool:
        """Whether an operator reads or writes memory of this name."""
        pointers = [buffer.data for buffer in allocated(self.levels.source.body)]
        used = read_by(part.tile.stmt) | written_by(part.tile.stmt)
        return any(str(data.value) == name and data.uid in used for data in pointers)

    def faults(self, of: Faults, open_: Collection[Reason]) -> Iterator[Fault]:
        """The faults that outputs and orders are undecided for."""
        for part in self.found if open_ else ():
            if part.participation == Participation.BROKEN and reason_of(part) in open_:
                yield of.of_part(part, reason_of(part))

    def _part_of(self, race: Race) -> PartReached | None:
        """The operator to which one of two accesses belongs, by its line."""
        stmts = (race.first.origin.stmt, race.second.origin.stmt)
        lines = {stmt.line for stmt in stmts if stmt is not None and stmt.line}
        return next((part for part in self.found if not lines.isdisjoint(part.tile.lines)), None)

    def _crossed(self, reaching: TileThreadsOfRun) -> set[Stmt]:
        """The operators that set a fragment in registers of some threads, which others read."""
        source = self.levels.source
        parted = {tile.stmt for tile in parted_tiles(source)}
        reached = {stmt: reaching.reached(stmt) if stmt in parted else _ALL for stmt in tiles(source)}
        found: set[Stmt] = set()
        for uid in (buffer.data.uid for buffer in allocated(source.body) if buffer.scope == "local.fragment"):
            reading = [come for stmt, come in reached.items() if come is not None and uid in read_by(stmt)]
            for stmt in parted:
                own = reached[stmt]
                if own is not None and uid in written_by(stmt) and any((come & ~own).any() for come in reading):
                    found.add(stmt)
        return found


def reason_of(part: PartReached) -> Reason:
    """Return why nothing is known of what depends on an operator."""
    return Reason(reasons.SOURCE_UNCLEAR, said(part.tile.name, part.tile.line))
