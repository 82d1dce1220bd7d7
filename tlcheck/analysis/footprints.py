"""Footprints: what one atomic adds and where, over its threads, lanes and loops, as polynomials of one algebra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from tlcheck.analysis.algebra import Algebra, Content, Poly, add, as_constant, constant
from tlcheck.analysis.atomics import Pointer, Site
from tlcheck.analysis.evaluate import Dimension
from tlcheck.analysis.layouts import flatten, fragment_table, physical, physical_shape, row_major, stages
from tlcheck.analysis.tables import FragmentTable
from tlcheck.analysis.tma import LANE
from tlcheck.analysis.values import Load, Reader, UnreadableError, at_lane
from tlcheck.analysis.walk import Axis, Program
from tlcheck.snapshot.ir import Buffer, Expr, Layout

TAGS = {f"{kind}Idx.{dim}": -1 - 3 * k - i for k, kind in enumerate(("block", "thread")) for i, dim in enumerate("xyz")}
THREADS = frozenset(uid for tag, uid in TAGS.items() if tag.startswith("thread"))


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """An element that a lane's value reads: `element` of `root`; through `table` for the register `element` of
    `thread`.
    """

    root: str
    scope: str
    element: Poly
    thread: Poly = field(default_factory=dict)
    table: FragmentTable | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """One atomic's additions.

    space: what is enumerated, outermost first; LANE is the lane of a vector instruction.
    outer: loops that are not enumerated: uid -> (start, extent).
    target: offset in the root, in elements, with the destination's layout; `indices` without. inside: polynomials
    that are >= 0 in bounds.
    conditions: polynomials that are >= 0 where it runs. flags: polynomials that are not 0 where it runs.
    anchored: compared up to a constant offset, see `anchoring`.
    needed: flags that have to hold wherever it runs, for the value to be the one that is read here.
    """

    site: Site
    space: tuple[Dimension, ...]
    outer: Mapping[int, tuple[Poly, Poly]]
    target: Poly
    inside: tuple[Poly, ...]
    conditions: tuple[Poly, ...]
    flags: tuple[Poly, ...]
    needed: tuple[Poly, ...]
    form: str
    leaves: tuple[Leaf, ...]
    indices: tuple[Poly, ...]
    anchored: bool = False


class Memory:
    """The layouts of a kernel's buffers: roots as the kernel declares them, and where their elements lie."""

    def __init__(self, declared: Mapping[str, Buffer], layouts: Mapping[str, Layout]) -> None:
        self.declared = declared
        self.layouts = layouts
        self._tables: dict[int, FragmentTable | None] = {}

    def table(self, root: str) -> FragmentTable | None:
        """The fragment of a root read backwards; None if it has none that can be."""
        layout = self.layouts.get(root)
        if layout is None or layout.thread is None:
            return None
        if id(layout) not in self._tables:
            self._tables[id(layout)] = fragment_table(layout)
        return self._tables[id(layout)]


class Builder:
    """Makes footprints of one function's sites in one algebra.

    logical: indices are those of the kernel as written; its layouts are still to be applied.
    outer: uids of loops (and tags' uids of blocks) that stay symbolic. aliases: loop variable -> the uid of its
    counterpart.
    """

    def __init__(
        self,
        algebra: Algebra,
        program: Program,
        memory: Memory,
        reader: Reader,
        logical: bool,
        outer: frozenset[int],
        aliases: Mapping[int, int],
    ) -> None:
        self.algebra = algebra
        self.program = program
        self.memory = memory
        self.reader = reader
        self.logical = logical
        self.outer = outer
        self.aliases = aliases
        self.fixed = dict(algebra.values)

    def build(self, site: Site, unguarded: bool = False) -> Footprint:
        """The footprint of a site. Raises UnreadableError."""
        if site.scope.opaque:
            raise UnreadableError(site.scope.opaque)
        frame = _Frame(self, site)
        frame.enter()
        target, inside = frame.address(site)
        value = self.reader.read(frame.value(), frame.lane, site.placed, site.scope, unguarded)
        leaves = tuple(frame.leaf(load) for load in value.leaves)
        needed = tuple(self.algebra.poly(c) for c in value.conditions)
        return Footprint(
            site,
            tuple(frame.space),
            frame.loops,
            target,
            tuple(inside),
            tuple(frame.conditions),
            tuple(frame.flags),
            needed,
            value.form,
            leaves,
            tuple(frame.indices),
        )


class _Frame:
    """The variables around one site, and its tile's own."""

    def __init__(self, builder: Builder, site: Site) -> None:
        self.b = builder
        self.algebra = builder.algebra
        self.site = site
        self.space: list[Dimension] = []
        self.loops: dict[int, tuple[Poly, Poly]] = {}
        self.conditions: list[Poly] = []
        self.flags: list[Poly] = []
        self.lane: Expr | None = None
        self.tile: list[Expr] = []
        self.indices: list[Poly] = []
        self.facts: list[Poly] = []  # >= 0: what a launch or loop of symbolic extent says of its variable

    def enter(self) -> None:
        algebra = self.algebra
        algebra.read = self._content
        algebra.bindings = dict(self.site.scope.bindings)
        algebra.names = dict(self.b.aliases)
        algebra.values = dict(self.b.fixed)
        for axis in self.site.scope.axes:
            if axis.tag in TAGS:
                algebra.names[axis.var.uid] = TAGS[axis.tag]
        algebra.forget()
        once = self.site.tile or any(a.kind == "parallel" for a in self.site.scope.axes)
        for axis in self.site.scope.axes:
            self._axis(axis, once)
        if self.site.tile:
            self._region()
        if self.site.width > 1:
            self._lane()
        for guard in self.site.scope.guards:
            if not (once and self._on_threads(guard.condition)):
                self._guard(guard.condition, guard.holds)

    def _on_threads(self, condition: Expr) -> bool:
        """Whether a condition only picks the threads that run a tile operator: it is still run once a block."""
        used = self.algebra.variables(self.algebra.poly(condition))
        if used & THREADS and not used <= THREADS:
            raise UnreadableError("a tile operator runs under a condition on threads and on something else")
        return bool(used) and used <= THREADS

    def _axis(self, axis: Axis, once: bool) -> None:
        """A loop or launch dimension: kept symbolic, enumerated, or (threads of what runs once a block) left out."""
        algebra = self.algebra
        uid = algebra.names.get(axis.var.uid, axis.var.uid)
        start, extent = algebra.poly(axis.start), algebra.poly(axis.extent)
        if axis.kind == "thread" and once:
            return
        if axis.kind == "thread" and axis.tag not in TAGS:
            raise UnreadableError("it runs in a thread binding that is not a launch dimension")
        fixed = algebra.values.get(uid)
        if fixed is not None:
            return
        low = algebra.bounds(start)[0]
        last = algebra.bounds(add(add(start, extent), constant(1), -1))[1]
        if axis.kind == "block" or uid in self.b.outer:
            if axis.kind == "thread" and low is not None and last is not None:
                low, last = self._narrow(uid, low, last)
            algebra.ranges[uid] = (low, last)
            if as_constant(extent) is None:
                self.facts.append(add(add(add(start, extent), constant(1), -1), algebra.variable(uid), -1))
            if axis.kind != "block":
                self.loops[uid] = (start, extent)
            return
        self._enumerate(uid, start, extent)

    def _enumerate(self, uid: int, start: Poly, extent: Poly) -> None:
        algebra = self.algebra
        most = algebra.bounds(extent)[1]
        if most is None:
            raise UnreadableError("it runs in a loop whose extent is not known before the kernel runs")
        first = as_constant(start)
        if first is not None:
            low, high = self._narrow(uid, first, first + most - 1)
            algebra.ranges[uid] = (low, high)
            self.space.append(Dimension(uid, low, max(high - low + 1, 0)))
            position = add(algebra.variable(uid), constant(first), -1)
        else:  # count from 0, the variable is start + that
            counter = -10_000 - uid
            algebra.ranges[counter] = (0, most - 1)
            self.space.append(Dimension(counter, 0, most))
            position = algebra.variable(counter)
            algebra.values[uid] = add(start, position)
            algebra.forget()
        if as_constant(extent) is None:
            self.conditions.append(add(add(extent, constant(1), -1), position, -1))

    def _narrow(self, uid: int, low: int, high: int) -> tuple[int, int]:
        """The part of a variable's range that guards of the form `variable < constant` leave: a branch of warps."""
        for guard in self.site.scope.guards:
            for op, left, right in _comparisons(guard.condition, guard.holds):
                if left.op == "var" and right.op == "int" and self.algebra.names.get(left.uid, left.uid) == uid:
                    value = int(right.value or 0)
                    if op in ("ge", "gt"):
                        low = max(low, value + (op == "gt"))
                    else:
                        high = min(high, value - (op == "lt"))
        return low, high

    def _region(self) -> None:
        """The elements of a tile, one variable for each dimension longer than 1."""
        for number, extent in enumerate(self.site.target.extents):
            size = as_constant(self.algebra.poly(extent))
            if size is None:
                raise UnreadableError("its tile's extent is not a constant")
            uid = -200 - number
            self.algebra.ranges[uid] = (0, size - 1)
            self.tile.append(Expr("var", "int32", value=f"e{number}", uid=uid))
            if size == 1:
                self.algebra.values[uid] = {}
            else:
                self.space.append(Dimension(uid, 0, size))

    def _lane(self) -> None:
        self.algebra.ranges[LANE] = (0, self.site.width - 1)
        self.lane = Expr("var", "int32", value="lane", uid=LANE)
        self.space.append(Dimension(LANE, 0, self.site.width))

    def _guard(self, condition: Expr, holds: bool) -> None:
        """A condition as polynomials >= 0 where that is possible, else as a flag."""
        op = condition.op
        if op == "call" and condition.value == "tl_shuffle_elect":
            self._guard(self._elected(condition), holds)
        elif op == "var" and condition.uid in self.algebra.bindings:
            self._guard(self.algebra.bindings[condition.uid], holds)
        elif op == "not":
            self._guard(condition.args[0], not holds)
        elif (op == "and" and holds) or (op == "or" and not holds):
            for part in condition.args:
                self._guard(part, holds)
        elif op in _ORDER and _integral(condition.args[0]):
            self._keep(self.conditions, self._difference(op if holds else _OPPOSITE[op], condition))
        else:
            poly = self.algebra.poly(condition)
            if not holds:
                poly = self.algebra.poly(Expr("not", "bool", (condition,)))
            if as_constant(poly) != 1:
                self.flags.append(poly)

    def _elected(self, call: Expr) -> Expr:
        """One thread of each group of as many, of the block for 0; which one does not matter."""
        zero = Expr("int", "int32", value=0)
        var = next((a.var for a in self.site.scope.axes if a.tag == "threadIdx.x"), zero)
        group = call.args[0]
        chosen = var if group.value == 0 else Expr("floormod", "int32", (var, group))
        return Expr("eq", "bool", (chosen, zero))

    def _difference(self, op: str, condition: Expr) -> Poly:
        a, b = (self.algebra.poly(x) for x in condition.args)
        if op in ("gt", "ge"):
            a, b = b, a
        gap = add(b, a, -1)
        return gap if op in ("le", "ge") else add(gap, constant(1), -1)

    def _keep(self, where: list[Poly], poly: Poly) -> None:
        """Note that poly >= 0, unless that follows from the ranges or from the extent of a block or loop."""
        for fact in self.facts:
            for times in {poly.get(m, 0) // c for m, c in fact.items() if m}:
                rest = self.algebra.bounds(add(poly, fact, -times))[0] if times > 0 else None
                if rest is not None and rest >= 0:
                    return
        low = self.algebra.bounds(poly)[0]
        if low is None or low < 0:
            where.append(poly)

    def address(self, site: Site) -> tuple[Poly, list[Poly]]:
        """The destination: offset in its root, and what is >= 0 where it is in bounds."""
        pointer = site.target
        if self.b.logical and pointer.buffer.scope.startswith("local"):
            raise UnreadableError("its destination is in registers, where each thread has memory of its own")
        indices = [self.algebra.poly(at_lane(i, self.lane)) for i in pointer.indices]
        for position, var in enumerate(self.tile):
            indices[position] = add(indices[position], self.algebra.poly(var))
        self.indices = indices
        offset, inside = self._locate(pointer.root, pointer.buffer, indices, widen=True)
        if self.lane is not None and self.b.logical and pointer.root not in self.b.memory.layouts:
            self._inside_memory(pointer.buffer, offset, inside)
        return offset, inside

    def _inside_memory(self, buffer: Buffer, offset: Poly, inside: list[Poly]) -> None:
        """A vector instruction of the kernel's own may run into the next row, but not over the end of a compact
        buffer.
        """
        if buffer.strides or buffer.elem_offset is not None or not buffer.shape:
            return
        end = constant(1)
        for extent in buffer.shape:
            end = self.algebra.product(end, self.algebra.poly(extent))
        if as_constant(end) is not None:  # of a size that the caller chooses it may be known to be a multiple
            self._keep(inside, add(add(end, constant(1), -1), offset, -1))

    def _lanes(self, offset: Poly) -> Poly:
        """Lane l of a vector instruction writes at its address + l, whatever the layout says."""
        return offset if self.lane is None or self.site.tma else add(offset, self.algebra.variable(LANE))

    def _locate(self, root: str, buffer: Buffer, indices: list[Poly], widen: bool) -> tuple[Poly, list[Poly]]:
        shape = [self.algebra.poly(s) for s in buffer.shape]
        inside: list[Poly] = []
        if not shape:
            return (self._lanes(indices[0]) if widen else indices[0]), inside
        for index, extent in zip(indices, shape, strict=True):
            self._keep(inside, index)
            self._keep(inside, add(add(extent, constant(1), -1), index, -1))
        layout = self.b.memory.layouts.get(root) if self.b.logical else None
        if layout is not None and layout.thread is None:
            extents = physical_shape(layout, shape, self.algebra)
            if extents is None:
                raise UnreadableError(f"the extent of {root}'s layout is not known")
            indices, shape = physical(layout, indices, shape, self.algebra), extents
        compact = layout is not None or not buffer.strides
        strides = row_major(shape, self.algebra) if compact else [self.algebra.poly(s) for s in buffer.strides]
        offset = flatten(indices, strides, self.algebra)
        if buffer.elem_offset is not None:
            offset = add(offset, self.algebra.poly(buffer.elem_offset))
        return (self._lanes(offset) if widen else offset), inside

    def value(self) -> Expr | Pointer:
        """A site's value; a tile's source is a load at the tile's variables, matched by extent from the right."""
        value = self.site.value
        if not self.site.tile or not isinstance(value, Pointer):
            return value
        own = [(v, as_constant(self.algebra.poly(e))) for v, e in zip(self.tile, self.site.target.extents, strict=True)]
        own = [(v, n) for v, n in own if n != 1]
        indices = list(value.indices)
        sizes = [as_constant(self.algebra.poly(e)) for e in value.extents]
        for position in range(len(indices) - 1, -1, -1):
            if sizes[position] == 1:
                continue
            if not own or own[-1][1] != sizes[position]:
                raise UnreadableError("the extents of its source and destination do not match")
            index = indices[position]
            indices[position] = Expr("add", index.dtype, (index, own.pop()[0]))
        if own:
            raise UnreadableError("its source is smaller than its destination")
        return Expr("load", value.dtype, tuple(indices), buffer=value.buffer)

    def _content(self, e: Expr) -> Content:
        """What a load in an index or a condition reads."""
        assert e.buffer is not None
        leaf = self.leaf(Load(self.b.program.roots.of(e.buffer.data), e.buffer, e.args))
        return Content(leaf.root, leaf.element, leaf.thread, leaf.table)

    def leaf(self, load: Load) -> Leaf:
        """The element that a load reads, in the terms in which the kernel's own elements are named."""
        indices = [self.algebra.poly(i) for i in load.indices]
        if load.buffer is None:
            return Leaf("", "", indices[0])
        memory = self.b.memory
        layout = memory.layouts.get(load.root)
        scope = load.buffer.scope
        if layout is not None and layout.thread is not None:
            shape = [self.algebra.poly(s) for s in load.buffer.shape]
            offset = flatten(indices, row_major(shape, self.algebra), self.algebra)
            if self.b.logical:
                return Leaf(load.root, scope, offset)
            table = memory.table(load.root)
            if table is None:
                raise UnreadableError(f"the fragment {load.root} cannot be inverted")
            thread = add(self.algebra.variable(TAGS["threadIdx.x"]), constant(layout.thread_start), -1)
            return Leaf(load.root, scope, offset, thread, table)
        offset, _ = self._locate(load.root, load.buffer, indices, widen=False)
        return Leaf(load.root, scope, self._in_one_version(load, offset))

    def _in_one_version(self, load: Load, offset: Poly) -> Poly:
        """The offset within one version of a shared buffer that a pipeline keeps several of: which is a matter of
        time.
        """
        declared = self.b.memory.declared.get(load.root)
        now = self.b.program.buffers.get(load.root)
        if self.b.logical or declared is None or now is None or not now.scope.startswith("shared"):
            return offset
        one, all_ = self._elements(load.root, declared), _size(self.algebra, now)
        several = one is not None and all_ is not None and all_ > one and all_ % one == 0
        return self.algebra.floormod(offset, one) if several and one is not None else offset

    def _elements(self, root: str, declared: Buffer) -> int | None:
        """Elements of a buffer as the kernel declares it, in its layout."""
        shape: list[Poly] | None = [self.algebra.poly(s) for s in declared.shape]
        layout = self.b.memory.layouts.get(root)
        if layout is not None and shape is not None:
            shape = physical_shape(layout, shape, self.algebra)
        known = [as_constant(extent) for extent in shape or [{(): -1}]]
        if any(n is None or n < 1 for n in known):
            return None
        elements = prod(n for n in known if n is not None)
        return elements if layout is None else elements // stages(layout, len(declared.shape), self.algebra)


def _size(algebra: Algebra, buffer: Buffer) -> int | None:
    """Elements of a buffer, if they are a constant."""
    known = [as_constant(algebra.poly(s)) for s in buffer.shape]
    return None if any(n is None for n in known) else prod(n for n in known if n is not None)


def _comparisons(condition: Expr, holds: bool) -> Iterator[tuple[str, Expr, Expr]]:
    """The order relations that a condition is a conjunction of, each with a constant on the right where it has one."""
    op = condition.op
    if op == "not":
        yield from _comparisons(condition.args[0], not holds)
    elif (op == "and" and holds) or (op == "or" and not holds):
        for part in condition.args:
            yield from _comparisons(part, holds)
    elif op in _ORDER:
        left, right = condition.args
        op = op if holds else _OPPOSITE[op]
        yield (op, left, right) if left.op != "int" else (_MIRRORED[op], right, left)


_ORDER = frozenset(("lt", "le", "gt", "ge"))
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _integral(e: Expr) -> bool:
    return e.dtype.startswith(("int", "uint"))
