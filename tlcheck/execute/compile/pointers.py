"""Find which pointers and buffers see the same allocation, and where in it they begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache

from tlcheck.execute.memory.values import Kind, kind_of, lanes_of
from tlcheck.execute.stops import NotModelled
from tlcheck.signatures.signature import ADDRESSES
from tlcheck.snapshot.ir import Alloc, Bind, Buffer, Expr, For, Function, Store, Thread
from tlcheck.snapshot.walk import expressions, postorder, statements


class Pointers:
    """The pointers of one kernel. free: (uid, name) of variables that no statement binds."""

    def __init__(self, function: Function) -> None:
        self._base: dict[int, tuple[int, Expr]] = {}
        self._declared: dict[int, Buffer] = {}
        self._allocated: dict[int, Buffer] = {}
        self._kinds: dict[int, dict[Kind, None]] = {}
        self._bound: dict[int, Expr] = {}
        self._base |= {pointer.uid: (PLACED, Expr("int", "int32", (), place)) for pointer, place in function.places}
        self._end = {pointer.uid: place for pointer, place in function.places}
        for stmt in statements(function.body):
            if isinstance(stmt, Bind) and stmt.var.dtype == "handle":
                self._alias(stmt.var, stmt.value)
            if isinstance(stmt, Alloc):
                self._declared[stmt.buffer.data.uid] = stmt.buffer
                self._allocated[stmt.buffer.data.uid] = stmt.buffer
        self._buffers = tuple(dict.fromkeys(_buffers(function)))
        for buffer in (*self._buffers, *self._addressed(function)):
            self._declared.setdefault(buffer.data.uid, buffer)
            kinds = self._kinds.setdefault(self.root(buffer.data.uid), {})
            kinds[kind_of(buffer.dtype)] = None
        self.free = list(_free(function, self._buffers))

    def _addressed(self, function: Function) -> Iterator[Buffer]:
        """Parts of an allocation that some passes name by their address alone, as what that is said to point to."""
        alone = self._base.keys() - {buffer.data.uid for buffer in self._buffers}
        for stmt in statements(function.body) if alone else ():
            for e in postorder(expressions(stmt)):
                if e.op == "call" and e.value == "tvm_access_ptr" and e.args[1].uid in alone:
                    one = Expr("int", "int32", (), 1)
                    yield Buffer(str(e.args[1].value), e.args[0].dtype, (one,), "shared.dyn", e.args[1])

    def root(self, uid: int) -> int:
        """The allocation that a pointer points into."""
        while uid in self._base:
            uid = self._base[uid][0]
        return uid

    def offsets(self, uid: int) -> list[Expr]:
        """The bytes that lead from where its allocation begins to where a pointer points, added up."""
        found: list[Expr] = []
        while uid in self._base:
            uid, offset = self._base[uid]
            found.append(offset)
        return found

    def declared(self, pointer: Expr) -> Buffer | None:
        """The buffer that is declared at a pointer variable."""
        return self._declared.get(pointer.uid)

    def address(self, pointer: Expr) -> Expr:
        """The address that a pointer variable was given; the pointer itself where it was given none."""
        return self._bound.get(pointer.uid, pointer) if pointer.op == "var" else pointer

    def kinds(self, buffer: Buffer) -> tuple[Kind, ...]:
        """Return what an allocation is seen as."""
        return tuple(self._kinds.get(self.root(buffer.data.uid), {})) or (kind_of(buffer.dtype),)

    def room(self, buffer: Buffer) -> int:
        """The bytes of the allocation that a buffer lies in."""
        if self.root(buffer.data.uid) != PLACED:
            return self.size(buffer)
        return max(place + self.size(self._allocated[uid]) for uid, place in self._end.items())

    def size(self, buffer: Buffer) -> int:
        """The bytes of an allocation; its shape has to be constant."""
        count = 1
        for e in buffer.shape:
            if e.op != "int" or not isinstance(e.value, int):
                raise NotModelled("allocation of unknown size")
            count *= e.value
        return -(-count * lanes_of(buffer.dtype) * kind_of(buffer.dtype).bits // 8)

    def is_merged(self, buffer: Buffer) -> bool:
        """Whether it is one name for several buffers of an allocation: its shape is that of the first of them."""
        allocated = self._allocated.get(buffer.data.uid, buffer)
        return allocated is not buffer and len(buffer.shape) == 1 and allocated.dtype == "uint8" != buffer.dtype

    def length(self, buffer: Buffer) -> int | None:
        """Return how many elements there are from the start of a buffer that is allocated; None for another."""
        allocated = self._allocated.get(buffer.data.uid)
        return None if allocated is None else self.size(allocated) * 8 // kind_of(buffer.dtype).bits

    def owner(self, name: str) -> str:
        """The name of the allocation in which the buffers of a name lie, which may be views of it; the name itself
        where there is none, or several. A pointer's name, which passes give to its buffers, counts as theirs.
        """
        return self._owners.get(name, name)

    @cached_property
    def _owners(self) -> Mapping[str, str]:
        found: dict[str, dict[str, None]] = {}
        pointing: dict[str, dict[str, None]] = {}
        for buffer in (*self._allocated.values(), *self._buffers):
            allocated = self._allocated.get(self.root(buffer.data.uid), buffer)
            found.setdefault(buffer.name, {})[allocated.name] = None
            pointing.setdefault(str(buffer.data.value), {})[allocated.name] = None
        every = {**pointing, **found}
        return {name: next(iter(owners)) for name, owners in every.items() if len(owners) == 1}

    @property
    def shared_buffers(self) -> int:
        """Return how many buffers of the kernel are in shared memory."""
        return sum(buffer.scope.startswith("shared") for buffer in self._allocated.values())

    def _alias(self, pointer: Expr, value: Expr) -> None:
        if value.op == "var":
            self._base[pointer.uid] = (value.uid, _ZERO)
        elif value.op == "call" and value.value == "handle_add_byte_offset" and value.args[0].op == "var":
            self._base[pointer.uid] = (value.args[0].uid, value.args[1])
        elif value.op == "call" and value.value in ADDRESSES:
            self._bound[pointer.uid] = value


@lru_cache(maxsize=16)
def pointers_of(function: Function) -> Pointers:
    """The pointers of a kernel, which its machines share."""
    return Pointers(function)


def _buffers(function: Function) -> Iterator[Buffer]:
    """Every buffer that a function accesses, as often as it does."""
    yield from function.buffers
    for stmt in statements(function.body):
        if isinstance(stmt, Store):
            yield stmt.buffer
        yield from (e.buffer for e in postorder(expressions(stmt)) if e.buffer is not None)


def _free(function: Function, buffers: tuple[Buffer, ...]) -> Iterator[tuple[int, str]]:
    """The variables that no statement binds, and the tensors that the kernel declares."""
    bound: set[int] = set()
    found = {p.uid: str(p.value) for p in function.params}
    found |= {buffer.data.uid: str(buffer.data.value) for buffer in workspaces(function)}
    roots = [e for buffer in buffers for e in sizes(buffer)] + [made for _, made in function.descriptors]
    for stmt in statements(function.body):
        roots += expressions(stmt)
        if isinstance(stmt, (Bind, For, Thread)):
            bound.add(stmt.var.uid)
        if isinstance(stmt, Alloc) and stmt.buffer.scope != "global":
            bound.add(stmt.buffer.data.uid)
    found |= {e.uid: str(e.value) for e in postorder(roots) if e.op == "var"}
    yield from ((uid, name) for uid, name in found.items() if uid not in bound)


def workspaces(function: Function) -> list[Buffer]:
    """The tensors that a kernel declares itself (T.alloc_global); as lowered they are parameters."""
    return [s.buffer for s in statements(function.body) if isinstance(s, Alloc) and s.buffer.scope == "global"]


PLACED = -1  # the allocation of buffers that the snapshot says overlap
_ZERO = Expr("int", "int32", (), 0)


def sizes(buffer: Buffer) -> tuple[Expr, ...]:
    """The expressions of a buffer's declaration."""
    return (*buffer.shape, *buffer.strides, *([] if buffer.elem_offset is None else [buffer.elem_offset]))
