"""Memory and expressions of one running function, for the oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from tests.cpu.prove.oracle_text import Source, UnsupportedError, Values, compiled, lanes_of
from tlcheck.snapshot.ir import Bind, Buffer, Expr, Function, Layout, Store
from tlcheck.snapshot.walk import statements


class Layouts(Protocol):
    """A record of what a run needs to know of its kernel."""

    layouts: dict[str, Layout]
    declared: dict[str, Buffer]
    content: int | None

    def image(self, root: str) -> tuple[dict[Any, Any], tuple[int, ...]]: ...


class Machine:
    """Evaluates expressions of one function, for one thread at a time. is_source: it is that of the source.

    values: of variables, by uid.
    """

    def __init__(self, kernel: Layouts, function: Function, is_source: bool, values: Values) -> None:
        self.kernel, self.is_source = kernel, is_source
        self.values: Values = {"lane": 0, **values}
        self.thread = {"threadIdx.x": 0, "threadIdx.y": 0, "threadIdx.z": 0}
        self.registers: dict[tuple[object, ...], object] = {}
        self.bindings = {s.var.uid: s.value for s in statements(function.body) if isinstance(s, Bind)}
        self.alias = _aliases(self.bindings)
        self.compiled: dict[tuple[int, str], Callable[[Values], Any]] = {}
        self.kept: list[Expr] = []

    def number(self, e: Expr) -> Any:
        if e.op == "int":
            return e.value
        return self._call(e, "number")

    def value(self, e: Expr) -> object:
        return self._call(e, "value")

    def _call(self, e: Expr, how: str) -> Any:
        key = (id(e), how)
        if key not in self.compiled:
            self.kept.append(e)
            source = Source(self.bindings)
            text = source.number(e) if how == "number" else source.value(e)
            loads = source.loads
            names = {"at": lambda n, i, v: self.read(loads[n], i), "content": self.content}
            self.compiled[key] = compiled(text, names)
        try:
            return self.compiled[key](self.values)
        except KeyError as error:
            raise UnsupportedError(f"the value of variable {error} is not known") from None

    def root(self, buffer: Buffer) -> str:
        data = self.alias.get(buffer.data.uid, buffer.data)
        return str(data.value)

    def read(self, load: Expr, indices: tuple[int, ...]) -> object:
        """Return what a load reads: what a register was given, else the element of memory that it names."""
        buffer = load.buffer
        assert buffer is not None
        root = self.root(buffer)
        if root not in self.kernel.declared:
            if not buffer.scope.startswith("local"):
                raise UnsupportedError(f"{root} is not memory of the kernel as written")
            key = self._register(buffer, indices)
            if key not in self.registers or str(self.registers[key]).startswith("('unsupported"):
                raise UnsupportedError(f"{root}{list(indices)} was given nothing that is understood")
            return self.registers[key]
        layout = self.kernel.layouts.get(root)
        if layout is not None and layout.thread is not None and not self.is_source:
            return ("element", root, self._held(root, buffer, indices))
        return ("element", root, self.offset(root, buffer, indices))

    def _held(self, root: str, buffer: Buffer, indices: tuple[int, ...]) -> object:
        """The logical element (row-major) in a register of this thread."""
        table, extents = self.kernel.image(root)
        if len(indices) != len(extents):
            if len(indices) != 1:
                raise UnsupportedError(f"{root} has another rank than its layout")
            indices = unflatten(indices[0], extents)
        element = table.get((self.thread["threadIdx.x"], indices))
        shape = [int(self.number(e)) for e in self.kernel.layouts[root].input_shape]
        return ("nothing", self.thread["threadIdx.x"], indices) if element is None else flatten(element, shape)

    def offset(self, root: str, buffer: Buffer, indices: Sequence[int]) -> int:
        """The place of an element in memory, in elements."""
        start = int(self.number(buffer.elem_offset)) if buffer.elem_offset is not None else 0
        layout = self.kernel.layouts.get(root)
        if self.is_source and layout is not None and layout.thread is None:
            table, extents = self.kernel.image(root)
            indices = [*[0] * (len(layout.vars) - len(indices)), *indices]  # the first stage of a pipeline
            if len(extents) == 0 or tuple(indices) not in table:
                return -1 - flatten(indices, [1 << 20] * len(indices))  # out of bounds, never compared
            return start + flatten(table[tuple(indices)], extents)
        if buffer.strides:
            return start + sum(i * int(self.number(s)) for i, s in zip(indices, buffer.strides, strict=True))
        if not buffer.shape:
            return start + indices[0]
        return start + flatten(indices, [self.number(s) for s in buffer.shape])

    def content(self, what: object) -> Any:
        """A number for what memory holds: small, for indices read from it to be in bounds; its own for each element."""
        if isinstance(what, (int, float)):
            return what
        if self.kernel.content is not None:
            return self.kernel.content
        word = sum((i + 1) * ord(c) for i, c in enumerate(repr(what)))
        return word % 3

    def private(self, buffer: Buffer) -> bool:
        return buffer.scope.startswith("local") and self.root(buffer) not in self.kernel.declared

    def store(self, s: Store) -> None:
        for lane in range(max([lanes_of(i.dtype) for i in s.indices])):
            self.values["lane"] = lane
            where = tuple(self.number(i) for i in s.indices)
            try:
                value = self.value(s.value)
            except UnsupportedError as error:
                value = ("unsupported", str(error))
            self.registers[self._register(s.buffer, where)] = value
        self.values["lane"] = 0

    def _register(self, buffer: Buffer, where: tuple[int, ...]) -> tuple[object, ...]:
        return self.root(buffer), *self.thread.values(), *where


def flatten(indices: Sequence[int], shape: Sequence[int]) -> int:
    """The row-major offset of an index."""
    total = 0
    for index, extent in zip(indices, shape, strict=True):
        total = total * extent + index
    return total


def unflatten(offset: int, shape: Sequence[int]) -> tuple[int, ...]:
    """The index at an offset; -1s for one beyond the end."""
    found: list[int] = []
    for extent in reversed(shape):
        found.insert(0, offset % extent)
        offset //= extent
    return tuple(found) if offset == 0 else (-1,) * len(shape)


def _aliases(bindings: Mapping[int, Expr]) -> dict[int, Expr]:
    found: dict[int, Expr] = {}
    for uid, value in bindings.items():
        while value.op == "call" and value.value == "reinterpret":
            value = value.args[0]
        if value.op == "var" and value.dtype == "handle":
            found[uid] = value
    return found
