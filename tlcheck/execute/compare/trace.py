"""One element traced in source and lowered, and where the two part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from tlcheck.errors import UsageError
from tlcheck.execute.compare.equal_steps import equal, loops_of, unlike
from tlcheck.execute.compare.provenance import Provenance, TracedStep, in_words
from tlcheck.execute.compare.sum_terms import is_addition
from tlcheck.execute.observe.tracer import Tracing, UnknownTensor
from tlcheck.execute.request import SOURCE, Request
from tlcheck.execute.stops import Stopped
from tlcheck.execute.worlds.blocks import Block
from tlcheck.execute.worlds.courses import course_of, levels_of
from tlcheck.execute.worlds.levels import BothLevels, Invocations
from tlcheck.reasons import UNWRITTEN
from tlcheck.snapshot.ir import Snapshot, Store
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.witness import indexed

_BLOCKS = 1024  # that are searched for the one that writes an element
_TOGETHER = 8  # so many at a time
_SHARING = 64  # that are asked whether they add to it, too


@dataclass(frozen=True)
class Traced:
    """An element of an output, with the inputs of one seed, by the block that writes it.

    inputs: see `Request`. early: asynchronous copies land as early as they may. first: of the steps as lowered the one
    at which they part; None where both have one value, and where the trees end before they show it. counterpart: the
    step in the source that `first` ought to be, where another write came last. sharing: blocks that add to the element,
    of those that were looked at; `sums`: what they leave together, in the source and as lowered.
    """

    name: str
    index: tuple[int, ...]
    block: Block
    seed: int
    inputs: str
    source: TracedStep
    lowered: TracedStep
    early: bool
    first: TracedStep | None
    counterpart: TracedStep | None = None
    sharing: tuple[Block, ...] = ()
    sums: tuple[str, str] = ("", "")

    @property
    def agree(self) -> bool:
        """Whether both levels have one value, and blocks together too."""
        return equal(self.source.value, self.lowered.value) and equal(*self.sums)


def place_of(snapshot: Snapshot, request: Request, name: str, index: tuple[int, ...]) -> int:
    """The place of an element in its tensor's memory, where a layout may spread it. Raises UsageError for none."""
    made = levels_of(snapshot, request).invocations()
    shape = made.shapes.get(name)
    if shape is None:
        raise UsageError(f"--element: the kernel has no tensor {name}; it has {', '.join(made.shapes)}")
    if len(index) != len(shape) or any(not 0 <= i < size for i, size in zip(index, shape, strict=True)):
        raise UsageError(f"--element: {name} has the shape {list(shape)}")
    element = int(np.ravel_multi_index(index, shape))
    invocation = made.source()
    order = invocation.made(invocation.kernel, invocation.worlds).pages(name).order
    return element if order is None else int(order(np.array([element]))[0])


class _Prepared:
    """The invocations of one snapshot. Inputs that keep blocks in bounds are not sought again for the same blocks."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._latest: tuple[Request, BothLevels] | None = None  # more than one would fill the memory

    def invocations(self, request: Request, *, early: bool = False) -> Invocations:
        """See `BothLevels.invocations`."""
        key = replace(request, given=None)
        if self._latest is None or self._latest[0] != key:
            self._latest = key, levels_of(self._snapshot, request)
        return self._latest[1].invocations(early=early)


def _block_of(prepared: _Prepared, request: Request, name: str, element: int) -> Block | None:
    """The block that writes an element in the source: of the chosen ones, else of the first ones; None if none does."""
    for chosen in _candidates(prepared, request):
        if _writes(prepared, request, chosen, name, element):
            if len(chosen) == 1:
                return chosen[0]
            return next((b for b in chosen if _writes(prepared, request, (b,), name, element)), None)
    return None


def _candidates(prepared: _Prepared, request: Request) -> Iterator[tuple[Block, ...]]:
    made = prepared.invocations(request)
    yield made.chosen
    if isinstance(request.blocks, int):
        every = list(islice(made.every_block(), _BLOCKS))
        yield from (tuple(every[start : start + _TOGETHER]) for start in range(0, len(every), _TOGETHER))


def _writes(prepared: _Prepared, request: Request, chosen: tuple[Block, ...], name: str, element: int) -> bool:
    """Whether one of these blocks writes an element in the source."""
    invocation = prepared.invocations(replace(request, blocks=chosen)).source()
    tracing = Tracing(invocation.kernel, name, request.seeds[0], element)
    invocation.run(tracing)
    return tracing.found is not None


def trace(
    snapshot: Snapshot,
    request: Request,
    name: str,
    index: tuple[int, ...],
    element: int,
    depth: int,
    *,
    early: bool = False,
) -> Traced:
    """Trace an element, `depth` writes deep. element: its place in memory; index: what it is called.

    early: with asynchronous copies as early as they may be, as lowered. Raises Stopped where that cannot be done, and
    says why.
    """
    own = replace(request, seeds=request.seeds[:1])
    own = replace(own, course=course_of(snapshot, own))
    prepared = _Prepared(snapshot)
    block = _block_of(prepared, own, name, element)
    if block is None:
        lines = "".join(f"; line {line} writes to {name}" for line in _writing(snapshot, name))
        raise Stopped(
            f"as written, none of the blocks that were tried writes {name}{list(index)}: give --block{lines}", UNWRITTEN
        )
    made = prepared.invocations(replace(own, blocks=(block,)), early=early)
    called = indexed(name, index)
    source = replace(Provenance(made.source, made.shapes).of(name, element, depth), element=called)
    try:
        lowered = replace(Provenance(made.lowered, made.shapes).of(name, element, depth), element=called)
    except UnknownTensor:
        lowered = TracedStep(called, "nothing: as lowered the kernel has no such parameter")
    parts = parting(source, lowered)
    adds = source.origin is not None and is_addition(source.origin.stmt)  # then other blocks may, too
    sharing = _sharing(prepared, own, name, element) if adds else ()
    sums = _sums(prepared, replace(own, blocks=sharing), name, element, early) if len(sharing) > 1 else ("", "")
    return Traced(
        name, index, block, own.seeds[0], request.inputs, source, lowered, early, *parts, sharing=sharing, sums=sums
    )


def _writing(snapshot: Snapshot, name: str) -> list[int]:
    """The lines of the kernel's file that name a tensor, which is an output; none that TileLang does not tell."""
    found: dict[int, None] = {}
    for stmt in statements(snapshot.checkpoints[SOURCE].body):
        named = [stmt.buffer] if isinstance(stmt, Store) else []
        named += [e.buffer for e in postorder(expressions(stmt)) if e.buffer is not None]
        if stmt.line and any(buffer.data.value == name for buffer in named):
            found[stmt.line] = None
    return list(found)


def _sharing(prepared: _Prepared, request: Request, name: str, element: int) -> tuple[Block, ...]:
    """The blocks that write an element in the source, of the first ones, or of those that are asked for."""
    made = prepared.invocations(request)
    every = list(islice(made.every_block(), _SHARING)) if isinstance(request.blocks, int) else list(made.chosen)
    found: list[Block] = []
    for start in range(0, len(every), _TOGETHER):
        few = tuple(every[start : start + _TOGETHER])
        invocation = prepared.invocations(replace(request, blocks=few)).source()
        tracing = Tracing(invocation.kernel, name, request.seeds[0], element)
        invocation.run(tracing)
        found += [invocation.worlds[world].block for world in sorted(tracing.tracer.worlds)]
    return tuple(dict.fromkeys(found))


def _sums(prepared: _Prepared, request: Request, name: str, element: int, early: bool) -> tuple[str, str]:
    """Return what blocks leave together, in the source and as lowered."""
    made = prepared.invocations(request, early=early)
    found = []
    for invocation in (made.source(), made.lowered()):
        invocation.run()
        pages = invocation.left[name]
        found.append(in_words(pages.flat[pages.position_of(request.seeds[0], element)], invocation.machine))
    return found[0], found[1]


def parting(source: TracedStep, lowered: TracedStep) -> tuple[TracedStep | None, TracedStep | None]:
    """The first step as lowered that is not one of the source: poison, or another input, or another value from equal
    ones.

    None where the trees are cut, so that it may lie deeper. Where a step reads the value of an earlier write than as
    written, a write is missing: then it is that earlier one, and with it the last one in the source. A write of the
    right value that comes again in a later step of a loop is told in the same way.
    """
    first = _first(source, lowered)
    if first is None:
        return None, None
    pairs = list(_followed(source, lowered))
    for counterpart, step in pairs:
        earlier = [part for part in _deepest_first(counterpart) if part is not counterpart]
        if _is_among(step, earlier) and any(part is step for part in first.sources):
            return step, counterpart
    known = {name for step in _deepest_first(source) for name, _ in loops_of(step)}
    for counterpart, step in pairs:
        for part in step.sources:
            own = next((o for o in counterpart.sources if equal(o.value, part.value)), None)
            if own is not None and _again(part, own, known):
                return part, own
    # What is made of equal values may have one of them in another's place.
    deepest = next((step for _, step in reversed(pairs) if not step.input), first)
    inside = not deepest.cut and any(step is deepest for step in _deepest_first(first))
    return (deepest if inside else first), None


def _again(step: TracedStep, own: TracedStep, known: set[str]) -> bool:
    """Whether a write stands in a later step of one of the kernel's loops, and in the source in none of that loop."""
    outer = {name for name, _ in loops_of(own)}
    return own.origin is not None and any(
        name in known and name not in outer and value for name, value in loops_of(step)
    )


def _is_among(step: TracedStep, others: Iterable[TracedStep]) -> bool:
    """Whether one of the others has its value."""
    return any(equal(step.value, other.value) for other in others)


def _first(source: TracedStep, lowered: TracedStep) -> TracedStep | None:
    if equal(source.value, lowered.value):
        return None
    steps, intended = list(_deepest_first(lowered)), list(_deepest_first(source))
    poisoned = next((step for step in steps if step.is_poison), None)
    if poisoned is not None:
        return None if poisoned.cut else poisoned
    if any(step.cut for step in intended):
        return None
    inputs = {step.element for step in intended if step.input}
    others = [step for step in steps if step.input and step.element not in inputs]
    made = [
        step
        for step in steps
        if not _is_among(step, intended) and all(_is_among(part, intended) for part in step.sources)
    ]
    first = next(iter([*others, *made]), None) or [*_followed(source, lowered)][-1][1]
    return None if first.cut else first


def _followed(source: TracedStep, lowered: TracedStep) -> Iterator[tuple[TracedStep, TracedStep]]:
    """Pairs of steps, down from one that differs to its one source that does, as far as there is one at each level."""
    yield source, lowered
    ours, theirs = unlike(lowered, source), unlike(source, lowered)
    if len(ours) == len(theirs) == 1:
        yield from _followed(theirs[0], ours[0])


def _deepest_first(step: TracedStep) -> Iterator[TracedStep]:
    for source in step.sources:
        yield from _deepest_first(source)
    yield step
