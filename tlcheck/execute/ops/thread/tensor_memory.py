"""Tensor memory: 128 lanes of 512 columns of 32 bits for each block (PTX 9.7.16.1), and its allocation (9.7.16.7).

An address has the lane in its upper 16 bits and the column in the lower ones. A warp allocates columns, all lanes of
each; others block until there are so many. All have to be freed before the kernel ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tlcheck.execute.compile.addresses import constant, joined
from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, Mask, one_value
from tlcheck.execute.memory.values import Array, Kind, Value, kind_of
from tlcheck.execute.ops.thread.cluster_peers import clusters_of, moved
from tlcheck.execute.ops.thread.tcgen05_forms import LANES, form_of, scaled_form_of
from tlcheck.execute.ops.thread.warps import of_warp
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.execute.stops import Deadlock, Illegal, NotModelled
from tlcheck.signatures.tcgen05 import is_of_pair
from tlcheck.snapshot.ir import Buffer, Expr, Stmt
from tlcheck.snapshot.walk import expressions, postorder, statements
from tlcheck.targets.nvidia import WARP

COLUMNS = 512
WORD = 4  # bytes of a column in one lane
ROOT = -2  # the number of its allocation, which no pointer has
_FEWEST = 32  # columns of an allocation: a power of two from there on
_SCOPE = "shared.tmem"  # of buffers before LowerSharedTmem


@dataclass(frozen=True, eq=False)
class WarpsOf:
    """The warps that execute an instruction together: (worlds, warps)."""

    active: Mask

    def each(self) -> Iterator[tuple[int, int]]:
        """World and warp."""
        yield from ((int(world), int(warp)) for world, warp in np.argwhere(self.active))

    @classmethod
    def of(cls, frame: Frame, what: str) -> WarpsOf:
        """Return the lanes of a frame. Raises NotModelled where a part of a warp is active (`.sync.aligned`)."""
        lanes = of_warp(1, frame, WARP)
        active = lanes.any(axis=-1)
        if not (lanes.all(axis=-1) | ~active).all():
            raise NotModelled(f"{what} by a part of a warp")
        return cls(np.asarray(active))


@dataclass(eq=False)
class TensorMemory:
    """The tensor memory of all worlds.

    owner: the number of the allocation that each column is of, 0 for none, (worlds, columns). used: columns that have
    been allocated before. lines: of the source, by the number of the allocation. buffers: first columns of those that
    no instruction allocates yet, before LowerSharedTmem, by the uid of their pointer.
    """

    program: KernelProgram
    cells: Cells
    owner: Array = field(init=False)
    used: Mask = field(init=False)
    lines: list[int] = field(default_factory=lambda: [0])
    buffers: dict[int, int] = field(default_factory=dict)
    places: dict[tuple[str, Kind], BufferElement] = field(default_factory=dict)

    def __post_init__(self) -> None:
        worlds = len(self.program.state.worlds)
        self.owner, self.used = np.zeros((worlds, COLUMNS), np.int64), np.zeros((worlds, COLUMNS), np.bool_)

    @classmethod
    def of(cls, program: KernelProgram) -> TensorMemory:
        """Return the object of a run, made at its first use."""
        found, state = program.state.shared.get("tensor memory"), program.state
        if found is None:
            cells = state.allocate(ROOT, LANES * COLUMNS * WORD, _kinds(program), 1)
            state.memory[ROOT] = cells
            program.observers.allocated(ROOT, cells)
            found = state.shared["tensor memory"] = cls(program, cells)
            state.endings.append(found._refuse_leak)
        assert isinstance(found, cls)
        return found

    def place(self, name: str, kind: Kind) -> BufferElement:
        """A place in it, under the name of a buffer."""
        if (name, kind) not in self.places:
            program = self.program
            made = BufferElement(program.state, program.observers, name, kind, ROOT, constant(0), [])
            made.lanes = LANES
            self.places[name, kind] = made
        return self.places[name, kind]

    def position(self, octets: Array, worlds: Array) -> Array:
        """Flat positions of the elements that begin at bytes of some worlds, which broadcast to them."""
        return np.asarray(self.cells.at(octets * 8) + worlds)

    # ---- allocation

    def take(self, world: int, columns: int, lane: int) -> int:
        """Allocate columns; the first of them, the last that are free."""
        line = self.program.state.line
        if not _FEWEST <= columns <= COLUMNS or columns & (columns - 1):
            what = f"tcgen05.alloc of {columns} columns, which is no power of two from {_FEWEST} to {COLUMNS}"
            raise Illegal(what, line, world, lane)
        for first in range(COLUMNS - columns, -1, -_FEWEST):
            if not self.owner[world, first : first + columns].any():
                break
        else:
            if not agents_of(self.program.state).whole:
                raise NotModelled("tcgen05.alloc that waits for columns")
            free = int((self.owner[world] == 0).sum())
            what = f"tcgen05.alloc waits for {columns} columns of tensor memory, of which {free} of {COLUMNS} are free"
            raise Deadlock(what, line, world, lane, "?", self.program.state.at)
        chosen = slice(first, first + columns)
        if self.used[world, chosen].any():
            # what it held before is forgotten
            octets = (np.arange(first, first + columns)[:, None] * LANES + np.arange(LANES)).reshape(-1, 1) * WORD
            parts = np.arange(0, WORD, self.cells.grain // 8)
            self.cells.lose(self.position((octets + parts).reshape(-1), np.intp(world)))
        self.owner[world, chosen], self.used[world, chosen] = len(self.lines), True
        self.lines.append(line)
        return first

    def give(self, world: int, address: int, columns: int, lane: int) -> None:
        """Free columns, which have to be one allocation."""
        number = int(self.owner[world, address]) if 0 <= address < COLUMNS else 0
        mine = np.flatnonzero(self.owner[world] == number)
        if not number or mine[0] != address or len(mine) != columns:
            what = f"tcgen05.dealloc of {columns} columns from {address} on, which are no allocation"
            raise Illegal(what, self.program.state.line, world, lane)
        self.owner[world, mine] = 0

    def declared(self, buffer: Buffer) -> int:
        """The first column of a buffer that no instruction allocates yet."""
        uid = buffer.data.uid
        if uid not in self.buffers:
            bits = int(buffer.shape[-1].value or 0) * kind_of(buffer.dtype).bits
            columns = max(_FEWEST, 1 << (-(-bits // (8 * WORD)) - 1).bit_length())
            found = {self.take(world, columns, 0) for world in range(len(self.owner))}
            self.buffers[uid] = found.pop()
        return self.buffers[uid]

    def require(self, name: str, what: str, world: int, columns: Array, thread: int) -> None:
        """Raise Illegal for columns that are not allocated."""
        inside = (columns >= 0) & (columns < COLUMNS)
        missing = columns[~(inside & (self.owner[world, np.where(inside, columns, 0)] > 0))]
        if missing.size:
            text = f"{what} {name} out of bounds: column {int(missing.min())} of tensor memory is not allocated"
            raise Illegal(text, self.program.state.line, world, thread, name)

    def _refuse_leak(self) -> None:
        """All has to be freed before the kernel ends (PTX 9.7.16.7)."""
        left = np.argwhere((self.owner > 0) & (not self.buffers))
        if len(left):
            world, column = (int(i) for i in left[0])
            number = int(self.owner[world, column])
            columns = int((self.owner[world] == number).sum())
            raise Illegal(f"{columns} columns of tensor memory are not freed", self.lines[number], world, 0)


def require_one_group(e: Expr, program: KernelProgram) -> Callable[[Frame], None]:
    """Return what raises Illegal where a kernel has instructions of one block and of two: all of its tcgen05
    instructions that say `.cta_group` have to say the same (PTX 9.7.16.5).
    """
    blocks, state = 2 if is_of_pair(e) else 1, program.state

    def require(frame: Frame) -> None:
        known = state.shared.setdefault("tcgen05.cta_group", (blocks, str(e.value)))
        assert isinstance(known, tuple)
        what = ""
        if blocks > 1 and clusters_of(program).size % blocks:
            what = "without a cluster of pairs of blocks"
        elif known[0] != blocks:
            what = f"in a kernel with {known[1]} of cta_group::{known[0]}"
        if what and frame.mask().any():
            world, thread = (int(i) for i in np.argwhere(frame.mask())[0])
            raise Illegal(f"{e.value} of cta_group::{blocks} {what}", state.line, world, thread)

    return require


def address(e: Expr, program: KernelProgram) -> Code:
    """An address: a number, or before LowerSharedTmem an element of the buffer, lane and element of it."""
    buffer = e.buffer
    if e.op != "load" or buffer is None or buffer.scope != _SCOPE or len(e.args) != 2:
        return program.code(e)
    first, bits = TensorMemory.of(program).declared(buffer), kind_of(buffer.dtype).bits
    lane, element = (program.code(a) for a in e.args)
    return joined(lambda row, at: (row << 16) + at * bits // (8 * WORD) + first, lane, element)


def base(pointer: Expr, program: KernelProgram) -> Computation:
    """The address that a pointer's word keeps, or before LowerSharedTmem that of the buffer that it points to."""
    declared = program.pointers.declared(pointer)
    if declared is not None and declared.scope == _SCOPE:
        first = TensorMemory.of(program).declared(declared)
        return lambda frame: first
    return program.pointer(pointer).load


def name_in(e: Expr) -> str:
    """The name of the buffer whose address an expression is made of."""
    return next((x.buffer.name for x in postorder([e]) if x.op == "load" and x.buffer is not None), "tensor memory")


def kind_at(pointer: Expr, program: KernelProgram) -> Kind:
    """Return what an address points to."""
    while pointer.op == "call" and pointer.value in ("address_of", "access_ptr", "handle_add_byte_offset"):
        pointer = pointer.args[0]
    if pointer.op == "call" and pointer.value == "tvm_access_ptr":
        return kind_of(pointer.args[0].dtype)
    declared = pointer.buffer if pointer.op == "load" else program.pointers.declared(pointer)
    if declared is None:
        raise NotModelled(f"registers {pointer.value or pointer.op}")
    return kind_of(declared.dtype)


@call("ptx_init_tensor_memory")
def allocate(e: Expr, program: KernelProgram) -> Computation:
    """tcgen05.alloc (where the address is written, columns): a warp."""
    address, count, memory = program.pointer(e.args[0]), program.code(e.args[1]), TensorMemory.of(program)
    require = require_one_group(e, program)

    def run(frame: Frame) -> Value:
        require(frame)
        columns = one_value(count.run(frame), "the number of columns of tensor memory")
        found = np.zeros((frame.worlds, frame.lanes), address.kind.array)
        for world, warp in WarpsOf.of(frame, "tcgen05.alloc").each():
            found[world, warp * WARP : (warp + 1) * WARP] = memory.take(world, columns, warp * WARP)
        address.store(frame, found)
        return 0

    return run


@call("ptx_deallocate_tensor_memory")
def deallocate(e: Expr, program: KernelProgram) -> Computation:
    """tcgen05.dealloc (where the address is, columns): a warp.

    Of two blocks it has to come after the allocation by the other one: else the launch fails on a device (CUTLASS issue
    3435, B300).
    """
    address, count, memory = program.pointer(e.args[0]), program.code(e.args[1]), TensorMemory.of(program)
    require = require_one_group(e, program)

    def run(frame: Frame) -> Value:
        require(frame)
        if is_of_pair(e):  # the other block has to have allocated tensor memory: its address there is read
            observers, clusters = program.observers, clusters_of(program)
            if observers.covers(address):
                other = clusters.peers[np.arange(len(clusters.rank)), clusters.rank ^ 1]
                where = moved(address, address.memory.flat_position(address.position(frame)[0]), other)
                observers.read(address, where, frame.mask(), program.state.origin(frame))
        columns = one_value(count.run(frame), "the number of columns of tensor memory")
        found = np.broadcast_to(address.load(frame), (frame.worlds, frame.lanes))
        for world, warp in WarpsOf.of(frame, "tcgen05.dealloc").each():
            memory.give(world, int(found[world, warp * WARP]), columns, warp * WARP)
        return 0

    return run


@call("tcgen05_before_thread_sync", "tcgen05_after_thread_sync")
def fence(e: Expr, program: KernelProgram) -> Computation:
    """tcgen05.fence: what is ordered by the synchronization of threads after or before it (PTX 9.7.16.11)."""
    after = e.value == "tcgen05_after_thread_sync"

    def run(frame: Frame) -> Value:
        program.observers.tensor_fence(frame.mask(), after)
        return 0

    return run


def _kinds(program: KernelProgram) -> tuple[Kind, ...]:
    """Return what tensor memory is seen as."""
    found = dict.fromkeys(_seen(program))
    return tuple(found) or (kind_of("float32"),)


def _seen(program: KernelProgram) -> Iterator[Kind]:
    for e in _calls(program.function.body):
        if e.value in ("tcgen05_ld", "tcgen05_st"):
            yield kind_at(e.args[-1], program)
        elif e.value == "ptx_tcgen05_cp_warpx4":
            yield kind_of("uint32")
        elif e.value == "ptx_tcgen05_mma_blockscaled_ss":
            yield scaled_form_of(e).sum
        elif e.value in ("ptx_tcgen05_mma_ss", "ptx_tcgen05_mma_ts"):
            form = form_of(e)
            yield form.sum
            if e.value == "ptx_tcgen05_mma_ts":
                yield form.left


def _calls(body: Stmt) -> Iterator[Expr]:
    for stmt in statements(body):
        yield from (e for e in postorder(expressions(stmt)) if e.op == "call")
