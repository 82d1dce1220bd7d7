"""Which pointers and buffers see the same allocation, and where in it they begin."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tlcheck.execute.compile.codes import Code
from tlcheck.execute.compile.growth import grown
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.places import Arrange, Place
from tlcheck.execute.memory.values import Array, Kind, kind_of, lanes_of
from tlcheck.execute.reasons import NotModelled
from tlcheck.snapshot.ir import Alloc, Bind, Buffer, Expr, For, Function, Store, Thread
from tlcheck.snapshot.walk import expressions, postorder, statements

if TYPE_CHECKING:
    from tlcheck.execute.schedule.machine import Machine


class Pointers:
    """The pointers of one kernel. free: (uid, name) of variables that no statement binds."""

    def __init__(self, function: Function) -> None:
        self._base: dict[int, tuple[int, Expr]] = {}
        self._declared: dict[int, Buffer] = {}
        self._allocated: dict[int, Buffer] = {}
        self._kinds: dict[int, dict[Kind, None]] = {}
        self._base |= {pointer.uid: (PLACED, _number(place)) for pointer, place in function.places}
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

    def start(self, uid: int, machine: Machine) -> Code:
        """How many bytes into its allocation a pointer points."""
        offsets: list[Code] = []
        while uid in self._base:
            uid, offset = self._base[uid]
            offsets.append(machine.code(offset))
        return joined(lambda *parts: sum(parts), *offsets)

    def kinds(self, buffer: Buffer) -> tuple[Kind, ...]:
        """What an allocation is seen as."""
        return tuple(self._kinds.get(self.root(buffer.data.uid), {})) or (kind_of(buffer.dtype),)

    def room(self, buffer: Buffer, machine: Machine) -> int:
        """The bytes of the allocation that a buffer lies in."""
        if self.root(buffer.data.uid) != PLACED:
            return self.size(buffer, machine)
        return max(place + self.size(self._allocated[uid], machine) for uid, place in self._end.items())

    def size(self, buffer: Buffer, machine: Machine) -> int:
        """The bytes of an allocation; its shape has to be constant."""
        count = 1
        for e in buffer.shape:
            if e.op != "int" or not isinstance(e.value, int):
                raise NotModelled("allocation of unknown size")
            count *= e.value
        return count * lanes_of(buffer.dtype) * kind_of(buffer.dtype).octets

    def place(self, machine: Machine, buffer: Buffer, indices: list[Code]) -> Place:
        """The element of a buffer at compiled indices. One that is a vector is a dimension of its own."""
        if len(indices) != len(buffer.shape):
            raise NotModelled("access with another number of indices")
        shape, strides = self._form(buffer, machine)
        if len(shape) == 1 and not machine.options.written and self._tensor(buffer, machine) is not None:
            shape = [_EVERYTHING]  # flattened, a tensor with strides says another size than its memory has
        if self._is_merged(buffer):
            shape = [self._length(buffer, machine)]
        triples = list(zip(indices, shape, strides, strict=True))
        lanes = lanes_of(buffer.dtype)
        triples += [(step, constant(lanes), constant(1)) for step in _vector(np.arange(lanes))]
        return self._place(machine, buffer, triples)

    def _tensor(self, buffer: Buffer, machine: Machine) -> Pages | None:
        """The tensor that a buffer is, or is a view of; None for other memory. Raises NotModelled for neither."""
        try:
            memory = machine.memory[self.root(buffer.data.uid)]
        except KeyError:
            raise NotModelled(f"memory of {buffer.name}, whose address is computed") from None
        return memory if isinstance(memory, Pages) else None

    def _is_merged(self, buffer: Buffer) -> bool:
        """Whether it is one name for several buffers of an allocation: its shape is that of the first of them."""
        allocated = self._allocated.get(buffer.data.uid, buffer)
        return allocated is not buffer and len(buffer.shape) == 1 and allocated.dtype == "uint8" != buffer.dtype

    def _form(self, buffer: Buffer, machine: Machine) -> tuple[list[Code], list[Code]]:
        """Shape and strides of a buffer; strides in numbers, of which an element may be several."""
        shape = [machine.code(e) for e in buffer.shape]
        return shape, self._strides(buffer, machine)

    def _strides(self, buffer: Buffer, machine: Machine) -> list[Code]:
        """The strides alone: what an address says of its first axis may have variables of a loop that is over."""
        lanes, inner = lanes_of(buffer.dtype), [machine.code(e) for e in buffer.shape[1:]]
        strides = [machine.code(e) for e in buffer.strides] or compact([_EVERYTHING, *inner])
        return strides if lanes == 1 else [joined(_multiply, s, constant(lanes)) for s in strides]

    def pointed(
        self,
        machine: Machine,
        pointer: Expr,
        offset: Expr | Code | None,
        steps: Array,
        arrange: Arrange | None = None,
    ) -> Place:
        """The elements `steps` from where a pointer points, `offset` elements on; a single one is no vector."""
        buffer, indices = self._target(pointer, machine)
        strides = self._strides(buffer, machine)
        terms = [joined(_multiply, i, s) for i, s in zip(indices, strides, strict=True)]
        if offset is not None:
            terms.append(offset if isinstance(offset, Code) else machine.code(offset))
        limit = self._length(buffer, machine)
        index = joined(lambda *parts: sum(parts), *terms, *_vector(steps))
        return self._place(machine, buffer, [(index, limit, constant(1))], arrange)

    def _length(self, buffer: Buffer, machine: Machine) -> Code:
        """How many elements there are from the start of a buffer; an address's own shape says nothing of it."""
        allocated = self._allocated.get(buffer.data.uid)
        if allocated is None:
            return _EVERYTHING
        return constant(self.size(allocated, machine) // kind_of(buffer.dtype).octets)

    def octets(self, machine: Machine, pointer: Expr, offset: Expr, kind: Kind, count: int) -> Place:
        """`count` elements of a kind from `offset` bytes after where a pointer variable points."""
        if pointer.op != "var":
            return self.pointed(machine, pointer, None, np.arange(count))
        width = kind.octets
        index = joined(lambda at, *step: sum(step, at // width), machine.code(offset), *_vector(np.arange(count)))
        start, root = self.start(pointer.uid, machine), self.root(pointer.uid)
        return Place(machine, str(pointer.value), kind, root, start, [(index, _EVERYTHING, constant(1))])

    @property
    def shared_buffers(self) -> int:
        """How many buffers of the kernel are in shared memory."""
        return sum(buffer.scope.startswith("shared") for buffer in self._allocated.values())

    def element(self, pointer: Expr, machine: Machine) -> Kind:
        """What a pointer points to."""
        return kind_of(self._target(pointer, machine)[0].dtype)

    def _target(self, pointer: Expr, machine: Machine) -> tuple[Buffer, list[Code]]:
        """The buffer that a pointer points into, and the indices."""
        while pointer.op == "call" and pointer.value in ("address_of", "access_ptr"):
            pointer = pointer.args[0]
        if pointer.op == "load" and pointer.buffer is not None:
            return pointer.buffer, [machine.code(a) for a in pointer.args]
        if pointer.op == "call" and pointer.value == "tvm_access_ptr":
            buffer, indices = self._target(pointer.args[1], machine)
            return buffer, [*indices[:-1], joined(lambda *p: sum(p), indices[-1], machine.code(pointer.args[2]))]
        if pointer.op == "call" and pointer.value == "handle_add_byte_offset":
            return self._further(pointer, machine)
        if pointer.op == "var":
            return self._whole(pointer, machine), [constant(0)] * self._rank(pointer)
        raise NotModelled(f"pointer {pointer.value or pointer.op}")

    def _further(self, pointer: Expr, machine: Machine) -> tuple[Buffer, list[Code]]:
        """The target of a pointer that is moved on by bytes."""
        buffer, indices = self._target(pointer.args[0], machine)
        width = kind_of(buffer.dtype).octets
        moved = joined(lambda index, octets: index + octets // width, indices[-1], machine.code(pointer.args[1]))
        return buffer, [*indices[:-1], moved]

    def _rank(self, pointer: Expr) -> int:
        return len(self._declared[pointer.uid].shape) if pointer.uid in self._declared else 1

    def _whole(self, pointer: Expr, machine: Machine) -> Buffer:
        """The buffer at whose start a pointer variable points."""
        if pointer.uid in self._declared:
            return self._declared[pointer.uid]
        tensor = machine.tensors.get(str(pointer.value))
        if tensor is None:
            raise NotModelled(f"pointer {pointer.value}")
        size = Expr("int", "int64", (), tensor.size)
        return Buffer(str(pointer.value), tensor.kind.name, (size,), "global", pointer)

    def _place(
        self,
        machine: Machine,
        buffer: Buffer,
        triples: list[tuple[Code, Code, Code]],
        arrange: Arrange | None = None,
    ) -> Place:
        kind, start = kind_of(buffer.dtype), self.start(buffer.data.uid, machine)
        if buffer.elem_offset is not None and not (buffer.elem_offset.op == "int" and buffer.elem_offset.value == 0):
            width = kind.octets
            start = joined(lambda first, more: first + more * width, start, machine.code(buffer.elem_offset))
        root = self.root(buffer.data.uid)
        self._tensor(buffer, machine)  # or it is in no memory that is known
        place = Place(machine, buffer.name, kind, root, start, triples, arrange)
        if not buffer.scope.startswith("local"):
            place.unseen = dict(self.free).get(root, buffer.name)
        return place

    def _alias(self, pointer: Expr, value: Expr) -> None:
        if value.op == "var":
            self._base[pointer.uid] = (value.uid, _ZERO)
        elif value.op == "call" and value.value == "handle_add_byte_offset" and value.args[0].op == "var":
            self._base[pointer.uid] = (value.args[0].uid, value.args[1])


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


def _number(value: int) -> Expr:
    return Expr("int", "int32", (), value)


def constant(value: int) -> Code:
    """The code of a constant."""
    return Code(lambda frame: value, frozenset(), True, True)


def joined(apply: Callable[..., Any], *codes: Code) -> Code:
    """An operation on the values of several codes."""
    runs = [c.run for c in codes]
    needs: frozenset[int] = frozenset().union(*(c.needs for c in codes))
    steady, uniform = all(c.steady for c in codes), all(c.uniform for c in codes)
    growths = grown("", [c.growths for c in codes], [c.needs for c in codes], [])
    return Code(lambda frame: apply(*[run(frame) for run in runs]), needs, steady, uniform, growths)


def counted(index: Expr, code: Code, extent: Code) -> Code:
    """An index as written: negative lanes of a vector count from the end of the axis, as numbers do (`extents`)."""
    if index.op == "ramp":
        return joined(lambda at, size: at + size * (at < 0), code, extent)
    return code


_EVERYTHING = constant(1 << 62)


def _vector(steps: Array) -> list[Code]:
    """Steps along the axis of vector lanes; nothing for one element."""
    if len(steps) == 1:
        return []
    column = steps.astype(np.int64).reshape(-1, 1, 1)
    return [Code(lambda frame: column, frozenset(), True)]


def sizes(buffer: Buffer) -> tuple[Expr, ...]:
    """The expressions of a buffer's declaration."""
    return (*buffer.shape, *buffer.strides, *([] if buffer.elem_offset is None else [buffer.elem_offset]))


def compact(shape: list[Code]) -> list[Code]:
    """The strides of a row-major buffer."""
    return [joined(lambda *sizes: prod(sizes), *shape[axis + 1 :]) for axis in range(len(shape))]


def _multiply(index: Any, stride: Any) -> Any:
    return index.astype(np.int64) * stride if isinstance(index, np.ndarray) else index * stride
