"""Define what the kernels of a function ask of a device: blocks, threads, shared memory, a cooperative launch.

CUDA C++ Programming Guide, "Execution Configuration": `<<<grid, block, dynamic shared memory>>>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from math import prod

from tlcheck.program.walk import declared_threads
from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.signature import Collective
from tlcheck.signatures.table import signature_of
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Alloc, Attr, Buffer, Evaluate, Expr, For, Function, Launch, Stmt, Thread
from tlcheck.snapshot.walk import allocated, children, expressions, postorder, statements

MOST_THREADS = 1024  # of a block, on every GPU (CUDA C++ Programming Guide, "Compute Capabilities")
_DYNAMIC = "dyn_shared_memory_buf"  # the attribute with the bytes that TVM's launch passes
_STAGES = ("num_stages", "tl_pipelined_num_stages")
_STATIC = ("shared", "shared.barrier", "shared.cluster_barrier")
_RESIDENT = "tl.min_blocks_per_sm"  # T.annotate_min_blocks_per_sm
_AXES = "xyz"
_ALIGNED = 16  # bytes: where TileLang lets a shared array begin at least

SizeOf = Callable[[Expr], int | None]


@dataclass(frozen=True)
class LaunchRequest:
    """A record of what one kernel asks for.

    grid, block: extents by axis (`x`, `y`, `z`) as far as they are known. static, dynamic: bytes of shared memory of a
    block; at least so many. is_cooperative: whether all blocks have to be resident at once.
    line: of the kernel in its file, 0 where unknown. body: the kernel itself. resident: how many blocks a
    multiprocessor has to hold at once.
    """

    grid: Mapping[str, int] = field(default_factory=dict)
    block: Mapping[str, int] = field(default_factory=dict)
    static: int = 0
    dynamic: int = 0
    is_cooperative: bool = False
    line: int = 0
    body: Stmt | None = None
    resident: int = 1

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return prod(self.block.values())

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a block."""
        return self.static + self.dynamic


def requests(function: Function, size_of: SizeOf) -> list[LaunchRequest]:
    """Return what each kernel of a function asks for. size_of: the value of an extent, None where it varies."""
    found = [stmt for stmt in statements(function.body) if isinstance(stmt, Launch)]
    bodies = [(dict(stmt.attrs), stmt.body) for stmt in found]
    bodies = bodies or [(dict(function.attrs), nest) for nest in _outermost(function.body)]
    return [_request(attrs, body, size_of) for attrs, body in bodies]


def _outermost(stmt: Stmt) -> Iterator[Stmt]:
    """The nests of thread statements, each of which is a kernel."""
    if isinstance(stmt, Thread):
        yield stmt
        return
    for child in children(stmt):
        yield from _outermost(child)


def _request(attrs: Mapping[str, str], body: Stmt, size_of: SizeOf) -> LaunchRequest:
    grid: dict[str, int] = {}
    block: dict[str, int] = {}
    line, cooperative, resident, buffers = 0, False, 1, list[Buffer]()
    for stmt in statements(body):
        if isinstance(stmt, Thread):
            extent, line = size_of(stmt.extent), line or stmt.line
            into = grid if stmt.tag.startswith("blockIdx.") else block if stmt.tag.startswith("threadIdx.") else {}
            if extent is not None:
                into[stmt.tag[-1]] = extent
        elif isinstance(stmt, Alloc):
            buffers.append(stmt.buffer)
        elif isinstance(stmt, Attr) and stmt.key == _RESIDENT and stmt.value is not None:
            resident = size_of(stmt.value) or resident
        elif isinstance(stmt, Evaluate):
            signature = signature_of(stmt.value)
            cooperative |= signature is not None and signature.collective is Collective.GRID
    if not block:
        block = {
            axis: n for axis, e in zip(_AXES, declared_threads(body), strict=False) if (n := size_of(e)) is not None
        }
    static = sum(octets(b) for b in buffers if b.scope in _STATIC)
    dynamic = max([octets(b) for b in buffers if b.scope == "shared.dyn"], default=0)
    said = attrs.get(_DYNAMIC, "")
    dynamic = int(said) if said.isdigit() else dynamic
    return LaunchRequest(grid, block, static, dynamic, cooperative, line, body, resident)


def octets(buffer: Buffer) -> int:
    """Bytes of a buffer; 0 where an extent is not constant."""
    sizes = [e.value for e in buffer.shape if isinstance(e.value, int)]
    kind = dtype_of(buffer.dtype)
    return prod(sizes) * kind.bits * kind.lanes // 8 if len(sizes) == len(buffer.shape) else 0


def asked_by_source(function: Function) -> int:
    """Bytes of all shared arrays of the source at once, each with as many versions as pipelines around its uses have.

    A pipeline of n stages has at most n + 1 versions of a tile. Each version ends at a multiple of 16 bytes. A lowering
    that asks for more has added something.
    """
    versions: dict[int, int] = {}
    for loop in statements(function.body):
        stages = _stages(loop) if isinstance(loop, For) else 0
        inside = statements(loop.body) if isinstance(loop, For) and stages else ()
        for e in postorder(e for stmt in inside for e in expressions(stmt)):
            if e.buffer is not None:
                versions[e.buffer.data.uid] = max(versions.get(e.buffer.data.uid, 1), stages + 1)
    shared = [b for b in allocated(function.body) if b.scope.startswith("shared")]
    return sum(-(-octets(b) // _ALIGNED) * _ALIGNED * versions.get(b.data.uid, 1) for b in shared)


def _stages(loop: For) -> int:
    notes = dict(loop.annotations)
    return max([int(notes[key]) for key in _STAGES if notes.get(key, "").isdigit()], default=0)


def registers_set(stmt: Stmt) -> int | None:
    """The number of registers that a call of T.set_max_nreg names; None for another statement."""
    if not isinstance(stmt, Evaluate) or name_of_call(stmt.value) != "set_max_nreg":
        return None
    first = next(iter(stmt.value.args), None)
    return first.value if first is not None and isinstance(first.value, int) else None


def sets_registers(body: Stmt) -> bool:
    """Whether a kernel calls T.set_max_nreg."""
    return any(registers_set(stmt) is not None for stmt in statements(body))
