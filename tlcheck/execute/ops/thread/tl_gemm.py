"""The device library's products: tl::gemm_ss and tl::gemm_rs, which releases up to 0.1.6.post2 call for every T.gemm.

`tl::gemm_ss<M, N, K, warps of M, warps of N, is A transposed, is B, clear C, lda, ldb, offset_a, offset_b[, wgmma[,
wait]]>(A, B, C)`: C += op(A) @ op(B) by the first warps of the block. With _rs, A lies in registers. The template fixes
where the elements are, whatever layouts the compiler had in mind: tl_templates/cuda/gemm_mma.h and gemm_sm90.h there,
with CUTE's ss_smem_selector, TiledMMA and atoms. Only operands of 16 bits are modelled.

- In shared memory a matrix is cut into stripes as wide as the swizzle (128, 64 or 32 bytes of what lies side by side),
  one after the other; within a stripe a line follows the other. mma swizzles the offset, wgmma the address.
- Registers are those of the atom (m16n8k16, or m64nNk16 of a warpgroup), then its repetitions along M, then along N (of
  A: along K). Neighbouring warps take neighbouring atoms, along M first.
- With wgmma the product is under way until it is waited for; the call itself waits where `wait` is not negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.events import Observer
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, one_value
from tlcheck.execute.memory.values import Array, Kind, Value, nothing
from tlcheck.execute.ops.thread.descriptors import swizzled
from tlcheck.execute.ops.thread.mma import finished
from tlcheck.execute.ops.thread.wgmma_operands import MatrixOperand
from tlcheck.execute.ops.thread.wgmma_queue import Product, ProductQueue
from tlcheck.execute.stops import NotModelled
from tlcheck.signatures.calls import library_name, template_arguments
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

_WIDTH = 2  # bytes of an element of A or B
_ATOMS = (256, 192, 128, 96, 64, 32, 16, 8)  # columns of an instruction of wgmma, the first that divides


@dataclass(frozen=True, slots=True)
class _Template:
    """The template's arguments; wait: None for mma."""

    m: int
    n: int
    k: int
    warps_m: int
    warps_n: int
    across_a: bool
    across_b: bool
    clears: bool
    lda: int
    ldb: int
    wait: int | None

    @property
    def threads(self) -> int:
        return self.warps_m * self.warps_n * WARP

    def place_of(self, thread: Array) -> tuple[Array, Array]:
        """The warp of each thread along M and along N. The four warps of a warpgroup lie along M."""
        warp = thread // WARP
        if self.wait is None:
            return warp % self.warps_m, warp // self.warps_m % self.warps_n
        group, groups_m = warp // 4, self.warps_m // 4
        return group % groups_m * 4 + warp % 4, group // groups_m % self.warps_n

    @property
    def columns(self) -> int:
        """Columns of an atom."""
        share = self.n // self.warps_n
        return 8 if self.wait is None else next(n for n in _ATOMS if share % n == 0)

    def sums(self, threads: int) -> tuple[Array, Array]:
        """Row and column of each register of C, (registers, threads)."""
        register, thread = np.ogrid[: self.m * self.n // self.threads, :threads]
        warp_m, warp_n = self.place_of(thread)
        size, repeats = self.columns // 2, self.m // (16 * self.warps_m)
        inner, along_m, along_n = register % size, register // size % repeats, register // size // repeats
        row = 16 * (warp_m + self.warps_m * along_m) + thread % WARP // 4 + inner // 2 % 2 * 8
        column = self.columns * (warp_n + self.warps_n * along_n) + inner // 4 * 8 + thread % 4 * 2 + inner % 2
        return np.broadcast_arrays(row, column)  # type: ignore[return-value]

    def factors(self, threads: int) -> tuple[Array, Array]:
        """Row and column (along K) of each register of A, (registers, threads)."""
        register, thread = np.ogrid[: self.m * self.k // (self.warps_m * WARP), :threads]
        warp_m, _ = self.place_of(thread)
        repeats = self.m // (16 * self.warps_m)
        inner, along_m, along_k = register % 8, register // 8 % repeats, register // 8 // repeats
        row = 16 * (warp_m + self.warps_m * along_m) + thread % WARP // 4 + inner // 2 % 2 * 8
        column = 16 * along_k + inner // 4 * 8 + thread % 4 * 2 + inner % 2
        return np.broadcast_arrays(row, column)  # type: ignore[return-value]


def _form(text: str) -> _Template:
    """The form that a name with template arguments says. Raises NotModelled."""
    words = template_arguments(text)
    if library_name(text) not in ("tl::gemm_ss", "tl::gemm_rs") or not 12 <= len(words) <= 14:
        raise NotModelled(text)
    m, n, k, warps_m, warps_n, across_a, across_b, clears, lda, ldb, *offsets = (int(w) for w in words[:12])
    wgmma = len(words) > 12 and words[12] == "true"
    wait = (int(words[13]) if len(words) > 13 else 0) if wgmma else None
    if any(offsets) or m % (16 * warps_m) or n % (8 * warps_n) or k % 16 or (wgmma and warps_m % 4):
        raise NotModelled(text)
    return _Template(m, n, k, warps_m, warps_n, bool(across_a), bool(across_b), bool(clears), lda, ldb, wait)


@dataclass(frozen=True, eq=False)
class _Matrix:
    """A matrix in shared memory: bytes from its start, (rows, K), and how they are swizzled."""

    place: BufferElement
    octets: Array
    span: int
    by_address: bool

    def cells(self, start: int) -> Array:
        """Flat indices in world 0."""
        cells = self.place.memory
        if not isinstance(cells, Cells):
            raise NotModelled("tl_gemm of a matrix that is not in shared memory")
        if self.by_address:
            octets = np.asarray(swizzled(start + self.octets, self.span))
        else:
            octets = start + np.asarray(swizzled(self.octets, self.span))
        return np.asarray(cells.at(octets * 8))

    def read(self, cells: Array, worlds: int) -> Array:
        """(worlds, rows, K)."""
        return np.moveaxis(self.place.memory.take(cells[..., None] + np.arange(worlds), self.place.kind), -1, 0)


def _matrix(place: BufferElement, rows: int, k: int, by_k: bool, leading: int, wgmma: bool) -> _Matrix:
    """Return where the elements of op(A), or of the transpose of op(B), are. by_k: neighbours along K are adjacent."""
    row, column = np.ogrid[:rows, :k]
    octet, line, lines = (column * _WIDTH, row, rows) if by_k else (row * _WIDTH, column, k)
    length = ((k if by_k else rows) if wgmma else leading) * _WIDTH
    span = next((s for s in ((128, 64, 32) if wgmma else (128, 64)) if length % s == 0), 0)
    if wgmma or span:
        stripe = span or 16
        return _Matrix(place, octet // stripe * (lines * stripe) + line * stripe + octet % stripe, span, wgmma)
    padded = length + 16 if length % 32 == 0 else length
    return _Matrix(place, line * padded + octet, 0, False)


@call("tl_gemm", formula=True)
def product(e: Expr, program: KernelProgram) -> Computation:
    """(name with template arguments, A, B, C)."""
    text = str(e.args[0].value)
    form, by_registers = _form(text), library_name(text) == "tl::gemm_rs"
    kinds = [program.addresses.kind(a) for a in e.args[1:3]]
    if any(kind.bits != 8 * _WIDTH or not kind.is_float for kind in kinds):
        raise NotModelled(f"{library_name(text)} of {kinds[0].name} and {kinds[1].name}")
    left = _from_registers(e.args[1], form, program) if by_registers else _from_shared(e.args[1], 0, form, program)
    right, sums = _from_shared(e.args[2], 1, form, program), form.sums(program.state.threads)
    place = program.pointer(e.args[3], len(sums[0]))
    return _issue(place, form, left, right, sums, program)


Operand = Callable[[Frame], Callable[[], Array]]


def _from_shared(e: Expr, number: int, form: _Template, program: KernelProgram) -> Operand:
    """A or the transpose of B; reading it later gives (worlds, 1, rows, K)."""
    wgmma = form.wait is not None
    if number == 0:
        matrix = _matrix(program.pointer(e), form.m, form.k, not form.across_a, form.lda, wgmma)
    else:
        matrix = _matrix(program.pointer(e), form.n, form.k, form.across_b, form.ldb, wgmma)

    watched = program.observers.hear(Observer.read)

    def begin(frame: Frame) -> Callable[[], Array]:
        cells = matrix.cells(one_value(matrix.place.address(frame), "the place of a matrix"))
        if watched:
            _publish(matrix.place, cells, number, form, frame, program)
        return lambda: matrix.read(cells, frame.worlds)[:, None]

    return begin


def _publish(
    place: BufferElement, cells: Array, number: int, form: _Template, frame: Frame, program: KernelProgram
) -> None:
    """Publish which rows each warp reads; its first thread stands for it."""
    first = np.arange(0, form.threads, WARP)
    own = form.place_of(first)[number]
    count, size = (form.warps_m, 16) if number == 0 else (form.warps_n, form.columns)
    rows = np.arange(len(cells)) // size % count
    proxy, origin, mask = "generic" if form.wait is None else "async", program.state.origin(frame), frame.mask()
    for part in np.unique(own).tolist():
        readers = np.zeros_like(mask)
        readers[:, first[own == part]] = mask[:, first[own == part]]
        if readers.any():
            where = cells[rows == part].reshape(-1, 1, 1) + np.arange(frame.worlds).reshape(1, -1, 1)
            program.observers.read(place, where, readers, origin, proxy)


def _from_registers(e: Expr, form: _Template, program: KernelProgram) -> Operand:
    """A; reading it later gives (worlds, warps along N, rows, K), since each of these warps has its own."""
    row, column = form.factors(program.state.threads)
    registers = program.pointer(e, len(row))
    _, warp_n = form.place_of(np.arange(program.state.threads))
    taken = np.arange(program.state.threads) < form.threads

    def begin(frame: Frame) -> Callable[[], Array]:
        position, _ = registers.position(frame)
        shape = (len(row), frame.worlds, frame.lanes)

        def read() -> Array:
            values = np.broadcast_to(registers.memory.take(position, registers.kind), shape)
            found = np.zeros((frame.worlds, form.warps_n, form.m, form.k), values.dtype)
            where = np.broadcast_to(warp_n, row.shape)[:, taken], row[:, taken], column[:, taken]
            found[:, where[0], where[1], where[2]] = np.moveaxis(values, 0, 1)[..., taken]
            return found

        return read

    return begin


def _issue(
    place: BufferElement,
    form: _Template,
    left: Operand,
    right: Operand,
    sums: tuple[Array, Array],
    program: KernelProgram,
) -> Computation:
    queue, finish = ProductQueue.of(program), finished(place.kind, program.options)
    reason = program.state.reason(f"element of {place.name} read before its wgmma was waited for")
    own = form.place_of(np.arange(program.state.threads))[1]

    def run(frame: Frame) -> Value:
        lanes = np.array(frame.mask())
        if lanes[:, form.threads :].any():
            raise NotModelled("tl_gemm by more threads than it is made for")
        position, _ = place.position(frame)
        a, b = left(frame), right(frame)

        def registers(found: Array) -> Array:
            which = own if found.shape[1] > 1 else np.zeros_like(own)
            return np.moveaxis(found[:, np.broadcast_to(which, sums[0].shape), sums[0], sums[1]], 0, 1)

        hidden = np.broadcast_to(_poison(place.kind, reason, program), (len(sums[0]), frame.worlds, frame.lanes))
        queue.fences.fence(lanes)  # the library's own
        total = queue.sum_at(place, position, frame, lanes, hidden)
        total.left += 1
        started = Product(
            total, lanes, MatrixOperand(a), MatrixOperand(b), registers, finish, not form.clears, lambda index: []
        )
        if form.wait is None or not program.options.late:
            started.complete()
        else:
            queue.groups.append((lanes, [started]))
            if form.wait >= 0:
                queue.wait(form.wait, lanes)
        return 0

    return run


def _poison(kind: Kind, reason: int, program: KernelProgram) -> Array:
    values = [nothing(kind, seed, reason) for seed in program.state.chances]
    return np.array(values, kind.array).reshape(1, -1, 1)
