"""Executes the PTX of one thread: enough of the PTX ISA for what the device library's atomics compile to.

Registers hold 64 bits; an instruction takes as many as its type has. What is not understood raises `UnreadPtxError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tlcheck.probes.formats import decode, encode
from tlcheck.probes.ptx import PtxEntry, PtxInstruction

GLOBAL, SHARED = 0x7F00_0000_0000, 0x7E00_0000_0000  # where generic addresses of each memory begin
MEMORY = 1 << 20  # bytes of each
STEPS = 2000
_MASK = (1 << 64) - 1
_TYPES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
_PACKED = {"f16x2": "f16", "bf16x2": "bf16"}
_TYPE = re.compile(r"^(?:[usb](?:8|16|32|64)|f16|bf16|f32|f64|f16x2|bf16x2|pred)$")
_SHARED_ARRAY = re.compile(r"s\d+")
_SPACES = ("global", "shared", "shared::cta", "param", "local")
_SEMANTICS = ("relaxed", "acquire", "release", "acq_rel", "volatile", "weak")


class UnreadPtxError(Exception):
    """An instruction that the machine does not know."""


class StoppedError(Exception):
    """The device stops here: an access in another state space or beyond its memory, or a trap."""


@dataclass(frozen=True, slots=True)
class PtxAccess:
    """One access to memory, or a fence. kind: load, store, atomic, fence. address: generic. size: bytes at once."""

    kind: str
    name: str
    address: int = 0
    size: int = 0


@dataclass(slots=True)
class PtxMachine:
    """One thread. parameters: name -> 64 bits. memory: generic byte address -> byte; zero where nothing was stored."""

    entry: PtxEntry
    parameters: dict[str, int]
    memory: dict[int, int] = field(default_factory=dict)
    registers: dict[str, int] = field(default_factory=dict)
    accesses: list[PtxAccess] = field(default_factory=list)

    def run(self) -> None:
        """Execute to the end. Raises StoppedError, UnreadPtxError, and TimeoutError where it does not end."""
        at = 0
        for _ in range(STEPS):
            if at >= len(self.entry.instructions):
                return
            step = self.entry.instructions[at]
            taken = not step.predicate or bool(self.registers.get(step.predicate, 0)) != step.negated
            if taken and step.opcode[0] in ("ret", "exit"):
                return
            if taken and step.opcode[0] == "bra":
                at = self.entry.labels[step.operands[0]]
                continue
            if taken:
                self._execute(step)
            at += 1
        raise TimeoutError("it does not end")

    def read(self, address: int, size: int) -> int:
        """Bytes of memory as a little-endian number."""
        return sum(self.memory.get(address + i, 0) << (8 * i) for i in range(size))

    def write(self, address: int, size: int, bits: int) -> None:
        """Put a little-endian number into memory."""
        for i in range(size):
            self.memory[address + i] = (bits >> (8 * i)) & 0xFF

    def _execute(self, step: PtxInstruction) -> None:
        name = step.opcode[0]
        if name == "trap":
            raise StoppedError("nvcc makes a trap of it: there is no such instruction for this memory")
        if name in _MEMORY:
            _MEMORY[name](self, step)
        elif name in ("fence", "membar"):
            self.accesses.append(PtxAccess("fence", step.name))
        elif name in ("mov", "cvta"):
            self._move(step)
        elif name == "cvt":
            self._convert(step)
        elif name == "setp":
            self._compare(step)
        else:
            kind = _type(step)
            values = [self.value(o) for o in step.operands[1:]]
            self.registers[step.operands[0]] = _extended(kind, _result(step, kind, values))

    # Operands

    def value(self, operand: str) -> int:
        """The 64 bits of a register, number or symbol."""
        if operand in self.registers:  # not all names begin with %: inline assembly declares its own
            return self.registers[operand]
        if operand.startswith("%"):
            return 0xA5A5_A5A5_A5A5_A5A5  # nothing was put there
        if operand.startswith("{"):
            raise UnreadPtxError(f"a vector operand {operand}")
        if operand[:2] in ("0f", "0d"):
            return int(operand[2:], 16)
        if _SHARED_ARRAY.fullmatch(operand):
            return 0  # the one array in shared memory begins there
        try:
            return int(operand.rstrip("U"), 0) & _MASK
        except ValueError:
            raise UnreadPtxError(f"the name {operand}") from None

    def _address(self, step: PtxInstruction, operand: str) -> int:
        """The generic address of `[base+offset]`."""
        base, _, offset = operand.strip("[]").partition("+")
        space = next((p for p in step.opcode if p in _SPACES), "")
        raw = self.value(base.strip()) + (int(offset, 0) if offset else 0)
        if space.startswith("shared"):
            return SHARED + (raw & 0xFFFF_FFFF)
        if space == "global" and not GLOBAL <= raw < GLOBAL + MEMORY:
            raise StoppedError(f"`{step.name}` is for global memory and is given another address")
        if not any(start <= raw < start + MEMORY for start in (GLOBAL, SHARED)):
            raise StoppedError(f"`{step.name}` is given an address outside of memory")
        return raw

    # Memory

    def _load(self, step: PtxInstruction) -> None:
        if "param" in step.opcode:
            self.registers[step.operands[0]] = self.parameters[step.operands[1].strip("[]")]
            return
        kind, targets = _type(step), _elements(step.operands[0])
        size = _bytes(kind)
        address = self._checked("load", step, step.operands[1], size * len(targets))
        for i, target in enumerate(targets):
            self.registers[target] = _extended(kind, self.read(address + i * size, size))

    def _store(self, step: PtxInstruction) -> None:
        kind, sources = _type(step), _elements(step.operands[1])
        size = _bytes(kind)
        address = self._checked("store", step, step.operands[0], size * len(sources))
        for i, source in enumerate(sources):
            self.write(address + i * size, size, self.value(source))

    def _atomic(self, step: PtxInstruction) -> None:
        """atom d, [a], b (, c) and red [a], b: each element of a vector in turn."""
        returns = step.opcode[0] == "atom"
        rest = step.operands[1:] if returns else step.operands
        targets = _elements(step.operands[0]) if returns else []
        operands = [_elements(o) for o in rest[1:]]
        kind, size = _type(step), _bytes(_type(step))
        count = len(operands[0])
        address = self._checked("atomic", step, rest[0], size * count)
        if count > 1 and address < GLOBAL:
            raise StoppedError(f"`{step.name}` with vectors exists for global memory only")
        for i in range(count):
            old = self.read(address + i * size, size)
            new = _combine(step, kind, old, [self.value(o[i]) for o in operands])
            self.write(address + i * size, size, new)
            if returns:
                self.registers[targets[i]] = _extended(kind, old)

    def _checked(self, kind: str, step: PtxInstruction, operand: str, size: int) -> int:
        address = self._address(step, operand)
        if address % size:
            raise StoppedError(f"`{step.name}` needs an address that is a multiple of {size} bytes")
        self.accesses.append(PtxAccess(kind, step.name, address, size))
        return address

    # Registers

    def _move(self, step: PtxInstruction) -> None:
        target, source = step.operands
        kind = _type(step)
        if step.opcode[:2] == ("cvta", "shared"):
            self.registers[target] = SHARED + (self.value(source) & 0xFFFF_FFFF)
        elif step.opcode[:3] == ("cvta", "to", "shared"):
            self.registers[target] = self.value(source) - SHARED
        elif target.startswith("{"):
            parts = _elements(target)
            each = 8 * _bytes(kind) // len(parts)
            for i, part in enumerate(parts):
                self.registers[part] = (self.value(source) >> (i * each)) & ((1 << each) - 1)
        elif source.startswith("{"):
            parts = _elements(source)
            each = 8 * _bytes(kind) // len(parts)
            mask = (1 << each) - 1
            self.registers[target] = sum((self.value(p) & mask) << (i * each) for i, p in enumerate(parts))
        else:
            self.registers[target] = self.value(source)

    def _convert(self, step: PtxInstruction) -> None:
        kinds = [p for p in step.opcode if _TYPE.match(p)]
        to, source = kinds
        if to in _PACKED:  # cvt d, a, b: a is the upper half
            half = _PACKED[to]
            upper, lower = (_cast(half, source, self.value(o), step.opcode) for o in step.operands[1:])
            self.registers[step.operands[0]] = (upper << 16) | lower
        else:
            bits = _cast(to, source, self.value(step.operands[1]), step.opcode)
            self.registers[step.operands[0]] = _extended(to, bits)

    def _compare(self, step: PtxInstruction) -> None:
        kind = _type(step)
        a, b = (_number(kind, self.value(o)) for o in step.operands[1:])
        name = step.opcode[1]
        if len(step.operands) != 3 or name not in _COMPARISONS:
            raise UnreadPtxError(f"`{step.name}`")
        self.registers[step.operands[0]] = int(_COMPARISONS[name](a, b))


_MEMORY: dict[str, Callable[[PtxMachine, PtxInstruction], None]] = {
    "ld": PtxMachine._load,
    "st": PtxMachine._store,
    "atom": PtxMachine._atomic,
    "red": PtxMachine._atomic,
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
    "neu": lambda a, b: a != b,  # no NaN is ever given
    "equ": lambda a, b: a == b,
    "gtu": lambda a, b: a > b,
    "ltu": lambda a, b: a < b,
    "geu": lambda a, b: a >= b,
    "leu": lambda a, b: a <= b,
}


_TO_INTEGER: dict[str, Callable[[float], int]] = {"rzi": int, "rni": round, "rmi": math.floor, "rpi": math.ceil}


def _elements(operand: str) -> list[str]:
    """The registers of `{a, b}`, or the one."""
    return [o.strip() for o in operand.strip("{}").split(",")]


def _type(step: PtxInstruction) -> str:
    """The type of an instruction: the last one that its opcode names."""
    kinds = [p for p in step.opcode[1:] if _TYPE.match(p)]
    if not kinds:
        raise UnreadPtxError(f"`{step.name}`")
    return kinds[-1]


def _bytes(kind: str) -> int:
    return 4 if kind in _PACKED else int(kind.lstrip("usbf")) // 8


def _dtype(kind: str) -> str:
    """TVM's name of a PTX type; without a sign, as the manual has it for bits."""
    if kind in _TYPES:
        return _TYPES[kind]
    if kind in _PACKED or kind == "pred":
        raise UnreadPtxError(f"a number of type {kind}")
    return ("int" if kind[0] == "s" else "uint") + kind[1:]


def _number(kind: str, bits: int) -> float | int:
    return decode(_dtype(kind), bits)


def _extended(kind: str, bits: int) -> int:
    """A result in its 64-bit register: signed ones keep their sign."""
    if kind in _PACKED or kind == "pred":
        return bits
    width = 8 * _bytes(kind)
    bits &= (1 << width) - 1
    return decode(_dtype(kind), bits) & _MASK if kind[0] == "s" else bits  # type: ignore[operator]


def _cast(to: str, source: str, bits: int, opcode: tuple[str, ...]) -> int:
    """A conversion, rounded to nearest even. Other roundings to floats only of numbers that need none."""
    number = _number(source, bits)
    if isinstance(number, float) and to not in _TYPES:
        return encode(_dtype(to), _whole(to, source, number, opcode))
    exact = _number(to, encode(_dtype(to), number)) == number
    if not exact and ({"rz", "rm", "rp", "rna", "sat", "rni", "rmi", "rpi"} & set(opcode)):
        raise UnreadPtxError(f"`{'.'.join(opcode)}`")
    return encode(_dtype(to), number)


def _whole(to: str, source: str, number: float, opcode: tuple[str, ...]) -> int:
    """The nearest integer that a type has: `.sat` is implied (PTX, "cvt", of floats to integers). NaN is 0, or the
    highest bit alone where either type is one of 64 bits."""
    rounded = next((name for name in _TO_INTEGER if name in opcode), None)
    if rounded is None:
        raise UnreadPtxError(f"`{'.'.join(opcode)}`")
    width, signed = 8 * _bytes(to), to[0] == "s"
    least, most = (-(1 << width - 1), (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    if math.isnan(number):
        return 1 << width - 1 if source == "f64" or width == 64 else 0
    if math.isinf(number):
        return most if number > 0 else least
    return min(max(_TO_INTEGER[rounded](number), least), most)


def _sum(kind: str, a: int, b: int) -> int:
    """a + b; of a packed pair in both halves."""
    if kind in _PACKED:
        half = _PACKED[kind]
        return _sum(half, a & 0xFFFF, b & 0xFFFF) | _sum(half, a >> 16 & 0xFFFF, b >> 16 & 0xFFFF) << 16
    return encode(_dtype(kind), _number(kind, a) + _number(kind, b))


def _combine(step: PtxInstruction, kind: str, old: int, operands: list[int]) -> int:
    """Return what an atomic leaves in memory."""
    parts = step.opcode
    if "cas" in parts:
        same = (old ^ operands[0]) & ((1 << 8 * _bytes(kind)) - 1) == 0
        return operands[1] if same else old
    if "exch" in parts:
        return operands[0]
    if "add" in parts:
        return _sum(kind, old, operands[0])
    for name, pick in (("min", min), ("max", max)):
        if name in parts:
            return encode(_dtype(kind), pick(_number(kind, old), _number(kind, operands[0])))
    for name, result in (("and", old & operands[0]), ("or", old | operands[0]), ("xor", old ^ operands[0])):
        if name in parts:
            return result
    raise UnreadPtxError(f"`{step.name}`")


def _result(step: PtxInstruction, kind: str, values: list[int]) -> int:
    """Return what an instruction on registers computes."""
    name = step.opcode[0]
    if name == "selp":
        return values[0] if values[2] else values[1]
    if name == "set" and step.opcode[1] in _COMPARISONS and step.opcode[2] == kind == "f32":
        return encode("float32", float(_COMPARISONS[step.opcode[1]](*(_number(kind, v) for v in values))))
    if name in ("and", "or", "xor", "not"):
        a, b = values[0], values[-1]
        return {"and": a & b, "or": a | b, "xor": a ^ b, "not": ~a}[name] & _MASK
    if name in ("shl", "shr"):
        amount = values[1] & 0xFFFF_FFFF
        number = int(_number(kind, values[0]))
        return (number << amount if name == "shl" else number >> amount) & _MASK
    if kind in _PACKED:
        half = _PACKED[kind]
        low = _result(step, half, [v & 0xFFFF for v in values])
        return low | _result(step, half, [v >> 16 & 0xFFFF for v in values]) << 16
    numbers = [_number(kind, v) for v in values]
    if name in ("fma", "mad"):
        return encode(_dtype(kind), numbers[0] * numbers[1] + numbers[2])
    if name == "mul" and "wide" not in step.opcode and "hi" not in step.opcode:
        return encode(_dtype(kind), numbers[0] * numbers[1])
    if name in _ARITHMETIC:
        return encode(_dtype(kind), _ARITHMETIC[name](*numbers))
    raise UnreadPtxError(f"`{step.name}`")


_ARITHMETIC: dict[str, Callable[..., float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": min,
    "max": max,
    "neg": lambda a: -a,
    "abs": abs,
}
