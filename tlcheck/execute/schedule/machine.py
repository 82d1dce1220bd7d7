"""The machine that runs a kernel: worlds x lanes, its memory, and what handlers ask of it.

A handler is called when the kernel is compiled, with the node of its call and the machine, and returns a function of
a frame. What it may ask for: `code` (an expression), `step` (a statement), `place` (an element of a buffer),
`pointer` (what an address argument points to), `uniform`, `per_world`.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tlcheck.execute.compile.codes import Code, Step
from tlcheck.execute.compile.expressions import compiled
from tlcheck.execute.compile.extents import Signs
from tlcheck.execute.compile.statements import compiled_statement
from tlcheck.execute.events import NOWHERE, Observer, Observers, Origin
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.layouts import annotate
from tlcheck.execute.memory.pages import Contents, Pages
from tlcheck.execute.memory.places import Arrange, Place
from tlcheck.execute.memory.pointers import PLACED, counted, pointers_of
from tlcheck.execute.memory.values import Array, Kind, Value, lanes_of, rounding
from tlcheck.execute.reasons import TIME, BudgetSpent, Illegal, NotModelled, WrittenUnclear
from tlcheck.program.release import UNKNOWN, Release
from tlcheck.snapshot.ir import Buffer, Expr, Function, Stmt
from tlcheck.snapshot.walk import first_line, postorder
from tlcheck.targets.lookup import TARGETS, USUAL
from tlcheck.targets.target import Target

_BETWEEN_TIMES = 64  # statements


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
class Options:
    """written: the kernel has tile operators and T.Parallel. exact: floats are float64, whatever their dtype.

    early: before VectorizeLoop, when guards may be missing, and copies are narrower than the instructions that they
    become.
    late: asynchronous copies land when they are waited for, otherwise at once.
    midway: the tile operators are no longer the author's: copies that a pass made asynchronous have to be waited for.
    statements, bytes: the budget. until: seconds of this process at which it ends.
    costly: sums as written cost what rounding each of their terms may, where floats are not exact.
    jitter: 0, or the number of a run in which all floats are changed a little: an even one as in the run before it, the
    other way, so that a sum of which nothing should be left is above zero in one of the two and below in the other.
    order: in which lanes' atomics act: as they are numbered (0), from the last one on (1), every other one first (2).
    behind: a warp whose branch lets all others go first (`agents`).
    target: what it was lowered for. release: TileLang's, whose library and conventions the lowered kernel uses.
    plain: every iteration by itself.
    barriers: TileLang puts them between accesses to shared memory where the author has not.
    printed: as the CUDA that is made of it: integers are promoted, for example (`program.generated`).
    alike: all random numbers of a block are the same one.
    chance: integers that nobody has written have other values.
    """

    written: bool
    early: bool = False
    midway: bool = False
    exact: bool = True
    costly: bool = False
    late: bool = True
    release: Release = UNKNOWN
    target: Target = TARGETS[USUAL[-1]]
    statements: int = 10**9
    bytes: int = 1 << 32
    until: float = math.inf
    jitter: int = 0
    plain: bool = True
    behind: int | None = None
    order: int = 0
    barriers: bool = True
    printed: bool = False
    alike: bool = False
    chance: bool = False


class Machine:
    """Compiles a kernel's statements for the given worlds and runs them."""

    def __init__(
        self,
        function: Function,
        threads: tuple[int, int, int],
        worlds: Sequence[World],
        tensors: Mapping[str, Tensor],
        scalars: Mapping[str, int | float],
        options: Options,
        left: Mapping[str, Pages] | None = None,
        seeds: Sequence[int] = (),
    ) -> None:
        """tensors, scalars: by the name of the parameter (sizes in shapes count as parameters).

        left: tensors as earlier blocks, or an earlier kernel, left them. seeds: of other worlds with the same tensors.
        """
        self.function, self.options = function, options
        self._left = dict(left or {})
        self.worlds = tuple(worlds)
        self.extents = threads
        self.threads = self.lanes = threads[0] * threads[1] * threads[2]
        self.tensors, self.scalars = tensors, scalars
        self.seeds = tuple(w.seed for w in worlds)
        self._every_seed = tuple(dict.fromkeys((*seeds, *self.seeds)))
        self.pointers = pointers_of(function)
        self.signs = Signs(function, {name: value for name, value in scalars.items() if isinstance(value, int)})
        self.variables: dict[int, Code] = {}
        self.ahead: dict[int, Expr] = {}  # what T.Persistent binds, before its loop, of the loop's variable
        self.parameters: dict[int, Value] = {uid: scalars[name] for uid, name in self.pointers.free if name in scalars}
        self.memory: dict[int, Cells | Pages] = {}
        self.made: list[tuple[object, Place]] = []
        self.each = len(self.worlds)  # worlds, however many iterations of a loop run at once in them
        self.axes: tuple[int, ...] = (self.each,)  # of `worlds`: iterations of loops that run at once, then the worlds
        self.fixed: dict[int, Array] = {}  # the variables of loops that run at once, in each world
        self.sums: MutableMapping[int, tuple[int, int]] = {}  # by allocation: iterations to add up, of so many worlds
        self.at: Stmt | None = None
        self.loops: dict[int, str] = {}
        self.observers = Observers()
        self.steered: set[int] = set()  # branches and loops, as written, on which what is in memory decides
        self.untried: dict[int, int] = {}  # lines of such branches that were not taken, and loops that ended early
        self.looked_at: set[str] = set()  # tensors and shared buffers that were accessed
        self.iterating = False
        self.followed = 0  # how many of the statements around the one being compiled have others after them
        self.spent = self._timed = 0  # statements; those at which time was looked at
        self.overflowed = False  # a number became larger than float64 holds
        self.shared_state: dict[str, object] = {}
        self.safe_values: dict[int, int | float] = {}
        self.reasons: list[str] = ["never written"]
        self._codes: dict[int, tuple[Expr, Code]] = {}
        self._bytes = 0
        self._noise = np.random.default_rng((options.jitter + 1) // 2)
        self._tensors()
        if options.written:
            annotate(self)

    def _note_overflow(self, kind: str, flags: int) -> None:
        self.overflowed = True

    def run(self, *observers: Observer) -> None:
        """Run the kernel once in all worlds."""
        self.observers = Observers(*observers)
        for root, memory in self.memory.items():
            self.observers.allocated(root, memory)
        with np.errstate(all="ignore", over="call", call=self._note_overflow):
            step = self.step(self.function.body)
            frame = Frame(dict(self.parameters), len(self.worlds), self.threads)
            try:
                step.run(frame)
            except Illegal as illegal:
                illegal.stmt = illegal.stmt or self.at
                raise
            except KeyError as missing:
                if missing.args[0] not in self.loops:
                    raise
                raise NotModelled(f"variable {self.loops[missing.args[0]]} without a value") from None
        self.observers.ended()

    def rest(self) -> None:
        """After the run, drop what only a running kernel needs: memory of its blocks, code, and what that has kept."""
        self.memory = {uid: found for uid, found in self.memory.items() if isinstance(found, Pages)}
        for used in (self._codes, self.made, self.variables, self.fixed, self.shared_state):
            used.clear()

    @property
    def chances(self) -> tuple[int, ...]:
        """For each world the seed of what nobody has written (`values.nothing`)."""
        return tuple([~seed for seed in self.seeds]) if self.options.chance else self.seeds

    def code(self, e: Expr) -> Code:
        """A compiled expression."""
        found = self._codes.get(id(e))
        if found is None:
            found = self._codes[id(e)] = (e, compiled(e, self))
        return found[1]

    def step(self, stmt: Stmt) -> Step:
        """A compiled statement."""
        return compiled_statement(stmt, self)

    def side(self, body: Stmt, condition: Code) -> Step:
        """A compiled side of a branch."""
        step, untried = self.step(body), self.untried
        if not self.options.written or condition.steady:
            return step
        self.steered.add(id(body))
        untried[id(body)] = first_line(body)

        def run(frame: Frame) -> None:
            untried.pop(id(body), None)
            step.run(frame)

        return replace(step, run=run)

    def repeated(self, times: int) -> Machine:
        """This machine with each world `times` times: for statements that run once for all iterations of a loop.

        It notes the places that it makes, with the indices or the address that they were made of.
        """
        other = copy(self)
        other.worlds, other.seeds = self.worlds * times, self.seeds * times
        other.memory = _Repeated(self.memory, times)
        other.variables, other._codes, other.made = dict(self.variables), {}, []
        return other

    def place(self, buffer: Buffer, indices: Sequence[Expr]) -> Place:
        """The element of a buffer in each lane."""
        if lanes_of(buffer.dtype) > 1 and any(lanes_of(i.dtype) > 1 for i in indices):
            raise NotModelled("a vector of vectors")
        if self.options.written:
            pairs = list(zip(indices, buffer.shape, strict=True))
            codes = [counted(i, self.code(self.signs.resolved(i, size)), self.code(size)) for i, size in pairs]
        else:
            codes = [self.code(i) for i in indices]
        found = self.pointers.place(self, buffer, codes)
        if indices and not self.options.written and not buffer.scope.startswith("local"):
            found.aligned = _vector_octets(indices[-1], found.kind)
        self.made.append((indices, found))
        return found

    def pointer(
        self,
        pointer: Expr,
        elements: int | Array = 1,
        offset: Expr | Code | None = None,
        arrange: Arrange | None = None,
    ) -> Place:
        """What an address argument points to, `offset` elements further on.

        elements: how many make a vector; or how many elements from there each of them is.
        """
        steps = np.arange(elements) if isinstance(elements, int) else elements
        found = self.pointers.pointed(self, pointer, offset, steps, arrange)
        if found.kind.bits < 8:
            raise NotModelled(f"an address of {found.kind.name}")
        self.made.append((pointer, found))
        return found

    def allocate(self, buffer: Buffer, frame: Frame | None = None) -> None:
        """Make room for a buffer when it is declared; again: make it poison again, in the frame's active lanes."""
        root = self.pointers.root(buffer.data.uid)
        known = self.memory.get(root)
        if isinstance(known, Pages) or (known is not None and root == PLACED):
            return
        if isinstance(known, Cells) and (known.data.shape[2] in (1, self.lanes)):
            known.forget(mask=None if frame is None else frame.active)
            if frame is not None and frame.active is None:
                self.observers.reallocated(root)
            return
        size = self.pointers.room(buffer, self)
        registers = buffer.scope.startswith("local")  # as written, fragments and reducers are tiles of the block
        own = registers and not (self.options.written and buffer.scope in ("local.fragment", "local.reducer"))
        kinds = self.pointers.kinds(buffer)
        cells = -(-size // min(k.octets for k in kinds)) * len(self.worlds) * (self.lanes if own else 1)
        self._bytes += cells * 8
        if self._bytes > self.options.bytes:
            raise BudgetSpent("more memory than allowed")
        self.memory[root] = made = Cells(size, kinds, self.chances, self.lanes if own else 1)
        self.observers.allocated(root, made)

    def is_unbound(self, e: Expr) -> bool:
        """Whether an expression is a variable that nothing before it has given a value."""
        if e.op != "var" or e.dtype == "handle" or e.uid in self.variables or e.uid in self.parameters:
            return False
        return e.uid not in self.ahead or any(self.is_unbound(part) for part in postorder([self.ahead[e.uid]]))

    @contextmanager
    def in_parallel(self) -> Iterator[None]:
        """While the body of a T.Parallel is compiled: lanes are iterations, not threads."""
        saved, self.iterating = self.iterating, True
        yield
        self.iterating = saved

    @contextmanager
    def inside_block(self) -> Iterator[None]:
        """While a block is compiled: its safe values hold in it alone, and so does what was compiled with them."""
        saved = self.safe_values, self._codes
        self.safe_values, self._codes = dict(self.safe_values), {}
        yield
        self.safe_values, self._codes = saved

    @contextmanager
    def following(self, more: bool) -> Iterator[None]:
        """While a statement is compiled; more: whether others follow it, or it is repeated."""
        self.followed += more
        yield
        self.followed -= more

    def uniform(self, value: Value, what: str) -> int:
        """A value that has to be the same in all lanes. Raises WrittenUnclear."""
        if not isinstance(value, np.ndarray):
            return int(value)
        first = value.flat[0]
        if not (value == first).all():
            raise WrittenUnclear(f"{what} differs between threads")
        return int(first)

    def per_world(self, value: Value, what: str) -> Value:
        """A value that has to be the same in all lanes of a world: a scalar or (worlds, 1). Raises WrittenUnclear."""
        if not isinstance(value, np.ndarray) or value.shape[-1] == 1:
            return value
        first = value[..., :1]
        if not ((value == first) | ((value != value) & (first != first))).all():
            raise WrittenUnclear(f"{what} differs between threads")
        return first

    def reason(self, text: str) -> int:
        """The number of a reason of poison."""
        if text not in self.reasons:
            self.reasons.append(text)
        return self.reasons.index(text)

    def shaken(self, value: Value) -> Array:
        """Floats changed by up to 2^-40 of themselves, see `Options.jitter`."""
        array = np.asarray(value, np.float64)
        return array * (1.0 - (-1.0) ** self.options.jitter * 2.0**-40 * self._noise.uniform(-1.0, 1.0, array.shape))

    def folded(self, value: Value) -> Value:
        """A number that a compiler may have computed, rounded to 24 bits: a little more, or less."""
        return value * float(1.0 + (-1) ** self.options.jitter * 2.0**-24)

    def summed(self, kind: Kind, terms: int | Array) -> Callable[[Any], Any] | None:
        """What to do with sums of so many terms that were made in float64; None for nothing."""
        settle = rounding(kind, self.options.exact)
        if settle is None or not self.options.costly:
            return settle
        step, uniform = kind.unit * np.sqrt(terms), self._noise.uniform

        def run(values: Value) -> Value:
            array = np.asarray(values, np.float64)
            known = array[np.isfinite(array)]
            size = np.maximum(np.abs(array), np.sqrt(np.mean(known**2)) if known.size else 0.0)
            found: Value = settle(
                array + np.where(np.isfinite(size), step * size, 0.0) * uniform(-1.0, 1.0, array.shape)
            )
            return found

        return run

    @property
    def line(self) -> int:
        """The source line of the statement that runs, or is compiled; 0 if unknown."""
        return 0 if self.at is None else self.at.line

    def origin(self, frame: Frame) -> Origin:
        """The statement that runs, and the iteration of the loops around it; nowhere if nobody asks, or not plainly."""
        if not (self.options.plain and self.observers):
            return NOWHERE
        found = [(name, frame.variables.get(uid)) for uid, name in self.loops.items()]
        return Origin(self.at, tuple([(name, value) for name, value in found if isinstance(value, int)]))

    def spend(self, statements: int) -> None:
        """Count statements. Raises BudgetSpent."""
        self.spent += statements
        if self.spent > self.options.statements:
            raise BudgetSpent("more statements than allowed")
        if self.spent >= self._timed + _BETWEEN_TIMES:
            self._timed = self.spent
            if time.process_time() > self.options.until:
                raise BudgetSpent(TIME)

    def contents(self) -> bytes:
        """What tells whether anything in memory has changed since."""
        found = hashlib.blake2b()
        for memory in self.memory.values():
            found.update(memory.flat.view(np.uint8).data)
        return found.digest()

    def out_of_bounds(self, place: Place, frame: Frame, offending: Mask) -> Mask:
        """What happens where an access is out of bounds: the lanes that go on. Raises Illegal.

        As written, accesses of global tensors are guarded: a load gives 0, a store does nothing. The guards come late.
        """
        if (self.options.written or self.options.early) and isinstance(place.memory, Pages):
            return frame.mask() & ~offending
        shape = np.broadcast_to(offending, np.broadcast_shapes(offending.shape, (frame.worlds, 1)))
        found = np.argwhere(shape)[0]
        raise Illegal(f"access of {place.name} out of bounds", self.line, int(found[-2]), int(found[-1]), place.name)

    def thread_index(self, axis: int) -> Value:
        """threadIdx of all lanes, (1, threads), x fastest; a scalar where there is only one."""
        if self.extents[axis] == 1:
            return 0
        inner = int(np.prod(self.extents[:axis]))
        return (np.arange(self.threads, dtype=np.int32) // inner % self.extents[axis]).reshape(1, -1)

    def block_index(self, axis: int) -> Value:
        """blockIdx of all worlds, (worlds, 1); a scalar where they agree."""
        found = [w.block[axis] for w in self.worlds]
        return found[0] if len(set(found)) == 1 else np.array(found, np.int32).reshape(-1, 1)

    def pages(self, name: str) -> Pages:
        """The global tensor of a parameter. Raises KeyError where the kernel has none of that name."""
        for uid, found in self.memory.items():
            if isinstance(found, Pages) and (uid, name) in self.pointers.free:
                return found
        return self._left[name]

    def after(self) -> dict[str, Pages]:
        """All global tensors, by name, as they are now."""
        own = {name: self.memory[uid] for uid, name in self.pointers.free if uid in self.memory}
        return self._left | {name: pages for name, pages in own.items() if isinstance(pages, Pages)}

    def _tensors(self) -> None:
        for uid, name in self.pointers.free:
            tensor = self.tensors.get(name)
            if name in self._left:
                self.memory[uid] = self._left[name].continued(self.seeds)
            elif tensor is not None:
                self.memory[uid] = self._tensor(tensor)

    def _tensor(self, tensor: Tensor) -> Pages:
        if tensor.before is not None and not self.options.jitter:
            afresh = tensor.before.afresh(self._every_seed)
            if afresh is not None:
                return afresh.continued(self.seeds)
        pages = Pages(tensor.kind, tensor.size, self._every_seed, tensor.contents, self.options.bytes)
        pages = pages.continued(self.seeds)
        pages.jitter = self.shaken if self.options.jitter and tensor.kind.is_float else None
        return pages


class _Repeated(dict[int, Cells | Pages]):
    """The memory of a machine for one with each world several times. Allocations of its own have these worlds."""

    def __init__(self, memory: Mapping[int, Cells | Pages], times: int) -> None:
        self._memory, self._times = memory, times
        self._views: dict[int, tuple[Cells | Pages, Cells | Pages]] = {}

    def __missing__(self, root: int) -> Cells | Pages:
        whole = self._memory[root]
        known = self._views.get(root)
        if known is None or known[0] is not whole:
            known = self._views[root] = (whole, whole.repeated(self._times))
        return known[1]


def _vector_octets(index: Expr, kind: Kind) -> int:
    """What the address of a vector access is a multiple of: its size, at most 16 bytes; 1 for what is no vector.

    Neighbouring elements are one instruction; others are accessed one by one (TileLang, codegen_cuda).
    """
    if index.op != "ramp" or index.args[1].op != "int" or index.args[1].value != 1:
        return 1
    octets = lanes_of(index.dtype) * kind.bits // 8
    return min(octets, 16) if octets & (octets - 1) == 0 else 1
