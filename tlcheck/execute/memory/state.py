"""Define what a kernel runs in: worlds and their memory, what has been spent, and what was noticed on the way."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import default_rng

from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.pages import Contents, Pages
from tlcheck.execute.memory.values import Array, Kind, Value, rounding
from tlcheck.execute.stops import TIME, BudgetSpent, Illegal, OutOfBytes, OutOfStatements
from tlcheck.snapshot.ir import Stmt

_BETWEEN_TIMES = 64  # statements
_FEW = 8  # results of which each costs all that it may: of as few, one may cost little by chance


@dataclass(frozen=True, slots=True)
class World:
    """One block with the inputs of one seed. block: its coordinates x, y, z."""

    seed: int
    block: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A global tensor: size in elements; contents as `Pages` wants them. before: as an earlier run left it."""

    kind: Kind
    size: int
    contents: Contents
    before: Pages | None = None


@dataclass(frozen=True, slots=True)
class Origin:
    """A statement and the values of the variables of the loops around it."""

    stmt: Stmt | None = None
    loops: tuple[tuple[str, int], ...] = ()


NOWHERE = Origin()


class RunState:
    """The state of one run of a kernel.

    threads: of a block; lanes: within T.Parallel as many as it has iterations. memory: by the number of the allocation.
    at: the statement that runs, or is compiled. spent: statements. overflowed: whether a number became larger than
    float64 holds. looked_at: tensors and shared buffers that were accessed. reasons: of poison. shared: what the
    handlers of an instruction keep. asked: options on which the kernel hangs, of those that differ from release to
    release.

    Where all iterations of a loop run at once, each is a world of its own (`repeated`). each: the worlds without them.
    axes: of `worlds`, the iterations, then the worlds. fixed: the loops' variables in each world. sums: by allocation,
    iterations to add up, of so many worlds. endings: what is looked at when the kernel has come to its end.
    """

    def __init__(
        self,
        options: Options,
        threads: int,
        worlds: Sequence[World],
        tensors: Mapping[str, Tensor],
        names: Iterable[tuple[int, str]],
        left: Mapping[str, Pages],
        seeds: Sequence[int],
    ) -> None:
        """tensors: by the name of the parameter. names: of the allocations of parameters, by their number.

        left: tensors as earlier blocks, or an earlier kernel, left them. seeds: of other worlds with the same tensors.
        """
        self.options, self.tensors = options.among(len(worlds)), tensors
        self.worlds, self.seeds = tuple(worlds), tuple(world.seed for world in worlds)
        self.threads = self.lanes = threads
        self.each = len(self.worlds)
        self.axes: tuple[int, ...] = (self.each,)
        self.fixed: dict[int, Array] = {}
        self.sums: MutableMapping[int, tuple[int, int]] = {}
        self.memory: dict[int, Cells | Pages] = {}
        self.at: Stmt | None = None
        self.loops: dict[int, str] = {}  # the names of variables
        self.looked_at: set[str] = set()
        self.asked: set[str] = set()
        self.strayed: set[Stmt] = set()  # of the source, which leave a tensor
        self.spent = self._timed = 0  # statements; those at which time was looked at
        self.overflowed = False
        self.shared: dict[str, object] = {}
        self.endings: list[Callable[[], None]] = []
        self.reasons: list[str] = ["never written"]
        self._bytes = 0
        self._noise = default_rng((options.jitter + 1) // 2)
        every = tuple(dict.fromkeys((*seeds, *self.seeds)))
        for root, name in names:
            if name in left:
                self.memory[root] = left[name].continued(self.seeds)
            elif name in tensors:
                self.memory[root] = self._pages(tensors[name], every)

    def _pages(self, tensor: Tensor, seeds: tuple[int, ...]) -> Pages:
        if tensor.before is not None and not self.options.jitter:
            afresh = tensor.before.afresh(seeds)
            if afresh is not None:
                return afresh.continued(self.seeds)
        pages = Pages(tensor.kind, tensor.size, seeds, tensor.contents, self.options.bytes).continued(self.seeds)
        pages.opaque = self.options.field is not None
        pages.jitter = self.shaken if self.options.jitter and tensor.kind.is_float else None
        return pages

    def repeated(self, times: int) -> RunState:
        """This state with each world `times` times: for statements that run once for all iterations of a loop."""
        other = copy(self)
        other.options = self.options.among(self.each, len(self.worlds) // self.each * times)
        other.worlds, other.seeds = self.worlds * times, self.seeds * times
        other.memory = _Repeated(self.memory, times)
        return other

    @property
    def chances(self) -> tuple[int, ...]:
        """The seed, for each world, of the values that nobody has written (`values.nothing`)."""
        return tuple([~seed for seed in self.seeds]) if self.options.chance else self.seeds

    # ---- memory

    def allocate(self, root: int, size: int, kinds: tuple[Kind, ...], threads: int, zeros: bool = False) -> Cells:
        """Cells for all worlds, as `Cells` takes them. root: the allocation's number. zeros: what they begin with.

        Raises BudgetSpent.
        """
        self._bytes += -(-size * 8 // min(kind.bits for kind in kinds)) * len(self.worlds) * threads * 8
        if self._bytes > self.options.bytes:
            raise OutOfBytes
        cleared = zeros or self.options.cleared is None or root in self.options.cleared
        return Cells(size, kinds, self.chances, threads, cleared, self.options.field is not None)

    def contents(self) -> bytes:
        """Return what tells whether anything in memory has changed since."""
        found = hashlib.blake2b()
        for memory in self.memory.values():
            found.update(memory.flat.view(np.uint8).data)
        return found.digest()

    def out_of_bounds(self, name: str, memory: Cells | Pages, frame: Frame, offending: Mask) -> Mask:
        """Return what happens where an access is out of bounds: the lanes that go on. Raises Illegal.

        In the source accesses of global tensors are guarded: a load gives 0, a store does nothing. The guards come
        late.
        """
        if (self.options.source or self.options.early) and isinstance(memory, Pages):
            if self.at is not None:
                self.strayed.add(self.at)
            return frame.mask() & ~offending
        shape = np.broadcast_to(offending, np.broadcast_shapes(offending.shape, (frame.worlds, 1)))
        found = np.argwhere(shape)[0]
        raise Illegal(f"access of {name} out of bounds", self.line, int(found[-2]), int(found[-1]), name)

    # ---- the statement that runs

    @property
    def line(self) -> int:
        """The source line of the statement that runs, or is compiled; 0 if unknown."""
        return 0 if self.at is None else self.at.line

    def origin(self, frame: Frame) -> Origin:
        """The statement that runs, and the iteration of the loops around it; nowhere unless all runs plainly."""
        if not self.options.plain:
            return NOWHERE
        found = [(name, frame.variables.get(uid)) for uid, name in self.loops.items()]
        return Origin(self.at, tuple([(name, value) for name, value in found if isinstance(value, int)]))

    def spend(self, statements: int) -> None:
        """Count statements. Raises BudgetSpent."""
        self.spent += statements
        if self.spent > self.options.statements:
            raise OutOfStatements
        if self.spent >= self._timed + _BETWEEN_TIMES:
            self._timed = self.spent
            if time.process_time() > self.options.until:
                raise BudgetSpent(TIME, TIME.kind)

    # ---- numbers

    def reason(self, text: str) -> int:
        """The number of a reason of poison."""
        if text not in self.reasons:
            self.reasons.append(text)
        return self.reasons.index(text)

    def under_way(self, name: str) -> int:
        """The number of the reason of what a copy into a buffer has not written yet."""
        return self.reason(f"element of {name}, read while its copy is under way")

    def shaken(self, value: Value) -> Array:
        """Floats changed by up to 2^-40 of themselves, see `Options.jitter`."""
        array = np.asarray(value, np.float64)
        return array * (1.0 - (-1.0) ** self.options.jitter * 2.0**-40 * self._noise.uniform(-1.0, 1.0, array.shape))

    def folded(self, value: Value) -> Value:
        """A number that a compiler may have computed, rounded to 24 bits: a little more, or less."""
        return value * float(1.0 + (-1) ** self.options.jitter * 2.0**-24)

    def summed(self, kind: Kind, terms: int | Array, sizes: Array | float = 0.0) -> Callable[[Any], Any] | None:
        """Return what to do with sums of so many terms that were made in float64; None for nothing.

        sizes: those of partial sums, where they are known: the terms of a small sum may have cancelled.
        """
        settle = rounding(kind, self.options.exact)
        if settle is None or not self.options.costly:
            return settle
        step, uniform = kind.unit * np.sqrt(terms), self._noise.uniform

        def run(values: Value) -> Value:
            array = np.asarray(values, np.float64)
            known = array[np.isfinite(array)]
            size = np.maximum(np.maximum(np.abs(array), sizes), np.sqrt(np.mean(known**2)) if known.size else 0.0)
            part = uniform(-1.0, 1.0, array.shape)
            part = np.sign(part) if array.size < _FEW else part
            found: Value = settle(array + np.where(np.isfinite(size), step * size, 0.0) * part)
            return found

        return run


class _Repeated(dict[int, Cells | Pages]):
    """The memory of a state for one with each world several times. Allocations of its own have these worlds."""

    def __init__(self, memory: Mapping[int, Cells | Pages], times: int) -> None:
        self._memory, self._times = memory, times
        self._views: dict[int, tuple[Cells | Pages, Cells | Pages]] = {}

    def __missing__(self, root: int) -> Cells | Pages:
        whole = self._memory[root]
        known = self._views.get(root)
        if known is None or known[0] is not whole:
            known = self._views[root] = (whole, whole.repeated(self._times))
        return known[1]
