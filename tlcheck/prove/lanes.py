"""All lanes of a footprint in one concrete instance, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import Array, Evaluator, Mask, Values, chunks, mix
from tlcheck.program.tma import LANE
from tlcheck.prove.alignment import loads_vector
from tlcheck.prove.fingerprints import elements
from tlcheck.prove.footprints import Footprint

MAX_LANES = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """All active lanes of one side, one entry each. askew: of a misaligned instruction. `keys` tells apart what is
    read; equal for lanes that read the same.
    """

    target: Array
    keys: npt.NDArray[np.uint64]
    base: Array
    askew: Mask
    width: Array
    site: Array
    coordinates: dict[int, Array]
    indices: list[Array]
    reads: bool


def enumerate_lanes(
    algebra: Algebra, footprints: Sequence[Footprint], fixed: Mapping[int, int], bounded: bool
) -> Lanes | None:
    rows: list[Lanes] = []
    for number, footprint in enumerate(footprints):
        for env in chunks(footprint.space, MAX_LANES):
            evaluate = Evaluator(algebra, {**env, **fixed})
            shape = tuple(d.extent for d in footprint.space)
            active = _active(evaluate, footprint, bounded, shape)
            if not all(np.all(np.where(active, _full(evaluate(n), shape), 1)) for n in footprint.needed):
                return None
            rows.append(_rows(evaluate, footprint, {**env}, active, shape, number))
    uids = {uid for r in rows for uid in r.coordinates}
    if not rows:
        return _EMPTY
    return Lanes(
        np.concatenate([r.target for r in rows]),
        np.concatenate([r.keys for r in rows]),
        np.concatenate([r.base for r in rows]),
        np.concatenate([r.askew for r in rows]),
        np.concatenate([r.width for r in rows]),
        np.concatenate([r.site for r in rows]),
        {u: np.concatenate([r.coordinates.get(u, np.zeros(len(r.target), np.int64)) for r in rows]) for u in uids},
        [np.concatenate(column) for column in zip(*(r.indices for r in rows), strict=True)]
        if len({len(r.indices) for r in rows}) == 1
        else [],
        all(r.reads for r in rows),
    )


_NONE = np.zeros(0, dtype=np.int64)
_EMPTY = Lanes(_NONE, _NONE.view(np.uint64), _NONE, _NONE.astype(np.bool_), _NONE, _NONE, {}, [], True)


def _full(value: Values, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(np.asarray(value, dtype=np.int64), shape)


def _active(evaluate: Evaluator, f: Footprint, bounded: bool, shape: tuple[int, ...]) -> Mask:
    active: Mask = np.ones(shape, dtype=np.bool_)
    for condition in (*f.conditions, *(f.inside if bounded else ())):
        active &= _full(evaluate(condition), shape) >= 0
    for flag in f.flags:
        active &= _full(evaluate(flag), shape) != 0
    return active


def _rows(
    evaluate: Evaluator, f: Footprint, env: dict[int, Values], active: Mask, shape: tuple[int, ...], number: int
) -> Lanes:
    def column(value: Values) -> Array:
        return _full(value, shape)[active]

    target = column(evaluate(f.target))
    keys = np.zeros(len(target), dtype=np.uint64)
    for position, leaf in enumerate(f.leaves):
        element = column(elements(evaluate, leaf, leaf.thread, evaluate(leaf.element)))
        keys = mix(
            keys * np.uint64(31) + np.uint64(position + 1) + element.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        )
    lane = column(0 if f.site.tma else env.get(LANE, 0))
    source = column(evaluate(f.leaves[0].element)) - lane if loads_vector(f) else np.zeros_like(target)
    return Lanes(
        target,
        keys,
        target - lane,
        ((target - lane) % f.site.aligned[0] != 0) | (source % f.site.aligned[1] != 0),
        np.full(len(target), 1 if f.site.tma else f.site.width, dtype=np.int64),
        np.full(len(target), number, dtype=np.int64),
        {uid: column(v) for uid, v in env.items()},
        [column(evaluate(i)) for i in f.indices],
        bool(f.leaves),
    )
