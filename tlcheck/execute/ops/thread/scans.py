"""Scans of a buffer in shared memory by the device library: CumSum and CumMax in one and two dimensions (scan.h).

Together `threads` threads, from thread 0 of the block on, do what the function promises: dst holds the inclusive scan
of src. A thread reads and writes the same elements, so that src may be dst. A warp with a higher number takes the lines
that its number says, which another one has too; where lower ones do not call the function, their first lines are left
out. A warp shuffles before it stores (`program/exchanges`).

Up to 0.1.10 (CumSum2D in reduce.h) a scan down the columns counts them by the number of rows, and their elements by the
number of columns, in whole segments: right for a square alone. The call says what it should: as TIR, it is right.

HIP's segments have the 64 elements of a wave, whoever is there (scan.h: `run` has a SEG of 64). From 0.1.11 on a block
of 32 threads may scan a line: half of each segment is left as it is, and what the other half makes of lanes that are
not there is undefined.
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile import formulas
from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import extern
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Value, nothing_in, rounding
from tlcheck.execute.ops.tile.extremes import accumulated
from tlcheck.execute.stops import NotModelled
from tlcheck.program.release import Release
from tlcheck.signatures.calls import template_arguments
from tlcheck.snapshot.ir import Evaluate, Expr
from tlcheck.targets.target import AMD

_ONE_SHAPE_FOR_BOTH = Release.of("0.1.11")  # the release from which on both axes have their own length
_HALF_A_WAVE = Release.of("0.1.11")  # before it, HIP refuses to compile a scan by 32 threads
_THREADS = (32, 64, 128, 256, 512, 1024)  # those of which scan.h asserts that there are
_SCANS: dict[str, np.ufunc] = {"CumSum": np.add, "CumMax": np.maximum, "ScanSumOp": np.add, "ScanMaxOp": np.maximum}


@extern("tl::CumSum1D", "tl::CumMax1D", "tl::InclusiveScan1D", formula=True)
def scan_line(e: Expr, program: KernelProgram) -> Computation:
    """<[op, ]threads[, reverse]>(src, dst, length)."""
    combine, parameters = _parameters(e)
    reverse, length = "true" in parameters[1:2] or "1" in parameters[1:2], _literal(e.args[2])
    lines = _Lines((length, 1), 1, program)  # other warps have the lines 1, 2 and so on: none
    if not _is_by_half_a_wave(parameters, program):
        _require_warps(parameters, program)
        return _scanning(e, lines, (1, 0), (1, 0), reverse, combine, program)
    undefined = _of_absent_lanes(length, program.state.threads, reverse)
    return _scanning(e, lines, (1, 0), (1, 0), reverse, combine, program, undefined)


@extern("tl::CumSum2D", "tl::CumMax2D", "tl::InclusiveScan2D", formula=True)
def scan_rows(e: Expr, program: KernelProgram) -> Computation:
    """<[op, ]threads[, axis[, reverse]]>(src, dst, rows, columns[, stride of src, of dst])."""
    combine, parameters = _parameters(e)
    _require_warps(parameters, program)
    rows, columns = _literal(e.args[2]), _literal(e.args[3])
    strides = [_literal(a) for a in e.args[4:6]] or [columns, columns]
    reverse = len(parameters) > 2 and parameters[2] in ("true", "1")
    down = (int(parameters[1]) if len(parameters) > 1 else 0) == 0
    warp = program.options.target.warp
    warps = int(parameters[0]) // warp
    if down and program.options.printed and program.release < _ONE_SHAPE_FOR_BOTH:
        whole = -(-columns // warp) * warp
        lines = _Lines((whole, min(rows, columns)), warps, program, read=columns)
    else:
        lines = _Lines((rows, columns) if down else (columns, rows), warps, program)
    source, target = [(stride, 1) if down else (1, stride) for stride in (strides[0], strides[-1])]
    return _scanning(e, lines, source, target, reverse, combine, program)


class _Lines:
    """A record of which thread has which element: a warp takes a line, an element for each thread at a time, and then
    another line.

    along, across: the place in its line, and the number of the line, of each step and thread; `taken`: where there is
    one; `read`: where it is read before it is written, otherwise zero.
    """

    def __init__(self, shape: tuple[int, int], warps: int, program: KernelProgram, read: int | None = None) -> None:
        """shape: the length of a line, and how many there are. warps: that they are divided among.

        read: how many elements of a line are read, if not all.
        """
        self._length, self._width = shape[0], program.options.target.warp
        self._threads = program.state.threads
        warp, lane = np.divmod(np.arange(self._threads), self._width)
        self._rounds, self._segments = -(-shape[1] // warps), -(-shape[0] // self._width)
        step = np.arange(self._rounds * self._segments).reshape(-1, 1)
        self.along = step % self._segments * self._width + lane
        self.across = step // self._segments * warps + warp
        self.taken = (self.along < shape[0]) & (self.across < shape[1])
        self.read = self.taken & (self.along < (shape[0] if read is None else read))

    @property
    def of_warps(self) -> Array:
        """Whether a thread is of a warp that has a line, (threads)."""
        first = np.arange(0, self._threads, self._width)
        return np.repeat(np.logical_or.reduceat(self.taken.any(axis=0), first), self._width)[: self._threads]

    def place(self, pointer: Expr, strides: tuple[int, int], program: KernelProgram) -> BufferElement:
        """The elements of all threads, as a vector of steps."""
        offsets = np.where(self.taken, self.along * strides[0] + self.across * strides[1], 0)[:, None, :]
        return program.pointer(pointer, 1, Code(lambda frame: offsets, frozenset(), True))

    def gathered(self, values: Array) -> Array:
        """(length, rounds, worlds, warps) of (steps, worlds, threads): each line of each warp."""
        known = np.where(self.read[:, None, :], values, np.zeros((), values.dtype))
        rest = -self._threads % self._width  # the last warp's missing threads
        whole = np.pad(known, ((0, 0), (0, 0), (0, rest)))
        parts = whole.reshape(self._rounds, self._segments, values.shape[1], -1, self._width)
        found: Array = parts.transpose(1, 4, 0, 2, 3).reshape(-1, *self._shape(values.shape[1]))
        return found[: self._length]

    def spread(self, values: Array) -> Array:
        """(steps, worlds, threads) of (length, rounds, worlds, warps)."""
        worlds, rest = values.shape[2], self._segments * self._width - self._length
        whole = np.pad(values, ((0, rest), (0, 0), (0, 0), (0, 0)))
        parts = whole.reshape(self._segments, self._width, *self._shape(worlds)).transpose(2, 0, 3, 4, 1)
        found: Array = parts.reshape(self._rounds * self._segments, worlds, -1)
        return found[:, :, : self._threads]

    def _shape(self, worlds: int) -> tuple[int, int, int]:
        """(rounds, worlds, warps)."""
        return self._rounds, worlds, -(-self._threads // self._width)


def _parameters(e: Expr) -> tuple[np.ufunc, list[str]]:
    """Return what is combined, and the template arguments from `threads` on."""
    name, parameters = str(e.value), template_arguments(str(e.value))
    for key, combine in _SCANS.items():
        if key in name:
            parameters = parameters[1:] if "Scan" in key else parameters
            if int(parameters[0]) not in _THREADS:
                raise NotModelled(f"a scan by {parameters[0]} threads, which the device library does not compile")
            return combine, parameters
    raise NotModelled(name)


def _require_warps(parameters: list[str], program: KernelProgram) -> None:
    """Raise NotModelled for a block of less than a warp, some of whose lanes nobody is."""
    warp = program.options.target.warp
    if int(parameters[0]) < warp or program.state.threads < warp:
        raise NotModelled(f"a scan by {parameters[0]} threads, where a warp has {warp}")


def _is_by_half_a_wave(parameters: list[str], program: KernelProgram) -> bool:
    """Whether a block of 32 threads scans a line on HIP, in a release that compiles it (pull request 2313)."""
    threads = program.state.threads
    on_hip = program.options.target.family == AMD and program.release >= _HALF_A_WAVE
    return on_hip and threads * 2 == program.options.target.warp and int(parameters[0]) == threads


def _of_absent_lanes(length: int, threads: int, reverse: bool) -> Array:
    """Return which elements of a line, (length), hang on lanes that are not there; segments have twice as many
    elements.

    Forwards the first segment is right as far as there are lanes, and the last lane of it would have the carry.
    Backwards a segment with no more elements than lanes is right, which only the last one can be.
    """
    segment = np.arange(length) // (2 * threads)
    last = (length - 1) // (2 * threads)
    if not reverse:
        return (segment > 0) & (length > threads)
    whole = length - last * 2 * threads > threads
    return (segment < last) | whole


def _literal(e: Expr) -> int:
    if e.op != "int" or not isinstance(e.value, int):
        raise NotModelled("scan of varying length")
    return e.value


def _scanning(
    e: Expr,
    lines: _Lines,
    source_strides: tuple[int, int],
    target_strides: tuple[int, int],
    reverse: bool,
    combine: np.ufunc,
    program: KernelProgram,
    undefined: Array | None = None,
) -> Computation:
    """undefined: elements of a line, (length), whose value nobody knows."""
    source = lines.place(e.args[0], source_strides, program)
    target = lines.place(e.args[1], target_strides, program)
    settle = rounding(target.kind, program.options.exact)
    formulas.require_sum(combine, program.options.field if target.kind.is_float else None)
    taken, read = lines.taken[:, None, :], lines.read[:, None, :]
    shuffles = lines.of_warps[None]

    def run(frame: Frame) -> Value:
        if not len(taken):
            return 0
        with source.only_where(frame, read):
            loaded = source.load(frame)
        stmt = program.state.at
        program.observers.exchanged(stmt.value if isinstance(stmt, Evaluate) else e, frame.mask() & shuffles)
        values = lines.gathered(np.broadcast_to(loaded, (len(taken), frame.worlds, frame.lanes)))
        values = np.flip(values, 0) if reverse else values
        found = accumulated(combine, values, 0)
        found = np.flip(found, 0) if reverse else found
        found = found if settle is None else settle(found)
        if undefined is not None:
            nobodys = nothing_in(target.kind, program.state.chances).reshape(1, 1, -1, 1)
            found = np.where(undefined[:, None, None, None], nobodys, found)
        with target.only_where(frame, taken):
            target.store(frame, lines.spread(found))
        return 0

    return run
