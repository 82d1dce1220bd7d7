"""The origin of a wrong output in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tlcheck.execute.compare.origin import OriginAccess, ValueOrigin
from tlcheck.execute.observe.races import Race
from tlcheck.execute.request import LOWERED, SOURCE
from tlcheck.program.lines import line_of_use
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.claim import FindingOrigin
from tlcheck.verdicts.excerpts import line_of

_MERGE = "tl.MergeSharedMemoryAllocations"


def origin_in_words(snapshot: Snapshot, found: ValueOrigin, races: Sequence[Race] = ()) -> FindingOrigin:
    """An origin as reports show it. races: of the same execution, which say what is missing."""
    return _Words(snapshot, found, races).origin()


class _Words:
    """One origin of a snapshot."""

    def __init__(self, snapshot: Snapshot, found: ValueOrigin, races: Sequence[Race]) -> None:
        self._snapshot, self._found, self._races = snapshot, found, races
        self._source = snapshot.checkpoints[SOURCE]
        self._names = {str(b.data.value): b.name for b in self._source.buffers}

    def origin(self) -> FindingOrigin:
        found = self._found
        other = found.other
        buffers = [found.access.buffer] + ([other.buffer] if other is not None else [])
        return FindingOrigin(
            found.kind,
            self._line(found.access, found.writes),
            0 if other is None else self._line(other, writes=True),
            tuple(dict.fromkeys(self._names.get(name, name) for name in buffers)),
            "".join(self._sentence()),
        )

    def _sentence(self) -> Iterator[str]:
        found, other = self._found, self._found.other
        what = f"{self._element(found.access)} is {'stored' if found.writes else 'read'}"
        at = self._at(found.access, found.writes)
        if found.kind == "overwritten" and other is not None:
            yield f"{what}{at} with the value that {self._element(other)} stored{self._at(other, writes=True)}"
            yield self._alias(found.access, other)
        elif found.kind == "early" and other is not None:
            yield f"{what}{at} while the copy into it{self._at(other, writes=True)} is under way"
            yield self._missing(found.access.buffer)
        elif found.kind == "unwritten" and found.writes:
            more = f", nor are {found.count - 1} other elements" if found.count > 1 else ""
            yield f"{self._element(found.access)} is never stored, which the source does{at}{more}"
        elif found.kind == "unwritten":
            stored = "" if other is None else self._at(other, writes=True)
            yield f"{what}{at} and was never written"
            yield f"; the source stores it{stored}" if stored else ""
        elif found.kind == "other-index" and other is not None:
            yield f"{what}{at} with the value of {self._element(other)}"
            yield f"; {found.count} elements have that of another one"
        elif found.kind == "repeated":
            yield f"{what}{at} as {found.value}, {found.count} times the source's {found.expected}"
        else:
            yield f"{what}{at} as {found.value}, "
            yield (
                f"where the source stores {found.expected}" if found.expected else "which the source never stores there"
            )

    def _element(self, access: OriginAccess) -> str:
        name = self._names.get(access.buffer, access.buffer)
        if access.index:
            return f"{name}[{', '.join(map(str, access.index))}]"
        return f"{name} (byte {access.octet:,})"

    def _at(self, access: OriginAccess, writes: bool) -> str:
        """` at line 74 (thread 0, TIR line 176)`; empty where nothing of it is known."""
        line, tir = self._line(access, writes), line_of(self._snapshot, LOWERED, access.stmt)
        more = [f"thread {access.thread}"] if access.thread >= 0 else []
        more += [f"TIR line {tir}"] if tir else []
        inside = ", ".join(more)
        if line:
            return f" at line {line}" + (f" ({inside})" if inside else "")
        return f" ({inside})" if inside else ""

    def _line(self, access: OriginAccess, writes: bool) -> int:
        """The source line of an access; 0 where it is not known for certain."""
        own = access.source.line if access.source is not None else 0
        lowered = access.stmt.line if access.stmt is not None else 0
        return own or lowered or line_of_use(self._source, access.buffer, writes)

    def _alias(self, access: OriginAccess, other: OriginAccess) -> str:
        """The bytes at which two buffers lie in the memory that they share. A snapshot has such places of one pass."""
        if access.span is None or other.span is None:
            return ": both lie in one allocation"
        (first, last), (start, end) = access.span, other.span
        if (first, last) == (start, end):
            return f": both lie at bytes {first:,} to {last:,} of the shared memory since {_MERGE}"
        spans = f"bytes {first:,} to {last:,} and {start:,} to {end:,}"
        return f": they lie at {spans} of the shared memory since {_MERGE}"

    def _missing(self, buffer: str) -> str:
        """What the order of accesses to a buffer lacks."""
        race = next((race for race in self._races if buffer in (race.buffer, race.parameter)), None)
        return "" if race is None else f": between the two {race.missing} is missing"
