"""The descriptors by which wgmma and tcgen05.mma read matrices in shared memory: start, offsets (LBO, SBO), swizzle.

PTX 9.7.15.5.1, "Matrix Descriptor Format", and 9.7.16.4.1, "Shared memory descriptor": the bits of the layout differ,
which stand here as those of wgmma. Where elements are: "Strides" there, and the canonical layouts of CUTE
(cute/arch/mma_sm90_desc.hpp, mma_sm100_desc.hpp).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, one_value
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.ops.thread.descriptors import swizzled
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr

_SPANS = (0, 128, 64, 32)  # bytes of the swizzle by the descriptor's layout code

# A descriptor's 64 bits: start (0..13), LBO (16..29), SBO (32..45), in 16 bytes; layout (62..63). Bits 46 to 61 are not
# the instruction's: they carry the number of the buffer, which a real address needs no bits for.
_FIELD = (1 << 14) - 1


@dataclass(frozen=True, slots=True)
class MatrixDescriptor:
    """A decoded descriptor; start, lbo and sbo in bytes, span of the swizzle in bytes (0: none)."""

    allocation: int
    start: int
    lbo: int
    sbo: int
    span: int

    def octets(self, rows: int, columns: int, width: int, by_k: bool) -> Array:
        """Byte addresses of the elements of a matrix of rows (M or N) and columns (K): (rows, columns).

        by_k: neighbours along K lie side by side (K-major), else neighbours along M or N (MN-major). width: in bytes.
        """
        row, column = np.ogrid[:rows, :columns]
        if by_k:
            octet, line = column * width, row
            if self.span:
                at = line // 8 * self.sbo + line % 8 * self.span + octet
            else:
                at = line // 8 * self.sbo + octet // 16 * self.lbo + line % 8 * 16 + octet % 16
        else:
            octet, line = row * width, column
            if self.span:
                at = octet // self.span * self.lbo + line // 8 * self.sbo + line % 8 * self.span + octet % self.span
            else:
                at = octet // 16 * self.sbo + line // 8 * self.lbo + line % 8 * 16 + octet % 16
        return np.asarray(swizzled(self.start + at, self.span))


def encode(matrix: MatrixDescriptor) -> int:
    """The descriptor's 64 bits."""
    fields = ((matrix.start >> 4) & _FIELD, 0), ((matrix.lbo >> 4) & _FIELD, 16), ((matrix.sbo >> 4) & _FIELD, 32)
    word = sum(value << place for value, place in fields) | _SPANS.index(matrix.span) << 62
    return word | matrix.allocation << 46


def decode(word: int) -> MatrixDescriptor:
    """Return what a descriptor's bits say."""
    start, lbo, sbo = ((word >> place & _FIELD) << 4 for place in (0, 16, 32))
    return MatrixDescriptor(word >> 46 & 0xFFFF, start, lbo, sbo, _SPANS[word >> 62 & 3])


@call("initialize_wgmma_descriptor", formula=True)
def initialize(e: Expr, program: KernelProgram) -> Computation:
    """(descriptor, address, layout, LBO, SBO in 16 bytes)."""
    layout, lbo, sbo = (program.code(a) for a in e.args[2:5])
    return describing(e, lambda code: _SPANS[code], layout, lbo, sbo, program)


def describing(
    e: Expr, span_of: Callable[[int], int], layout: Code, lbo: Code, sbo: Code, program: KernelProgram
) -> Computation:
    """Writes a descriptor (descriptor, address, ...); the address's allocation is numbered by its pointer.

    span_of: bytes of the swizzle by its code. lbo, sbo: in 16 bytes.
    """
    target, address = program.pointer(e.args[0]), program.pointer(e.args[1])
    known = allocations(program)
    names = [(place.root, place.name) for place in known]
    if (address.root, address.name) not in names:
        known.append(address)
        names.append((address.root, address.name))
    number = names.index((address.root, address.name))

    def run(frame: Frame) -> Value:
        span = span_of(one_value(layout.run(frame), "the layout of a descriptor"))
        leading, step = (one_value(c.run(frame), "an offset of a descriptor") << 4 for c in (lbo, sbo))
        empty = np.uint64(encode(MatrixDescriptor(number, 0, leading, step, span)))
        start = np.asarray(address.address(frame)).astype(np.int64) >> 4 & _FIELD
        target.store(frame, start.astype(np.uint64) | empty)
        return 0

    return run


_TCGEN05_SPANS = {0: 0, 2: 128, 4: 64, 6: 32}  # by the layout code of a descriptor of tcgen05


@call("initialize_tcgen05_descriptor", formula=True)
def initialize_tcgen05(e: Expr, program: KernelProgram) -> Computation:
    """(descriptor, address, LBO, SBO in 16 bytes, base offset, whether LBO is absolute, layout)."""
    if any(a.op != "int" or a.value for a in e.args[4:6]):
        raise NotModelled("tcgen05 descriptor with a base offset, or an absolute leading offset")
    lbo, sbo, layout = (program.code(e.args[at]) for at in (2, 3, 6))

    def span_of(code: int) -> int:
        if code not in _TCGEN05_SPANS:
            raise NotModelled(f"tcgen05 descriptor with the layout {code}")
        return _TCGEN05_SPANS[code]

    return describing(e, span_of, layout, lbo, sbo, program)


def allocations(program: KernelProgram) -> list[BufferElement]:
    """A place in each buffer, by the buffer's number in descriptors."""
    found = program.state.shared.setdefault("wgmma allocations", [])
    assert isinstance(found, list)
    return found


@call("increase_descriptor_offset", formula=True)
def increase(e: Expr, program: KernelProgram) -> Computation:
    """(descriptor, bytes): the start moves on."""
    target, octets = program.pointer(e.args[0]), program.code(e.args[1])

    def run(frame: Frame) -> Value:
        more = np.asarray(octets.run(frame)).astype(np.int64) >> 4
        target.store(frame, target.load(frame) + more.astype(np.uint64))
        return 0

    return run
