"""Find which elements an index or an address names, compiled for one state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.extents import Signs
from tlcheck.execute.compile.pointers import Pointers
from tlcheck.execute.events import Observers
from tlcheck.execute.memory.codes import Code
from tlcheck.execute.memory.growth import grown
from tlcheck.execute.memory.pages import Pages
from tlcheck.execute.memory.places import Arrange
from tlcheck.execute.memory.state import RunState
from tlcheck.execute.memory.values import Array, Kind, kind_of, lanes_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Buffer, Expr


class Addresses:
    """The addresses of a kernel in one state. safe_values: by allocation, what it reads as out of bounds."""

    def __init__(
        self,
        pointers: Pointers,
        state: RunState,
        observers: Observers,
        code: Callable[[Expr], Code],
        signs: Signs,
        safe_values: Mapping[int, int | float] | None = None,
    ) -> None:
        """code: compiles an expression. signs: of indices in the source."""
        self._pointers, self._state, self._observers, self._code = pointers, state, observers, code
        self._signs = signs
        self.safe_values: dict[int, int | float] = dict(safe_values or {})

    def start(self, uid: int) -> Code:
        """Return how many bytes into its allocation a pointer points."""
        return joined(lambda *parts: sum(parts), *map(self._code, self._pointers.offsets(uid)))

    def place(self, buffer: Buffer, indices: list[Code]) -> BufferElement:
        """The element of a buffer at compiled indices. One that is a vector is a dimension of its own."""
        if len(indices) != len(buffer.shape):
            raise NotModelled("access with another number of indices")
        shape, strides = [self._code(e) for e in buffer.shape], self._strides(buffer)
        if len(shape) == 1 and not self._state.options.source and self._tensor(buffer) is not None:
            shape = [_EVERYTHING]  # flattened, a tensor with strides says another size than its memory has
        if self._pointers.is_merged(buffer):
            shape = [self._length(buffer)]
        triples = list(zip(indices, shape, strides, strict=True))
        lanes = lanes_of(buffer.dtype)
        triples += [(step, constant(lanes), constant(1)) for step in _vector(np.arange(lanes))]
        return self._element(buffer, triples)

    def pointed(
        self, pointer: Expr, offset: Expr | Code | None, steps: Array, arrange: Arrange | None = None
    ) -> BufferElement:
        """The elements `steps` from where a pointer points, `offset` elements on; a single one is no vector."""
        buffer, indices = self._target(pointer)
        strides = self._strides(buffer)
        terms = [joined(_multiply, i, s) for i, s in zip(indices, strides, strict=True)]
        if offset is not None:
            terms.append(offset if isinstance(offset, Code) else self._code(offset))
        index = joined(lambda *parts: sum(parts), *terms, *_vector(steps))
        return self._element(buffer, [(index, self._length(buffer), constant(1))], arrange)

    def on_axes(self, pointer: Expr) -> BufferElement | None:
        """The element that a pointer names in a tensor of several axes, each with its bounds; None for others."""
        buffer, indices = self._target(pointer)
        return self.place(buffer, indices) if len(indices) > 1 and self._tensor(buffer) is not None else None

    def octets(self, pointer: Expr, offset: Expr, kind: Kind, count: int) -> BufferElement:
        """`count` elements of a kind from `offset` bytes after where a pointer variable points."""
        if pointer.op != "var":
            return self.pointed(pointer, None, np.arange(count))
        bits, root = kind.bits, self._pointers.root(pointer.uid)
        index = joined(lambda at, *step: sum(step, at * 8 // bits), self._code(offset), *_vector(np.arange(count)))
        triples = [(index, _EVERYTHING, constant(1))]
        return self._made(str(pointer.value), kind, root, self.start(pointer.uid), triples)

    def kind(self, pointer: Expr) -> Kind:
        """Return what a pointer points to."""
        return kind_of(self._target(pointer)[0].dtype)

    def _tensor(self, buffer: Buffer) -> Pages | None:
        """The tensor that a buffer is, or is a view of; None for other memory. Raises NotModelled for neither."""
        try:
            memory = self._state.memory[self._pointers.root(buffer.data.uid)]
        except KeyError:
            raise NotModelled(f"memory of {buffer.name}, whose address is computed") from None
        return memory if isinstance(memory, Pages) else None

    def _strides(self, buffer: Buffer) -> list[Code]:
        """The strides, in numbers, of which an element may be several. The first size of the shape is not asked: what
        an address says of its first axis may have variables of a loop that is over.
        """
        lanes, inner = lanes_of(buffer.dtype), [self._code(e) for e in buffer.shape[1:]]
        strides = [self._code(e) for e in buffer.strides] or compact([_EVERYTHING, *inner])
        return strides if lanes == 1 else [joined(_multiply, s, constant(lanes)) for s in strides]

    def _length(self, buffer: Buffer) -> Code:
        """Return how many elements there are from the start of a buffer; an address's own shape says nothing of it."""
        length = self._pointers.length(buffer)
        return _EVERYTHING if length is None else constant(length)

    def _target(self, pointer: Expr) -> tuple[Buffer, list[Code]]:
        """The buffer that a pointer points into, and the indices."""
        pointer = self._pointers.address(pointer)
        while pointer.op == "call" and pointer.value in ("address_of", "access_ptr"):
            pointer = pointer.args[0]
        if pointer.op == "load" and pointer.buffer is not None:
            named = pointer.args
            if self._state.options.source and len(named) == len(pointer.buffer.shape):
                named = tuple(map(self._signs.resolved, named, pointer.buffer.shape))
            return pointer.buffer, [self._code(a) for a in named]
        if pointer.op == "call" and pointer.value == "tvm_access_ptr":
            buffer, indices = self._target(pointer.args[1])
            return buffer, [*indices[:-1], joined(lambda *p: sum(p), indices[-1], self._code(pointer.args[2]))]
        if pointer.op == "call" and pointer.value == "handle_add_byte_offset":
            return self._further(pointer)
        if pointer.op == "var":
            buffer = self._whole(pointer)
            return buffer, [constant(0)] * len(buffer.shape)
        raise NotModelled(f"pointer {pointer.value or pointer.op}")

    def _further(self, pointer: Expr) -> tuple[Buffer, list[Code]]:
        """The target of a pointer that is moved on by bytes."""
        buffer, indices = self._target(pointer.args[0])
        bits = kind_of(buffer.dtype).bits
        moved = joined(lambda index, octets: index + octets * 8 // bits, indices[-1], self._code(pointer.args[1]))
        return buffer, [*indices[:-1], moved]

    def _whole(self, pointer: Expr) -> Buffer:
        """The buffer at whose start a pointer variable points."""
        declared = self._pointers.declared(pointer)
        if declared is not None:
            return declared
        tensor = self._state.tensors.get(str(pointer.value))
        if tensor is None:
            raise NotModelled(f"pointer {pointer.value}")
        size = Expr("int", "int64", (), tensor.size)
        return Buffer(str(pointer.value), tensor.kind.name, (size,), "global", pointer)

    def _element(
        self, buffer: Buffer, triples: list[tuple[Code, Code, Code]], arrange: Arrange | None = None
    ) -> BufferElement:
        kind, start = kind_of(buffer.dtype), self.start(buffer.data.uid)
        if buffer.elem_offset is not None and not (buffer.elem_offset.op == "int" and buffer.elem_offset.value == 0):
            bits = kind.bits
            start = joined(lambda first, more: first + more * bits // 8, start, self._code(buffer.elem_offset))
        root = self._pointers.root(buffer.data.uid)
        self._tensor(buffer)  # or it is in no memory that is known
        element = self._made(buffer.name, kind, root, start, triples, arrange)
        if not buffer.scope.startswith("local"):
            element.unseen = dict(self._pointers.free).get(root, buffer.name)
        return element

    def _made(
        self,
        name: str,
        kind: Kind,
        root: int,
        start: Code,
        triples: list[tuple[Code, Code, Code]],
        arrange: Arrange | None = None,
    ) -> BufferElement:
        safe = self.safe_values.get(root, 0)
        if kind.family in ("int", "uint") and not kind.limits[0] <= safe <= kind.limits[1]:
            raise NotModelled(f"a safe value that {kind.name} does not have: {safe}")
        return BufferElement(self._state, self._observers, name, kind, root, start, triples, arrange, safe)


def constant(value: int) -> Code:
    """The code of a constant."""
    return Code(lambda frame: value, frozenset(), True, True)


def joined(apply: Callable[..., Any], *codes: Code) -> Code:
    """An operation on the values of several codes."""
    runs = [c.run for c in codes]
    needs: frozenset[int] = frozenset().union(*(c.needs for c in codes))
    steady, uniform = all(c.steady for c in codes), all(c.uniform for c in codes)
    growths = grown("", "", [c.growths for c in codes], [c.needs for c in codes], [])
    return Code(lambda frame: apply(*[run(frame) for run in runs]), needs, steady, uniform, growths)


def counted(index: Expr, code: Code, extent: Code) -> Code:
    """An index in the source: negative lanes of a vector count from the end of the axis, as numbers do (`extents`)."""
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


def compact(shape: list[Code]) -> list[Code]:
    """The strides of a row-major buffer."""
    return [joined(lambda *sizes: prod(sizes), *shape[axis + 1 :]) for axis in range(len(shape))]


def _multiply(index: Any, stride: Any) -> Any:
    return index.astype(np.int64) * stride if isinstance(index, np.ndarray) else index * stride
