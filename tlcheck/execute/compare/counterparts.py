"""Find which statements of the source a lowered statement does: those that read and write buffers of the same names.

Copies through buffers that the source does not have, and operands in registers of their own, hide what a statement
does: then nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from tlcheck.program.lines import nearest_line
from tlcheck.program.roles import READ, WRITE, accesses
from tlcheck.signatures.calls import library_name
from tlcheck.signatures.table import destinations, family_of, signature_of
from tlcheck.signatures.wgmma import DESCRIPTORS
from tlcheck.snapshot.ir import Alloc, Bind, Expr, For, Function, If, Stmt, Store, While
from tlcheck.snapshot.walk import expressions, postorder, shared_names, statements, with_surroundings

_DESCRIPTOR = "_desc"  # what the name of a TMA descriptor adds to that of its tensor


@dataclass(frozen=True, slots=True)
class NamedBuffers:
    """The buffers that a statement writes and those that it reads; constant: what it stores, if that is a number.

    staged: whether it reads registers that the source does not have, in which the value was made.
    """

    writes: frozenset[str]
    reads: frozenset[str]
    constant: float | None = None
    staged: bool = False


class Counterparts:
    """The statements of a kernel's source, by what they read and write. merged: shared memory of the lowered kernel."""

    def __init__(self, source: Function, lowered: Function) -> None:
        self._called = _called(source)
        self._lowered_called = _called(lowered) | self._called
        self.names = frozenset(self._called.values())
        self.shared, self.merged = shared_names(source.body), shared_names(lowered.body)
        parameters = {buffer.name for buffer in source.buffers}
        self._source, self._lowered, parts = source, lowered, _parts_of_memory(lowered)
        pointers = {*_called(lowered), *(parts & self._lowered_called.keys())}
        self.lowered_names = frozenset(self._lowered_called[pointer] for pointer in pointers) | parameters
        self._added = parts - self.names
        self._described = _described(lowered, self._lowered_called)
        self._found: list[tuple[Stmt, NamedBuffers]] = []
        self._places: dict[int, int] = {}
        self._guarded: set[int] = set()
        self._steering: set[str] = set()  # buffers that conditions, bounds of loops and variables are made of
        self._loops = {id(stmt): _loops(around) for stmt, around in with_surroundings(source.body)}
        self._loop_lines = {
            id(stmt): {outer.line for outer in around if isinstance(outer, For) and outer.kind == "parallel"}
            for stmt, around in with_surroundings(source.body)
        }
        self._lowered_loops = {id(stmt): _loops(around) for stmt, around in with_surroundings(lowered.body)}
        self._known_loops = frozenset(
            str(stmt.var.value) for stmt in statements(source.body) if isinstance(stmt, For) and stmt.kind == "serial"
        )
        for place, (stmt, around) in enumerate(with_surroundings(source.body)):
            self._places[id(stmt)] = place
            if _guards(around):
                self._guarded.add(id(stmt))
            names = self.names_of(stmt, self._called)
            if names.writes:
                self._found.append((stmt, names))
            else:
                heads = [data for e in expressions(stmt) for data, _ in accesses(e)]
                self._steering |= {self._called.get(str(data.value), "") for data in heads}
        self.reducers = {
            name: stmt
            for stmt, names in self._found
            if any(
                e.op == "call" and library_name(str(e.value)).removesuffix("_v2").endswith("finalize_reducer")
                for e in postorder(expressions(stmt))
            )
            for name in names.writes
        }

    def behind(self, output: str) -> frozenset[str]:
        """Return the buffers of the source on which an output may depend, as values or by conditions and variables."""
        reached, before = {output} | self._steering, set[str]()
        while reached != before:
            before = set(reached)
            for _, names in self._found:
                reached |= names.reads if names.writes & reached else set()
        return frozenset(reached)

    def names_of(self, stmt: Stmt, called: dict[str, str]) -> NamedBuffers:
        """The buffers of the source that a statement itself reads and writes."""
        writes: set[str] = set()
        reads: set[str] = set()
        constant = None
        if isinstance(stmt, Store):
            writes.add(called.get(str(stmt.buffer.data.value), stmt.buffer.name))
            value = stmt.value.args[0] if stmt.value.op == "broadcast" and stmt.value.args else stmt.value
            constant = float(value.value) if isinstance(value.value, (int, float)) and not value.args else None
        if isinstance(stmt, (For, If, While)):
            return NamedBuffers(frozenset(), frozenset())
        for root in expressions(stmt):
            for data, mode in accesses(root):
                name = str(data.value).removesuffix(_DESCRIPTOR)
                name = called.get(name, name)
                writes |= {name} if mode & WRITE else set()
                reads |= {name} if mode & READ else set()
            for e in postorder([root]):
                reads |= self._described.get(e.buffer.data.uid if e.buffer is not None else e.uid, set())
                name = str(e.value).removesuffix(_DESCRIPTOR)
                if e.op == "var" and name != str(e.value) and name in self.names:  # a bulk copy by a tensor map
                    (writes if _writes(root, e) else reads).add(name)
        staged = any(e.op == "load" and _is_staging(e, reads - self.names) for e in postorder(expressions(stmt)))
        return NamedBuffers(frozenset(writes & self.names), frozenset(reads & self.names), constant, staged)

    def accessed(self, stmt: Stmt | None) -> NamedBuffers:
        """The buffers of the source that a lowered statement reads and writes."""
        return NamedBuffers(frozenset(), frozenset()) if stmt is None else self.names_of(stmt, self._lowered_called)

    def added(self, stmt: Stmt | None) -> frozenset[str]:
        """The buffers that a lowered statement accesses in merged shared memory, and the source does not have."""
        roots = () if stmt is None else expressions(stmt)
        return self._added & {str(data.value) for root in roots for data, _ in accesses(root)}

    def other_written(self, stmt: Stmt | None, name: str) -> str:
        """The buffer in merged memory that a lowered statement writes, if it is one other than this one; else empty."""
        written = self.in_shared_memory(stmt)
        return next(iter(written)) if len(written) == 1 and self.name(name) not in written else ""

    def in_shared_memory(self, stmt: Stmt | None) -> frozenset[str]:
        """The shared buffers of the source that a lowered statement writes, and those that only that kernel has."""
        return (self.accessed(stmt).writes & self.shared) | self.added(stmt)

    def name(self, called: str) -> str:
        """The source's name of a buffer that a level calls so; a view has that of its buffer."""
        return self._called.get(called, called)

    def of(self, stmt: Stmt | None) -> tuple[Stmt, ...]:
        """The statements of the source that a lowered statement may do; none where that is not known."""
        if stmt is None:
            return ()
        own = self.names_of(stmt, self._lowered_called)
        loops = self._lowered_loops.get(id(stmt), frozenset()) & self._known_loops  # a pipeline takes steps out of one
        found = [other for other, names in self._found if _alike(own, names) and loops <= self._loops[id(other)]]
        return tuple(self._on_line(stmt, own.writes) or found)

    def _on_line(self, stmt: Stmt, writes: frozenset[str]) -> list[Stmt]:
        """The statements of the source that write the same buffers, and are on the line of a lowered one or in the loop
        on that line.
        """
        alike = [other for other, names in self._found if stmt.line and names.writes == writes]
        return [other for other in alike if other.line == stmt.line] or [
            other for other in alike if stmt.line in self._loop_lines[id(other)]
        ]

    def only(self, stmt: Stmt | None) -> Stmt | None:
        """The one statement of the source that a lowered statement does; None where that is not known."""
        found = self.of(stmt)
        return found[0] if len(found) == 1 else None

    def line_near(self, stmt: Stmt, buffer: str = "") -> int:
        """The line of a lowered statement, else the nearest one; 0 if none has one.

        If the nearest one does something else, it is a later one that may be meant: of several statements that do the
        same and have no line, each has the next one. One that has the line of a loop is none that another statement
        does alone. buffer: accessed by one of which it is not known what it does.
        """
        finished = self.reducers.keys() & self.accessed(stmt).writes if _reduces(stmt) else ()
        if finished:
            return max(self.reducers[name].line for name in finished)
        near, buffer = nearest_line(self._lowered, stmt), self.name(buffer)
        done = self.of(stmt)
        left = [other for other in done if stmt.line and id(other) not in self._done_alone] or done
        lines = [other.line for other in left] or [
            other.line for other, names in self._found if buffer in names.reads | names.writes
        ]
        later = sorted(line for line in lines if line > near)
        if self._has_line(stmt) or near in lines or not later:
            return near
        own, before = self.accessed(stmt), 0
        for other in takewhile(lambda other: other is not stmt, statements(self._lowered.body)):
            before = 0 if self._has_line(other) else before + bool(own.writes and self.accessed(other) == own)
        return later[min(before, len(later) - 1)]

    def _has_line(self, stmt: Stmt) -> bool:
        """Whether a statement has a line of its own: a pass may have given it that of a loop around it."""
        return bool(stmt.line) and (isinstance(stmt, For) or stmt.line not in self._heads)

    @cached_property
    def _heads(self) -> frozenset[int]:
        """The lines of the source's serial loops that read nothing."""
        loops = [s for s in statements(self._source.body) if isinstance(s, For) and s.kind != "parallel"]
        return frozenset(s.line for s in loops if not any(True for e in expressions(s) for _ in accesses(e)))

    @cached_property
    def _done_alone(self) -> frozenset[int]:
        """The ids of the source's statements that a lowered statement does, which does no other."""
        own = (self.of(stmt) for stmt in statements(self._lowered.body))
        return frozenset(id(found[0]) for found in own if len(found) == 1)

    def is_before(self, one: Stmt, other: Stmt) -> bool:
        """Whether a statement of the source stands before another."""
        return self._places.get(id(one), 0) < self._places.get(id(other), 0)

    def is_guarded(self, stmt: Stmt) -> bool:
        """Whether a statement of the source stands in an `if`."""
        return id(stmt) in self._guarded

    def writers(self, name: str) -> list[Stmt]:
        """The statements of the source that write a buffer."""
        return [stmt for stmt, names in self._found if name in names.writes]

    def guard(self, source: Stmt) -> If | None:
        """The condition of the lowered kernel that has to hold for all that does a statement of the source, if that has
        none. Of a condition that must not hold, as of the producers of a pipeline, the consumers know nothing.
        """
        if self.is_guarded(source):
            return None
        found = [
            _holding(stmt, around) for stmt, around in with_surroundings(self._lowered.body) if source in self.of(stmt)
        ]
        if not found or not all(found):
            return None
        shared = [guard for guard in found[0] if all(guard in others for others in found)]
        return shared[0] if shared else None


def _reduces(stmt: Stmt) -> bool:
    """Whether threads reduce among them what each of them has."""
    return any(e.op == "str" and "AllReduce<" in str(e.value) for e in postorder(expressions(stmt)))


def _alike(lowered: NamedBuffers, source: NamedBuffers) -> bool:
    """Whether both write the same and read the same others; what is added to may count as read or not."""
    if not lowered.writes:  # a product into registers: its operands tell
        return len(lowered.reads) > 1 and lowered.reads == source.reads - source.writes
    if lowered.writes != source.writes:
        return False
    if None not in (lowered.constant, source.constant) and lowered.constant != source.constant:
        return False
    if lowered.staged and not lowered.reads:
        return bool(source.reads)
    others = lowered.reads - lowered.writes == source.reads - source.writes
    return others and bool(lowered.reads) == bool(source.reads)


def _is_staging(e: Expr, unknown: set[str]) -> bool:
    """Whether a load is of registers that only the lowered kernel has."""
    return e.buffer is not None and e.buffer.scope == "local" and e.buffer.name in unknown


def _called(function: Function) -> dict[str, str]:
    """The names of buffers, by the names of their pointers."""
    found = {str(buffer.data.value): buffer.name for buffer in function.buffers}
    for stmt in statements(function.body):
        if isinstance(stmt, Alloc):
            found[str(stmt.buffer.data.value)] = stmt.buffer.name
    return found


def _parts_of_memory(lowered: Function) -> frozenset[str]:
    """The names of pointers to parts of merged shared memory."""
    binds = (stmt for stmt in statements(lowered.body) if isinstance(stmt, Bind) and stmt.var.dtype == "handle")
    return frozenset(str(stmt.var.value) for stmt in binds)


def _described(lowered: Function, called: dict[str, str]) -> dict[int, set[str]]:
    """The buffers that descriptors of wgmma name, by the numbers of these."""
    found: dict[int, set[str]] = {}
    for stmt in statements(lowered.body):
        for e in postorder(expressions(stmt)):
            if family_of(e) is DESCRIPTORS and e.args[0].buffer is not None:
                named = {called.get(str(data.value), str(data.value)) for data, _ in accesses(e.args[1])}
                found.setdefault(e.args[0].buffer.data.uid, set()).update(named)
    return found


def _writes(root: Expr, e: Expr) -> bool:
    """Whether an argument of an instruction names what it writes."""
    return signature_of(root) is not None and e in destinations(root)


def _guards(around: tuple[Stmt, ...]) -> list[If]:
    return [stmt for stmt in around if isinstance(stmt, If)]


def _holding(stmt: Stmt, around: tuple[Stmt, ...]) -> list[If]:
    """The conditions that hold where a statement runs."""
    inner = (*around[1:], stmt)
    return [outer for outer, arm in zip(around, inner, strict=True) if isinstance(outer, If) and arm is outer.then]


def _loops(around: tuple[Stmt, ...]) -> frozenset[str]:
    return frozenset(str(stmt.var.value) for stmt in around if isinstance(stmt, For) and stmt.kind == "serial")
