"""Loads and stores of 32 to 256 bits: T.ldg32 ... T.stg256, T.lds32 ... T.sts128 (PTX 9.7.9, ld and st with vectors).

A load gives the bits at an address as 32-bit words; a store writes them. The last argument of the global forms is a
predicate: a load whose predicate is false gives 0, a store does nothing. st.bulk writes zeros.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.values import Array, Kind, bits_of, from_bits, kind_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr

_BULK_ALIGNED = 16  # bytes, of addresses of st.bulk
_WIDTHS = {"ldg": (32, 64, 128, 256), "lds": (32, 64, 128), "stg": (32, 64, 128, 256), "sts": (32, 64, 128)}


def _wide_load(bits: int) -> Callable[[Expr, KernelProgram], Computation]:
    def handler(e: Expr, program: KernelProgram) -> Computation:
        kind = program.addresses.kind(e.args[0])
        place = program.pointer(e.args[0], bits // kind.bits)
        place.aligned = bits // 8
        allowed, word = _predicate(e, 1, program), kind_of(e.dtype)

        def run(frame: Frame) -> Array:
            with frame.narrowed(_allowed(allowed, frame)):
                values = _lanes(place.load(frame), frame)
            found = values if word == kind else reshaped(values, kind, word)
            found = found if allowed is None else np.where(allowed(frame), found, word.array.type(0))
            return found if found.shape[0] > 1 else np.asarray(found[0])

        return run

    return handler


def _wide_store(bits: int) -> Callable[[Expr, KernelProgram], Computation]:
    def handler(e: Expr, program: KernelProgram) -> Computation:
        kind = program.addresses.kind(e.args[0])
        written = _written(e.args[1], kind)
        value, word = program.code(written), kind_of(written.dtype)
        place = program.pointer(e.args[0], bits // kind.bits)
        place.aligned = bits // 8
        allowed = _predicate(e, 2, program)

        def run(frame: Frame) -> int:
            values = _lanes(np.asarray(value.run(frame)), frame)
            elements = values if word == kind else reshaped(values, word, kind)
            with frame.narrowed(_allowed(allowed, frame)):
                if not frame.idle():
                    place.store(frame, elements if elements.shape[0] > 1 else elements[0])
            return 0

        return run

    return handler


def _written(value: Expr, kind: Kind) -> Expr:
    """The numbers that a store writes: the destination's own numbers, where they are only passed as words.

    As words they would be rounded to their type, also where floats are exact.
    """
    if value.op == "call" and value.value == "reinterpret" and kind_of(value.args[0].dtype) == kind:
        return value.args[0]
    return value


def reshaped(values: Array, source: Kind, target: Kind) -> Array:
    """Vectors (lanes, worlds, threads) as vectors of another kind with the same bits, the first lane lowest."""
    octets = np.ascontiguousarray(np.moveaxis(bits_of(values, source), 0, -1)).view(np.uint8)
    return np.ascontiguousarray(np.moveaxis(from_bits(octets.view(target.words), target), -1, 0))


def _lanes(values: Array, frame: Frame) -> Array:
    """Values with an axis of vector lanes."""
    return values if values.ndim > 2 else np.broadcast_to(values, (1, frame.worlds, frame.lanes))


def _predicate(e: Expr, number: int, program: KernelProgram) -> Computation | None:
    return program.code(e.args[number]).run if len(e.args) > number else None


def _allowed(predicate: Computation | None, frame: Frame) -> Array | None:
    if predicate is None:
        return frame.active
    return frame.among(np.broadcast_to(np.asarray(predicate(frame), np.bool_), (frame.worlds, frame.lanes)))


def _cleared(address: Expr, octets: int, program: KernelProgram) -> BufferElement:
    """Return so many bytes from an address on. A part of merged memory is named in bytes, also if nothing else is."""
    pointers, pointer = program.pointers, address.args[0] if address.value == "handle_add_byte_offset" else address
    declared = pointers.declared(pointer)
    if pointer is not address and declared is not None:
        kind = min(pointers.kinds(declared), key=lambda seen: seen.bits)
        return program.addresses.octets(pointer, address.args[1], kind, octets * 8 // kind.bits)
    return program.pointer(address, octets * 8 // program.addresses.kind(address).bits)


@call("ptx_st_bulk_shared")
def bulk_zeros(e: Expr, program: KernelProgram) -> Computation:
    """st.bulk (address, bytes, value): a thread writes zeros to shared memory (PTX 9.7.9.14)."""
    if any(a.op != "int" for a in e.args[1:3]) or e.args[2].value or not e.args[1].value:
        raise NotModelled("ptx_st_bulk_shared of unknown size or value")
    place = _cleared(e.args[0], int(e.args[1].value), program)
    place.aligned = _BULK_ALIGNED

    def run(frame: Frame) -> int:
        place.store(frame, place.kind.array.type(0))
        return 0

    return run


for _name, _widths in _WIDTHS.items():
    for _bits in _widths:
        call(f"{_name}{_bits}")((_wide_load if _name[0] == "l" else _wide_store)(_bits))
