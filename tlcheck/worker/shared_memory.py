"""Undo the merging of shared memory: up to 0.1.9 all buffers become offsets into one, placed by a pass whose order
differs from process to process in the oldest releases, and an access no longer tells which buffer it meant.

The accesses of the module just before the merge are paired with those of the final one, in program order. Where every
pair of a buffer's accesses lies the same number of bytes apart, that number is the buffer's place, and the final access
gets its own buffer and offset back, as newer releases leave it. Where the pairing fails, nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Alloc, Buffer, Expr, Function, Launch, Seq, Stmt, Store
from tlcheck.snapshot.operators import Scalars, meaning
from tlcheck.snapshot.walk import expressions, postorder, rebuild, statements, with_expressions
from tlcheck.worker.graph_nodes import Nodes

UNMERGED = "unmerged"  # name of the module just before the merge, with host and device functions
MERGE = "tl.MergeSharedMemoryAllocations"
_Use = tuple[Stmt, Expr | None]  # of `_Access`
_ALIGNMENT = 1024  # the most that any swizzle asks of a place


def unmerge_all(checkpoints: dict[str, Function], passes: Mapping[str, str], nodes: Nodes) -> bool:
    """Undo the merge in every checkpoint after it, and drop UNMERGED, which is no checkpoint.

    Returns whether a checkpoint changed.
    """
    before = checkpoints.pop(UNMERGED, None)
    names = list(checkpoints)
    after = names[-1:]
    for position, name in enumerate(names):
        if before is None and passes[name] == MERGE and position:
            before, after = checkpoints[names[position - 1]], names[position:]
    if before is None:
        return False
    old = {name: checkpoints[name] for name in after}
    checkpoints.update({name: unmerge(before, function, nodes) for name, function in old.items()})
    return any(checkpoints[name] is not old[name] for name in after)


@dataclass(frozen=True, slots=True)
class _Access:
    """One use of shared memory: the load, pointer or (None) store in `stmt`, at `index` in units of `size` bytes."""

    stmt: Stmt
    expr: Expr | None
    data: Expr
    index: Expr
    size: int


@dataclass(frozen=True, slots=True)
class _Home:
    """A record of where an access belongs: the buffer as it was before the merge, and its place in bytes in the merged
    one, which is named by its uid.
    """

    buffer: Buffer
    place: int
    merged: int

    @property
    def size(self) -> int:
        return _bytes(self.buffer)

    def meets(self, other: _Home) -> bool:
        """Whether two buffers of one merged buffer have bytes in common."""
        return self.place < other.place + other.size and other.place < self.place + self.size


def unmerge(before: Function, after: Function, nodes: Nodes) -> Function:
    """`after` with the buffers of `before` instead of one merged buffer, and the places of those that overlap; `after`
    itself where there is no merged buffer. Each of several kernels has one of its own.
    """
    old, new = _kernels(before), _kernels(after)
    if len(old) != len(new):
        return after
    undone = [_unmerged(a, b, nodes) for a, b in zip(old, new, strict=True)]
    if all(kernel is same for (kernel, _), same in zip(undone, new, strict=True)):
        return after
    body = undone[0][0] if new[0] is after.body else Seq(tuple([kernel for kernel, _ in undone]))
    places = tuple([place for _, homes in undone for place in _places(homes)])
    return replace(after, body=body, places=places)


def _kernels(function: Function) -> list[Stmt]:
    """The launches of a function with several kernels, else its body."""
    parts = function.body.body if isinstance(function.body, Seq) else ()
    return [part for part in parts if isinstance(part, Launch)] or [function.body]


def _unmerged(before: Stmt, after: Stmt, nodes: Nodes) -> tuple[Stmt, list[_Home]]:
    """One kernel with its buffers, and where they were; `after` itself where the two do not fit."""
    old, new = _shared(before), _shared(after)
    separate = {uid: buffer for uid, buffer in old.items() if uid not in new}
    merged = [uid for uid in new if uid not in old]
    if not separate or not merged:
        return after, []
    pairs = _pairs(list(_accesses(before, set(separate))), list(_accesses(after, set(merged))), separate)
    homes: dict[_Use, _Home] = {}
    for access, home in pairs:
        if homes.setdefault((access.stmt, access.expr), home) != home:
            return after, []
    if not pairs or _strays(after, set(merged), pairs):
        return after, []
    found = {home.buffer.data.uid: home for home in homes.values()}
    kernel = _Rewriter(homes, merged, nodes).kernel(after, separate.values())
    return kernel, [found[uid] for uid in separate if uid in found]


def _places(homes: Sequence[_Home]) -> Iterator[tuple[Expr, int]]:
    """Canonical places of the buffers that overlap others: the order in which a release puts them into the merged one
    differs from process to process. Groups that overlap come one after the other, in program order.
    """
    start = 0
    for group in _overlapping(homes):
        placed = _placed(group)
        yield from ((home.buffer.data, start + place) for home, place in zip(group, placed, strict=True))
        start = _aligned(start + max(place + home.size for home, place in zip(group, placed, strict=True)))


def _placed(group: Sequence[_Home]) -> list[int]:
    """The lowest places, one buffer after the other, at which the same pairs overlap; as they were if there is none."""
    places: list[int] = []
    for home in group:
        before = list(zip(group, places, strict=False))
        for place in sorted({0, *(_aligned(at + other.size) for other, at in before)}):
            moved = replace(home, place=place)
            if all(moved.meets(replace(other, place=at)) == home.meets(other) for other, at in before):
                places.append(place)
                break
        else:
            low = min(home.place for home in group)
            return [home.place - low for home in group]
    return places


def _aligned(place: int) -> int:
    return -(-place // _ALIGNMENT) * _ALIGNMENT


def _overlapping(homes: Sequence[_Home]) -> list[list[_Home]]:
    """Groups of two and more whose bytes overlap, directly or through others of the group; in program order."""
    groups: list[list[_Home]] = []
    end: tuple[int, int] = (-1, 0)
    for home in sorted(homes, key=lambda home: (home.merged, home.place)):
        if (home.merged, home.place) < end:
            groups[-1].append(home)
        else:
            groups.append([home])
        end = max(end, (home.merged, home.place + home.size))
    found = [[home for home in homes if home in group] for group in groups if len(group) > 1]
    return sorted(found, key=lambda group: homes.index(group[0]))


def _shared(kernel: Stmt) -> dict[int, Buffer]:
    """Shared allocations by the uid of their pointer, in program order."""
    allocs = (s.buffer for s in statements(kernel) if isinstance(s, Alloc))
    return {b.data.uid: b for b in allocs if b.scope in ("shared", "shared.dyn")}


def _accesses(kernel: Stmt, uids: set[int]) -> Iterator[_Access]:
    for stmt in statements(kernel):
        for e in postorder(expressions(stmt)):
            found = _address(e)
            if found is not None and found[0].uid in uids:
                yield _Access(stmt, e, *found)
        if isinstance(stmt, Store) and stmt.buffer.data.uid in uids and len(stmt.indices) == 1:
            yield _Access(stmt, None, stmt.buffer.data, stmt.indices[0], item_size(stmt.buffer.dtype))


def _address(e: Expr) -> tuple[Expr, Expr, int] | None:
    """Pointer, index and bytes per index of an expression that names memory."""
    if e.op == "load" and e.buffer is not None and len(e.args) == 1:
        return e.buffer.data, e.args[0], item_size(e.buffer.dtype)
    if e.op == "call" and e.value == "tvm_access_ptr":
        return e.args[1], e.args[2], item_size(e.args[0].dtype)
    moved = _variable(e)
    return None if moved is None else (e.args[moved[0]], e.args[moved[1]], 1)


def _variable(e: Expr) -> tuple[int, int] | None:
    """The arguments of a copy that are its destination, a pointer variable, and an offset from there in bytes: how old
    releases write it.
    """
    signature = signature_of(e)
    for target in () if signature is None else signature.destinations:
        if target.offset is not None and target.octets and e.args[target.at].op == "var":
            return target.at, target.offset
    return None


def item_size(dtype: str) -> int:
    """Bytes of an element, lanes included; sizes below a byte count as one."""
    found = dtype_of(dtype)
    return max(1, found.bits // 8) * found.lanes


def _bytes(buffer: Buffer) -> int:
    return item_size(buffer.dtype) * prod([int(e.value or 0) for e in buffer.shape if e.op == "int"])


def _pairs(old: list[_Access], new: list[_Access], separate: dict[int, Buffer]) -> list[tuple[_Access, _Home]]:
    """Each final access with its home; empty where the two sequences do not fit."""
    if len(old) != len(new):
        return []
    places: dict[int, tuple[int, int]] = {}
    for a, b in zip(old, new, strict=True):
        for seed in (0, 1):
            distance = _value(b.index, seed) * b.size - _value(a.index, seed) * a.size
            if places.setdefault(a.data.uid, (distance, b.data.uid)) != (distance, b.data.uid):
                return []
    homes = {uid: _Home(separate[uid], *place) for uid, place in places.items()}
    fits = all(homes[a.data.uid].place % b.size == 0 for a, b in zip(old, new, strict=True))
    return [(b, homes[a.data.uid]) for a, b in zip(old, new, strict=True)] if fits else []


_NUMBERS = Scalars()


def _value(index: Expr, seed: int) -> int:
    """The index at one point, with memory as zero. The merge adds a constant, which shows at any point."""
    known: dict[Expr, int] = {}
    for e in postorder([index]):
        args = [known[a] for a in e.args]
        if e.op == "int":
            known[e] = int(e.value or 0)
        elif e.op == "var":
            known[e] = seed * (sum(map(ord, str(e.value))) % 61 + 3)
        elif e.op in ("ramp", "broadcast"):
            known[e] = args[0]
        else:
            operation = meaning(e, _NUMBERS)
            known[e] = int(operation(*args)) if operation is not None else 0
    return known[index]


def _strays(kernel: Stmt, uids: set[int], pairs: list[tuple[_Access, _Home]]) -> bool:
    """Whether the merged buffer is used in any other way."""
    paired = {access.expr for access, _ in pairs}
    for stmt in statements(kernel):
        for e in postorder(expressions(stmt)):
            if e not in paired and any(a.op == "var" and a.uid in uids for a in e.args):
                return True
    return False


class _Rewriter:
    """Gives the accesses of a kernel their homes."""

    def __init__(self, homes: dict[_Use, _Home], merged: list[int], nodes: Nodes) -> None:
        self._homes = homes
        self._merged = merged
        self._nodes = nodes

    def kernel(self, kernel: Stmt, separate: Iterable[Buffer]) -> Stmt:
        allocations = [Alloc(buffer) for buffer in separate]

        def change(old: Stmt, new: Stmt) -> Stmt:
            if isinstance(new, Seq):
                return replace(new, body=tuple([p for part in new.body for p in self._unmerged(part, allocations)]))
            roots = expressions(old)
            moved = self._expressions(old, roots)
            if any(a is not b for a, b in zip(roots, moved, strict=True)):
                new = with_expressions(new, moved)
            home = self._homes.get((old, None))
            if home is None or not isinstance(new, Store):
                return new
            view = self._view(home, new.buffer.dtype)
            index = self._lowered(new.indices[0], home.place // item_size(view.dtype))
            return replace(new, buffer=view, indices=(index,))

        return rebuild(kernel, change)

    def _unmerged(self, part: Stmt, allocations: list[Alloc]) -> Sequence[Stmt]:
        if not isinstance(part, Alloc) or part.buffer.data.uid not in self._merged:
            return (part,)
        return allocations if part.buffer.data.uid == self._merged[0] else ()

    def _expressions(self, stmt: Stmt, roots: Sequence[Expr]) -> list[Expr]:
        new: dict[Expr, Expr] = {}
        for e in postorder(roots):
            args = tuple([new[a] for a in e.args])
            home = self._homes.get((stmt, e))
            if home is not None:
                new[e] = self._moved(e, args, home)
            else:
                new[e] = e if args == e.args else self._nodes.remake(e, args)
        return [new[root] for root in roots]

    def _moved(self, e: Expr, args: tuple[Expr, ...], home: _Home) -> Expr:
        """A load or pointer in its own buffer."""
        if e.op == "load" and e.buffer is not None:
            view = self._view(home, e.buffer.dtype)
            index = self._lowered(args[0], home.place // item_size(view.dtype))
            return self._nodes.make("load", e.dtype, (index,), None, view)
        if (moved := _variable(e)) is not None:
            at, offset = moved
            changed = {at: home.buffer.data, offset: self._lowered(args[offset], home.place)}
            return self._nodes.remake(e, tuple([changed.get(n, a) for n, a in enumerate(args)]))
        index = self._lowered(args[2], home.place // item_size(args[0].dtype))
        return self._nodes.remake(e, (args[0], home.buffer.data, index, *args[3:]))

    def _view(self, home: _Home, dtype: str) -> Buffer:
        """The buffer, seen as elements of this type."""
        whole = home.buffer
        if whole.dtype == dtype:
            return whole
        shape = (self._nodes.make("int", "int32", (), _bytes(whole) // item_size(dtype)),)
        return self._nodes.unique((whole.name, dtype, shape, whole.scope, whole.data), Buffer)

    def _lowered(self, index: Expr, place: int) -> Expr:
        """index - place, in the form that it would have had without the place."""
        if place == 0:
            return index
        if index.op == "ramp":
            return self._nodes.remake(index, (self._lowered(index.args[0], place), *index.args[1:]))
        if index.op == "int":
            return self._nodes.make("int", index.dtype, (), int(index.value or 0) - place)
        found = self._without(index, place)
        return found if found is not None else self._plus(index, -place)

    def _without(self, e: Expr, place: int) -> Expr | None:
        """e - place, taken from a constant among the terms of a sum; None where there is none."""
        if e.op not in ("add", "sub"):
            return None
        left, right = e.args
        if right.op == "int":
            value = int(right.value or 0)
            return self._plus(left, (value if e.op == "add" else -value) - place)
        for position in (1, 0) if e.op == "add" else (0,):
            rest = self._without(e.args[position], place)
            if rest is not None:
                return self._nodes.remake(e, (rest, right) if position == 0 else (left, rest))
        return None

    def _plus(self, e: Expr, value: int) -> Expr:
        """e + value, as TVM's simplifier writes it."""
        if value == 0:
            return e
        constant = self._nodes.make("int", e.dtype, (), abs(value))
        return self._nodes.make("add" if value > 0 else "sub", e.dtype, (e, constant))
