"""T.mma_gemm_blockscaled: a product into a fragment, each 16 terms of 4 bits with a factor (TileLang, gemm_op.py).

The factors of 64 terms are a word. `rowmajor`: the word of terms k_start + 64 i of a row is in its column i on.
`blockscaled_chunk_kmajor`: the words of a tile of R rows and K terms follow one another, R for each 64 terms, that of
row r at r % 32 * (R / 32) + r / 32; k_start has no meaning there (`mma_sm120_macro_generator.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, one_per_world
from tlcheck.execute.memory.matrix_products import product
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.execute.ops.scale_factors import UE4M3, factors
from tlcheck.execute.ops.tile.gemm import accumulate, matrices
from tlcheck.execute.ops.tile.regions import Tile
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

_CLEAR = 9  # the argument that clears the sums
_FACTORS = 4  # of a word
_TERMS = 16  # of a factor
_ROW_MAJOR, _BY_TERMS = "rowmajor", "blockscaled_chunk_kmajor"


def into_fragment(e: Expr, tiles: Sequence[Tile], scales: Sequence[Tile], program: KernelProgram) -> Computation:
    """C += (A * factors) @ (B * factors). tiles: A, B, C. scales: of A and of B."""
    notes, (a, b, c), across = dict(e.annotations), tiles, [bool(f.value) for f in e.args[3:5]]
    layout = str(notes.get("sf_layout", _ROW_MAJOR)).strip('"')
    grains = {int(notes.get(f"sf_{name}_granularity_k", 0)) for name in "ab"}
    narrow = kind_of("float4_e2m1fn")
    if grains != {_TERMS} or layout not in (_ROW_MAJOR, _BY_TERMS) or {a.kind, b.kind} != {narrow}:
        raise NotModelled(f"{e.value} of {a.kind.name} with {layout} factors of {sorted(grains)} terms")
    if any(tile.kind != kind_of("uint32") for tile in scales):
        raise NotModelled(f"{e.value} with factors of another form")
    clear, start = program.code(e.args[_CLEAR]), program.code(e.args[-1])
    of = _by_rows if layout == _ROW_MAJOR else _by_terms

    def run(frame: Frame) -> int:
        inner = a.frame(frame, b, c, *scales)
        first = np.broadcast_to(np.asarray(one_per_world(start.run(frame), "k_start")), (frame.worlds, 1))[:, 0]
        left, right = matrices(a, inner, across[0]), matrices(b, inner, not across[1])
        left, right = (
            side * _spread(scale, inner, side.shape[-2:], first, of)
            for side, scale in zip((left, right), scales, strict=True)
        )
        cleared = one_per_world(clear.run(frame), "clear_accum")
        accumulate(c, inner, product(left, right.swapaxes(-1, -2)), cleared, left.shape[-1])
        return 0

    return run


_Words = Callable[[Array, tuple[int, ...], Array], Array]


def _spread(scale: Tile, inner: Frame, shape: tuple[int, ...], first: Array, of: _Words) -> Array:
    """The factor of each row and term, (worlds, lanes, rows, terms)."""
    words = of(matrices(scale, inner), (shape[0], shape[1] // (_TERMS * _FACTORS)), first)
    term = np.arange(shape[1]) // _TERMS
    return factors(words[..., term // _FACTORS], term % _FACTORS, UE4M3)


def _by_rows(words: Array, shape: tuple[int, ...], first: Array) -> Array:
    """The word of each row and 64 terms, from a matrix with a row of them for each row."""
    column = (first // (_TERMS * _FACTORS))[:, None] + np.arange(shape[1])
    if column.min() < 0 or column.max() >= words.shape[-1] or shape[0] > words.shape[-2]:
        raise NotModelled("gemm_blockscaled with factors beyond what it is given")
    index = np.broadcast_to(column[:, None, None, :], (len(words), *words.shape[1:3], shape[1]))
    return np.take_along_axis(words, index, axis=-1)[..., : shape[0], :]


def _by_terms(words: Array, shape: tuple[int, ...], first: Array) -> Array:
    """The same from words that follow one another, 64 terms of all rows after the next."""
    rows, columns = shape
    if rows % WARP or words.shape[-2] * words.shape[-1] < rows * columns:
        raise NotModelled("gemm_blockscaled with factors beyond what it is given")
    row = np.arange(rows)[:, None]
    place = np.arange(columns) * rows + row % WARP * (rows // WARP) + row // WARP
    return words.reshape(*words.shape[:2], -1)[..., place]
