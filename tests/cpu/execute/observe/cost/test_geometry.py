"""Sectors and wavefronts of one warp, with the addresses in the test."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tlcheck.execute.observe.cost import geometry


def addresses(of_lane: Callable[[int], int]) -> np.ndarray:
    return np.array([[of_lane(lane) for lane in range(32)]])


@pytest.mark.parametrize(
    ("of_lane", "width", "sectors"),
    [
        (lambda i: 4 * i, 4, 4),  # 128 bytes
        (lambda i: 16 * i, 16, 16),  # 512 bytes
        (lambda i: 32 * i, 4, 32),
        (lambda i: 2 * i + 30, 2, 3),  # 64 bytes from the end of a sector on
        (lambda i: 0, 4, 1),
        (lambda i: 4 * i if i < 8 else -1, 4, 1),
        (lambda i: -1, 4, 0),
    ],
)
def test_sectors(of_lane: Callable[[int], int], width: int, sectors: int) -> None:
    assert geometry.sectors(addresses(of_lane), width).tolist() == [sectors]


@pytest.mark.parametrize(
    ("of_lane", "width", "wavefronts", "ideal"),
    [
        (lambda i: 4 * i, 4, 1, 1),
        (lambda i: 0, 4, 1, 1),  # one word for all
        (lambda i: 32 * i, 4, 8, 1),  # 4 banks, 8 words of each
        (lambda i: 36 * i, 4, 1, 1),  # padded by a word: 9 words apart, all banks
        (lambda i: 128 * i, 4, 32, 1),
        (lambda i: 2 * i, 2, 1, 1),
        (lambda i: 8 * i, 8, 2, 2),  # halves of a warp
        (lambda i: 16 * i, 16, 4, 4),  # quarters of a warp
        (lambda i: 128 * i, 16, 32, 4),  # each quarter: 4 banks, 8 rows
        (lambda i: 128 * (i % 8) + 16 * ((i // 8) ^ (i % 8)), 16, 4, 4),  # the same rows, swizzled
        (lambda i: 144 * (i % 8) + 16 * (i // 8), 16, 4, 4),  # and padded by 16 bytes
        (lambda i: 16 * i if i < 8 else -1, 16, 1, 1),
        (lambda i: -1, 4, 0, 0),
    ],
)
def test_wavefronts_of_stores(of_lane: Callable[[int], int], width: int, wavefronts: int, ideal: int) -> None:
    found = geometry.wavefronts(addresses(of_lane), width, loads=False)
    assert [counts.tolist() for counts in found] == [[wavefronts], [ideal]]


@pytest.mark.parametrize(
    ("of_lane", "width", "wavefronts"),
    [
        (lambda i: 8 * (i // 4), 8, 1),  # neighbours name one address: an H100 takes both halves at once
        (lambda i: 0, 16, 2),
        (lambda i: 16 * (i // 8), 16, 2),
        (lambda i: 8 * (i % 8), 8, 2),  # neighbours do not, and neither do lanes two apart
        (lambda i: 16 * (i % 4), 16, 4),
    ],
)
def test_loads_that_share_addresses_go_together(of_lane: Callable[[int], int], width: int, wavefronts: int) -> None:
    found, ideal = geometry.wavefronts(addresses(of_lane), width, loads=True)
    assert found.tolist() == ideal.tolist() == [wavefronts]


def test_copies_that_go_by_the_cache_come_line_by_line() -> None:
    sources = addresses(lambda i: 256 * (i // 4) + 16 * (i % 4))  # 64 bytes of 8 lines
    target = addresses(lambda i: 16 * i)
    assert [counts.tolist() for counts in geometry.copied(target, sources, 16)] == [[8], [4]]
    assert [counts.tolist() for counts in geometry.copied(target, target, 16)] == [[4], [4]]


def test_several_warps_are_told_apart() -> None:
    both = np.concatenate([addresses(lambda i: 4 * i), addresses(lambda i: 128 * i)])
    assert geometry.sectors(both, 4).tolist() == [4, 32]
    assert geometry.wavefronts(both, 4, loads=True)[0].tolist() == [1, 32]


def test_halves_of_sectors_come_apart() -> None:
    sources = addresses(lambda i: 144 * (i // 4) + 16 * (i % 4))  # every second row begins between two halves
    assert geometry.copied(sources, sources, 16)[0].tolist() == [17]
    scattered = addresses(lambda i: 144 * i)
    assert geometry.copied(scattered, scattered, 16)[0].tolist() == [32]


def test_neighbours_of_an_unrolled_loop_are_one_load() -> None:
    lanes = np.arange(32)
    rows = np.stack([32 * lanes + 4 * step for step in range(8)])
    ((starts, width),) = geometry.joined(rows, 4, 16)
    assert (starts.tolist(), width) == ([rows[0].tolist(), rows[4].tolist()], 16)
    odd = np.stack([36 * lanes + 4 * step for step in range(8)])  # 16 bytes are no multiple of 36
    ((starts, width),) = geometry.joined(odd, 4, 16)
    assert (len(starts), width) == (8, 4)


def test_a_load_is_not_repeated() -> None:
    row = 128 * np.arange(32)
    ((starts, width),) = geometry.joined(np.stack([row, row, row]), 4, 16)
    assert (starts.tolist(), width) == ([row.tolist()], 4)


def test_lanes_that_take_no_part_keep_loads_apart() -> None:
    row = 128 * np.arange(32)
    ((starts, _),) = geometry.joined(np.stack([row, np.where(row > 300, -1, row + 4)]), 4, 16)
    assert len(starts) == 2


def test_each_round_of_swaps_serves_one_lane_of_a_word() -> None:
    pairs = addresses(lambda i: 2 * i)  # two elements of 16 bits in each word: 64 bytes
    assert [counts.tolist() for counts in geometry.rounds(pairs)] == [[2], [4]]
    apart = addresses(lambda i: 4 * i)
    assert [counts.tolist() for counts in geometry.rounds(apart)] == [[1], [4]]
    same = addresses(lambda i: 0 if i < 5 else -1)
    assert [counts.tolist() for counts in geometry.rounds(same)] == [[5], [5]]
