"""tcgen05.ld and tcgen05.st: warps move tensor memory to and from registers (PTX 9.7.16.8; layouts: 9.7.16.2.3).

Warp w of a block reaches the lanes 32 (w % 4) to 32 (w % 4) + 31 alone. TileLang's functions (tl_templates/cuda,
copy_sm100.h) name lane 0 or 16 for all warps: what counts is the place within the warp's own lanes. They split a number
of repetitions into powers of two, and wait (tcgen05.wait) before they return.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, everywhere
from tlcheck.execute.memory.values import Array, Kind, Value
from tlcheck.execute.ops.thread.tcgen05_forms import LANES
from tlcheck.execute.ops.thread.tensor_memory import WORD, TensorMemory, WarpsOf, address, kind_at, name_in
from tlcheck.execute.stops import Illegal, NotModelled
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

_QUARTER = LANES // 4  # those that a warp of four reaches
_MOST = {32: 128, 64: 128, 128: 64, 256: 32}  # repetitions of an instruction, by the bits of a lane
_COUNTS_ELEMENTS = Release.of("0.1.14")  # from which on a further part's registers are counted as elements
_MOST_KEPT = 64


@dataclass(frozen=True, eq=False)
class Pattern:
    """A record of what moves: elements of registers, (moves,), with lane, column and byte there of each thread's,
    (moves, 32).
    """

    element: Array
    lane: Array
    column: Array
    octet: Array

    @property
    def last(self) -> Pattern:
        """The last move of each element: what a load leaves."""
        chosen = np.sort([np.flatnonzero(self.element == one)[-1] for one in np.unique(self.element)])
        return Pattern(self.element[chosen], self.lane[chosen], self.column[chosen], self.octet[chosen])


@lru_cache(maxsize=64)
def pattern(lanes: int, bits: int, number: int, packs: bool, kind: Kind, counts_elements: bool = True) -> Pattern:
    """Return what a function of the device library moves.

    lanes: 16 or 32; bits: of a lane in one repetition; number: repetitions; packs: two halves of a register are the
    lower halves of neighbouring columns (`pack::16b`, `unpack::16b`).
    """
    each = 32 // kind.bits
    moves: list[tuple[int, Array, Array, int]] = []
    for at, further, down, repetitions in _parts(lanes, bits, number, each, counts_elements):
        for register, (row, place) in enumerate(_registers_of(bits, repetitions)):
            for half in range(each):
                column = further + (2 * place + half if packs else place)
                moves.append((at + register * each + half, down + row, column, 0 if packs else half * kind.octets))
    elements, lanes_of, columns, octets = (np.array(part) for part in zip(*moves, strict=True))
    return Pattern(elements, lanes_of, columns, np.broadcast_to(octets[:, None], lanes_of.shape))


def _parts(lanes: int, bits: int, number: int, each: int, counts_elements: bool) -> Iterator[tuple[int, int, int, int]]:
    """The instructions of a function: first element, columns further on, lanes further on, repetitions."""
    element = column = 0
    while number:
        repetitions = min(_MOST[bits], 1 << (number.bit_length() - 1))
        for part in range(lanes // 16 if bits > 32 else 1):
            yield element + part * repetitions * _registers(bits) * each, column, 16 * part, repetitions
        column += repetitions
        element += repetitions * (each if counts_elements else 1)
        number -= repetitions


def _registers(bits: int) -> int:
    """Registers of a thread for one repetition."""
    return 1 if bits == 32 else bits // 64


def _registers_of(bits: int, repetitions: int) -> Iterator[tuple[Array, Array]]:
    """Lane and column of each register of an instruction, in its order, (32,)."""
    thread = np.arange(WARP)
    for step in range(repetitions):
        if bits == 32:
            yield thread, np.full(WARP, step)
        elif bits == 64:
            yield 8 * (thread % 2) + thread // 4, 2 * step + thread // 2 % 2
        elif bits == 128:
            for down in (0, 8):
                yield thread // 4 + down, 4 * step + thread % 4
        else:
            for down in (0, 8):
                for right in (0, 1):
                    yield thread // 4 + down, 8 * step + 2 * (thread % 4) + right


@dataclass(frozen=True, eq=False)
class _Tcgen05Copy:
    """One call: its place in tensor memory, its registers. kept: positions, by addresses and active warps."""

    name: str
    what: str
    memory: TensorMemory
    place: BufferElement
    registers: BufferElement
    address: Code
    further: Code
    pattern: Pattern
    kept: dict[tuple[bytes, bytes], Array] = field(default_factory=dict)

    @classmethod
    def of(cls, e: Expr, program: KernelProgram) -> _Tcgen05Copy:
        """(bits of a lane, repetitions, whether it packs, address, columns further on[, lanes], registers)."""
        numbers = [a.value for a in (*e.args[:3], *(e.args[5:6] if len(e.args) == 7 else ()))]
        if len(e.args) not in (6, 7) or not all(isinstance(n, int) for n in numbers):
            raise NotModelled(f"{e.value} of unknown form")
        bits, number, packs = (int(n or 0) for n in numbers[:3])
        lanes, kind = int(numbers[3] or 0) if len(numbers) > 3 else 32, kind_at(e.args[-1], program)
        if bits not in _MOST or number < 1 or kind.bits not in (8, 16, 32) or (lanes, bits) == (16, 32):
            raise NotModelled(f"{e.value} of {lanes} lanes x {bits} bits of {kind.name}")
        if packs and (bits != 32 or kind.bits != 16):
            raise NotModelled(f"{e.value} of {bits} bits that packs")
        if program.state.threads % WARP:
            raise NotModelled("warp instruction in a block of incomplete warps")
        found = pattern(lanes, bits, number, bool(packs), kind, program.release >= _COUNTS_ELEMENTS)
        found = found.last if e.value == "tcgen05_ld" else found
        memory, name = TensorMemory.of(program), name_in(e.args[3])
        registers = program.pointer(e.args[-1], found.element)
        what = "tcgen05.ld of" if e.value == "tcgen05_ld" else "tcgen05.st to"
        place = memory.place(name, kind)
        return cls(name, what, memory, place, registers, address(e.args[3], program), program.code(e.args[4]), found)

    def position(self, frame: Frame) -> Array:
        """Flat positions of all elements, (elements, worlds, threads)."""
        shape = frame.worlds, frame.lanes
        total = np.asarray(self.address.run(frame)).astype(np.int64) + np.asarray(self.further.run(frame))
        words = np.ascontiguousarray(np.broadcast_to(total, shape)).reshape(shape[0], -1, WARP)
        active = WarpsOf.of(frame, self.what.split()[0])
        key = words.tobytes(), active.active.tobytes()
        if key not in self.kept:
            if len(self.kept) >= _MOST_KEPT:
                self.kept.clear()
            self.kept[key] = self._located(words, active)
        return self.kept[key]

    def _located(self, words: Array, active: WarpsOf) -> Array:
        worlds, warps = active.active.shape
        first_lane, first_column = np.zeros((worlds, warps), np.int64), np.zeros((worlds, warps), np.int64)
        for world, warp in active.each():
            first_lane[world, warp], first_column[world, warp] = self._first(words[world, warp], world, warp)
            columns = first_column[world, warp] + np.unique(self.pattern.column)
            self.memory.require(self.name, self.what, world, columns, warp * WARP)
        # (elements, worlds, warps, threads of a warp)
        lane = first_lane[None, :, :, None] + self.pattern.lane[:, None, None, :]
        column = first_column[None, :, :, None] + self.pattern.column[:, None, None, :]
        octets = (column * LANES + lane) * WORD + self.pattern.octet[:, None, None, :]
        octets = np.where(active.active[None, :, :, None], octets, 0).reshape(len(lane), worlds, -1)
        return self.memory.position(octets, np.arange(worlds).reshape(1, -1, 1))

    def _first(self, words: Array, world: int, warp: int) -> tuple[int, int]:
        """First lane and column of a warp. Raises Illegal, or NotModelled for lanes that are another warp's."""
        line, thread = self.place.state.line, warp * WARP
        if (words != words[0]).any():
            raise Illegal(f"{self.what} {self.name} at addresses that differ within a warp", line, world, thread)
        lane, column = int(words[0]) >> 16, int(words[0]) & 0xFFFF
        own, row = warp % 4 * _QUARTER, lane % _QUARTER
        if lane - row not in (0, own):
            raise NotModelled(f"{self.what.split()[0]} of lanes that are another warp's")
        if row + int(self.pattern.lane.max()) >= _QUARTER:
            raise Illegal(f"{self.what} {self.name} beyond the lanes of its warp", line, world, thread, self.name)
        return own + row, column


@call("tcgen05_ld")
def load(e: Expr, program: KernelProgram) -> Computation:
    """Tensor memory to registers; see `_Tcgen05Copy.of`."""
    copy = _Tcgen05Copy.of(e, program)
    place, registers, observers, state = copy.place, copy.registers, program.observers, program.state

    def run(frame: Frame) -> Value:
        position = copy.position(frame)
        if observers.covers(place):
            observers.read(place, position, everywhere(frame.active, frame), state.origin(frame))
        observers.acting(frame)
        found = place.memory.take(position, place.kind)
        observers.strayed(None if frame.active is None else ~frame.mask())
        registers.store(frame, found)
        return 0

    return run


@call("tcgen05_st")
def store(e: Expr, program: KernelProgram) -> Computation:
    """Registers to tensor memory; see `_Tcgen05Copy.of`."""
    copy = _Tcgen05Copy.of(e, program)
    place, registers, observers, state = copy.place, copy.registers, program.observers, program.state

    def run(frame: Frame) -> Value:
        value, position = registers.load(frame), copy.position(frame)
        mask, watched = frame.active, observers.covers(place)
        lanes, origin = everywhere(mask, frame), state.origin(frame)
        if watched:
            observers.write(place, position, lanes, origin, value)
        observers.acting(frame)
        place.memory.put(position, value, mask, place.kind)
        if watched:
            observers.written(place, position, lanes, origin, value)
        return 0

    return run
