"""wgmma: a warpgroup multiplies matrices from shared memory, or registers and shared memory (PTX 9.7.15).

A matrix in shared memory is named by a descriptor: start, leading and stride byte offsets (LBO, SBO), swizzle. An
instruction is under way until a group that it was committed to is waited for; until then its accumulators are poison,
and it may read shared memory as late as that. Registers that something else has written need a wgmma.fence
(`warpgroup_arrive`) before it, and so does the first instruction.

Descriptors: PTX 9.7.15.5.1, "Matrix Descriptor Format". Where elements are: "Strides" there, and the canonical layouts
of CUTE (cute/arch/mma_sm90_desc.hpp).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.codes import Code, Step
from tlcheck.execute.frame import Frame, Mask
from tlcheck.execute.memory import Cells
from tlcheck.execute.places import Place, refuse_outside
from tlcheck.execute.races import NOWHERE, Origin
from tlcheck.execute.reasons import Illegal, NotModelled
from tlcheck.execute.registry import call, loop
from tlcheck.execute.threads.descriptors import swizzled
from tlcheck.execute.threads.mma import finished, kind_named, multiplied, shape_of
from tlcheck.execute.values import Array, Kind, Value, nothing_in
from tlcheck.snapshot.ir import Evaluate, Expr, For
from tlcheck.snapshot.walk import postorder

if TYPE_CHECKING:
    from tlcheck.execute.codes import Run
    from tlcheck.execute.machine import Machine
    from tlcheck.execute.tracer import TracedCell

GROUP = 128  # threads of a warpgroup
_SPANS = (0, 128, 64, 32)  # bytes of the swizzle by the descriptor's layout code

# A descriptor's 64 bits: start (0..13), LBO (16..29), SBO (32..45), in 16 bytes; layout (62..63). Bits 46 to 61 are not
# the instruction's: they carry the number of the buffer, which a real address needs no bits for.
_FIELD = (1 << 14) - 1


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """A decoded descriptor; start, lbo and sbo in bytes, span of the swizzle in bytes (0: none)."""

    allocation: int
    start: int
    lbo: int
    sbo: int
    span: int

    def octets(self, rows: int, columns: int, width: int, by_k: bool) -> Array:
        """Byte addresses of the elements of a matrix of rows (M or N) and columns (K): (rows, columns).

        by_k: neighbours along K lie side by side (K-major), else neighbours along M or N (MN-major). width: in bytes.
        """
        row, column = np.ogrid[:rows, :columns]
        if by_k:
            octet, line = column * width, row
            if self.span:
                at = line // 8 * self.sbo + line % 8 * self.span + octet
            else:
                at = line // 8 * self.sbo + octet // 16 * self.lbo + line % 8 * 16 + octet % 16
        else:
            octet, line = row * width, column
            if self.span:
                at = octet // self.span * self.lbo + line // 8 * self.sbo + line % 8 * self.span + octet % self.span
            else:
                at = octet // 16 * self.sbo + line // 8 * self.lbo + line % 8 * 16 + octet % 16
        return np.asarray(swizzled(self.start + at, self.span))


def encode(matrix: MatrixDescriptor) -> int:
    """The descriptor's 64 bits."""
    fields = ((matrix.start >> 4) & _FIELD, 0), ((matrix.lbo >> 4) & _FIELD, 16), ((matrix.sbo >> 4) & _FIELD, 32)
    word = sum(value << place for value, place in fields) | _SPANS.index(matrix.span) << 62
    return word | matrix.allocation << 46


def decode(word: int) -> MatrixDescriptor:
    """What a descriptor's bits say."""
    start, lbo, sbo = ((word >> place & _FIELD) << 4 for place in (0, 16, 32))
    return MatrixDescriptor(word >> 46 & 0xFFFF, start, lbo, sbo, _SPANS[word >> 62 & 3])


@call("initialize_wgmma_descriptor")
def initialize(e: Expr, machine: Machine) -> Run:
    """(descriptor, address, layout, LBO, SBO in 16 bytes); the address's allocation is numbered by its pointer."""
    target, address = machine.pointer(e.args[0]), machine.pointer(e.args[1])
    layout, lbo, sbo = (machine.code(a) for a in e.args[2:5])
    known = _allocations(machine)
    names = [(place.root, place.name) for place in known]
    if (address.root, address.name) not in names:
        known.append(address)
        names.append((address.root, address.name))
    number = names.index((address.root, address.name))

    def run(frame: Frame) -> Value:
        span = _SPANS[machine.uniform(layout.run(frame), "the layout of a descriptor")]
        leading, step = (machine.uniform(c.run(frame), "an offset of a descriptor") << 4 for c in (lbo, sbo))
        empty = np.uint64(encode(MatrixDescriptor(number, 0, leading, step, span)))
        start = np.asarray(address.address(frame)).astype(np.int64) >> 4 & _FIELD
        target.store(frame, start.astype(np.uint64) | empty)
        return 0

    return run


def _allocations(machine: Machine) -> list[Place]:
    """A place in each buffer, by the buffer's number in descriptors."""
    found = machine.shared_state.setdefault("wgmma allocations", [])
    assert isinstance(found, list)
    return found


@call("increase_descriptor_offset")
def increase(e: Expr, machine: Machine) -> Run:
    """(descriptor, bytes): the start moves on."""
    target, octets = machine.pointer(e.args[0]), machine.code(e.args[1])

    def run(frame: Frame) -> Value:
        more = np.asarray(octets.run(frame)).astype(np.int64) >> 4
        target.store(frame, target.load(frame) + more.astype(np.uint64))
        return 0

    return run


@dataclass(eq=False)
class _Used:
    """Registers that an instruction used: what they held when it left them, or at a fence after that."""

    place: Place
    position: Any
    values: Array


@dataclass(eq=False)
class RegisterFences:
    """wgmma.fence (PTX 9.7.15.7.1): which threads have passed one, (worlds, threads), and what registers held then.

    Reading registers before the next instruction writes them needs one too: not looked at.
    """

    passed: Mask | None = None
    last: dict[int, list[_Used]] = field(default_factory=dict)

    def fence(self, lanes: Mask) -> None:
        """The threads pass one: it covers what their registers hold now."""
        self.passed = lanes if self.passed is None else self.passed | lanes
        for known in chain.from_iterable(self.last.values()):
            now = known.place.memory.take(known.position, known.place.kind)
            known.values = np.where(lanes, now, known.values)

    def used(self, place: Place, position: Any, values: Array, lanes: Mask) -> None:
        """An instruction begins to use registers (elements, worlds, threads). Raises Illegal without the fence."""
        if place.machine.options.written:
            return
        passed = np.False_ if self.passed is None else self.passed
        known = next((u for u in self.last.get(place.root, []) if np.array_equal(u.position, position)), None)
        changed = lanes & (~passed if known is None else _differ(known, values))
        if changed.any():
            world, lane = (int(i) for i in np.argwhere(changed)[0])
            what = f"wgmma uses {place.name} with no warpgroup_arrive (wgmma.fence) after it was written"
            raise Illegal(what, place.machine.line, world, lane, place.name)

    def left(self, place: Place, position: Any, values: Array) -> None:
        """An instruction is done with registers, which hold these values."""
        users = self.last.setdefault(place.root, [])
        users[:] = [u for u in users if not np.array_equal(u.position, position)]
        users.append(_Used(place, position, values))


def _differ(used: _Used, values: Array) -> Mask:
    """The threads whose registers hold something else than they did; poison is compared by its bits."""
    word = f"i{values.itemsize}"
    return np.asarray((used.values.view(word) != np.ascontiguousarray(values).view(word)).any(axis=0))


@dataclass(eq=False)
class _Sum:
    """Accumulators with instructions under way: their values so far, (elements, worlds, threads)."""

    place: Place
    position: Any
    values: Array
    fences: RegisterFences
    left: int = 0


@dataclass(eq=False)
class Product:
    """One instruction under way in the lanes of `mask`."""

    total: _Sum
    mask: Mask
    left: MatrixOperand
    right: MatrixOperand
    registers: Callable[[Array], Array]  # matrices to registers (elements, worlds, threads)
    finish: Callable[[Array], Array]
    keeps: bool  # whether it adds to what is there
    terms: Callable[[tuple[int, ...]], list[list[TracedCell]]] | None  # None: what it is made of is not said

    def complete(self, others: Sequence[Product] = ()) -> None:
        """Do it, and others that add to the same; after the last one of its accumulators they have their values."""
        total, together = self.total, [self, *others]
        left, right = _side_by_side([p.left for p in together]), _side_by_side([p.right for p in together])
        product = self.registers(multiplied(left, np.swapaxes(right, -1, -2)))
        after = self.finish(product + total.values if self.keeps else product)
        total.values = after if self.mask.all() else np.where(self.mask, after, total.values)
        total.left -= len(together)
        if not total.left:
            tracer = total.place.machine.tracer
            if tracer is not None and self.terms is not None:
                tracer.explain(self.terms, self.keeps)
            total.place.memory.put(total.position, total.values, self.mask, total.place.kind)
            total.fences.left(total.place, total.position, total.values)


@dataclass(eq=False)
class ProductQueue:
    """Instructions that are not in a group yet, groups under way, and sums under way by where they are."""

    open: list[Product] = field(default_factory=list)
    groups: list[tuple[Mask, list[Product]]] = field(default_factory=list)
    sums: list[_Sum] = field(default_factory=list)
    fences: RegisterFences = field(default_factory=RegisterFences)

    @classmethod
    def of(cls, machine: Machine) -> ProductQueue:
        found = machine.shared_state.setdefault("wgmma", cls())
        assert isinstance(found, cls)
        return found

    def sum_at(self, place: Place, position: Any, frame: Frame, lanes: Mask, poison: Array) -> _Sum:
        """The sum under way at a place; made, and its registers poisoned, by the first instruction."""
        for known in self.sums:
            if known.place.root == place.root and known.left and np.array_equal(known.position, position):
                return known
        self.sums = [s for s in self.sums if s.left]
        before = np.array(np.broadcast_to(place.memory.take(position, place.kind), poison.shape))
        made = _Sum(place, position, before, self.fences)
        self.fences.used(place, position, made.values, lanes)
        self.sums.append(made)
        place.memory.put(position, poison, lanes, place.kind)
        return made

    def wait(self, newest: int, lanes: Mask) -> None:
        """Complete the groups of these lanes, all but the newest."""
        mine = [group for group in self.groups if (group[0] & lanes).any()]
        due = mine[: len(mine) - newest] if newest else mine
        for _, products in due:
            for first, *others in _added_together(products):
                first.complete(others)
        self.groups = [group for group in self.groups if not any(group is d for d in due)]


@call("warpgroup_arrive")
def arrive(e: Expr, machine: Machine) -> Run:
    """wgmma.fence: registers that the warpgroup has written may be used by its instructions."""
    fences = ProductQueue.of(machine).fences

    def run(frame: Frame) -> Value:
        fences.fence(np.array(frame.mask()))
        return 0

    return run


def _added_together(products: list[Product]) -> Iterator[list[Product]]:
    """Products of one group that add to the same accumulators, one after the other: one product of more columns.

    The sum is another one where each instruction rounds it. Plainly, each reads for itself.
    """
    part: list[Product] = []
    for product in products:
        options = product.total.place.machine.options
        if part and not (
            product.total is part[0].total
            and product.keeps
            and np.array_equal(product.mask, part[0].mask)
            and options.exact
            and not options.plain
        ):
            yield part
            part = []
        part.append(product)
    if part:
        yield part


@call("warpgroup_commit_batch")
def commit(e: Expr, machine: Machine) -> Run:
    """wgmma.commit_group: the warpgroup's instructions since the last one are a group."""
    queue = ProductQueue.of(machine)

    def run(frame: Frame) -> Value:
        lanes = np.array(frame.mask())
        mine = [p for p in queue.open if (p.mask & lanes).any()]
        queue.open = [p for p in queue.open if not any(p is m for m in mine)]
        queue.groups.append((lanes, mine))
        return 0

    return run


@call("warpgroup_wait", "wait_wgmma")
def wait(e: Expr, machine: Machine) -> Run:
    """wgmma.wait_group n: at most n of the warpgroup's groups are under way. As written there are none."""
    queue, newest = ProductQueue.of(machine), machine.code(e.args[0])

    def run(frame: Frame) -> Value:
        left = machine.uniform(newest.run(frame), "the number of groups to wait for")
        if machine.watch is not None:
            machine.watch.completes(left)
        queue.wait(left, frame.mask())
        return 0

    return run


@dataclass(frozen=True, eq=False)
class Form:
    """An instruction: shape, kinds, and which operands are K-major."""

    m: int
    n: int
    k: int
    left: Kind
    right: Kind
    sum: Kind


def form_of(e: Expr, first: int, bits: int = 256) -> Form:
    """Shape and kinds; the kinds begin at argument `first`. bits: of a row of A."""
    m, n, k = shape_of(str(e.args[0].value))
    kinds = [kind_named(a) for a in e.args[first : first + 3]]
    if m != 64 or k * kinds[0].bits != bits:
        raise NotModelled(f"{e.value} {e.args[0].value} of {e.args[first].value}")
    return Form(m, n, k, *kinds)


@call("ptx_wgmma_ss")
def from_shared(e: Expr, machine: Machine) -> Run:
    """(shape, is A K-major, is B, types of A, B, C, A, its offset, B, its offset, C, its offset, scales of C, A and B).

    A and B are descriptors, and their offsets in 16 bytes.
    """
    form = form_of(e, 3)
    left = in_shared(e, 6, (form.m, form.k), form.left, bool(e.args[1].value), machine)
    right = in_shared(e, 8, (form.n, form.k), form.right, bool(e.args[2].value), machine)
    return issue(e, 10, form, left, right, machine)


@loop
def in_a_loop(stmt: For, machine: Machine) -> Step | None:
    """A loop of wgmma on shared memory that add to the same accumulators, as one instruction of more columns.

    The sum is another one where each instruction rounds it. Plainly, each reads for itself.
    """
    options, body = machine.options, stmt.body
    if options.plain or options.written or not options.exact or not isinstance(body, Evaluate):
        return None
    e, var = body.value, stmt.var
    if e.value != "ptx_wgmma_ss" or any(bound.op != "int" for bound in (stmt.start, stmt.extent, e.args[12])):
        return None
    varying = [number for number, a in enumerate(e.args) if any(x.uid == var.uid for x in postorder([a]))]
    steps = range(int(stmt.start.value or 0), int(stmt.start.value or 0) + int(stmt.extent.value or 0))
    if not steps or not e.args[12].value or not {7, 9}.issuperset(varying):
        return None
    machine.variables[var.uid] = Code(lambda frame: frame.variables[var.uid], frozenset((var.uid,)), True, True)
    form = form_of(e, 3)
    left = in_shared(e, 6, (form.m, form.k), form.left, bool(e.args[1].value), machine)
    right = in_shared(e, 8, (form.n, form.k), form.right, bool(e.args[2].value), machine)
    if any(not side.further.steady or side.further.needs - {var.uid} for side in (left, right)):
        return None
    start = issue(e, 10, form, _Beside(left, var.uid, steps), _Beside(right, var.uid, steps), machine)

    def run(frame: Frame) -> None:
        machine.at = body
        machine.spend(len(steps))
        start(frame)
        frame.variables.pop(var.uid, None)

    return Step(run)


@call("ptx_wgmma_rs")
def from_registers(e: Expr, machine: Machine) -> Run:
    """(shape, is B K-major, types of A, B, C, A, its offset, B, its offset, C, its offset, scales of C, A and B).

    A lies in registers, as for mma.
    """
    form = form_of(e, 2)
    left = held(e, 5, form.k, form.left, machine)
    right = in_shared(e, 7, (form.n, form.k), form.right, bool(e.args[1].value), machine)
    return issue(e, 9, form, left, right, machine)


def held(e: Expr, at: int, k: int, kind: Kind, machine: Machine) -> Operand:
    """A matrix of 64 rows and k columns in registers: a pointer at argument `at`, then its offset."""
    index, fences = _spread(k, max(1, 32 // kind.bits)), ProductQueue.of(machine).fences
    registers = machine.pointer(e.args[at], len(index[0]), e.args[at + 1])

    def left(frame: Frame) -> MatrixOperand:
        position, _ = registers.position(frame)
        shape = (len(index[0]), frame.worlds, frame.lanes)
        before = np.array(np.broadcast_to(registers.memory.take(position, registers.kind), shape))
        fences.used(registers, position, before, np.array(frame.mask()))
        fences.left(registers, position, before)

        def read() -> Array:
            values = np.broadcast_to(registers.memory.take(position, registers.kind), shape)
            return matrices(values, index, (64, k))

        def row(world: int, group: int, number: int) -> list[TracedCell]:
            row_of, column_of = np.broadcast_arrays(*index)
            found = np.argwhere(row_of == number)
            found = found[np.argsort(column_of[found[:, 0], found[:, 1]], kind="stable")]
            where = np.broadcast_to(np.asarray(registers.memory.flat_position(position)), shape)
            assert machine.tracer is not None
            return [machine.tracer.cell(registers.memory, where[e, world, group * GROUP + t]) for e, t in found]

        return MatrixOperand(read, row)

    return left


@dataclass(frozen=True)
class MatrixOperand:
    """An operand: reading it later gives (worlds, groups, rows, K). row: where a group's row of it lies.

    tiles: where it is, if that is shared memory.
    """

    read: Callable[[], Array]
    row: Callable[[int, int, int], list[TracedCell]] | None = None
    tiles: _SharedTiles | None = None


Operand = Callable[[Frame], MatrixOperand]


def _side_by_side(operands: list[MatrixOperand]) -> Array:
    """Operands as one: their columns one after the other."""
    first, *others = operands
    if not others:
        return first.read()
    if first.tiles is not None:
        joined = first.tiles.joined([o.tiles for o in others])
        if joined is not None:
            return joined.read()
    return np.concatenate([o.read() for o in operands], axis=-1)


@dataclass(frozen=True, eq=False)
class _Shared:
    """An operand in shared memory. word: its descriptor; further: how many 16 bytes on; shape: rows and columns.

    tiles: what was named before, by the bytes of words and of active groups.
    """

    word: Place
    further: Code
    shape: tuple[int, int]
    kind: Kind
    by_k: bool
    machine: Machine
    tiles: dict[tuple[bytes, bytes], _SharedTiles] = field(default_factory=dict)

    def __call__(self, frame: Frame) -> MatrixOperand:
        words, active = self.words(frame)
        named, origin = self._named(frame, words, active), self.machine.origin(frame)
        mine = self.at(named, active)
        mine.seen(origin)

        def row(world: int, group: int, number: int) -> list[TracedCell]:
            matrix = decode(int(named[world, group]))
            cells = _allocations(self.machine)[matrix.allocation].memory
            assert isinstance(cells, Cells)
            assert self.machine.tracer is not None
            octets = matrix.octets(*self.shape, self.kind.bits // 8, self.by_k)[number]
            return [self.machine.tracer.cell(cells, o // cells.grain * cells.stride + world) for o in octets.tolist()]

        return MatrixOperand(lambda: mine.read(origin), row, mine)

    def words(self, frame: Frame) -> tuple[Array, Mask]:
        """The descriptor of each group, and which groups are active: (worlds, groups)."""
        words = np.broadcast_to(self.word.load(frame), (frame.worlds, frame.lanes))[:, ::GROUP]
        return words, frame.mask()[:, ::GROUP]

    def _named(self, frame: Frame, words: Array, active: Mask) -> Array:
        """The descriptors of the matrices themselves, 0 for groups that are not active."""
        further = np.broadcast_to(np.asarray(self.further.run(frame)), (frame.worlds, frame.lanes))[:, ::GROUP]
        return np.where(active, words + further.astype(np.uint64), np.uint64(0))

    def at(self, named: Array, active: Mask) -> _SharedTiles:
        """The matrices that descriptors name."""
        key = named.tobytes(), active.tobytes()
        if key not in self.tiles:
            found = list(_tiles(named, active, self.shape, self.kind, self.by_k, self.machine))
            self.tiles[key] = _SharedTiles(found, active.shape, self.shape, self.kind, self.machine)
        return self.tiles[key]

    def steps(self, frame: Frame, words: Array, active: Mask, uid: int, values: range) -> list[_SharedTiles]:
        """The matrices of each step of a loop."""
        found = []
        for value in values:
            frame.variables[uid] = value
            found.append(self.at(self._named(frame, words, active), active))
        return found


@dataclass(frozen=True, eq=False)
class _Beside:
    """The operands of all steps of a loop, column after column. kept: what was named before, by the first words."""

    operand: _Shared
    uid: int
    values: range
    kept: dict[tuple[bytes, bytes], tuple[list[_SharedTiles], _SharedTiles | None]] = field(default_factory=dict)

    def __call__(self, frame: Frame) -> MatrixOperand:
        words, active = self.operand.words(frame)
        key = words.tobytes(), active.tobytes()
        if key not in self.kept:
            first, *others = every = self.operand.steps(frame, words, active, self.uid, self.values)
            self.kept[key] = every, first.joined([*others]) if others else first
        every, joined = self.kept[key]
        origin = self.operand.machine.origin(frame)
        for tiles in every if joined is None else [joined]:
            tiles.seen(origin)
        if joined is None:
            return MatrixOperand(lambda: np.concatenate([tiles.read(origin) for tiles in every], axis=-1))
        return MatrixOperand(lambda: joined.read(origin), None, joined)


def in_shared(e: Expr, at: int, shape: tuple[int, int], kind: Kind, by_k: bool, machine: Machine) -> _Shared:
    """A matrix in shared memory, of arguments `at`, its descriptor, and the next one, its offset."""
    return _Shared(machine.pointer(e.args[at]), machine.code(e.args[at + 1]), shape, kind, by_k, machine)


@dataclass(frozen=True, slots=True, eq=False)
class _SharedTile:
    """A matrix in shared memory, and who reads it. position: (rows, columns, readers), in the memory of `place`.

    worlds, groups: of the readers. cells, mask: the same elements, and a thread of each reader, for the watch.
    """

    place: Place
    position: Array
    worlds: Array
    groups: Array
    cells: Array
    mask: Mask


def _tiles(
    words: Array, active: Mask, shape: tuple[int, int], kind: Kind, by_k: bool, machine: Machine
) -> Iterator[_SharedTile]:
    """The different matrices that the descriptors of all active groups name, words: (worlds, groups)."""
    places = _allocations(machine)
    for word in dict.fromkeys(words[active].tolist()):
        matrix = decode(word)
        if matrix.allocation >= len(places):
            raise NotModelled("wgmma descriptor that was not initialized here")
        place = places[matrix.allocation]
        memory = place.memory
        assert isinstance(memory, Cells)
        octets = matrix.octets(*shape, kind.bits // 8, by_k)
        worlds, groups = np.nonzero(active & (words == word))
        refuse_outside(place, octets, kind, "wgmma reads", (int(worlds[0]), int(groups[0]) * GROUP))
        cell = octets // memory.grain * memory.stride
        mask = np.zeros((len(machine.worlds), machine.threads), np.bool_)
        mask[worlds, groups * GROUP] = True
        cells = cell.reshape(-1, 1, 1) + np.arange(len(mask)).reshape(1, -1, 1)
        yield _SharedTile(place, cell[..., None] + worlds, worlds, groups, cells, mask)


@dataclass(frozen=True, eq=False)
class _SharedTiles:
    """The matrices in shared memory that the active groups of an instruction read, of one shape."""

    tiles: list[_SharedTile]
    groups: tuple[int, ...]
    shape: tuple[int, int]
    kind: Kind
    machine: Machine
    kept: dict[tuple[int, ...], tuple[object, _SharedTiles | None]] = field(default_factory=dict)

    def seen(self, origin: Origin) -> None:
        """Tell the watch that the matrices are read: when the instruction is issued, and again as late as it may be."""
        if self.machine.watch is not None:
            for tile in self.tiles:
                self.machine.watch.read(tile.place, tile.cells, tile.mask, origin, "async")

    def read(self, origin: Origin = NOWHERE) -> Array:
        """The matrices of all active groups; zeros for the others. The first thread of a warpgroup reads for all."""
        found = np.zeros((*self.groups, *self.shape), self.kind.array)
        self.seen(origin)
        for tile in self.tiles:
            memory = tile.place.memory
            assert isinstance(memory, Cells)
            found[tile.worlds, tile.groups] = np.moveaxis(memory.take(tile.position, self.kind), -1, 0)
        return found

    def joined(self, others: list[_SharedTiles | None]) -> _SharedTiles | None:
        """These and others that the same groups read, column after column; None where others read them."""
        key = tuple([id(other) for other in others])
        if key not in self.kept:
            self.kept[key] = others, self._join([o for o in others if o is not None])  # `others` keeps their numbers
        return self.kept[key][1]

    def _join(self, others: list[_SharedTiles]) -> _SharedTiles | None:
        every = [self, *others]
        if len({len(each.tiles) for each in every}) > 1:
            return None
        made = []
        for first, *more in zip(*[each.tiles for each in every], strict=True):
            for tile in more:
                if tile.place is not first.place or not np.array_equal(tile.mask, first.mask):
                    return None
            position = np.concatenate([tile.position for tile in (first, *more)], axis=1)
            cells = np.concatenate([tile.cells for tile in (first, *more)])
            made.append(_SharedTile(first.place, position, first.worlds, first.groups, cells, first.mask))
        return _SharedTiles(made, self.groups, (self.shape[0], self.shape[1] * len(every)), self.kind, self.machine)


def issue(e: Expr, at: int, form: Form, left: Operand, right: Operand, machine: Machine) -> Run:
    """Start C = scale * C + A * B; arguments from `at` on: C, its offset, the three scales."""
    scale = machine.code(e.args[at + 2])
    if any(a.op != "int" or a.value not in (1, True) for a in e.args[at + 3 : at + 5]):
        raise NotModelled("wgmma that negates an operand")
    place = machine.pointer(e.args[at], form.n // 2, e.args[at + 1])
    index, queue = _accumulator(form.n), ProductQueue.of(machine)
    finish = finished(form.sum, machine)
    reason = machine.reason(f"element of {place.name} read before its wgmma was waited for")

    def run(frame: Frame) -> Value:
        lanes = np.array(frame.mask())
        if lanes[:, lanes.shape[1] // GROUP * GROUP :].any():
            raise NotModelled("wgmma by a warpgroup of fewer threads")
        position, _ = place.position(frame)
        a, b = left(frame), right(frame)

        def registers(matrices: Array) -> Array:
            return _registers(matrices, index, frame.lanes)

        def terms(at: tuple[int, ...]) -> list[list[TracedCell]]:
            element, world, (group, thread) = at[0], at[1], divmod(at[2], GROUP)
            row, column = (int(np.broadcast_arrays(*index)[axis][element, thread]) for axis in (0, 1))
            assert a.row is not None
            assert b.row is not None
            return [a.row(world, group, row), b.row(world, group, column)]

        keeps = machine.uniform(scale.run(frame), "the scale of C") != 0
        poison = nothing_in(place.kind, machine.seeds, reason)
        hidden = np.broadcast_to(poison, (form.n // 2, frame.worlds, frame.lanes))
        total = queue.sum_at(place, position, frame, lanes, hidden)
        total.left += 1
        explained = None if a.row is None or b.row is None else terms
        queue.open.append(Product(total, lanes, a, b, registers, finish, keeps, explained))
        return 0

    return run


def _accumulator(n: int) -> tuple[Array, Array]:
    """Row and column of each accumulator of each thread, (elements, 128): rows of 16 for a warp, columns by eight."""
    element, thread = np.ogrid[: n // 2, :GROUP]
    row = thread // 32 * 16 + thread % 32 // 4 + element // 2 % 2 * 8
    column = element // 4 * 8 + thread % 4 * 2 + element % 2
    return row, column


def _spread(k: int, run: int) -> tuple[Array, Array]:
    """Row and column of each element of A in registers, (elements, 128): `run` neighbours along K in a register."""
    element, thread = np.ogrid[: 64 * k // GROUP, :GROUP]
    row = thread // 32 * 16 + thread % 32 // 4 + element // run % 2 * 8
    column = element // (2 * run) * (4 * run) + thread % 4 * run + element % run
    return row, column


def matrices(registers: Array, index: tuple[Array, Array], shape: tuple[int, int]) -> Array:
    """Registers (elements, worlds, threads) -> (worlds, groups, rows, columns); the last group may be a part."""
    elements, worlds, threads = registers.shape
    groups = -(-threads // GROUP)
    whole = _of_threads(registers, groups * GROUP)
    grouped = np.moveaxis(whole.reshape(elements, worlds, groups, GROUP), 0, 2)
    found = np.zeros((worlds, groups, *shape), registers.dtype)
    row, column = np.broadcast_arrays(*index)
    found[:, :, row, column] = grouped
    return found


def _registers(matrices: Array, index: tuple[Array, Array], threads: int) -> Array:
    """Matrices (worlds, groups, rows, columns) -> registers (elements, worlds, threads)."""
    worlds, groups, rows, columns = matrices.shape
    row, column = index
    inner = (row * columns + column)[:, None, None, :]
    which = np.arange(worlds * groups).reshape(1, worlds, groups, 1) * (rows * columns)
    whole = matrices.reshape(-1).take(inner + which).reshape(len(inner), worlds, groups * GROUP)
    return _of_threads(whole, threads)


def _of_threads(registers: Array, threads: int) -> Array:
    """Registers (elements, worlds, threads) of so many threads: zeros in those that are more, none of those beyond."""
    more = threads - registers.shape[-1]
    return np.pad(registers, ((0, 0), (0, 0), (0, more))) if more > 0 else registers[..., :threads]
