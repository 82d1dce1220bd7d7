"""A kernel that is compiled for the worlds of a state, and what handlers ask of it.

A handler is called when the kernel is compiled, with the node of its call and the program, and returns a function of
a frame. What it may ask for: `code` (an expression), `step` (a statement), `place` (an element of a buffer),
`pointer` (what an address argument points to); the state in which all runs, and the observers of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from tlcheck.execute.compile.addresses import Addresses, counted
from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.extents import Signs
from tlcheck.execute.compile.pointers import PLACED, pointers_of
from tlcheck.execute.events import Observer, Observers
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Code, Step
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.places import Arrange
from tlcheck.execute.memory.state import RunState
from tlcheck.execute.memory.values import Array, Kind, Value, kind_of, lanes_of
from tlcheck.execute.stops import NotModelled
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Buffer, Expr, Function, Stmt, Unknown
from tlcheck.snapshot.walk import postorder

EXPRESSIONS: dict[str, Callable[[Expr, KernelProgram], Code]] = {}  # how each operation is compiled
STATEMENTS: dict[type[Stmt], Callable[[Any, KernelProgram], Step]] = {}


class KernelProgram:
    """A kernel with what is known of its variables and addresses while it is compiled.

    scalars: by the name of the parameter (sizes in shapes count as parameters); parameters: by variable. variables:
    the code of those that are bound; ahead: what T.Persistent binds, before its loop, of the loop's variable. made: the
    elements that were made, with the indices or the address that they were made of. iterating: within T.Parallel.
    followed: how many of the statements around the one being compiled have others after them.
    """

    def __init__(
        self,
        function: Function,
        state: RunState,
        scalars: Mapping[str, int | float],
        threads: tuple[int, int, int],
        observers: Observers,
    ) -> None:
        """threads: of a block, x first."""
        self.function, self.state, self.options, self.scalars = function, state, state.options, scalars
        self.extents, self.observers = threads, observers
        self.pointers = pointers_of(function)
        sizes = {name: value for name, value in scalars.items() if isinstance(value, int)}
        self.signs = Signs(function, sizes, state.options.from_end)
        self.addresses = Addresses(self.pointers, state, observers, self.code, self.signs)
        self.parameters: dict[int, Value] = {uid: scalars[name] for uid, name in self.pointers.free if name in scalars}
        self.variables: dict[int, Code] = {}
        self.ahead: dict[int, Expr] = {}
        self.made: list[tuple[object, BufferElement]] = []
        self.iterating = False
        self.followed = 0
        self._codes: dict[int, tuple[Expr, Code]] = {}
        self._repeated: list[KernelProgram] = []

    @property
    def release(self) -> Release:
        """TileLang's. Whoever asks makes the run hang on it, which the state notes."""
        self.state.asked.add("release")
        return self.options.release

    def code(self, e: Expr) -> Code:
        """A compiled expression. Raises NotModelled, with its name, for one that no handler knows."""
        found = self._codes.get(id(e))
        if found is None:
            make = EXPRESSIONS.get(e.op)
            if make is None:
                raise NotModelled(e.op)
            found = self._codes[id(e)] = (e, make(e, self))
        return found[1]

    def condition(self, e: Expr) -> Code:
        """A compiled condition; a number holds where it is not 0."""
        kind = kind_of(e.dtype)
        if kind.family == "bool":
            return self.code(e)
        nothing = Expr("float", e.dtype, (), 0.0) if kind.is_float else Expr("int", e.dtype, (), 0)
        return self.code(Expr("ne", "bool", (e, nothing)))

    def step(self, stmt: Stmt) -> Step:
        """A compiled statement. Raises NotModelled, with its name, for one that no handler knows."""
        if isinstance(stmt, Unknown):
            raise NotModelled(stmt.what)
        make = STATEMENTS.get(type(stmt))
        if make is None:
            raise NotModelled(type(stmt).__name__)
        return make(stmt, self)

    def side(self, body: Stmt, condition: Code) -> Step:
        """A compiled side of a branch."""
        step, observers = self.step(body), self.observers
        if condition.steady or not observers.hear(Observer.steered, Observer.branched):
            return step
        observers.steered(body)

        def run(frame: Frame) -> None:
            observers.branched(body)
            step.run(frame)

        return replace(step, run=run)

    def repeated(self, times: int) -> KernelProgram:
        """This program for a state with each world `times` times. It notes the elements that it makes."""
        other = copy(self)
        other.state = self.state.repeated(times)
        other.options = other.state.options
        other.variables, other._codes, other.made, other._repeated = dict(self.variables), {}, [], []
        self._repeated.append(other)
        safe_values = self.addresses.safe_values
        other.addresses = Addresses(self.pointers, other.state, self.observers, other.code, self.signs, safe_values)
        return other

    def forget(self) -> None:
        """After the run, drop what was compiled. It refers to the program, in circles that only a collection of all
        garbage would find, with the memory of the state in them.
        """
        for other in self._repeated:
            other.forget()
        self._codes, self.variables, self.made, self._repeated = {}, {}, [], []
        del self.addresses

    def place(self, buffer: Buffer, indices: Sequence[Expr]) -> BufferElement:
        """The element of a buffer in each lane."""
        if lanes_of(buffer.dtype) > 1 and any(lanes_of(i.dtype) > 1 for i in indices):
            raise NotModelled("a vector of vectors")
        if self.options.source:
            pairs = list(zip(indices, buffer.shape, strict=True))
            codes = [counted(i, self.code(self.signs.resolved(i, size)), self.code(size)) for i, size in pairs]
        else:
            codes = [self.code(i) for i in indices]
        found = self.addresses.place(buffer, codes)
        if indices and not self.options.source and not buffer.scope.startswith("local"):
            found.aligned = _vector_octets(indices[-1], found.kind)
        self.made.append((indices, found))
        return found

    def pointer(
        self,
        pointer: Expr,
        elements: int | Array = 1,
        offset: Expr | Code | None = None,
        arrange: Arrange | None = None,
    ) -> BufferElement:
        """Return what an address argument points to, `offset` elements further on.

        elements: how many make a vector; or how many elements from there each of them is.
        """
        steps = np.arange(elements) if isinstance(elements, int) else elements
        found = self.addresses.pointed(pointer, offset, steps, arrange)
        self.made.append((pointer, found))
        return found

    def allocate(self, buffer: Buffer, frame: Frame | None = None) -> None:
        """Make room for a buffer when it is declared; again: make it poison again, in the frame's active lanes."""
        root, state = self.pointers.root(buffer.data.uid), self.state
        known = state.memory.get(root)
        if isinstance(known, Pages) or (known is not None and root == PLACED):
            return
        if isinstance(known, Cells) and (known.data.shape[2] in (1, state.lanes)):
            known.forget(mask=None if frame is None else frame.active)
            if frame is not None and frame.active is None:
                self.observers.reallocated(root)
            return
        registers = buffer.scope.startswith("local")  # in the source, fragments and reducers are tiles of the block
        own = registers and not (self.options.source and buffer.scope in ("local.fragment", "local.reducer"))
        size, kinds = self.pointers.room(buffer), self.pointers.kinds(buffer)
        begins = buffer.scope == "local.var"  # with 0, where the author gives no value: TileLang's T.alloc_var
        state.memory[root] = made = state.allocate(root, size, kinds, state.lanes if own else 1, begins)
        self.observers.allocated(root, made)

    def is_unbound(self, e: Expr) -> bool:
        """Whether an expression is a variable that nothing before it has given a value."""
        if e.op != "var" or e.dtype == "handle" or e.uid in self.variables or e.uid in self.parameters:
            return False
        return e.uid not in self.ahead or any(self.is_unbound(part) for part in postorder([self.ahead[e.uid]]))

    @contextmanager
    def in_parallel(self) -> Iterator[None]:
        """Take lanes for iterations, not threads, while the body of a T.Parallel is compiled."""
        saved, self.iterating = self.iterating, True
        yield
        self.iterating = saved

    @contextmanager
    def inside_block(self) -> Iterator[None]:
        """Keep safe values, and what is compiled with them, to the block that is compiled meanwhile."""
        addresses = self.addresses
        saved = addresses.safe_values, self._codes
        addresses.safe_values, self._codes = dict(addresses.safe_values), {}
        yield
        addresses.safe_values, self._codes = saved

    @contextmanager
    def following(self, more: bool) -> Iterator[None]:
        """Note, while a statement is compiled, whether others follow it, or it is repeated (more)."""
        self.followed += more
        yield
        self.followed -= more

    def thread_index(self, axis: int) -> Value:
        """threadIdx of all lanes, (1, threads), x fastest; a scalar where there is only one."""
        if self.extents[axis] == 1:
            return 0
        inner = int(np.prod(self.extents[:axis]))
        return (np.arange(self.state.threads, dtype=np.int32) // inner % self.extents[axis]).reshape(1, -1)

    def block_index(self, axis: int) -> Value:
        """blockIdx of all worlds, (worlds, 1); a scalar where they agree."""
        found = [world.block[axis] for world in self.state.worlds]
        return found[0] if len(set(found)) == 1 else np.array(found, np.int32).reshape(-1, 1)


def _vector_octets(index: Expr, kind: Kind) -> int:
    """Return what the address of a vector access is a multiple of: its size, at most 16 bytes; 1 for what is no vector.

    Neighbouring elements are one instruction; others are accessed one by one (TileLang, codegen_cuda).
    """
    if index.op != "ramp" or index.args[1].op != "int" or index.args[1].value != 1:
        return 1
    octets = lanes_of(index.dtype) * kind.bits // 8
    return min(octets, 16) if octets & (octets - 1) == 0 else 1
