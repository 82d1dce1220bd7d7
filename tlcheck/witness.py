"""Witnesses: what a person can check by hand to see that something is refuted, with the words for each kind.

A witness has no name of the buffer that it is about: the claim has, and gives it to `words`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

_BLOCK = "blockIdx."


class Addition(msgspec.Struct, frozen=True, tag_field="kind", tag="addition"):
    """One wrong addition of an atomic.

    instance: block indices, sizes and outer loops, by name; iteration: inner loops. thread, lane: of the instruction;
    None where none wrote. element: logical index of the destination that was intended. intended, written: offsets in
    the destination's memory, in elements; None where there is none. stride: from one lane's intended element to the
    next, for vector instructions.
    """

    instance: Mapping[str, int]
    iteration: Mapping[str, int]
    thread: int | None
    lane: int | None
    element: tuple[int, ...] | None
    intended: int | None
    written: int | None
    stride: int | None = None

    def words(self, buffer: str) -> str:
        """`block (0, 0, 0), k = 0, thread 0, lane 1: element dQ[0, 1] belongs at offset 32, is added at offset 1`."""
        place = ", ".join(self._place())
        return f"{place}: {self._said(buffer)}" if place else self._said(buffer)

    def _place(self) -> Iterator[str]:
        loops = {**self.instance, **self.iteration}
        blocks = sorted((name, value) for name, value in loops.items() if name.startswith(_BLOCK))
        if blocks:
            yield f"block ({', '.join(str(value) for _, value in blocks)})"
        for name, value in loops.items():
            if not name.startswith(_BLOCK):
                yield f"{name} = {value}"
        if self.thread is not None:
            yield f"thread {self.thread}"
        if self.lane is not None:
            yield f"lane {self.lane}"

    def _said(self, buffer: str) -> str:
        if self.intended is None or self.element is None:
            return f"something is added at offset {self.written} of {buffer} that the source does not add"
        element = f"element {indexed(buffer, self.element)}"
        if self.written is None or self.written == self.intended:
            return f"{element}, offset {self.intended}"
        return f"{element} belongs at offset {self.intended}, is added at offset {self.written}"


class Act(msgspec.Struct, frozen=True):
    """One access to memory, as an execution made it.

    what: `write`, `read`, `copy` and the like. thread: None where no thread makes it, but a copy engine. iteration: of
    the loops around it, by name. line: of the TIR at the checkpoint `at`; source: of the user's file; 0 where unknown.
    """

    what: str
    block: tuple[int, ...]
    thread: int | None = None
    iteration: Mapping[str, int] = {}
    line: int = 0
    source: int = 0
    at: str = ""

    @property
    def words(self) -> str:
        """`the write of block (0, 0), thread 5, k = 2 (TIR line 40 at device-tir)`."""
        return f"the {self.what} of {self.place}{self.tir}" if self.place else f"the {self.what}{self.tir}"

    @property
    def tir(self) -> str:
        """` (TIR line 40 at device-tir)`, ` (line 15)` of the source; empty where the line is not known."""
        if self.at == "source" and self.source:
            return f" (line {self.source})"
        return f" (TIR line {self.line} at {self.at})" if self.line else ""

    @property
    def near(self) -> str:
        """` (line 15)` of the source where it is known; else as `tir`."""
        return f" (line {self.source})" if self.source else self.tir

    @property
    def place(self) -> str:
        """`block (0, 0), thread 5, k = 2`."""
        place = [f"block ({', '.join(map(str, self.block))})"] if self.block else []
        place += [f"thread {self.thread}"] if self.thread is not None else []
        place += [f"{name} = {value}" for name, value in self.iteration.items()]
        return ", ".join(place)


class Term(msgspec.Struct, frozen=True):
    """A value that one block adds to an element another number of times than in the source.

    intended, made: how often the source adds it, and the lowered kernel. acts: the first of these additions; those of
    the source where the lowered kernel makes none.
    """

    value: str
    intended: int
    made: int
    acts: tuple[Act, ...]

    @property
    def words(self) -> str:
        """`added twice instead of once: 0.25 by block (0), thread 5 (line 40), and again by thread 133 (line 41)`."""
        if not self.made:
            return f"missing{_often(self.intended)}: {self.value} by {self._by}"
        if not self.intended:
            return f"added{_often(self.made)}, and not in the source: {self.value} by {self._by}"
        return f"added {_times(self.made)} instead of {_times(self.intended)}: {self.value} by {self._by}"

    @property
    def _by(self) -> str:
        first, *others = self.acts
        words = [f"{first.place}{first.near}"]
        words += [f"{msgspec.structs.replace(act, block=()).place or 'it'}{act.near}" for act in others]
        more = max(self.made or self.intended, len(words)) - len(words)
        return ", and again by ".join(words) + (f", and {more} more" if more else "")


class Element(msgspec.Struct, frozen=True, tag_field="kind", tag="element"):
    """One element of an output that is not what was written.

    got, expected: as Python writes the number (`nan` is none in JSON), or `poison` for what was never written. inputs:
    which, in words. writer: who wrote it last, None if nobody did or if that is not known. written, lowered: the first
    steps of its trace at each level: a write, and below it what that read; none where it cannot be traced. terms: where
    it is a sum, what is added too often or not at all; others: how many more such values there are.
    """

    index: tuple[int, ...]
    got: str
    expected: str
    inputs: str
    writer: Act | None = None
    written: tuple[str, ...] = ()
    lowered: tuple[str, ...] = ()
    terms: tuple[Term, ...] = ()
    others: int = 0

    @property
    def sum(self) -> Iterator[str]:
        """A sentence for each term that makes a sum wrong."""
        yield from (term.words for term in self.terms)
        if self.others:
            yield f"and {self.others} more value{'s' if self.others > 1 else ''}"

    @property
    def steps(self) -> list[str]:
        """The trace, both levels below one another."""
        levels = (("as written", self.written), ("as lowered, at device-tir", self.lowered))
        return [line for title, lines in levels if lines for line in (title, *(f"  {line}" for line in lines))]

    def words(self, buffer: str) -> str:
        """`dQ[0, 1] is 0.5, expected 2.0 (random, seed 0); last is the write of block (0, 0), thread 5`."""
        nobody = "; nothing wrote it" if self.lowered else ""  # else that is not known
        writer = f"; last is {self.writer.words}" if self.writer is not None else nobody
        writer = f"; {'; '.join(self.sum)}" if self.terms else writer
        inputs = f" ({self.inputs})" if self.inputs else ""
        return f"{indexed(buffer, self.index)} is {self.got}, expected {self.expected}{inputs}{writer}"


class Accesses(msgspec.Struct, frozen=True, tag_field="kind", tag="accesses"):
    """Two accesses to one element that nothing orders; or one that is not allowed: then `second` is None."""

    index: tuple[int, ...]
    first: Act
    second: Act | None = None

    def words(self, buffer: str) -> str:
        """`S[0, 1]: nothing orders the write of thread 5 and the read of thread 40`."""
        if self.second is None:
            place = f", in {self.first.place}" if self.first.place else ""
            return f"{self.first.what}{place}{self.first.tir}"
        return f"{indexed(buffer, self.index)}: nothing orders {self.first.words} and {self.second.words}"


Witness = Addition | Element | Accesses


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _often(number: int) -> str:
    return "" if number == 1 else f" {_times(number)}"


def shaped(buffer: str, extent: Sequence[int]) -> str:
    """Return `x has the shape [12]`."""
    return f"{buffer} has the shape [{', '.join(map(str, extent))}]"


def indexed(buffer: str, index: Sequence[int]) -> str:
    """`dQ[0, 1]`."""
    return f"{buffer}[{', '.join(map(str, index))}]"
