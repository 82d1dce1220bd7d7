"""Define what a kernel is called with: sizes, tensors and numbers; the case's own, else drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tlcheck import reasons
from tlcheck.execute.compile.pointers import workspaces
from tlcheck.execute.memory.pages import Contents, Pages
from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.memory.state import Tensor
from tlcheck.execute.memory.values import Array, Kind, kind_of
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds import given, inputs
from tlcheck.execute.worlds.inputs import Course, Draw
from tlcheck.execute.worlds.integer_limits import limits, ranks
from tlcheck.execute.worlds.offsets import lengths, offsets
from tlcheck.execute.worlds.scale_words import scale_words
from tlcheck.program.observed import counters
from tlcheck.program.roles import roles
from tlcheck.snapshot.ir import Buffer, Function, While
from tlcheck.snapshot.walk import statements

_DRAWS = (Draw(8), *(Draw(below, gaps=False) for below in (8, 4, 2, 1)), Draw(8, gaps=False, sparse=True))
_ORDERED = 8  # times as many numbers as elements of which one is below another
_NARROW = ("int8", "int4")  # all of their numbers are drawn in any case
_UNIT = Draw(8, gaps=False, unit=True)  # tried last, of a kernel that reads floats


class Arguments:
    """The arguments of a kernel's call. sizes: of symbolic shapes, and integer parameters.

    draws: the ways to draw what is not given, until the source stays in bounds.
    """

    def __init__(
        self,
        function: Function,
        own: Mapping[int, Mapping[str, Array]],
        poisoned: frozenset[str],
        course: Course,
        drawn: Mapping[int, frozenset[str]] | None = None,
    ) -> None:
        """function: the source. own, poisoned, drawn: as `Request.given`, `poisoned` and `drawn`.

        Raises Stopped where no sizes fit.
        """
        self._function, self._own, self._drawn = function, own, drawn or {}
        self._first: Mapping[str, Array] = next(iter(own.values()), {})
        known = inputs.known(self._function, self._first) | dict(course.named)
        sizes = inputs.sizes(self._function, known, course)
        if sizes is None:
            raise Stopped("no sizes found that keep what the kernel assumes", reasons.SIZES)
        self.sizes = sizes
        chosen = () if course.draw is None else (course.draw,)
        floats = any(kind_of(b.dtype).is_float for b in self._function.buffers)
        draws = self._limited((*_DRAWS, _UNIT) if floats else _DRAWS)
        is_drawn = not own or any(self._drawn.values())
        self.draws: Sequence[Draw] = (*chosen, *draws) if is_drawn else _DRAWS[:1]
        unread = {str(b.data.value) for b in roles(self._function).unread}
        self._poisoned = poisoned if own else poisoned | unread
        self._offsets, self._lengths = offsets(self._function), lengths(self._function)
        self._scales = scale_words(self._function)
        self._ranks = ranks(self._function)

    def _limited(self, draws: Sequence[Draw]) -> Sequence[Draw]:
        """The draws within the limits of each tensor; first two of them with places from everywhere, -1 where the
        kernel asks for it, and negative numbers where they lead nowhere; then two without these numbers.
        """
        found = limits(self._function, self.sizes)
        ranges = tuple([(name, max(1, known.below)) for name, known in found.items() if known.below is not None])
        least = tuple([(name, known.least) for name, known in found.items() if known.least])
        usual = [replace(draw, ranges=ranges, least=least) for draw in draws]
        signed = {str(b.data.value): b.dtype for b in self._function.buffers if b.dtype.startswith("int")}
        places = tuple([name for name, known in found.items() if known.below is not None and not known.counts])
        none = tuple([name for name, known in found.items() if known.none and name in signed])
        chained = tuple([name for name, known in found.items() if known.chained and name in signed])
        first = [replace(draw, places=places, none=none, chained=chained) for draw in usual[:2]]
        outputs = {str(b.data.value) for b in roles(self._function).outputs}
        known = {*found, *outputs, *offsets(self._function), *lengths(self._function)}
        numbers = tuple([name for name, dtype in signed.items() if name not in known and dtype not in _NARROW])
        endless = any(isinstance(stmt, While) for stmt in statements(self._function.body))
        below = [replace(draw, signed=numbers) for draw in first if numbers and not endless]
        ordered = [replace(draw, ordered=True) for draw in usual[:1] if ranks(self._function)]
        return (*ordered, *below, *(first if places or none or chained else ()), *usual)

    def tensors(self, draw: Draw, drawn: Mapping[tuple[str, int], Pages] | None = None) -> dict[str, Tensor]:
        """Every global tensor, by the name of its pointer. drawn: what an earlier run drew, by name and limit."""
        own = {str(b.data.value): self._nothing(b) for b in workspaces(self._function)}
        return own | {str(b.data.value): self._tensor(b, draw, drawn or {}) for b in self._function.buffers}

    def numbers(self, seed: int) -> dict[str, int | float]:
        """The sizes, and every parameter that is a number."""
        values = inputs.scalars(self._function, self.sizes, seed)
        return values | {name: array.item() for name, array in self._first.items() if name in values}

    def _nothing(self, buffer: Buffer) -> Tensor:
        return Tensor(kind_of(buffer.dtype), inputs.span(buffer, self.sizes), lambda seed, numbers: None)

    def _tensor(self, buffer: Buffer, draw: Draw, drawn: Mapping[tuple[str, int], Pages]) -> Tensor:
        name, kind = str(buffer.data.value), kind_of(buffer.dtype)
        size = inputs.span(buffer, self.sizes)
        if name in self._poisoned:
            return self._nothing(buffer)
        before = drawn.get((name, draw.limit(name)))
        if draw.residues:
            return Tensor(kind, size, self._residues(name, kind, draw), before)
        sets = {
            seed: arrays
            for seed, arrays in self._own.items()
            if name in arrays and name not in self._drawn.get(seed, ())
        }
        if sets and kind.bits < 8:
            raise Stopped(f"a case's own inputs of {kind.name}, of which a byte has several", reasons.INPUTS)
        made = {seed: given.arranged(arrays[name], buffer, self.sizes) for seed, arrays in sets.items()}
        if made and len(made) == len(self._own):
            return Tensor(kind, size, inputs.given(made, kind), before)
        contents = self._contents(name, kind, size, draw)
        return Tensor(kind, size, inputs.given(made, kind, contents) if made else contents, before)

    def _residues(self, name: str, kind: Kind, draw: Draw) -> Contents:
        """Floats as elements of a field; integers are not read."""
        if kind.is_float:
            return inputs.contents(name, kind, draw)
        return lambda seed, numbers: np.zeros(numbers.shape, kind.array)

    def _contents(self, name: str, kind: Kind, size: int, draw: Draw) -> Contents:
        """Return what is drawn for a tensor of so many elements."""
        if name in counters(self._function):
            return lambda seed, numbers: np.zeros(numbers.shape, kind.array)
        if draw.ordered and name in self._ranks:
            rank, falls = self._ranks[name]
            count = 1 + max(rank for rank, _ in self._ranks.values())
            below = min(dict(draw.ranges).get(each, _ORDERED * size) for each in self._ranks)
            return inputs.ordered(name, kind, size, below, (rank, count, falls))
        if name in self._offsets:
            extent = self._offsets[name]
            last = draw.limit(name) * size if extent is None else int(evaluated(extent, self.sizes))
            return inputs.rising(name, kind, size, last, draw.gaps)
        if name in self._scales:
            return inputs.scales(name, self._scales[name])
        return inputs.contents(name, kind, draw, self._lengths.get(name, frozenset()))
