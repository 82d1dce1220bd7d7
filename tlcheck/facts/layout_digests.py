"""Layouts by what they do: equal index maps have equal digests, whatever expressions a release writes for them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import prod

import numpy as np

from tlcheck.algebra.evaluate import Array, Values
from tlcheck.facts.kernel_facts import LayoutFacts
from tlcheck.program.layouts import IndexMap
from tlcheck.program.walk import Program
from tlcheck.snapshot import ir
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.text import render_layout

ROW_MAJOR = "row-major"
_POINTS = 1 << 18  # of larger layouts a corner is looked at
_CHUNK = 16  # bytes that a swizzle moves together
_SWIZZLES = ((128, 1), (64, 2), (32, 4))  # bytes of a row, and how many rows are permuted alike


def layouts(source: Program, inferred: Program | None) -> tuple[LayoutFacts, ...]:
    """Return each buffer's layouts, sorted: those that the kernel annotates, and those that were inferred."""
    found: dict[str, LayoutFacts] = {}
    for program, annotated in ((source, True), (inferred, False)):
        for block in program.blocks if program is not None else ():
            for data, layout in block.layouts:
                root = program.roots.of(data) if program is not None else ""
                if root not in found:
                    buffer = (program or source).buffers.get(root)
                    found[root] = _described(root, layout, annotated, buffer.dtype if buffer is not None else "")
    return tuple(found[root] for root in sorted(found))


def _described(root: str, layout: ir.Layout, annotated: bool, dtype: str) -> LayoutFacts:
    text = render_layout(layout)
    shape = [e.value if isinstance(e.value, int) else 0 for e in layout.input_shape]
    if not all(shape):
        return LayoutFacts(root, annotated, "permuted", _digest(text.encode()), text)
    # leading dimensions that stay in front as they are: the versions of a pipelined buffer are among them
    first = 0
    pairs = zip(layout.vars[:-1], layout.index, strict=False)
    for var, index in pairs:
        if index is not var and not (index.op == "var" and index.uid == var.uid):
            break
        first += 1
    sizes = [1 if n < first else extent for n, extent in enumerate(shape)]
    while prod(sizes) > _POINTS:
        largest = max(range(len(sizes)), key=lambda n: (sizes[n], n))
        sizes[largest] = -(-sizes[largest] // 2)
    rank = len(sizes)
    points = [
        np.arange(n, dtype=np.int64).reshape([-1 if d == p else 1 for d in range(rank)]) for p, n in enumerate(sizes)
    ]
    found, seen = IndexMap(layout, shape, points), np.broadcast_shapes(*(np.shape(a) for a in points))
    if layout.thread is not None:
        return _fragment(
            root, layout, annotated, text, [_spread(found(e), seen) for e in (layout.thread, *layout.index)]
        )
    place = found.offset(first)
    if place is None:
        return LayoutFacts(root, annotated, "permuted", _digest(text.encode()), text)
    offset = _spread(place, seen)
    kind = _kind(offset, points[first:], shape[first:], dtype_of(dtype).bytes)
    return LayoutFacts(root, annotated, kind, kind if kind == ROW_MAJOR else _digest(offset.tobytes()), text)


def _kind(offset: Array, points: Sequence[Array], shape: Sequence[int], size: float) -> str:
    plain: Values = 0
    for array, extent in zip(points, shape, strict=True):
        plain = plain * extent + array
    if (offset == plain).all():
        return ROW_MAJOR
    if len(points) >= 2 and size > 0:
        row, column = points[-2], points[-1]
        for width, alike in _SWIZZLES:
            if shape[-1] * size >= width and _is_swizzled(offset, row, column, size, width, alike):
                return f"swizzle {width}B"
        pitch = int(offset[..., 1:2, :1].max()) if shape[-2] > 1 else 0
        if len(points) == 2 and pitch > shape[-1] and (offset == row * pitch + column).all():
            return f"padded to {pitch}"
    return "permuted"


def _is_swizzled(offset: Array, row: Array, column: Array, size: float, width: int, alike: int) -> bool:
    """Whether the 16-byte chunks of each row of `width` bytes are permuted by exclusive or with the row's number."""
    chunk, chunks = max(1, int(_CHUNK / size)), width // _CHUNK
    wanted = (column // chunk % chunks) ^ (row % 8 // alike)
    return bool((offset // chunk % chunks == wanted).all() and (offset % chunk == column % chunk).all())


def _fragment(root: str, layout: ir.Layout, annotated: bool, text: str, parts: Sequence[Array]) -> LayoutFacts:
    """Threads are counted from the first that has a part: where a warp-specialized branch begins does not matter."""
    data = b"".join(part.tobytes() for part in parts)
    kind = "fragment" if layout.replicas == 1 else f"fragment of {layout.replicas} replicas"
    return LayoutFacts(root, annotated, kind, _digest(data), text.partition(", from thread")[0])


def _spread(values: Values, shape: tuple[int, ...]) -> Array:
    """One number for each element."""
    return np.ascontiguousarray(np.broadcast_to(np.asarray(values, dtype=np.int64), shape))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]
