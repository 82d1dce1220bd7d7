"""Small kernels of tile operators, made by hand, and their execution as written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tlcheck.execute.compile import registry
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.state import Tensor, World
from tlcheck.execute.memory.values import is_poison, kind_of
from tlcheck.snapshot.ir import Alloc, Block, Buffer, Evaluate, Expr, For, Function, Layout, Seq, Snapshot, Stmt, Thread

registry.load()

Array = npt.NDArray[Any]
Index = int | Expr
_COUNTER = iter(range(1 << 20, 1 << 30))  # numbers below are for tests that choose them


def number(value: Index) -> Expr:
    return value if isinstance(value, Expr) else Expr("int", "int32", (), value)


def flag(value: bool) -> Expr:
    return Expr("int", "bool", (), int(value))


def text(value: str) -> Expr:
    return Expr("str", "", (), value)


def variable(name: str, dtype: str = "int32") -> Expr:
    return Expr("var", dtype, (), name, next(_COUNTER))


def add(a: Index, b: Index) -> Expr:
    return Expr("add", "int32", (number(a), number(b)))


def multiply(a: Index, b: Index) -> Expr:
    return Expr("mul", "int32", (number(a), number(b)))


def buffer(name: str, dtype: str, shape: Sequence[Index], scope: str = "global") -> Buffer:
    return Buffer(name, dtype, tuple(number(n) for n in shape), scope, variable(name, "handle"))


def load(source: Buffer, *indices: Index) -> Expr:
    return Expr("load", source.dtype, tuple(number(i) for i in indices), None, 0, source)


def region(of: Buffer, starts: Sequence[Index] | None = None, sizes: Sequence[Index] | None = None) -> Expr:
    """A region of a buffer; all of it if nothing else is said."""
    first = load(of, *(starts or [0] * len(of.shape)))
    extents = tuple(number(n) for n in sizes) if sizes is not None else of.shape
    return Expr("call", "handle", (first, number(3), *extents), "region")


def whole_pointer(of: Buffer, offset: Index = 0) -> Expr:
    """A buffer as 0.1.6 passes it."""
    kind = Expr("call", "handle", (), "type_annotation")
    return Expr("call", "handle", (kind, of.data, number(offset), number(0), number(3)), "tvm_access_ptr")


def call(name: str, *args: Expr, notes: Mapping[str, str] | None = None) -> Evaluate:
    return Evaluate(Expr("call", "handle", args, name, annotations=tuple((notes or {}).items())))


def parallel(extents: Sequence[Index], variables: Sequence[Expr], body: Stmt) -> Stmt:
    for extent, name in reversed(list(zip(extents, variables, strict=True))):
        body = For(name, number(0), number(extent), "parallel", body)
    return body


@dataclass
class Kernel:
    """Parameters with their contents (None: poison), tiles of a block, and what runs in each block.

    lowered: how it runs, if not as source.
    """

    threads: int = 32
    blocks: int = 1
    exact: bool = True
    lowered: Options | None = None
    tensors: dict[str, tuple[Buffer, Array | None]] = field(default_factory=dict)
    tiles: list[Buffer] = field(default_factory=list)
    scalars: dict[str, int] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    layouts: list[tuple[Expr, Layout]] = field(default_factory=list)
    bx: Expr = field(default_factory=lambda: variable("bx"))
    tx: Expr = field(default_factory=lambda: variable("tx"))

    def tensor(self, name: str, dtype: str, contents: Array | Sequence[int], shape: Sequence[Index] = ()) -> Buffer:
        """A parameter: with contents, or of a shape and full of poison."""
        array = contents if isinstance(contents, np.ndarray) else None
        made = buffer(name, dtype, tuple(shape) or (tuple(contents) if array is None else array.shape))
        self.tensors[name] = (made, array)
        return made

    def tile(self, name: str, dtype: str, shape: Sequence[int], scope: str = "shared.dyn") -> Buffer:
        made = buffer(name, dtype, shape, scope)
        self.tiles.append(made)
        return made

    def function(self, *body: Stmt) -> Function:
        """The kernel with this body."""
        params = [b for b, _ in self.tensors.values()]
        inner: Stmt = Seq((*[Alloc(t) for t in self.tiles], *body))
        inner = Block("root", inner, tuple(self.layouts), tuple(self.annotations.items()))
        inner = Thread(self.tx, "threadIdx.x", number(self.threads), inner)
        inner = Thread(self.bx, "blockIdx.x", number(self.blocks), inner)
        return Function("main", tuple(b.data for b in params), tuple(params), (), inner)

    def snapshot(self, written: Sequence[Stmt], lowered: Sequence[Stmt]) -> Snapshot:
        """The kernel with one body as written and another as lowered."""
        checkpoints = {"source": self.function(*written), "device-tir": self.function(*lowered)}
        return Snapshot("kernel", "kernel.py", 1, {"tilelang": "0.1.15"}, "sm_90", {}, {}, checkpoints, {})

    def machine(self, *body: Stmt) -> Machine:
        """Return what runs the kernel as written, in all blocks."""
        function = self.function(*body)
        worlds = [World(0, (x, 0, 0)) for x in range(self.blocks)]
        tensors = {b.name: _tensor(b, contents) for b, contents in self.tensors.values()}
        options = self.lowered or Options(source=True, exact=self.exact)
        return Machine(function, (self.threads, 1, 1), worlds, tensors, self.scalars, options)

    def run(self, *body: Stmt) -> dict[str, Array]:
        """Run in all blocks. The tensors afterwards; what nothing wrote is as before, or 0 for poison."""
        machine = self.machine(*body)
        machine.run()
        return {b.name: _outcome(machine, b, contents) for b, contents in self.tensors.values()}


def _tensor(made: Buffer, contents: Array | None) -> Tensor:
    kind = kind_of(made.dtype)
    if contents is None:
        return Tensor(kind, _size(made), lambda seed, numbers: None)
    flat = contents.reshape(-1).astype(kind.array)
    return Tensor(kind, flat.size, lambda seed, numbers: flat[numbers])


def _size(made: Buffer) -> int:
    return int(np.prod([int(e.value or 0) for e in made.shape]))


def _outcome(machine: Machine, made: Buffer, contents: Array | None) -> Array:
    kind = kind_of(made.dtype)
    whole = np.zeros(_size(made), kind.array) if contents is None else contents.reshape(-1).astype(kind.array)
    where, values = machine.pages(made.name).outcome(0)
    whole[where] = values
    return whole.reshape([int(e.value or 0) for e in made.shape]) if contents is None else whole.reshape(contents.shape)


def poisoned(values: Array) -> npt.NDArray[np.bool_]:
    """Return which elements are poison."""
    return is_poison(np.ascontiguousarray(values, np.float64))


def random(dtype: str, *shape: int, seed: int = 0) -> Array:
    """Values that the dtype has exactly."""
    generator, kind = np.random.default_rng(seed), kind_of(dtype)
    if kind.is_float:
        return generator.integers(-8, 9, shape) / 2.0
    if kind.family == "bool":
        return generator.integers(0, 2, shape).astype(np.bool_)
    low, high = kind.limits
    return generator.integers(max(low, -(1 << 62)), min(high, 1 << 62), shape, endpoint=True).astype(kind.array)
