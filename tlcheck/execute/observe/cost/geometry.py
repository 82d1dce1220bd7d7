"""Find what one access by a warp moves: sectors of global memory, wavefronts of shared memory.

Addresses are bytes, (warps, 32), negative for lanes that take no part. The rules are those that an H100 showed for one
warp and some hundred patterns of addresses (results/cost/README.md); NVIDIA documents sectors and banks (CUDA
Programming Guide, "Shared Memory"; Nsight Compute, "Memory Tables").
"""

from __future__ import annotations

import numpy as np

from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import Array
from tlcheck.targets.nvidia import WARP

LANES = WARP  # the rules are those of NVIDIA's machines
SECTOR = 32  # bytes
LINE = 128
BANKS, WORD = 32, 4
_BITS = 32  # of the number of a word
_HALF = 16  # bytes of half a sector
_HALVES = LINE // _HALF


def sectors(starts: Array, width: int, sector: int = SECTOR) -> Array:
    """The different sectors that each warp touches; width: of an aligned access, in bytes."""
    return distinct(np.where(starts < 0, -1, starts // sector)) if width <= sector else _wide_sectors(starts, width)


def _wide_sectors(starts: Array, width: int) -> Array:
    parts = [np.where(starts < 0, -1, starts // SECTOR + part) for part in range(width // SECTOR)]
    return distinct(np.concatenate(parts, axis=-1))


def distinct(numbers: Array) -> Array:
    """Return how many different numbers there are in each row, negative ones aside."""
    ordered = np.sort(numbers, axis=-1)
    new = ordered[:, 1:] != ordered[:, :-1]
    found: Array = np.count_nonzero(new & (ordered[:, 1:] >= 0), axis=-1) + (ordered[:, 0] >= 0)
    return found


def wavefronts(starts: Array, width: int, *, loads: bool) -> tuple[Array, Array]:
    """Passes through the banks that each warp takes, and how few they would be without conflicts.

    The lanes of 128 bytes go together: all 32 up to 4 bytes each, a half of them with 8, a quarter with 16. Lanes that
    name one word share it. Of loads two such groups go together where neighbours, or lanes two apart, name one address.
    """
    groups = max(1, width // WORD)
    each = conflicts(words_of(starts, width).reshape(-1, BANKS)).reshape(-1, groups)
    ideal = (each > 0).sum(axis=-1)
    found = each.sum(axis=-1)
    if loads and groups > 1:
        _merge(starts, width, each, found, ideal)
    return found, ideal


def words_of(starts: Array, width: int) -> Array:
    """The words that each lane names, (warps, lanes * words)."""
    count = max(1, width // WORD)
    first = np.where(starts < 0, -LINE, starts // WORD)
    return first if count == 1 else (first[..., None] + np.arange(count)).reshape(len(starts), -1)


def _merge(starts: Array, width: int, each: Array, found: Array, ideal: Array) -> None:
    """Take together groups of loads that the hardware takes together."""
    together = 2 * LANES * WORD // width  # lanes of two groups
    parts = starts.reshape(-1, together)
    pairs = parts.reshape(len(parts), -1, 2)
    fours = parts.reshape(len(parts), -1, 4)
    alike = _same(pairs[..., 0], pairs[..., 1]).all(axis=-1)
    alike |= _same(fours[..., :2], fours[..., 2:]).all(axis=(-1, -2))
    if not alike.any():
        return
    before = each.reshape(-1, 2)[alike]
    merged = conflicts(words_of(parts[alike], width))
    rows = np.flatnonzero(alike) // (LANES // together)
    np.subtract.at(found, rows, before.sum(axis=-1) - merged)
    np.subtract.at(ideal, rows, (before > 0).sum(axis=-1) - (merged > 0))


def _same(one: Array, other: Array) -> Mask:
    return np.asarray((one == other) | (one < 0) | (other < 0))


def conflicts(words: Array, banks: int = BANKS) -> Array:
    """Return how many different words of one bank each row names at most; negative numbers are none."""
    ordered = np.sort(words, axis=-1)
    new = ordered >= 0
    new[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    slots = (ordered & (banks - 1)) + banks * np.arange(len(words))[:, None]
    counts = np.bincount(slots[new], minlength=len(words) * banks)
    found: Array = counts.reshape(-1, banks).max(axis=-1)
    return found


def copied(starts: Array, sources: Array, width: int) -> tuple[Array, Array]:
    """Count `wavefronts` of copies of 16 bytes from global memory (`sources`) that bypass the L1 cache.

    Each line comes by itself, and in it by themselves the sectors of which both halves are named, those of which only
    the first half is, and those of which only the second half is.
    """
    part = sources // _HALF + np.arange(len(sources))[:, None] * (int(sources.max(initial=0)) // LINE + 2) * _HALVES
    part = np.where(sources < 0, -1, part)
    which = np.where(np.isin(part ^ 1, part[part >= 0]), 2, part & 1)
    keys, group = np.unique(np.where(part < 0, -1, part // _HALVES * 3 + which), return_inverse=True)
    words = words_of(np.where(sources < 0, -1, starts), width).reshape(part.size, -1)
    chosen = np.unique((group.reshape(-1, 1) << _BITS) + words)
    chosen = chosen[(chosen & (1 << (_BITS - 1))) == 0]
    counts = np.bincount((chosen >> _BITS) * BANKS + (chosen & (BANKS - 1)), minlength=len(keys) * BANKS)
    rows = np.zeros(len(keys), np.intp)
    rows[group.reshape(-1)] = np.arange(len(part)).repeat(LANES)
    found = np.zeros(len(part), np.int64)
    np.add.at(found, rows, counts.reshape(-1, BANKS).max(axis=-1))
    return found, wavefronts(starts, width, loads=False)[1]


def rounds(starts: Array, sector: int = SECTOR) -> tuple[Array, Array]:
    """Compare-and-swaps until each lane has changed its word, one lane of each word at a time: how many, and their
    sectors.
    """
    words = np.where(starts < 0, -1, starts // WORD)
    order = np.argsort(words, axis=-1, kind="stable")
    ordered = np.take_along_axis(words, order, axis=-1)
    place = np.broadcast_to(np.arange(ordered.shape[-1]), ordered.shape)
    begins = np.concatenate([np.ones((len(words), 1), np.bool_), ordered[:, 1:] != ordered[:, :-1]], axis=-1)
    rank = place - np.maximum.accumulate(np.where(begins, place, 0), axis=-1)
    requests, moved = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64)
    for turn in range(int(rank[ordered >= 0].max(initial=-1)) + 1):
        left = np.where(rank >= turn, ordered, -1)
        requests += (left >= 0).any(axis=-1)
        moved += distinct(np.where(left < 0, -1, left * WORD // sector))
    return requests, moved


def joined(starts: Array, width: int, most: int) -> list[tuple[Array, int]]:
    """The loads that a compiler makes of those of an unrolled loop: addresses (loads, lanes), and the width of each.

    starts: (iterations, lanes), negative for lanes that take no part. A load that is there already is not repeated;
    loads of neighbours, aligned in all lanes, are one of up to `most` bytes.
    """
    rows = list({row.tobytes(): row for row in starts}.values())
    if len(rows) == 1:
        return [(rows[0][None], width)]
    active = rows[0] >= 0
    if not active.any() or any(not np.array_equal(row >= 0, active) for row in rows):
        return [(np.stack(rows), width)]
    lane = int(active.argmax())
    rows.sort(key=lambda row: int(row[lane]))
    by_width: dict[int, list[Array]] = {}
    at = 0
    while at < len(rows):
        count = most // width
        while count > 1 and not _is_vector(rows[at : at + count], width, count, active):
            count //= 2
        by_width.setdefault(width * max(1, count), []).append(rows[at])
        at += max(1, count)
    return [(np.stack(found), each) for each, found in by_width.items()]


def _is_vector(rows: list[Array], width: int, count: int, active: Mask) -> bool:
    """Whether rows of addresses are neighbours, and the first one a multiple of the size of all, in active lanes."""
    if len(rows) < count or (rows[0][active] % (width * count)).any():
        return False
    return all(((row - rows[0])[active] == width * step).all() for step, row in enumerate(rows))
