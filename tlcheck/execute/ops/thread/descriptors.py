"""Tensor maps: what of a tensor a bulk copy moves, and where in shared memory it lies (PTX 5.5, "Tensors").

Tiled: a box at coordinates, the innermost dimension first. im2col: pixels of a box that moves over width and height,
as a convolution reads them. Elements outside the tensor are zeros. A swizzle exchanges the 16-byte units of each 128,
64 or 32 bytes by the absolute shared address. Arguments: cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NoReturn

import numpy as np

from tlcheck.execute.compile.addresses import constant
from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.codes import Code
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.values import Array, Kind, Value, kind_of, stretched
from tlcheck.execute.stops import Illegal, NotModelled, Unaligned
from tlcheck.signatures.bulk_copies import TensorMap, tensor_map
from tlcheck.snapshot.ir import Expr

# CUtensorMapDataType -> bits
_BITS = {0: 8, 1: 16, 2: 32, 3: 32, 4: 64, 5: 64, 6: 16, 7: 32, 8: 64, 9: 16, 10: 32, 11: 32, 12: 32, 13: 4, 14: 4}
_APART = 14  # of which 4 bits take a byte of shared memory each
_SPAN = {0: 0, 1: 32, 2: 64, 3: 128}  # CUtensorMapSwizzle -> bytes within which units are exchanged
_LARGEST_BOX = 256
_ROWS = 4  # of tile::gather4 and tile::scatter4


def swizzled(octets: Any, span: int) -> Any:
    """Shared addresses after the exchange: bits 4 and up, as many as `span` has, by those three further up."""
    if span == 0:
        return octets
    units = {32: 1, 64: 3, 128: 7}[span] << 4
    return octets ^ ((octets >> 3) & units)


def _swizzled_bits(shared: Value, count: int, width: int, span: int) -> Array:
    """The bits of shared memory at which consecutive elements of `width` bits begin, after the swizzle's exchange."""
    bits = np.asarray(shared) * 8 + np.arange(count).reshape(-1, 1, 1) * width
    return np.asarray(swizzled(bits // 8, span) * 8 + bits % 8)


@dataclass(frozen=True, eq=False)
class Box:
    """The places of a copy's elements: element of the tensor and bit of shared memory, (elements, worlds, 1) each.

    inside: those that lie in the tensor, None for all. where: the flat positions in shared memory, if they are known.
    run: how many elements each lie side by side in the tensor. held: what they are in shared memory, None for the same.
    """

    elements: Array
    inside: Mask | None
    bits: Array
    where: Array | None = None
    run: int = 1
    held: Kind | None = None


@dataclass(frozen=True, eq=False)
class _Tensor:
    """A tensor's pointer, its sizes and its strides in elements, innermost dimension first. held: what its elements are
    in shared memory.
    """

    place: BufferElement
    sizes: tuple[Code, ...]
    strides: tuple[Code, ...]
    held: Kind

    def whole_box(self, frame: Frame, starts: list[Any], extents: tuple[int, ...], bits: Array) -> Box | None:
        """The box from coordinates on; None where some of it may lie outside, or sizes and strides vary."""
        sizes, strides = [code.run(frame) for code in self.sizes], [code.run(frame) for code in self.strides]
        for start, extent, size, stride in zip(starts, extents, sizes, strides, strict=True):
            if isinstance(size, np.ndarray) or isinstance(stride, np.ndarray):
                return None
            least, most = (start.min(), start.max()) if isinstance(start, np.ndarray) else (start, start)
            if least < 0 or most + extent > size:
                return None
        first = np.asarray(self.place.address(frame)) * 8 // self.place.kind.bits
        for start, stride in zip(starts, strides, strict=True):
            first = first + start * stride
        elements = first + _spread(extents, tuple(strides))
        shape = (len(elements), frame.worlds, 1)
        return Box(stretched(elements, shape), None, bits, run=extents[0] if strides[0] == 1 else 1)

    def box(self, frame: Frame, at: list[Any], bits: Any) -> Box:
        """Elements at coordinates of each dimension."""
        inside: Any = np.True_
        total: Any = np.asarray(self.place.address(frame)) * 8 // self.place.kind.bits
        for size, stride, place in zip(self.sizes, self.strides, at, strict=True):
            inside = inside & (place >= 0) & (place < size.run(frame))
            total = total + place * stride.run(frame)
        shape = np.broadcast_shapes(np.shape(total), np.shape(bits), (frame.worlds, 1))
        inside = np.broadcast_to(inside, shape)
        return Box(np.where(inside, np.broadcast_to(total, shape), 0), inside, np.broadcast_to(bits, shape))


@lru_cache(maxsize=64)
def _spread(extents: tuple[int, ...], strides: tuple[int, ...]) -> Array:
    """Return how far the elements of a box are from the first one, (elements, 1, 1), read-only."""
    found, steps = np.zeros(prod(extents), np.int64), np.arange(prod(extents))
    for extent, stride in zip(extents, strides, strict=True):
        found += steps % extent * stride
        steps = steps // extent
    found.flags.writeable = False
    return found.reshape(-1, 1, 1)


@dataclass(frozen=True, eq=False)
class Tiled:
    """A map of boxes of these sizes. span: of the swizzle, in bytes. coordinates: how many a copy gives."""

    tensor: _Tensor
    sizes: tuple[int, ...]
    span: int

    @property
    def coordinates(self) -> int:
        return len(self.sizes)

    def bits(self, shared: Value) -> Array:
        """The bits at which the elements of a box at an address in shared memory begin."""
        return _swizzled_bits(shared, int(np.prod(self.sizes)), self.tensor.held.bits, self.span)

    def at(self, frame: Frame, coordinates: list[Value], bits: Array) -> Box:
        """The box at coordinates of the tensor, to or from these bits of shared memory."""
        starts = [start.astype(np.int64) if isinstance(start, np.ndarray) else start for start in coordinates]
        whole = self.tensor.whole_box(frame, starts, self.sizes, bits)
        if whole is not None:
            return whole
        steps = np.arange(int(np.prod(self.sizes))).reshape(-1, 1, 1)
        places = []
        for extent, start in zip(self.sizes, starts, strict=True):
            places.append(start + steps % extent)
            steps = steps // extent
        return self.tensor.box(frame, places, bits)


@dataclass(frozen=True, eq=False)
class Gathered(Tiled):
    """A map of single rows, of which a copy names four: its column, then their numbers (PTX 5.5.1.2, tile::gather4)."""

    @classmethod
    def of(cls, map_: Tiled | Im2col) -> Gathered:
        """Raises NotModelled for a map of other boxes."""
        if not isinstance(map_, Tiled) or len(map_.sizes) != 2 or map_.sizes[1] != 1:
            raise NotModelled("TMA descriptor of boxes that are no single rows, for four rows")
        return cls(map_.tensor, (map_.sizes[0], _ROWS), map_.span)

    @property
    def coordinates(self) -> int:
        return 1 + _ROWS

    def at(self, frame: Frame, coordinates: list[Value], bits: Array) -> Box:
        """The rows, to or from these bits of shared memory."""
        column, *rows = (np.asarray(c).astype(np.int64) for c in coordinates)
        step = np.arange(self.sizes[0]).reshape(-1, 1, 1)
        shape = np.broadcast_shapes(step.shape, *(np.shape(a) for a in (column, *rows)))
        row = np.concatenate([np.broadcast_to(row, shape) for row in rows])
        return self.tensor.box(frame, [np.concatenate([np.broadcast_to(column + step, shape)] * _ROWS), row], bits)


@dataclass(frozen=True, eq=False)
class Im2col:
    """A map of pixels x channels. Pixels go over width, height and images, within [lower, size + upper) by their steps.

    A copy gives the coordinates of the first pixel, then offsets that are added to width and height of all.
    """

    tensor: _Tensor
    steps: tuple[int, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    pixels: int
    channels: int
    span: int

    @property
    def coordinates(self) -> int:
        return len(self.tensor.sizes) + len(self.lower)

    def bits(self, shared: Value) -> Array:
        """The bits at which the elements of a box at an address in shared memory begin."""
        return _swizzled_bits(shared, self.pixels * self.channels, self.tensor.held.bits, self.span)

    def at(self, frame: Frame, coordinates: list[Value], bits: Array) -> Box:
        """The pixels from coordinates of the tensor on, to or from these bits of shared memory."""
        rank = len(self.tensor.sizes)
        number = np.arange(self.pixels * self.channels).reshape(-1, 1, 1)
        given = [np.asarray(c).astype(np.int64) for c in coordinates]
        left: Any = number // self.channels
        places = [given[0] + number % self.channels]
        for axis, (low, high) in enumerate(zip(self.lower, self.upper, strict=True), start=1):
            step, size = self.steps[axis], self.tensor.sizes[axis].run(frame)
            count = (size - 1 + high - low) // step + 1
            left = left + (given[axis] - low) // step
            places.append(low + left % count * step + given[rank + axis - 1])
            left = left // count
        places.append(given[rank - 1] + left)
        return self.tensor.box(frame, places, bits)


def refuse_unlawful(map_: Tiled | Im2col, frame: Frame) -> None:
    """Raise Illegal for a tensor map that cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col refuses."""
    tensor = map_.tensor
    name = tensor.place.name

    def refuse(kind: type[Illegal], what: str) -> NoReturn:
        raise kind(f"a tensor map of {name} {what}", tensor.place.state.line, 0, 0, name)

    width = tensor.place.kind.bits
    inner = (map_.sizes[0] if isinstance(map_, Tiled) else map_.channels) * tensor.held.bits // 8
    for stride in tensor.strides[1:]:
        octets = int(np.max(stride.run(frame))) * width // 8
        if octets % 16:
            refuse(Unaligned, f"with a stride of {octets} bytes, no multiple of 16")
    if np.any(np.asarray(tensor.place.address(frame)) % 16):
        refuse(Unaligned, "at an address that is no multiple of 16")
    if isinstance(map_, Tiled) and max(map_.sizes) > _LARGEST_BOX:
        refuse(Illegal, f"with a box of {max(map_.sizes)} elements along a dimension")
    if inner % 16:
        refuse(Unaligned, f"with rows of {inner} bytes, no multiple of 16")
    if map_.span and inner > map_.span:
        refuse(Illegal, f"with rows of {inner} bytes in a swizzle of {map_.span}")


def descriptor(e: Expr, program: KernelProgram) -> Tiled | Im2col:
    """The tensor map that an argument names: the call that makes it, or a parameter of the kernel for one."""
    if e.op == "var":
        made = {v.uid: c for v, c in program.function.descriptors}.get(e.uid)
        if made is None:
            raise NotModelled(f"TMA descriptor {e.value}: the snapshot does not say what it describes")
        e = made
    found = tensor_map(e)
    if found is None:
        raise NotModelled("TMA descriptor of varying form")
    rank, tensor = found.rank, _tensor(found, program)
    boxes, more = found.fields[:rank], found.fields[rank : 2 * rank]
    if not found.pixels:
        # sizes of a box whose elements lie side by side
        if any(_number(s) != 1 for s in more):
            raise NotModelled("TMA descriptor with element strides")
        return Tiled(tensor, tuple(_number(a) for a in boxes), _hints(found.fields[2 * rank :]))
    around = found.fields[rank:]
    lower, upper = (tuple(_number(a) for a in around[i * (rank - 2) : (i + 1) * (rank - 2)]) for i in range(2))
    pixels, channels = (_number(a) for a in around[2 * (rank - 2) : 2 * (rank - 2) + 2])
    span = _hints(around[2 * (rank - 2) + 2 :])
    return Im2col(tensor, tuple(_number(s) for s in boxes), lower, upper, pixels, channels, span)


def _tensor(made: TensorMap, program: KernelProgram) -> _Tensor:
    place, number = program.pointer(made.tensor), _number(made.number)
    if place.kind.bits != _BITS[number]:
        raise NotModelled(f"TMA descriptor of {_BITS[number]} bits for {place.kind.name}")
    strides = [
        _divided(program.code(o), place.kind.bits) for o in made.octets[1:]
    ]  # the innermost elements are neighbours
    apart = number == _APART
    held = kind_of("float4_e2m1_unpacked") if apart and place.kind.is_float else place.kind
    if apart and held == place.kind:
        raise NotModelled(f"TMA descriptor of elements apart for {place.kind.name}")
    return _Tensor(place, tuple(program.code(s) for s in made.sizes), (constant(1), *strides), held)


def _hints(args: tuple[Expr, ...]) -> int:
    """The swizzle's span, of (interleave, swizzle, L2 promotion, fill)."""
    interleave, swizzle, _, fill = (_number(a) for a in args[:4])
    if interleave or fill:
        raise NotModelled("TMA descriptor with interleave or NaN fill")
    return _SPAN[swizzle]


def _divided(octets: Code, bits: int) -> Code:
    """Bytes as elements of so many bits."""
    return Code(lambda frame: octets.run(frame) * 8 // bits, octets.needs, octets.steady, octets.uniform)


def _number(e: Expr) -> int:
    if e.op == "cast":
        return _number(e.args[0])
    if e.op == "mul":
        return _number(e.args[0]) * _number(e.args[1])
    if e.op != "int" or not isinstance(e.value, int):
        raise NotModelled("TMA descriptor of varying form")
    return e.value
