"""The order of a warpgroup's wgmma: fences of registers, instructions under way, groups, and waits (PTX 9.7.15.7).

An instruction is under way until a group that it was committed to is waited for; until then its sums are poison,
and it may read shared memory as late as that. Registers that something else has written need a wgmma.fence
(`warpgroup_arrive`) before it, and so does the first instruction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import PRODUCTS, Operands
from tlcheck.execute.memory.cells import Cells, Position
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, Mask, one_value
from tlcheck.execute.memory.values import Array, Value, stretched
from tlcheck.execute.ops.thread.mma import multiplied
from tlcheck.execute.ops.thread.wgmma_operands import MatrixOperand, side_by_side
from tlcheck.execute.stops import Illegal
from tlcheck.snapshot.ir import Expr


@dataclass(eq=False)
class _Used:
    """Registers that an instruction used: what they held when it left them, or at a fence after that.

    writes: those that the allocation had seen then; another number where some threads have passed no fence since.
    """

    place: BufferElement
    position: Position
    values: Array
    writes: int

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing has been written since."""
        memory = self.place.memory
        return isinstance(memory, Cells) and memory.writes == self.writes


@dataclass(eq=False)
class RegisterFences:
    """wgmma.fence (PTX 9.7.15.7.1): which threads have passed one, (worlds, threads), and what registers held then.

    Reading registers before the next instruction writes them needs one too: not looked at. Nor is a run over a field:
    numbers decide nothing here, and another run has had them.
    """

    passed: Mask | None = None
    last: dict[int, list[_Used]] = field(default_factory=dict)

    def fence(self, lanes: Mask) -> None:
        """The threads pass one: it covers what their registers hold now."""
        self.passed = lanes if self.passed is None else self.passed | lanes
        for known in chain.from_iterable(self.last.values()):
            if not known.is_unchanged:
                now = known.place.memory.take(known.position, known.place.kind)
                known.values, known.writes = np.where(lanes, now, known.values), -1

    def used(self, place: BufferElement, position: Position, values: Array, lanes: Mask) -> None:
        """An instruction begins to use registers (elements, worlds, threads). Raises Illegal without the fence."""
        if not _are_looked_at(place):
            return
        passed = np.False_ if self.passed is None else self.passed
        known = next((u for u in self.last.get(place.root, []) if _is_same(u.position, position)), None)
        if known is not None and known.is_unchanged:
            return
        changed = lanes & (~passed if known is None else _differ(known, values))
        if changed.any():
            world, lane = (int(i) for i in np.argwhere(changed)[0])
            what = f"wgmma uses {place.name} with no warpgroup_arrive (wgmma.fence) after it was written"
            raise Illegal(what, place.state.line, world, lane, place.name)

    def left(self, place: BufferElement, position: Position, values: Array) -> None:
        """An instruction is done with registers, which hold these values."""
        if not _are_looked_at(place):
            return
        users = self.last.setdefault(place.root, [])
        users[:] = [u for u in users if not _is_same(u.position, position)]
        memory = place.memory
        assert isinstance(memory, Cells)
        users.append(_Used(place, position, values, memory.writes))


def _are_looked_at(place: BufferElement) -> bool:
    """Whether fences count in the run in which these registers are."""
    return not place.state.options.source and place.state.options.field is None


def _is_same(a: Position, b: Position) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a is b or np.array_equal(a, b)
    return type(a) is type(b) and a == b


def _differ(used: _Used, values: Array) -> Mask:
    """The threads whose registers hold something else than they did; poison is compared by its bits."""
    word = f"i{values.itemsize}"
    return np.asarray((used.values.view(word) != np.ascontiguousarray(values).view(word)).any(axis=0))


@dataclass(eq=False)
class _Sum:
    """Accumulators with instructions under way: their values so far, (elements, worlds, threads)."""

    place: BufferElement
    position: Position
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
    terms: Operands | None  # None: what it is made of is not said

    def complete(self, others: Sequence[Product] = ()) -> None:
        """Do it, and others that add to the same; after the last one of its accumulators they have their values."""
        total, together = self.total, [self, *others]
        left, right = side_by_side([p.left for p in together]), side_by_side([p.right for p in together])
        product = self.registers(multiplied(left, np.swapaxes(right, -1, -2), total.place.state.options.field))
        if self.keeps:
            product += total.values
        np.copyto(total.values, self.finish(product), where=self.mask)
        total.left -= len(together)
        if not total.left:
            if self.terms is not None:
                total.place.observers.product(self.terms, self.keeps)
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
    def of(cls, program: KernelProgram) -> ProductQueue:
        found = program.state.shared.setdefault("wgmma", cls())
        assert isinstance(found, cls)
        return found

    def sum_at(self, place: BufferElement, position: Position, frame: Frame, lanes: Mask, poison: Array) -> _Sum:
        """The sum under way at a place; made, and its registers poisoned, by the first instruction."""
        for known in self.sums:
            if known.place.root == place.root and known.left and _is_same(known.position, position):
                return known
        self.sums = [s for s in self.sums if s.left]
        before = np.array(stretched(place.memory.take(position, place.kind), poison.shape))
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


@call("warpgroup_arrive", formula=True)
def arrive(e: Expr, program: KernelProgram) -> Computation:
    """wgmma.fence: registers that the warpgroup has written may be used by its instructions."""
    fences = ProductQueue.of(program).fences

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
        options = product.total.place.state.options
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


@call("warpgroup_commit_batch", formula=True)
def commit(e: Expr, program: KernelProgram) -> Computation:
    """wgmma.commit_group: the warpgroup's instructions since the last one are a group."""
    queue = ProductQueue.of(program)

    def run(frame: Frame) -> Value:
        lanes = np.array(frame.mask())
        mine = [p for p in queue.open if (p.mask & lanes).any()]
        queue.open = [p for p in queue.open if not any(p is m for m in mine)]
        queue.groups.append((lanes, mine))
        return 0

    return run


@call("warpgroup_wait", "wait_wgmma", formula=True)
def wait(e: Expr, program: KernelProgram) -> Computation:
    """wgmma.wait_group n: at most n of the warpgroup's groups are under way. In the source there are none."""
    queue, newest = ProductQueue.of(program), program.code(e.args[0])

    def run(frame: Frame) -> Value:
        left = one_value(newest.run(frame), "the number of groups to wait for")
        program.observers.operations_awaited(PRODUCTS, left, frame.mask())
        queue.wait(left, frame.mask())
        return 0

    return run
