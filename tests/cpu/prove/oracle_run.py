"""One function running in one block, for the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from tests.cpu.prove.oracle_memory import Layouts, Machine
from tests.cpu.prove.oracle_text import ATOMIC, UnsupportedError, Values, atomic_name
from tlcheck.snapshot.ir import Attr, Bind, Block, Buffer, Evaluate, Expr, For, Function, If, Seq, Stmt, Store, Thread
from tlcheck.snapshot.walk import children, expressions, postorder, statements

LIMIT = 400_000


@dataclass(frozen=True, slots=True)
class Addition:
    """One element added.

    offset: in elements of the destination's memory. inside: within the buffer. element: the index, logical for what is
    added in the source. value: a tree of operations, its leaves are (memory, element).
    """

    root: str
    operation: str
    returns: bool
    offset: int
    value: object
    inside: bool
    element: tuple[int, ...]
    thread: int
    lane: int
    width: int
    loops: Mapping[str, int]

    @property
    def key(self) -> tuple[object, ...]:
        """Return what has to be the same on both sides."""
        return self.operation, self.returns, self.offset, self.value


@dataclass(frozen=True, slots=True)
class Place:
    """A record of where an atomic goes, as expressions. guard: a condition in the destination itself. extents: of a
    tile.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    flat: bool = False
    guard: Expr | None = None
    extents: tuple[Expr, ...] = ()


class Run(Machine):
    """Executes statements and collects what atomics add."""

    def __init__(
        self, kernel: Layouts, function: Function, is_source: bool, block: Mapping[str, int], values: Values
    ) -> None:
        super().__init__(kernel, function, is_source, values)
        self.block = block
        self.found: list[Addition] = []
        self.loops: dict[str, int] = {}
        self.once: set[tuple[object, ...]] = set()
        self.path: list[int] = []
        self.parallel = False
        self.steps = 0
        self.places: dict[int, Place] = {}
        self.adding = _around([e for s in statements(function.body) for e in expressions(s)])
        self.relevant = self._relevant(function.body)

    # ---- statements

    def run(self, s: Stmt) -> None:
        if id(s) not in self.relevant:
            return
        self.steps += 1
        if self.steps > LIMIT:
            raise UnsupportedError("too many steps")
        if isinstance(s, (Seq, Attr, Block)):
            self._each(children(s))
        elif isinstance(s, Thread):
            self._launch(s)
        elif isinstance(s, For):
            self._loop(s)
        elif isinstance(s, (If, Store, Evaluate, Bind)):
            for e in expressions(s):
                self._calls(e)
            self._effect(s)
        else:
            raise UnsupportedError(f"an atomic in {type(s).__name__}")

    def _each(self, body: Sequence[Stmt]) -> None:
        for position, inner in enumerate(body):
            self.path.append(position)
            self.run(inner)
            self.path.pop()

    def _effect(self, s: Stmt) -> None:
        if isinstance(s, If):
            branch = s.then if self.number(s.condition) else s.orelse
            if branch is not None:
                self.run(branch)
        elif isinstance(s, Store) and self.private(s.buffer):
            self.store(s)

    def _launch(self, s: Thread) -> None:
        if s.tag.startswith("blockIdx"):
            self.values[s.var.uid] = self.block[s.tag]
            self.run(s.body)
            return
        for t in range(self.number(s.extent)):
            self.values[s.var.uid] = self.thread[s.tag] = t
            self.run(s.body)

    def _loop(self, s: For) -> None:
        if s.kind == "thread_binding":
            raise UnsupportedError("a thread binding")
        outermost = s.kind == "parallel" and self.is_source and not self.parallel
        if outermost and not self._first():
            return
        self.parallel |= outermost
        start = self.number(s.start)
        for i in range(start, start + self.number(s.extent)):
            self.values[s.var.uid] = self.loops[str(s.var.value)] = i
            self.run(s.body)
        self.loops.pop(str(s.var.value), None)
        self.parallel &= not outermost

    def _first(self) -> bool:
        """Whether no thread has come here before in this iteration: tile operators and T.Parallel run once a block."""
        key = (*self.path, "in", *self.loops.values())
        known = key in self.once
        self.once.add(key)
        return not known

    def _relevant(self, root: Stmt) -> set[int]:
        """Statements that add something or fill a register that passes invented, and those around them."""
        found: set[int] = set()
        for s in reversed(list(statements(root))):
            private = isinstance(s, Store) and self.private(s.buffer)
            if private or any(True for _ in _atomics(s)) or any(id(c) in found for c in children(s)):
                found.add(id(s))
        return found

    # ---- atomics

    def _calls(self, e: Expr) -> None:
        """Run the atomics in an expression; one in a branch of if_then_else only where that is taken."""
        if id(e) not in self.adding:
            return
        if e.op == "call" and e.value == "if_then_else":
            self._calls(e.args[0])
            self._calls(e.args[1] if self.number(e.args[0]) else e.args[2])
            return
        for arg in e.args:
            self._calls(arg)
        if atomic_name(e):
            self._add(e)

    def _add(self, call: Expr) -> None:
        name = atomic_name(call)
        args = call.args[1:] if call.value == "call_extern" else call.args
        if name in ("atomicadd", "atomicmax", "atomicmin"):
            self._tile(name.removeprefix("atomic"), args)
            return
        place = self._place(args[0])
        if place.guard is not None and not self.number(place.guard):
            return
        found = ATOMIC.match(name)
        assert found is not None
        width = int((found[2] or "x1")[1:])
        start = [self.number(i) for i in place.indices]
        for lane in range(width):
            value = self._lane_value(args[1], lane, width)
            where = [*start[:-1], start[-1] + lane]
            self._record(place, where, start, value, found[1].lower(), "ret" in name.lower(), lane, width)
        self.values["lane"] = 0

    def _lane_value(self, e: Expr, lane: int, width: int) -> object:
        if width > 1 and e.op == "call" and e.value in ("address_of", "access_ptr", "tvm_access_ptr"):
            place = self._place(e)
            indices = [self.number(i) for i in place.indices]
            load = Expr("load", place.buffer.dtype, place.indices, buffer=place.buffer)
            return self.read(load, (*indices[:-1], indices[-1] + lane))
        self.values["lane"] = lane
        return self.value(e)

    def _record(
        self, place: Place, where: Sequence[int], start: Sequence[int], value: object, operation: str, returns: bool,
        lane: int, width: int,
    ) -> None:  # fmt: skip
        if len(self.found) > LIMIT:
            raise UnsupportedError("too many additions")
        root = self.root(place.buffer)
        shape = [] if place.flat else [self.number(s) for s in place.buffer.shape]
        index = where if self.is_source else start  # a guard cannot cut a part off an instruction
        inside = all(0 <= i < n for i, n in zip(index, shape, strict=True)) if shape else True
        offset = where[0] if place.flat else self.offset(root, place.buffer, where)
        if not self.is_source and not place.flat:
            offset = self.offset(root, place.buffer, start) + lane
        self.found.append(
            Addition(
                root, operation, returns, offset, value, inside, tuple(where), self.thread["threadIdx.x"], lane, width,
                dict(self.loops),
            )
        )  # fmt: skip

    def _tile(self, operation: str, args: Sequence[Expr]) -> None:
        if not self.is_source:
            raise UnsupportedError("a tile operator after lowering")
        if not self.parallel and not self._first():
            return
        target, source = self._place(args[1]), args[0]
        sizes = [self.number(e) for e in target.extents]
        start = [self.number(i) for i in target.indices]
        for point in product(*(range(n) for n in sizes)):
            where = [s + p for s, p in zip(start, point, strict=True)]
            value = self._tile_value(source, [p for p, n in zip(point, sizes, strict=True) if n > 1])
            self._record(target, where, where, value, operation, False, 0, 1)

    def _tile_value(self, source: Expr, point: list[int]) -> object:
        if source.value != "region":
            return self.value(source)
        place = self._place(source)
        left = list(point)
        where: list[int] = []
        for index, extent in zip(place.indices, place.extents, strict=True):
            where.append(self.number(index) + (left.pop(0) if self.number(extent) > 1 else 0))
        if left:
            raise UnsupportedError("a tile whose source has another shape")
        return self.read(Expr("load", place.buffer.dtype, place.indices, buffer=place.buffer), tuple(where))

    def _place(self, e: Expr) -> Place:
        if id(e) not in self.places:
            self.places[id(e)] = self._find(e)
        return self.places[id(e)]

    def _find(self, e: Expr) -> Place:
        if e.op == "load" and e.buffer is not None:
            return Place(e.buffer, e.args)
        name = e.value if e.op == "call" else ""
        if name == "tvm_access_ptr":
            return Place(Buffer(str(e.args[1].value), "", (), "", e.args[1]), (e.args[2],), flat=True)
        if name == "if_then_else":
            return replace(self._place(e.args[1]), guard=e.args[0])
        if name in ("address_of", "access_ptr"):
            return self._place(e.args[0])
        if name == "region":
            return replace(self._place(e.args[0]), extents=e.args[2:])
        raise UnsupportedError(f"the destination {e.op} {e.value}")


def _atomics(s: Stmt) -> Iterator[Expr]:
    yield from (e for e in postorder(expressions(s)) if atomic_name(e))


def _around(roots: Sequence[Expr]) -> set[int]:
    """Atomic calls and the expressions that have one in them, by identity."""
    found: set[int] = set()
    for e in postorder(roots):
        if atomic_name(e) or any(id(a) in found for a in e.args):
            found.add(id(e))
    return found
