"""The origin of a wrong output in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tlcheck.execute.compare.counterparts import Counterparts
from tlcheck.execute.compare.origin import OriginAccess, ValueOrigin
from tlcheck.execute.observe.races import Access, Race
from tlcheck.execute.request import LOWERED, SOURCE
from tlcheck.execute.stops import Illegal
from tlcheck.program.lines import line_of_use
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Bind, Buffer, Function, Snapshot, Stmt, Store
from tlcheck.snapshot.text import render
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.verdicts.claim import FindingOrigin
from tlcheck.verdicts.excerpts import line_of
from tlcheck.verdicts.words import plural
from tlcheck.witness import indexed, shaped

MERGE = "tl.MergeSharedMemoryAllocations"
_UNKNOWN = 1 << 62  # elements of an axis of which the lowered kernel does not say how many there are
AGGRESSIVE_MERGE = "tl.enable_aggressive_shared_memory_merge"  # a pass config of that pass


def origin_in_words(snapshot: Snapshot, found: ValueOrigin, races: Sequence[Race] = ()) -> FindingOrigin:
    """An origin as reports show it. races: of the same execution, which say what is missing."""
    return _Words(snapshot, found, races).origin()


def race_in_words(snapshot: Snapshot, race: Race, name: str) -> FindingOrigin:
    """The origin of a race: both accesses, and what is missing between them. name: of the buffer in the source."""
    places = _Places(snapshot)
    alias = places.other_buffer(race.first, race.buffer)
    first, second = places.access(race.first, alias or race.buffer), places.access(race.second, race.buffer)
    other, own = alias or places.view(race.first, race.buffer) or name, places.view(race.second, race.buffer) or name
    one = f"the {race.first.kind} of {other}{places.at(*first)}"
    two = f"the {race.second.kind} of {own}{places.at(*second)}"
    missing = f"{race.missing} is missing between {one} and {two}"
    if alias:
        missing += f", which lie in the same memory since {MERGE}" if alias != name else ""
    elif other != own:
        missing += ", which are views of one buffer"
    buffers = tuple(dict.fromkeys([name, *([alias] if alias else [])]))
    return FindingOrigin("unordered", second[0], first[0], buffers, missing, race.missing)


def access_in_words(snapshot: Snapshot, illegal: Illegal, line: int) -> FindingOrigin:
    """The origin of an access that the device does not allow: the access itself."""
    places = _Places(snapshot)
    source = places.counterparts.only(illegal.stmt)
    line = (source.line if source is not None else 0) or line
    tir = line_of(snapshot, LOWERED, illegal.stmt)
    buffers = (illegal.buffer,) if illegal.buffer and illegal.buffer != "?" else ()
    return FindingOrigin("illegal", line, 0, buffers, _in_words(illegal, places.at(line, tir, illegal.lane)))


def _in_words(illegal: Illegal, place: str) -> str:
    """`x[-4] is accessed at line 7; x has the shape [12]`; what the machine says where no index is known."""
    if not illegal.index or max(illegal.extent, default=0) >= _UNKNOWN:
        return f"{illegal}{place}"
    accessed = f"{indexed(illegal.buffer, illegal.index)} is accessed{place}"
    if all(0 <= i < n for i, n in zip(illegal.index, illegal.extent, strict=False)):
        return f"{accessed}, beyond the memory of {illegal.buffer}"  # a pass gave it more elements than memory
    return f"{accessed}; {shaped(illegal.buffer, illegal.extent)}"


def buffer_named(snapshot: Snapshot, access: Access, buffer: str) -> str:
    """Return the buffer that an access names: this one, or another one in the same memory."""
    return _Places(snapshot).other_buffer(access, buffer) or buffer


class _Places:
    """A record of where accesses of a lowered kernel stand, in the source and in the TIR."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot, self._source = snapshot, snapshot.checkpoints[SOURCE]
        self.counterparts = Counterparts(self._source, snapshot.checkpoints[LOWERED])

    def access(self, access: Access, buffer: str) -> tuple[int, int, int]:
        """The source line, the line of the TIR and the thread; 0, 0 and -1 where they are not known."""
        stmt = access.origin.stmt
        source = self.counterparts.only(stmt)
        own = source.line if source is not None else 0
        used = line_of_use(self._source, buffer, access.kind != "read")
        lowered = 0 if stmt is None else self.counterparts.line_near(stmt, buffer)
        return own or used or lowered, line_of(self._snapshot, LOWERED, stmt), access.thread

    def other_buffer(self, access: Access, buffer: str) -> str:
        """The buffer that an access names, if that is another one in the same memory; else empty.

        It may be one that TileLang made, such as the workspace of a reduction.
        """
        names = self.counterparts.accessed(access.origin.stmt)
        mode = names.reads if access.kind == "read" else names.writes
        if not mode.isdisjoint((buffer, self.counterparts.name(buffer))):
            return ""
        shared = sorted(mode & self.counterparts.shared) or sorted(self.counterparts.added(access.origin.stmt))
        if len(shared) > 1:
            shared = [name for name in shared if self._overlap(name, buffer)]
        return shared[0] if len(shared) == 1 else ""

    def _overlap(self, one: str, other: str) -> bool:
        """Whether two buffers have bytes of merged shared memory in common."""
        named = [(self.counterparts.name(name), span) for name, span in _spans(self._snapshot.checkpoints[LOWERED])]
        first, second = (dict(named).get(self.counterparts.name(name)) for name in (one, other))
        return first is not None and second is not None and first[0] < second[1] and second[0] < first[1]

    def view(self, access: Access, buffer: str) -> str:
        """The name by which the source calls shared memory at an access, which may be a view's; empty if not known."""
        source, own = self.counterparts.only(access.origin.stmt), self.counterparts.name(buffer)
        if source is None or own not in self.counterparts.shared:
            return ""
        named = (
            list(_accessed(source))[1:] if access.kind == "read" and isinstance(source, Store) else _accessed(source)
        )
        found = {b.name for b in named if self.counterparts.name(str(b.data.value)) == own}
        return found.pop() if len(found) == 1 else ""

    def at(self, line: int, tir: int, thread: int) -> str:
        """` at line 74 (thread 0, TIR line 176)`."""
        more = ", ".join([*([f"thread {thread}"] if thread >= 0 else []), *([f"TIR line {tir}"] if tir else [])])
        inside = f" ({more})" if more else ""
        return f" at line {line}{inside}" if line else inside


def _spans(function: Function) -> Iterator[tuple[str, tuple[int, int]]]:
    """The pointers into merged shared memory, and the bytes that are accessed by each, the last one excluded."""
    firsts = {str(pointer.value): place for pointer, place in function.places}
    for stmt in statements(function.body):
        if isinstance(stmt, Bind) and name_of_call(stmt.value) == "handle_add_byte_offset":
            firsts |= {str(stmt.var.value): int(e.value) for e in stmt.value.args[1:2] if isinstance(e.value, int)}
    lengths: dict[str, int] = {}
    for buffer in (buffer for stmt in statements(function.body) for buffer in _accessed(stmt)):
        sizes = [int(extent.value) for extent in buffer.shape if isinstance(extent.value, int)]
        if len(sizes) == len(buffer.shape):
            name = str(buffer.data.value)
            lengths[name] = max(lengths.get(name, 0), int(prod(sizes) * dtype_of(buffer.dtype).bytes))
    yield from ((name, (first, first + lengths.get(name, 0))) for name, first in firsts.items())


def _accessed(stmt: Stmt) -> Iterator[Buffer]:
    """The buffers that a statement itself accesses, that of a store first."""
    if isinstance(stmt, Store):
        yield stmt.buffer
    yield from (e.buffer for e in postorder(expressions(stmt)) if e.buffer is not None)


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
        found = self._found
        what = f"{self._element(found.access)} is {'stored' if found.writes else 'read'}"
        what += self._at(found.access, found.writes)
        if found.again is not None:
            loop, step = found.again
            at = self._at(found.access, writes=True)
            yield f"{self._element(found.access)} is stored again{at} in step {step} of the loop `{loop}`; "
            yield "the source stores it once, before that loop"
        elif found.kind in ("overwritten", "unordered", "early", "late") and found.other is not None:
            yield from self._out_of_order(what, found.other)
        elif found.kind == "unwritten":
            yield from self._unwritten(what)
        elif found.kind in ("other-index", "other-operand") and found.other is not None:
            yield from self._elsewhere(what, found.other)
        else:
            yield from self._of_value(what)

    def _out_of_order(self, what: str, other: OriginAccess) -> Iterator[str]:
        """The write that another access should come before, or after."""
        found, stored = self._found, self._at(other, writes=True)
        if found.kind == "overwritten":
            yield f"{what} with the value that {self._element(other)} stored{stored}"
            yield self._alias(found.access, other) if found.access.buffer != other.buffer else ""
        elif found.kind == "unordered":
            yield f"{what} with the value that the store{stored} leaves, which nothing orders"
            yield self._missing(found.access.buffer)
        elif found.kind == "late":
            yield f"{what} after the store{stored}, which comes after it in the source"
        elif other.stmt is not None:
            yield f"{what} while the copy into it{stored} is under way{self._missing(found.access.buffer)}"
        else:
            yield f"{what} before the store{stored}, which comes first in the source"

    def _unwritten(self, what: str) -> Iterator[str]:
        found = self._found
        stored = "" if found.other is None else self._at(found.other, writes=True)
        if found.writes:
            others = found.count - 1
            more = f", nor {'is' if others == 1 else 'are'} {plural(others, 'other element')}" if others > 0 else ""
            at = self._at(found.access, writes=True)
            yield f"{self._element(found.access)} is never stored, which the source does{at}{more}"
        elif found.value.startswith("poison"):
            yield f"{what} and was never written"
            yield f"; the source stores it{stored}" if stored else ""
        else:
            yield f"{what} as {found.value}, without the store{stored} that comes first in the source"
        yield self._guard()

    def _elsewhere(self, what: str, other: OriginAccess) -> Iterator[str]:
        """An access of another element than in the source."""
        found = self._found
        if not found.writes:
            yield f"{what} where the source reads {self._element(other)}"
        elif found.count:
            yield f"{what} with the value of {self._element(other)}; {found.count} elements have that of another one"
        else:
            stored = self._at(other, writes=True)
            yield f"{what} as {found.value}, where the source keeps {found.expected}"
            yield f", stored{stored}" if stored else ""

    def _of_value(self, what: str) -> Iterator[str]:
        """A value that the source does not have there."""
        found = self._found
        if found.kind == "rounded":
            name = self._names.get(found.access.buffer, found.access.buffer)
            at = self._at(found.access, writes=True)
            yield f"{name} is stored{at} of values rounded to {found.value}, a type that the source does not have"
        elif found.kind == "unguarded":
            yield f"{what} as {found.value}, where the condition of that store does not hold in the source"
        elif found.total:
            added = "" if found.other is None else self._at(found.other, writes=True)
            yield f"{what} with {found.count} terms, where the source adds up {found.total}{added}"
        elif found.kind == "repeated":
            yield f"{what} as {found.value}, {found.count} times the source's {found.expected}"
        else:
            known = (
                f"where the source stores {found.expected}" if found.expected else "which the source never stores there"
            )
            yield f"{what} as {found.value}, {known}"

    def _guard(self) -> str:
        """`: its store stands in `if tx < 100` (TIR line 7)`; empty where no condition is known."""
        guard = self._found.guard
        tir = line_of(self._snapshot, LOWERED, guard)
        if not tir:
            return ""
        text = render(self._snapshot.checkpoints[LOWERED]).lines[tir - 1].strip().rstrip(":")
        return f": its store stands in `{text}` (TIR line {tir})"

    def _element(self, access: OriginAccess) -> str:
        name = self._names.get(access.buffer, access.buffer)
        if access.index:
            return indexed(name, access.index)
        if access.octet is None:
            return name
        if access.octet < 0:
            return f"{name} (at an address {-access.octet:,} bytes before it)"
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
            return f": both lie at bytes {first:,} to {last:,} of the shared memory since {MERGE}"
        spans = f"bytes {first:,} to {last:,} and {start:,} to {end:,}"
        return f": they lie at {spans} of the shared memory since {MERGE}"

    def _missing(self, buffer: str) -> str:
        """Return what the order of accesses to a buffer lacks."""
        race = next((race for race in self._races if buffer in (race.buffer, race.parameter)), None)
        return "" if race is None else f": between the two {race.missing} is missing"
