"""tcgen05.mma: products of matrices that are added to tensor memory (PTX 9.7.16.10), and tcgen05.commit (9.7.16.12).

A product is under way until an mbarrier to which it was committed is complete; until then its sums are poison, and it
may read its operands as late as that. Those that one thread issues with the same sums are carried out in their order
(9.7.16.6.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import Cell, TensorCoreForm
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.state import Origin
from tlcheck.execute.memory.values import Array, Value, nothing_in
from tlcheck.execute.ops.thread.cluster_peers import destinations
from tlcheck.execute.ops.thread.mbarrier import Barrier, barrier
from tlcheck.execute.ops.thread.mma import finished, multiplied
from tlcheck.execute.ops.thread.tcgen05_forms import ProductForm, form_of, refuse_other_shapes
from tlcheck.execute.ops.thread.tcgen05_operands import (
    Issuer,
    LocatedOperand,
    OperandMatrix,
    in_shared,
    in_tensor_memory,
    issuer_in,
    issuers,
)
from tlcheck.execute.ops.thread.tensor_memory import ROOT, require_one_group
from tlcheck.execute.schedule.agents import Flight, agents_of
from tlcheck.execute.stops import NotModelled
from tlcheck.signatures.tcgen05 import is_of_pair
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

_MASKS = slice(9, 13)  # of the arguments: lanes of the sums that are not written


@dataclass(eq=False)
class _TensorSum:
    """Sums with products under way, of all worlds: their values so far, (worlds, m, n), and how many products."""

    matrix: OperandMatrix
    values: Array
    left: Array


@dataclass(eq=False)
class _Product:
    """One instruction under way, in some worlds. keeps: whether it adds to what is there. scale: what each element of
    the product is scaled by, (its worlds, m, n); None for nothing.
    """

    program: KernelProgram
    issuer: Issuer
    form: ProductForm
    total: _TensorSum
    left: OperandMatrix
    right: OperandMatrix
    sums: OperandMatrix
    keeps: Array
    origin: Origin
    worlds: Array  # in which it is still under way
    scale: Array | None = None

    def issue(self) -> None:
        """Publish what it will read and write."""
        observers, by = self.program.observers, self.issuer
        for matrix, kind in ((self.left, "read"), (self.right, "read"), (self.sums, "write")):
            proxy = "tensor" if matrix.place.root == ROOT else "async"
            observers.tensor_product_issued(matrix.place, matrix.cells, by.mask, by.lane, self.origin, kind, proxy)

    def complete(self, worlds: Array, others: Sequence[_Product] = ()) -> None:
        """Do it in some worlds, and others after it that add to the same sums."""
        together = [self, *others]
        left, right = (
            np.concatenate([side.read(np.searchsorted(p.issuer.worlds, worlds)) for p, side in sides], axis=-1)
            for sides in ([(p, p.left) for p in together], [(p, p.right) for p in together])
        )
        found, total = multiplied(left, np.swapaxes(right, -1, -2)), self.total
        if self.scale is not None:
            found = found * self.scale[np.searchsorted(self.issuer.worlds, worlds)]
        keeps = self.keeps[np.searchsorted(self.issuer.worlds, worlds)]
        if keeps.all():
            found += total.values[worlds]
        elif keeps.any():
            found += np.where(keeps[:, None, None], total.values[worlds], 0)
        total.values[worlds] = finished(self.form.sum, self.program.options)(found)
        total.left[worlds] -= len(together)
        for product in together:
            product.worlds = np.setdiff1d(product.worlds, worlds)
            product.landed(worlds)
        self._settle(worlds[total.left[worlds] == 0])

    def landed(self, worlds: Array) -> None:
        """Publish that it has read and written what it does."""
        observers, by = self.program.observers, self.issuer.among(worlds)
        for matrix in (self.left, self.right, self.sums):
            observers.tensor_product_landed(matrix.place, matrix.cells, by.mask, by.lane)

    def _settle(self, worlds: Array) -> None:
        """The sums are there, in worlds in which no product is left."""
        if not len(worlds):
            return
        observers, total, place = self.program.observers, self.total, self.sums.place
        chosen = np.zeros((len(total.left), 1), np.bool_)
        chosen[worlds] = True
        value = total.values.reshape(len(total.left), -1).T[:, :, None]
        observers.landing(self.origin)
        observers.product(self._terms, bool(self.keeps.any()))
        place.memory.put(self.sums.cells, value, chosen, place.kind)

    def _terms(self, at: tuple[int, ...]) -> list[list[Cell]]:
        row, column = divmod(at[0], self.form.n)
        world = int(np.searchsorted(self.issuer.worlds, at[1]))
        return [self.left.row(world, row), self.right.row(world, column)]


@dataclass(eq=False)
class ProductsUnderWay:
    """Products that are not complete, in the order of their issue, and sums by what names them."""

    open: list[_Product] = field(default_factory=list)
    sums: dict[tuple[int, ProductForm], _TensorSum] = field(default_factory=dict)

    @classmethod
    def of(cls, program: KernelProgram) -> ProductsUnderWay:
        found = program.state.shared.setdefault("tcgen05", cls())
        assert isinstance(found, cls)
        return found

    def sum_at(
        self, word: int, matrix: OperandMatrix, form: ProductForm, worlds: Array, poison: Array, late: bool
    ) -> _TensorSum:
        """The sums under way at an address, and one product more; the first one hides what is there."""
        key, of = (word, form), poison.shape[0]
        if key not in self.sums:
            self.sums[key] = _TensorSum(matrix, np.zeros((of, form.m, form.n), form.sum.array), np.zeros(of, np.int64))
        total, place = self.sums[key], matrix.place
        fresh = worlds[total.left[worlds] == 0]
        if len(fresh):
            here = np.searchsorted(worlds, fresh)
            total.values[fresh] = matrix.read(here)
            if late:
                chosen = np.zeros((of, 1), np.bool_)
                chosen[fresh] = True
                place.memory.put(matrix.cells, poison[None], chosen, place.kind)
        total.left[worlds] += 1
        return total

    def finish(self, chosen: Sequence[_Product], by: Mask) -> None:
        """Complete products that the threads of `by`, (worlds, threads), have issued."""
        part: list[_Product] = []
        worlds = np.empty(0, np.int64)
        for product in chosen:
            mine = product.worlds[by[product.worlds, product.issuer.thread]]
            if part and not (np.array_equal(mine, worlds) and _adds_on(product, part[-1])):
                part[0].complete(worlds, part[1:])
                part = []
            if len(mine):
                part.append(product)
                worlds = mine
        if part:
            part[0].complete(worlds, part[1:])
        self.open = [product for product in self.open if len(product.worlds)]


def _adds_on(product: _Product, before: _Product) -> bool:
    """Whether a product adds to the sums of the one before it, so that both are one of more columns.

    The sum is another one where each instruction rounds it. Plainly, each is by itself.
    """
    options = product.program.options
    alike = product.total is before.total and product.issuer.thread == before.issuer.thread
    alike = alike and product.scale is None
    return alike and bool(product.keeps.all()) and bool(options.exact) and not options.plain


@call("ptx_tcgen05_mma_ss")
def from_shared(e: Expr, program: KernelProgram) -> Computation:
    """(type of A, descriptor of A, its offset, of B, its offset, sums, their offset, instruction descriptor, whether it
    adds, masks of four words[, whether it is .ws[, of two blocks]]).
    """
    form = form_of(e)
    left = in_shared(e, 1, (form.m, form.k), form.left, form.left_by_k, program, form.blocks)
    return issuing(e, form, left, program)


@call("ptx_tcgen05_mma_ts")
def from_tensor_memory(e: Expr, program: KernelProgram) -> Computation:
    """(type of A, address of A, its offset, descriptor of B, its offset, ...); the rest as for `from_shared`."""
    form = form_of(e)
    if not form.left_by_k:
        raise NotModelled("ptx_tcgen05_mma_ts of a transposed A")
    return issuing(e, form, in_tensor_memory(e, 1, form, program, sums=False), program)


Scaling = Callable[[Frame, Issuer], Array]
"""What the elements of a product are scaled by, (the issuer's worlds, m, n)."""


def issuing(
    e: Expr, form: ProductForm, left: LocatedOperand, program: KernelProgram, scaling: Scaling | None = None
) -> Computation:
    """A product of a form. scaling: of one that is block-scaled."""
    if scaling is None:
        _refuse_others(e)
    right = in_shared(e, 3, (form.n, form.k), form.right, form.right_by_k, program, form.blocks)
    sums, adds = in_tensor_memory(e, 5, form, program, sums=True), program.code(e.args[8])
    queue, late, state = ProductsUnderWay.of(program), program.options.late, program.state
    reason = state.reason(f"element of {program.pointer(e.args[5]).name} read before its tcgen05.mma was waited for")
    poison = nothing_in(form.sum, state.chances, reason)

    counted, require = _counted(e, form, program), require_one_group(e, program)

    def run(frame: Frame) -> Value:
        require(frame)
        program.observers.product_issued(counted, state.at, frame.mask())
        words, keeps = [side.word(frame) for side in (left, right, sums)], adds.run(frame)
        for warp in issuers(frame, "tcgen05.mma"):
            refuse_other_shapes(form, state.line, int(warp.worlds[0]), warp.thread)
            for group, issuer in _alike(warp, words, frame.worlds):
                a, b, c = (side.at(word, issuer.worlds) for side, word in zip((left, right, sums), group, strict=True))
                total = queue.sum_at(group[2], c, form, issuer.worlds, poison, late)
                kept, origin = issuer.pick(keeps, frame.worlds) != 0, state.origin(frame)
                scale = None if scaling is None else scaling(frame, issuer)
                product = _Product(program, issuer, form, total, a, b, c, kept, origin, issuer.worlds, scale)
                queue.open.append(product)
                product.issue()
                if not late:
                    queue.finish([product], issuer.lane)
        return 0

    return run


def _counted(e: Expr, form: ProductForm, program: KernelProgram) -> TensorCoreForm:
    rows = form.n if e.value == "ptx_tcgen05_mma_ts" else form.m + form.n
    shared = rows * form.k * form.left.bits // 8
    name = f"tcgen05.mma{'.ws' if form.stays else ''}"
    buffer = program.pointer(e.args[5]).name
    return TensorCoreForm(name, form.m, form.n, form.k, form.left.name, WARP, buffer, shared)


def _alike(warp: Issuer, words: Sequence[Value], worlds: int) -> Iterator[tuple[list[int], Issuer]]:
    """The worlds in which a warp names the same matrices, with what names them."""
    named = np.stack([warp.pick(word, worlds).astype(np.uint64) for word in words])
    for group in np.unique(named, axis=1).T:
        yield group.tolist(), warp.among(warp.worlds[(named == group[:, None]).all(axis=0)])


def _refuse_others(e: Expr) -> None:
    """Raise NotModelled for forms that are not known."""
    if any(a.op != "int" or a.value for a in e.args[_MASKS]):
        raise NotModelled(f"{e.value} that leaves out lanes")


@call("tcgen05_mma_arrive")
def commit(e: Expr, program: KernelProgram) -> Computation:
    """tcgen05.commit: a thread of each warp arrives at an mbarrier once its products before this are complete.

    Of two blocks it arrives at the barriers of both (`tl_templates/cuda/tcgen_05.h`: a multicast with the mask 3, which
    is that of ranks 0 and 1).
    """
    require, ranks = require_one_group(e, program), (0, 1) if is_of_pair(e) else ()
    which, queue = barrier(e.args[0], program), ProductsUnderWay.of(program)
    agents, late = agents_of(program.state), program.options.late

    def run(frame: Frame) -> Value:
        require(frame)
        which.used(frame)
        for number, mask in which(frame).by_number:
            program.observers.products_committed((which.barriers.name, number), mask)
        for warp in issuers(frame, "tcgen05.commit"):
            due = [product for product in queue.open if product.issuer.thread == warp.thread]
            there = [at for rank in ranks for _, at in destinations(rank, frame, program)]
            land = _landing(which, frame, warp, due, queue, there or [np.arange(frame.worlds)])
            if late and due:  # without products it is complete at once
                agents.flights.append(Flight(land, which.barriers))
            else:
                land()
        return 0

    return run


def _landing(
    which: Barrier,
    frame: Frame,
    warp: Issuer,
    due: Sequence[_Product],
    queue: ProductsUnderWay,
    there: Sequence[Array],
) -> Callable[[], None]:
    """Return what happens when all that a warp's thread has issued until now is complete. there: the worlds, (worlds,),
    at whose barriers each world's thread arrives then.

    The arrival releases what the thread knows now: an asynchronous operation comes after the instructions before it
    (PTX 8.9.1.1). What it learns later is not released, although the products may take until then.
    """
    goals = [(world, number) for world, number, lanes, _ in which(frame).each if lanes[warp.thread]]
    observers, by = which.barriers.observers, {}
    for number in dict.fromkeys(number for _, number in goals):
        worlds = np.array([world for world, other in goals if other == number])
        by[number] = issuer_in(worlds, warp.thread, warp.lane.shape)
        for at in there:
            observers.products_released((which.barriers.name, number), by[number].lane, at)

    def land() -> None:
        queue.finish(due, warp.lane)
        for number, issuer in by.items():
            for at in there:
                observers.products_finished((which.barriers.name, number), issuer.lane, at)
        for world, number in goals:
            for at in there:
                which.barriers.arrive(int(at[world]), number, 1)

    return land
