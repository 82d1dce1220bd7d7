"""All lanes of a footprint in one concrete instance, one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tlcheck.algebra.algebra import Algebra
from tlcheck.algebra.evaluate import CHUNK, Array, Evaluator, Mask, Values, chunks, mix
from tlcheck.program.tma import LANE
from tlcheck.prove.alignment import loads_vector
from tlcheck.prove.fingerprints import elements, shape_of
from tlcheck.prove.footprints import Footprint

T = TypeVar("T", bound=np.generic)
MAX_LANES = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class _Piece:
    """Some lanes of one footprint. places: of the active ones among all points of the piece, None where all are."""

    footprint: Footprint
    evaluate: Evaluator
    env: Mapping[int, Values]
    shape: tuple[int, ...]
    places: Array | None
    lanes: int

    def column(self, value: Values) -> Array:
        """A value for each active lane."""
        every = _full(value, self.shape).reshape(-1)
        return every if self.places is None else every[self.places]

    def at(self, lane: int, value: Values) -> int:
        """A value at one of the active lanes."""
        place = lane if self.places is None else int(self.places[lane])
        return int(_full(value, self.shape).flat[place])


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """All active lanes of one side, one entry each. askew: of a misaligned instruction. `keys` tells apart what is
    read; equal for lanes that read the same. Where a lane is (`coordinates`, `indices`) is asked of few.
    """

    target: Array
    keys: npt.NDArray[np.uint64]
    base: Array
    askew: Mask
    width: Array
    site: Array
    reads: bool
    pieces: Sequence[_Piece] = ()

    def coordinates(self, lane: int) -> dict[int, int]:
        """The value of each enumerated variable; 0 for those that only other sites have."""
        piece, own = self._piece(lane)
        uids = {uid for each in self.pieces for uid in each.env}
        return {uid: piece.at(own, piece.env.get(uid, 0)) for uid in uids}

    def indices(self, lane: int) -> tuple[int, ...]:
        """The element of the destination; nothing where sites write it in different numbers of dimensions."""
        if len({len(each.footprint.indices) for each in self.pieces}) != 1:
            return ()
        piece, own = self._piece(lane)
        return tuple(piece.at(own, piece.evaluate(index)) for index in piece.footprint.indices)

    def _piece(self, lane: int) -> tuple[_Piece, int]:
        """The piece that a lane is of, and its number there."""
        for piece in self.pieces:
            if lane < piece.lanes:
                return piece, lane
            lane -= piece.lanes
        raise IndexError(lane)


class ReplacedError(Exception):
    """A lane's value depends on a condition of the lowering."""


def pieces(
    algebra: Algebra, footprints: Sequence[Footprint], fixed: Mapping[int, int], bounded: bool, limit: int = CHUNK
) -> Iterator[Lanes]:
    """The active lanes of one instance, about `limit` points at a time. Raises ReplacedError."""
    for number, footprint in enumerate(footprints):
        for env in chunks(footprint.space, limit):
            evaluate = Evaluator(algebra, {**env, **fixed})
            shape = shape_of(env)
            active: Mask = np.ones(shape, dtype=np.bool_)
            for condition in (*footprint.conditions, *(footprint.inside if bounded else ())):
                active &= _full(evaluate(condition), shape) >= 0
            for flag in footprint.flags:
                active &= _full(evaluate(flag), shape) != 0
            if not all(np.all(np.where(active, _full(evaluate(n), shape), 1)) for n in footprint.needed):
                raise ReplacedError
            places = None if active.all() else np.flatnonzero(active)
            lanes = active.size if places is None else len(places)
            yield _lanes(_Piece(footprint, evaluate, env, shape, places, lanes), number)


def enumerate_lanes(
    algebra: Algebra, footprints: Sequence[Footprint], fixed: Mapping[int, int], bounded: bool
) -> Lanes:
    """All active lanes of one instance. Raises ReplacedError."""
    found = list(pieces(algebra, footprints, fixed, bounded, MAX_LANES))
    if not found:
        return _EMPTY
    return Lanes(
        _joined([r.target for r in found]),
        _joined([r.keys for r in found]),
        _joined([r.base for r in found]),
        _joined([r.askew for r in found]),
        _joined([r.width for r in found]),
        _joined([r.site for r in found]),
        all(r.reads for r in found),
        [piece for r in found for piece in r.pieces],
    )


def _joined(columns: Sequence[npt.NDArray[T]]) -> npt.NDArray[T]:
    return columns[0] if len(columns) == 1 else np.concatenate(columns)


_NONE = np.zeros(0, dtype=np.int64)
_EMPTY = Lanes(_NONE, _NONE.view(np.uint64), _NONE, _NONE.astype(np.bool_), _NONE, _NONE, True)


def _full(value: Values, shape: tuple[int, ...]) -> Array:
    return np.broadcast_to(np.asarray(value, dtype=np.int64), shape)


def _lanes(piece: _Piece, number: int) -> Lanes:
    f, evaluate = piece.footprint, piece.evaluate
    target = piece.column(evaluate(f.target))
    keys = np.zeros(len(target), dtype=np.uint64)
    for position, leaf in enumerate(f.leaves):
        element = piece.column(elements(evaluate, leaf, leaf.thread, evaluate(leaf.element)))
        keys = mix(
            keys * np.uint64(31) + np.uint64(position + 1) + element.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        )
    lane = piece.column(0 if f.site.tma else piece.env.get(LANE, 0))
    source = piece.column(evaluate(f.leaves[0].element)) - lane if loads_vector(f) else np.zeros_like(target)
    return Lanes(
        target,
        keys,
        target - lane,
        _askew(target - lane, f.site.aligned[0]) | _askew(source, f.site.aligned[1]),
        np.full(len(target), 1 if f.site.tma else f.site.width, dtype=np.int64),
        np.full(len(target), number, dtype=np.int64),
        bool(f.leaves),
        (piece,),
    )


def _askew(offset: Array, aligned: int) -> Mask:
    askew: Mask = np.zeros(len(offset), dtype=np.bool_) if aligned == 1 else offset % aligned != 0
    return askew
