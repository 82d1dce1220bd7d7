"""Find where things happen in a function: every statement with the scopes around it, and the memory of pointers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tlcheck.program.async_copies import WAIT
from tlcheck.signatures.control import thread_axis
from tlcheck.snapshot.ir import (
    Alloc,
    Assert,
    Attr,
    Bind,
    Block,
    Buffer,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Launch,
    Seq,
    Stmt,
    Store,
    Thread,
    Unknown,
    While,
)
from tlcheck.snapshot.walk import statements

_DEFAULT_THREADS = 128


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """One dimension of repetition: a launch dimension (`kind` block or thread, with its `tag`) or a loop (`kind` as
    in `For`).
    """

    var: Expr
    start: Expr
    extent: Expr
    kind: str
    tag: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A condition under which a statement runs; `holds` is False in the else branch."""

    condition: Expr
    holds: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """A record of what surrounds a statement, outermost first. `opaque` says why it may run another number of times
    than the axes say.
    """

    axes: tuple[Axis, ...] = ()
    guards: tuple[Guard, ...] = ()
    bindings: tuple[tuple[int, Expr], ...] = ()
    opaque: str = ""

    def within(self, axis: Axis) -> Scope:
        return replace(self, axes=(*self.axes, axis))

    def under(self, condition: Expr, holds: bool = True) -> Scope:
        return replace(self, guards=(*self.guards, Guard(condition, holds)))


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A statement that does something, with its scope; `order` counts them in program order."""

    stmt: Stmt
    scope: Scope
    order: int


class Roots:
    """Names of the memory that pointers point into, equal for aliases: the pointer's name, numbered where names
    repeat, in the order in which `of` is asked.
    """

    def __init__(self) -> None:
        self._keys: dict[int, str] = {}
        self._seen: dict[str, int] = {}
        self._targets: dict[int, Expr] = {}

    def alias(self, var: Expr, target: Expr) -> None:
        """`var` points where `target` points."""
        self._targets[var.uid] = target

    def of(self, data: Expr) -> str:
        """The root of a pointer variable."""
        while data.uid in self._targets:
            data = self._targets[data.uid]
        key = self._keys.get(data.uid)
        if key is None:
            name = str(data.value)
            count = self._seen[name] = self._seen.get(name, 0) + 1
            key = self._keys[data.uid] = name if count == 1 else f"{name}#{count}"
        return key


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """One function, walked once."""

    function: Function
    statements: tuple[Placed, ...]
    roots: Roots
    blocks: tuple[Block, ...]
    buffers: dict[str, Buffer]  # root -> its first declaration
    assumptions: tuple[Expr, ...] = ()  # what T.assume promises


def walk(function: Function) -> Program:
    """Everything that evaluates an expression, with its scope, and the function's memory."""
    walker = _Walker()
    for buffer in function.buffers:
        walker.declare(buffer)
    walker.visit(function.body, Scope())
    walker.name()
    statements, blocks = tuple(walker.statements), tuple(walker.blocks)
    return Program(function, statements, walker.roots, blocks, walker.buffers, tuple(walker.assumptions))


class _Walker:
    def __init__(self) -> None:
        self.roots = Roots()
        self.statements: list[Placed] = []
        self.blocks: list[Block] = []
        self.declared: list[Buffer] = []
        self.pointers: dict[int, Expr] = {}
        self.buffers: dict[str, Buffer] = {}
        self.assumptions: list[Expr] = []
        self.threads: tuple[Expr, ...] = ()  # of the launch, where only a block inside says it

    def declare(self, buffer: Buffer) -> None:
        self.declared.append(buffer)
        self.pointers[buffer.data.uid] = buffer.data

    def name(self) -> None:
        """Name the memory. Passes keep the order in which statements use it, but not that of its declarations."""
        names = [str(data.value) for data in self.pointers.values()]
        if len(names) > len(set(names)):
            for placed in self.statements:
                for e in _pointers(placed.stmt):
                    if e.uid in self.pointers:
                        self.roots.of(e)
        for buffer in self.declared:
            self.buffers.setdefault(self.roots.of(buffer.data), buffer)

    def place(self, stmt: Stmt, scope: Scope) -> None:
        self.statements.append(Placed(stmt, scope, len(self.statements)))

    def visit(self, stmt: Stmt, scope: Scope) -> Scope:
        """Walk `stmt`; returns the scope of what follows it in its Seq."""
        if isinstance(stmt, Seq):
            inside = scope
            for part in stmt.body:
                inside = self.visit(part, inside)
            return scope
        if isinstance(stmt, Bind):
            return self._bind(stmt, scope)
        if isinstance(stmt, (Evaluate, Store, Assert)):
            self.place(stmt, scope)
            if isinstance(stmt, Evaluate) and stmt.value.op == "call" and stmt.value.value == "assume":
                self.assumptions += stmt.value.args
        elif isinstance(stmt, Alloc):
            self.declare(stmt.buffer)
        elif isinstance(stmt, Unknown):
            self.place(stmt, scope)
            for part in stmt.body:
                self.visit(part, replace(scope, opaque=f"inside an unknown statement ({stmt.what})"))
        else:
            self._enclosing(stmt, scope)
        return scope

    def _bind(self, stmt: Bind, scope: Scope) -> Scope:
        if (thread := self._thread(stmt)) is not None:
            return scope.within(thread)
        self.place(stmt, scope)
        value = stmt.value
        while value.op == "call" and value.value == "reinterpret" and value.args:
            value = value.args[0]
        if value.op == "var" and value.dtype == "handle":
            self.roots.alias(stmt.var, value)
        elif stmt.var.dtype == "handle":
            self.pointers[stmt.var.uid] = stmt.var
        return replace(scope, bindings=(*scope.bindings, (stmt.var.uid, stmt.value)))

    def _thread(self, stmt: Bind) -> Axis | None:
        """The launch dimension that a variable is bound to, as the newest releases write it at `source`."""
        dimension = thread_axis(stmt.value)
        if dimension is None or dimension >= len(self.threads):
            return None
        zero = Expr("int", stmt.var.dtype, value=0)
        return Axis(stmt.var, zero, self.threads[dimension], "thread", f"threadIdx.{'xyz'[dimension]}")

    def _enclosing(self, stmt: Stmt, scope: Scope) -> None:
        if isinstance(stmt, For):
            kind = "thread" if stmt.kind == "thread_binding" else stmt.kind
            self.visit(stmt.body, scope.within(Axis(stmt.var, stmt.start, stmt.extent, kind)))
        elif isinstance(stmt, Thread):
            kind = "block" if stmt.tag.startswith("blockIdx") else "thread"
            self.threads = declared_threads(stmt.body) if kind == "block" else self.threads
            zero = Expr("int", stmt.var.dtype, value=0)
            self.visit(stmt.body, scope.within(Axis(stmt.var, zero, stmt.extent, kind, stmt.tag)))
        elif isinstance(stmt, If):
            self.place(stmt, scope)
            self.visit(stmt.then, scope.under(stmt.condition))
            if stmt.orelse is not None:
                self.visit(stmt.orelse, scope.under(stmt.condition, holds=False))
        elif isinstance(stmt, While):
            self.place(stmt, replace(scope, opaque="in the condition of a while loop"))
            self.visit(stmt.body, replace(scope.under(stmt.condition), opaque="inside a while loop"))
        elif isinstance(stmt, Attr):
            if stmt.key == "tl.assume" and stmt.value is not None:
                self.assumptions.append(stmt.value)
            if stmt.key == WAIT:
                self.place(stmt, scope)
            self.visit(stmt.body, scope)
        elif isinstance(stmt, (Launch, Block)):
            self.blocks += [stmt] if isinstance(stmt, Block) else []
            self.visit(stmt.body, scope)


def declared_threads(launch: Stmt) -> tuple[Expr, ...]:
    """Return the threads of a block, x first, as a block inside says it; none where the launch itself does.

    A kernel that asks for its threads by number and says of none how many there are (`T.Kernel` without `threads`) has
    128: TileLang's pipelines for CUDA and for ROCm, `MaterializeKernelLaunch(default_threads=128)`.
    """
    inside = tuple(statements(launch))
    said = next((s.threads for s in inside if isinstance(s, Block) and s.threads), ())
    if said or not any(isinstance(s, Bind) and thread_axis(s.value) is not None for s in inside):
        return said
    return tuple([Expr("int", "int32", value=extent) for extent in (_DEFAULT_THREADS, 1, 1)])


def expressions(stmt: Stmt) -> tuple[Expr, ...]:
    """The expressions that a placed statement evaluates, in order."""
    if isinstance(stmt, Evaluate):
        return (stmt.value,)
    if isinstance(stmt, Store):
        return (*stmt.indices, stmt.value, *(() if stmt.predicate is None else (stmt.predicate,)))
    if isinstance(stmt, Bind):
        return (stmt.value,)
    if isinstance(stmt, (If, While, Assert)):
        return (stmt.condition,)
    return ()


def _pointers(stmt: Stmt) -> Iterator[Expr]:
    """The pointers that a placed statement uses, in order: it reads before it writes."""
    for expr in expressions(stmt):
        for e in subexpressions(expr):
            if e.op == "var":
                yield e
            elif e.buffer is not None:
                yield e.buffer.data
    if isinstance(stmt, Store):
        yield stmt.buffer.data


def subexpressions(expr: Expr) -> Iterator[Expr]:
    """expr and everything in it, each once."""
    seen: set[Expr] = set()
    stack = [expr]
    while stack:
        e = stack.pop()
        if e not in seen:
            seen.add(e)
            yield e
            stack.extend(reversed(e.args))
