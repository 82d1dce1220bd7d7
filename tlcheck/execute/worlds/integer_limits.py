"""Find what the integers of a tensor may be, as a kernel uses them.

Places and pages are in range, and lengths lead loops no further than their axes. T.assume promises more. -1 stands for
none where the kernel asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod

from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.stops import NotModelled
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.ir import Attr, Bind, Buffer, Evaluate, Expr, For, Function, If, Store, While
from tlcheck.snapshot.operators import MIRRORED, ORDER
from tlcheck.snapshot.walk import expressions, postorder, statements

_LARGEST = 2**30
_ELEMENT = Expr("var", "int64", (), "the element", -1)
_ZERO = Expr("int", "int32", (), 0)
_NONE = {("ge", 0), ("gt", -1), ("lt", 0), ("le", -1), ("eq", -1), ("ne", -1)}  # comparisons that ask for a -1


@dataclass(frozen=True, slots=True)
class ElementLimits:
    """The limits of one tensor's elements. least: the smallest; below: the largest is below it, None if nothing says.

    counts: an element says how many steps a loop has. none: the kernel asks whether an element is -1. chained: an
    element is the place of another element of the same tensor.
    """

    least: int = 0
    below: int | None = None
    counts: bool = False
    none: bool = False
    chained: bool = False

    def under(self, below: int) -> ElementLimits:
        """The limits, with elements below a number."""
        return replace(self, below=below if self.below is None else min(self.below, below))


@dataclass(eq=False)
class _Uses:
    """A record of what a function does. accesses: buffers with their indices; loops: variables with their extents;
    tests: conditions; promises: what T.assume says. held: all that is stored in a variable, by its pointer.
    """

    accesses: list[tuple[Buffer, Sequence[Expr]]] = field(default_factory=list)
    loops: dict[int, Expr] = field(default_factory=dict)
    tests: list[Expr] = field(default_factory=list)
    promises: list[Expr] = field(default_factory=list)
    held: dict[int, list[Expr]] = field(default_factory=dict)


def limits(function: Function, sizes: Mapping[str, int]) -> Mapping[str, ElementLimits]:
    """The limits of each tensor of integers whose elements decide where a kernel accesses or how often a loop runs."""
    tensors = {b.data.uid: str(b.data.value) for b in function.buffers if "int" in b.dtype}
    if not tensors:
        return {}
    uses, found = _uses(function), dict[str, ElementLimits]()

    def note(uid: int, change: Callable[[ElementLimits], ElementLimits]) -> None:
        name = tensors[uid]
        found[name] = change(found.get(name, ElementLimits()))

    for uid, below, counts in _bounds(uses, tensors, sizes):
        note(uid, lambda known: replace(known.under(below), counts=known.counts or counts))  # noqa: B023
    for uid, op, number in _promised(uses, tensors, sizes):
        note(uid, lambda known: _kept(known, op, number))  # noqa: B023
    for uid in _asked(uses, tensors):
        note(uid, lambda known: replace(known, none=known.least <= 0))
    for uid in _chains(uses, tensors):
        note(uid, lambda known: replace(known, chained=True))
    return found


@lru_cache(maxsize=16)
def _uses(function: Function) -> _Uses:
    """Everything in full: variables that are bound or stored once are what they stand for."""
    uses, bound, once = _Uses(), dict[int, Expr](), dict[int, Expr]()
    stores: dict[int, int] = {}
    for stmt in statements(function.body):
        if isinstance(stmt, Store) and _is_variable(stmt.buffer):
            stores[stmt.buffer.data.uid] = stores.get(stmt.buffer.data.uid, 0) + 1
    for stmt in statements(function.body):
        roots = _in_full(list(expressions(stmt)), bound, once)
        uses.accesses += [(e.buffer, e.args) for e in postorder(roots) if e.op == "load" and e.buffer is not None]
        uses.tests += [e.args[0] for e in postorder(roots) if e.op == "select" or name_of_call(e) == "if_then_else"]
        if isinstance(stmt, Bind):
            bound[stmt.var.uid] = roots[-1]
        elif isinstance(stmt, For):
            uses.loops[stmt.var.uid] = _in_full([stmt.extent], bound, once)[0]
        elif isinstance(stmt, (If, While)):
            uses.tests += _in_full([stmt.condition], bound, once)
        elif isinstance(stmt, Store):
            (value,) = _in_full([stmt.value], bound, once)
            uses.accesses.append((stmt.buffer, _in_full(list(stmt.indices), bound, once)))
            if _is_variable(stmt.buffer):
                uses.held.setdefault(stmt.buffer.data.uid, []).append(value)
                if stores[stmt.buffer.data.uid] == 1:
                    once[stmt.buffer.data.uid] = value
        elif isinstance(stmt, Attr) and stmt.key == "tl.assume" and stmt.value is not None:
            uses.promises += _in_full([stmt.value], bound, once)
        elif isinstance(stmt, Evaluate) and name_of_call(stmt.value) == "assume":
            uses.promises.append(roots[0].args[0])
    return uses


def _is_variable(buffer: Buffer) -> bool:
    """Whether it is a number of a thread's own."""
    with suppress(NotModelled):
        return buffer.scope.startswith("local") and prod(int(evaluated(e, {})) for e in buffer.shape) == 1
    return False


def _in_full(roots: Sequence[Expr], bound: Mapping[int, Expr], once: Mapping[int, Expr]) -> list[Expr]:
    new: dict[Expr, Expr] = {}
    for e in postorder(roots):
        args = tuple([new[a] for a in e.args])
        if e.op == "var":
            new[e] = bound.get(e.uid, e)
        elif e.op == "load" and e.buffer is not None and e.buffer.data.uid in once:
            new[e] = once[e.buffer.data.uid]
        else:
            new[e] = e if all(a is b for a, b in zip(args, e.args, strict=True)) else replace(e, args=args)
    return [new[root] for root in roots]


def _bounds(uses: _Uses, tensors: Mapping[int, str], sizes: Mapping[str, int]) -> Iterator[tuple[int, int, bool]]:
    """Tensors with what their elements are below, and whether they are lengths: as each index asks for."""
    for buffer, places in uses.accesses:
        for extent, place in zip(buffer.shape, places, strict=False):
            with suppress(NotModelled):
                size = int(evaluated(extent, sizes))
                for index in _alternatives(place, uses):
                    yield from _of_index(index, size, uses, tensors, sizes)


def _of_index(
    index: Expr, size: int, uses: _Uses, tensors: Mapping[int, str], sizes: Mapping[str, int]
) -> Iterator[tuple[int, int, bool]]:
    for uid in _outer(index, tensors):
        if (most := _largest(_function(index, sizes, _is_of(uid)), size)) is not None:
            yield uid, most + 1, False
    for variable in [e for e in postorder([index]) if e.op == "var" and e.uid in uses.loops]:
        steps = uses.loops[variable.uid]
        for uid in _outer(steps, tensors):
            count = _function(steps, sizes, _is_of(uid))
            place = _function(index, sizes, lambda e: e.op == "var" and e.uid == variable.uid)  # noqa: B023
            if (most := _largest(lambda n: place(max(count(n) - 1, 0)), size)) is not None:  # noqa: B023
                in_tiles = place(1) - place(0) > 1  # of which the last one may begin within the axis and end beyond
                yield uid, min(most, size if in_tiles else most) + 1, True


def _outer(root: Expr, tensors: Mapping[int, str]) -> set[int]:
    """Find the tensors whose elements take part in an expression, and do not only say which element is read."""
    left, seen, found = [root], {root}, set[int]()
    while left:
        e = left.pop()
        if (uid := _tensor(e, tensors)) is not None:
            found.add(uid)
        elif e.op != "load":
            new = [a for a in e.args if a not in seen]  # one expression may stand in many others
            seen.update(new)
            left += new
    return found


def _tensor(e: Expr, tensors: Mapping[int, str]) -> int | None:
    """Return the tensor of which an expression is an element; None if it is none."""
    return e.buffer.data.uid if e.op == "load" and e.buffer is not None and e.buffer.data.uid in tensors else None


def _alternatives(e: Expr, uses: _Uses) -> Sequence[Expr]:
    """The expression, or all that its variable may hold."""
    e = _uncast(e)
    return uses.held.get(e.buffer.data.uid, [e]) if e.op == "load" and e.buffer is not None else [e]


def _uncast(e: Expr) -> Expr:
    while e.op == "cast":
        e = e.args[0]
    return e


class _Values(Mapping[str, int]):
    """Numbers by name: a size, the element that is asked about, and 0 for all others."""

    def __init__(self, sizes: Mapping[str, int], element: int) -> None:
        self._sizes, self._element = sizes, element

    def __getitem__(self, name: str) -> int:
        return self._element if name == _ELEMENT.value else self._sizes.get(name, 0)

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(self._sizes)

    def __len__(self) -> int:
        return len(self._sizes)


def _function(e: Expr, sizes: Mapping[str, int], is_asked: Callable[[Expr], bool]) -> Callable[[int], int]:
    """An expression as a function of some of its parts; other elements of tensors are 0.

    Raises NotModelled when it is called.
    """
    new: dict[Expr, Expr] = {}
    for x in postorder([e]):
        if is_asked(x):
            new[x] = _ELEMENT
        elif x.op == "load":
            new[x] = _ZERO
        else:
            new[x] = replace(x, args=tuple([new[a] for a in x.args]))
    whole = new[e]
    return lambda element: int(evaluated(whole, _Values(sizes, element)))


def _is_of(uid: int) -> Callable[[Expr], bool]:
    return lambda e: e.op == "load" and e.buffer is not None and e.buffer.data.uid == uid


def _largest(index: Callable[[int], int], size: int) -> int | None:
    """The largest number for which a rising index is below a size; None if there is none, or no such limit."""
    if not 0 <= index(0) < size:
        return None
    low, high = 0, 1
    while 0 <= index(high) < size:
        if high > _LARGEST:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if 0 <= index(middle) < size else (low, middle)
    return low


def _comparisons(roots: Sequence[Expr]) -> Iterator[tuple[str, Expr, Expr]]:
    """The comparisons that a condition is made of, each also the other way round."""
    for e in postorder(roots):
        if e.op in MIRRORED:
            yield e.op, _uncast(e.args[0]), e.args[1]
            yield MIRRORED[e.op], _uncast(e.args[1]), e.args[0]


def _promised(uses: _Uses, tensors: Mapping[int, str], sizes: Mapping[str, int]) -> Iterator[tuple[int, str, int]]:
    """Tensors whose elements T.assume compares with a number that is known."""
    for part in _parts(uses.promises):
        for op, element, number in _comparisons([part]) if part.op in MIRRORED else ():
            if (uid := _tensor(element, tensors)) is not None:
                with suppress(NotModelled):
                    yield uid, op, int(evaluated(number, sizes))


@lru_cache(maxsize=16)
def ranks(function: Function) -> Mapping[str, tuple[int, bool]]:
    """The tensors of which T.assume says that one element is below another one, of the same or another tensor.

    Each with how many are below its own, and whether its elements fall.
    """
    tensors = {b.data.uid: str(b.data.value) for b in function.buffers if "int" in b.dtype}
    found, below = dict[str, tuple[int, bool]](), list[tuple[str, str]]()
    for part in _parts(_uses(function).promises):
        sides = [_uncast(e) for e in part.args] if part.op in ORDER else []
        if len(sides) == 2 and all(_tensor(e, tensors) is not None for e in sides):
            smaller, larger, _ = ORDER[part.op]
            less, more = sides[smaller], sides[larger]
            names = [tensors[e.buffer.data.uid] for e in (less, more) if e.buffer is not None]
            places = [_place(e.args) for e in (less, more)]
            found |= {name: (0, places[0] > places[1] or found.get(name, (0, False))[1]) for name in names}
            below += [(names[0], names[1])] if places[0] == places[1] else []
    for _ in below:
        for less_name, more_name in below:
            found[more_name] = max(found[more_name][0], found[less_name][0] + 1), found[more_name][1]
    return found


def _place(indices: Sequence[Expr]) -> list[int]:
    """The indices of an element where each variable is the same number."""
    values = {str(e.value): 5 for e in postorder(indices) if e.op == "var"}
    with suppress(NotModelled):
        return [int(evaluated(e, values)) for e in indices]
    return []


def _parts(promises: Sequence[Expr]) -> list[Expr]:
    """Return what is promised, one thing after the other."""
    parts = list(promises)
    while any(e.op == "and" for e in parts):
        parts = [part for e in parts for part in (e.args if e.op == "and" else (e,))]
    return parts


def _kept(known: ElementLimits, op: str, number: int) -> ElementLimits:
    """The limits that keep a promise as well."""
    if op in ("gt", "ge", "eq"):
        known = replace(known, least=max(known.least, number + (op == "gt")))
    return known.under(number + (op != "lt")) if op in ("lt", "le", "eq") else known


def _asked(uses: _Uses, tensors: Mapping[int, str]) -> Iterator[int]:
    """Tensors of which the kernel asks whether an element is -1, or negative."""
    for op, element, number in _comparisons(uses.tests):
        if (op, number.value) in _NONE and number.op == "int":
            found = [_tensor(_uncast(e), tensors) for e in _alternatives(element, uses)]
            yield from (uid for uid in found if uid is not None)


def _chains(uses: _Uses, tensors: Mapping[int, str]) -> Iterator[int]:
    """Tensors that tell a variable where in them it reads next."""
    for uid, values in uses.held.items():
        for value in map(_uncast, values):
            tensor = _tensor(value, tensors)
            if tensor is not None and any(map(_is_of(uid), postorder(value.args))):
                yield tensor
