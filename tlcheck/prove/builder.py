"""Makes footprints of sites: addresses and values as polynomials of one algebra."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

from tlcheck.algebra.algebra import Algebra, Content
from tlcheck.algebra.polynomial import Poly, add, as_constant, constant
from tlcheck.program.atomics import Pointer, Site, pointer
from tlcheck.program.layouts import as_laid_out, flatten, physical, physical_shape, row_major, stages
from tlcheck.program.tma import LANE
from tlcheck.program.walk import Program, subexpressions
from tlcheck.prove.added_values import Load, Reader
from tlcheck.prove.assumptions import symbols
from tlcheck.prove.footprints import BLOCKS, TAGS, Footprint, Leaf, Memory
from tlcheck.prove.stores import UnreadableError
from tlcheck.prove.surroundings import Surroundings
from tlcheck.prove.vectors import at_lane
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Buffer, Expr, Layout


class Builder:
    """Makes footprints of one function's sites in one algebra.

    logical: indices are those of the source; its layouts are still to be applied.
    outer: uids of loops (and tags' uids of blocks) that stay symbolic. aliases: loop variable -> the uid of its
    counterpart. private: registers are those of the thread that reads them; else the block reads them as one.
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
        private: bool = False,
    ) -> None:
        self.algebra = algebra
        self.program = program
        self.memory = memory
        self.reader = reader
        self.logical = logical
        self.outer = outer
        self.aliases = aliases
        self.private = private
        self.fixed = dict(algebra.values)
        sizes = {s.uid for s in symbols(program)}
        sizes = {aliases.get(uid, uid) for uid in sizes}
        self.known = outer | BLOCKS | sizes | algebra.variables(*self.fixed.values())

    def build(self, site: Site, unguarded: bool = False) -> Footprint:
        """The footprint of a site. Raises UnreadableError."""
        if site.scope.opaque:
            raise UnreadableError(site.scope.opaque)
        frame = _Frame(self, site)
        frame.enter()
        target, inside = frame.address(site)
        value = self.reader.read(
            frame.value(), frame.around.lane, site.placed, site.scope, site.target.dtype, unguarded
        )
        leaves = tuple(replace(frame.leaf(load), when=frame.when(load)) for load in value.leaves)
        needed = tuple(self.algebra.poly(c) for c in value.conditions)
        frame.promise(site.value)
        footprint = Footprint(
            site,
            tuple(frame.around.space),
            frame.around.loops,
            target,
            tuple(inside),
            tuple(frame.around.conditions),
            tuple(frame.around.flags),
            needed,
            value.form,
            leaves,
            tuple(frame.indices),
            reads=tuple(frame.reads),
            perhaps=tuple(frame.perhaps),
            launch=frame.around.launch,
            start={} if site.start is None else self.algebra.poly(site.start),
        )
        frame.require_known(footprint)
        return footprint


class _Frame:
    """One site in its surroundings: what it addresses, and what its values read."""

    def __init__(self, builder: Builder, site: Site) -> None:
        self.b = builder
        self.algebra = builder.algebra
        self.site = site
        self.around = Surroundings(builder.algebra, site, builder.outer)
        self.indices: list[Poly] = []
        self.reads: list[Poly] = []
        self.perhaps: list[Poly] = []
        self.versioned: list[Poly] = []  # offsets of which only those within a version are compared
        self._at_times = builder.logical and _reads_at_times(site)

    def enter(self) -> None:
        self.algebra.read = self._content
        self.algebra.fits = []
        self.around.enter(self.b.aliases, self.b.fixed)

    def address(self, site: Site) -> tuple[Poly, list[Poly]]:
        """The destination: offset in its root, and what is >= 0 where it is in bounds."""
        pointer = site.target
        if self.b.logical and pointer.buffer.scope.startswith("local"):
            raise UnreadableError("its destination is in registers, where each thread has memory of its own")
        indices = [self.algebra.poly(at_lane(i, self.around.lane, site.scope)) for i in pointer.indices]
        indices = self._from_end(pointer.buffer, indices)
        for position, var in enumerate(self.around.tile):
            indices[position] = add(indices[position], self.algebra.poly(var))
        self.indices = indices
        offset, inside = self._locate(pointer.root, pointer.buffer, indices, widen=True)
        if self.around.lane is not None and self.b.logical and pointer.root not in self.b.memory.layouts:
            self._inside_memory(pointer.buffer, offset, inside)
        return offset, inside

    def _from_end(self, buffer: Buffer, indices: list[Poly]) -> list[Poly]:
        """The indices, in the source with negative constants counted from the end of their axes, as TileLang does."""
        if not self.b.logical or len(indices) != len(buffer.shape):
            return indices
        negative = [(as_constant(index) or 0) < 0 for index in indices]
        sizes = [self.algebra.poly(size) if n else {} for n, size in zip(negative, buffer.shape, strict=True)]
        return [add(index, size) for index, size in zip(indices, sizes, strict=True)]

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
            self.around.keep(inside, add(add(end, constant(1), -1), offset, -1))

    def _lanes(self, offset: Poly) -> Poly:
        """Lane l of a vector instruction writes at its address + l, whatever the layout says."""
        return offset if self.around.lane is None or self.site.tma else add(offset, self.algebra.variable(LANE))

    def promise(self, value: Expr | Pointer) -> None:
        """Note what else the author of the source answers for: that vectors given by pointer start in
        bounds, and that floats fit where they are cast to integers.
        """
        if not self.b.logical:
            return
        promised = self.perhaps if self._at_times else self.reads
        if isinstance(value, Pointer) and self.around.lane is not None:
            start = [self.algebra.poly(i) for i in value.indices]
            promised += self._locate(value.root, value.buffer, start, widen=False)[1]
        for fits in self.algebra.fits:
            self.around.keep(promised, fits)

    def _locate(self, root: str, buffer: Buffer, indices: list[Poly], widen: bool) -> tuple[Poly, list[Poly]]:
        shape = [self.algebra.poly(s) for s in buffer.shape]
        inside: list[Poly] = []
        if not shape:
            return (self._lanes(indices[0]) if widen else indices[0]), inside
        for index, extent in zip(indices, shape, strict=True):
            self.around.keep(inside, index)
            self.around.keep(inside, add(add(extent, constant(1), -1), index, -1))
        layout = self.b.memory.layouts.get(root) if self.b.logical else None
        if layout is not None and layout.thread is None:
            indices, shape = as_laid_out(layout, indices, shape, self.algebra)
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
        own = [
            (v, as_constant(self.algebra.poly(e)))
            for v, e in zip(self.around.tile, self.site.target.extents, strict=True)
        ]
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
        """Return what a load in an index or a condition reads, or where an address points."""
        found = pointer(self.b.program, e)
        if found is None:
            raise UnreadableError(f"an address is not understood ({e.value})")
        leaf = self.leaf(Load(found.root, found.buffer, found.indices))
        # what the kernel declares as booleans is read as bytes where it is lowered
        declared = self.b.memory.declared.get(leaf.root)
        is_bool = declared is not None and dtype_of(declared.dtype).kind == "bool" and dtype_of(found.dtype).bits == 8
        return Content(leaf.root, leaf.element, leaf.thread, leaf.table, "bool" if is_bool else "")

    def require_known(self, footprint: Footprint) -> None:
        """Raises UnreadableError where anything depends on a variable that is neither enumerated nor kept symbolic."""
        polys = (footprint.target, *footprint.conditions, *footprint.flags, *footprint.needed)
        elements = (*self.versioned, *(p for leaf in footprint.leaves for p in (leaf.element, leaf.thread)))
        known = {d.uid for d in footprint.space} | footprint.outer.keys() | self.b.known
        if not self.algebra.variables(*polys, *elements) <= known:
            raise UnreadableError("it depends on a variable that is not understood")

    def leaf(self, load: Load) -> Leaf:
        """The element that a load reads, in the terms in which the kernel's own elements are named."""
        indices = [self.algebra.poly(i) for i in load.indices]
        if load.buffer is None:
            return Leaf("", "", indices[0])
        indices, memory = self._from_end(load.buffer, indices), self.b.memory
        layout = memory.layouts.get(load.root)
        scope = load.buffer.scope
        if layout is not None and layout.thread is not None:
            shape = [self.algebra.poly(s) for s in load.buffer.shape]
            shape = self._held(load, layout, indices, shape) if self.b.logical else shape
            # an address in registers, as of a vector's first one, is flat already
            offset = flatten(indices, row_major(shape, self.algebra), self.algebra) if shape else indices[0]
            if self.b.logical:
                return Leaf(load.root, scope, offset)
            table = memory.table(load.root)
            if table is None:
                raise UnreadableError(f"the fragment {load.root} cannot be inverted")
            thread = add(self.algebra.variable(TAGS["threadIdx.x"]), constant(memory.thread_start(load.root)), -1)
            return Leaf(load.root, scope, offset, thread, table)
        offset, inside = self._locate(load.root, load.buffer, indices, widen=False)
        if self.b.private and scope.startswith("local") and scope != "local.fragment":
            # a number for each thread
            total: Poly = {}
            for axis in self.site.scope.axes:
                if axis.kind == "thread" and axis.tag in TAGS:
                    dimension = (axis.tag[-1] > "x") + (axis.tag[-1] > "y")
                    total = add(total, self.algebra.variable(TAGS[axis.tag]), 1 << (10 * dimension))
            return Leaf(load.root, scope, offset, total)
        if self.b.logical and LANE not in self.algebra.variables(*indices):
            (self.perhaps if self._at_times else self.reads).extend(inside)
        return Leaf(load.root, scope, self._in_one_version(load, offset))

    def _held(self, load: Load, layout: Layout, indices: list[Poly], shape: list[Poly]) -> list[Poly]:
        """The shape by which a fragment's table numbers its elements: only a part of them has registers where no loop
        uses the others. Raises UnreadableError for an element that may be among these.
        """
        held = [self.algebra.poly(e) for e in layout.input_shape]
        own, registers = (prod(as_constant(e) or 0 for e in extents) for extents in (shape, held))
        if own == registers or len(held) != len(shape):
            return shape
        for index, extent in zip(indices, held, strict=True):
            low, _ = self.algebra.bounds(add(add(extent, constant(1), -1), index, -1))
            if low is None or low < 0:
                raise UnreadableError(f"an element of {load.root} has no register")
        return held

    def when(self, load: Load) -> tuple[Poly, ...]:
        """The conditions under which a choice reads it; none where they are not understood: it counts as read."""
        held = [c if holds else Expr("not", "bool", (c,)) for c, holds in load.when]
        try:
            return tuple(map(self.algebra.poly, held))
        except UnreadableError:
            return ()

    def _in_one_version(self, load: Load, offset: Poly) -> Poly:
        """The offset within one version of a shared buffer that a pipeline keeps several of: which is a matter of
        time.
        """
        declared = self.b.memory.declared.get(load.root)
        now = self.b.program.buffers.get(load.root, load.buffer)  # placed in one allocation it is declared no more
        if self.b.logical or declared is None or now is None or not now.scope.startswith("shared"):
            return offset
        one, all_ = self._elements(load.root, declared), _size(self.algebra, now)
        several = one is not None and all_ is not None and all_ > one and all_ % one == 0
        self.versioned.append(offset)
        return self.algebra.floormod(offset, one) if several and one is not None else offset

    def _elements(self, root: str, declared: Buffer) -> int | None:
        """Elements of a buffer as the kernel declares it, in its layout."""
        shape = [self.algebra.poly(s) for s in declared.shape]
        layout, extents = self.b.memory.layouts.get(root), shape or None
        if layout is not None:
            _, shape = as_laid_out(layout, [{} for _ in shape], shape, self.algebra)
            extents = physical_shape(layout, shape, self.algebra)
        known = [as_constant(extent) for extent in extents or [{(): -1}]]
        if any(n is None or n < 1 for n in known):
            return None
        elements = prod(n for n in known if n is not None)
        return elements if layout is None else elements // stages(layout, len(shape), self.algebra)


def _reads_at_times(site: Site) -> bool:
    """Whether anything that an atomic reads may be read for some lanes only: then being read out of bounds is not
    running at all.
    """
    axes = [e for a in site.scope.axes for e in (a.start, a.extent)]
    bound = [e for _, e in site.scope.bindings]
    guards = [g.condition for g in site.scope.guards]
    inside = [e for root in (site.call, *axes, *bound, *guards) for e in subexpressions(root)]
    return any(_is_choice(e) and any(x.op == "load" for x in subexpressions(e)) for e in inside)


def _is_choice(e: Expr) -> bool:
    return e.op in ("select", "or", "and") or (e.op == "call" and e.value == "if_then_else")


def _size(algebra: Algebra, buffer: Buffer) -> int | None:
    """Elements of a buffer, if they are a constant."""
    known = [as_constant(algebra.poly(s)) for s in buffer.shape]
    return None if any(n is None for n in known) else prod(n for n in known if n is not None)
