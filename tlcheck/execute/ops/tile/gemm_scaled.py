"""T.gemm_blockscaled: a product with a factor for each row, column and some terms (TileLang, gemm_op.py).

Factors are bytes of words. In tensor memory they are where tcgen05.cp puts them (`thread/tcgen05_scales`): term k is
scaled by byte (k_start + k) / granularity % 4 of its row's word, for A and for B. Elsewhere they lie as `sf_layout`
says, for products into fragments (`gemm_warp_scaled`).
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Computation
from tlcheck.execute.memory.frame import Frame, one_per_world
from tlcheck.execute.memory.matrix_products import product
from tlcheck.execute.memory.values import Array, kind_of
from tlcheck.execute.ops.scale_factors import factors
from tlcheck.execute.ops.thread.mbarrier import Barrier, barrier, release
from tlcheck.execute.ops.tile.gemm_pairs import Shard, by_even, complete_in_both
from tlcheck.execute.ops.tile.gemm_warp_scaled import into_fragment
from tlcheck.execute.ops.tile.regions import block_frame, is_region, region_of, whole
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

_ATOM = 32  # terms of one instruction
_CLEAR = 9  # the argument that clears the sums


@call("gemm_blockscaled", "tcgen05_gemm_blockscaled")
def gemm(e: Expr, program: KernelProgram) -> Computation:
    """(A, B, C, both flags, M, N, K, policy, clear, ..., factors of A, of B, first term)."""
    notes, tiles = dict(e.annotations), [whole(region_of(a, program), program) for a in e.args[:3]]
    scales = [whole(region_of(a, program), program) for a in e.args[3:] if is_region(a)][-2:]
    if tiles[2].buffer.scope != "shared.tmem" and len(scales) == 2:
        return into_fragment(e, tiles, scales, program)
    across, clear, start = [bool(a.value) for a in e.args[3:5]], program.code(e.args[_CLEAR]), program.code(e.args[-1])
    grains = [int(notes.get(f"sf_{name}_granularity_k", 0)) for name in "ab"]
    blocks = 1 if notes.get("use_2cta", "0") in ("0", "False") else 2
    if any(grain % _ATOM or not grain for grain in grains) or tiles[0].kind.bits != 8 or tiles[1].kind.bits != 8:
        raise NotModelled(f"{e.value} of {tiles[0].kind.name}")
    if len(scales) != 2 or any(tile.kind != kind_of("uint32") for tile in scales):
        raise NotModelled(f"{e.value} with factors of another form")
    done = next((barrier(a, program) for a in e.args[_CLEAR + 1 :] if _is_barrier(a)), None)

    def run(frame: Frame) -> int:
        inner = block_frame(frame)
        left, right, sums, of_a, of_b = (Shard.each(tile, inner, program, blocks) for tile in (*tiles, *scales))
        columns = np.concatenate([shard.matrix(across[1]) for shard in right], axis=2).astype(np.float64)
        first = np.broadcast_to(np.asarray(one_per_world(start.run(frame), "k_start")), (frame.worlds,))
        cleared = np.asarray(one_per_world(clear.run(frame), "clear_accum")).reshape(-1, 1, 1)
        _require_one_word(first, columns.shape[1], grains)
        for a, c, scale_a, scale_b in zip(left, sums, of_a, of_b, strict=True):
            rows = a.matrix(across[0]).astype(np.float64)
            rows = rows * _spread(scale_a.matrix(), first, rows.shape[1:], grains[0])
            scaled = columns * _spread(scale_b.matrix(), first, columns.shape[:0:-1], grains[1]).swapaxes(1, 2)
            found = product(rows, scaled)
            if not cleared.all():
                found = found + np.where(cleared, 0, c.matrix().astype(np.float64))
            settle = program.state.summed(c.tile.kind, rows.shape[2])
            c.write(np.asarray(found if settle is None else settle(found)).astype(c.tile.kind.array))
        if done is not None:
            (complete_in_both if blocks > 1 else _complete)(done, frame, program)
        return 0

    return by_even(run, program) if blocks > 1 else run


def _is_barrier(e: Expr) -> bool:
    return e.op == "load" and e.buffer is not None and e.buffer.scope.endswith("barrier")


def _require_one_word(first: Array, terms: int, grains: list[int]) -> None:
    """Raise NotModelled where a row has factors of several words, of which TileLang takes the first one's anew."""
    for grain in grains:
        if (first // (4 * grain) != (first + terms - 1) // (4 * grain)).any():
            raise NotModelled(f"a block-scaled product with factors of {grain} terms in several words")


def _spread(words: Array, first: Array, shape: tuple[int, ...], grain: int) -> Array:
    """The factor of each row and term, (worlds, rows, terms). words: (worlds, lanes, columns)."""
    row, term = np.arange(shape[0]), np.arange(shape[1])
    number = (first[:, None] + term // _ATOM * _ATOM) // grain % 4
    return factors(words[:, row % WARP, row // WARP][:, :, None], number[:, None, :])


def _complete(done: Barrier, frame: Frame, program: KernelProgram) -> None:
    """The product is complete: once in each block."""
    release(program, done.barriers, done(frame))
    for world, number in done.of_blocks(frame):
        done.barriers.arrive(world, number, 1)
