"""Passes through the banks of LDS of one wave. Phases of gfx950 are those that HipKittens measured (see `lds`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.cpu.cost.kernels import cost, site
from tlcheck.execute.observe.cost import geometry
from tlcheck.execute.observe.cost.lds import REQUEST, Lds


def addresses(of_lane: Callable[[int], int]) -> np.ndarray:
    return np.array([[of_lane(lane) for lane in range(64)]])


def passes(arch: str, of_lane: Callable[[int], int], width: int, *, loads: bool) -> tuple[int, int]:
    found, ideal = Lds(arch).wavefronts(addresses(of_lane), width, loads=loads)
    return int(found[0]), int(ideal[0])


def together(arch: str, width: int, banks: int, *, loads: bool) -> list[set[int]]:
    """The lanes that are in one phase: those that conflict with the first lane of it, two at a time."""
    left, found = list(range(64)), []
    while left:
        first = left[0]
        pairs = {b: lambda i, a=first, b=b: {a: 0, b: 4 * banks}.get(i, -1) for b in left[1:]}
        phase = {first}
        for b, of_lane in pairs.items():
            count, ideal = passes(arch, of_lane, width, loads=loads)
            assert (count, ideal) in ((2, 1), (2, 2))
            phase |= {b} if ideal == 1 else set()
        found.append(phase)
        left = [lane for lane in left if lane not in phase]
    return found


def lanes(*ranges: tuple[int, int]) -> set[int]:
    return {lane for first, last in ranges for lane in range(first, last + 1)}


def test_phases_of_16_bytes_on_gfx950() -> None:
    assert together("gfx950", 16, 64, loads=True) == [
        lanes((0, 3), (12, 15), (20, 27)),
        lanes((4, 11), (16, 19), (28, 31)),
        lanes((32, 35), (44, 47), (52, 59)),
        lanes((36, 43), (48, 51), (60, 63)),
    ]


def test_phases_of_8_bytes_on_gfx950() -> None:
    assert together("gfx950", 8, 64, loads=True) == [lanes((0, 31)), lanes((32, 63))]
    assert together("gfx950", 8, 32, loads=False) == [lanes((n, n + 15)) for n in (0, 16, 32, 48)]


def test_phases_of_16_bytes_on_gfx942() -> None:
    fours = [(0, 20), (4, 16), (8, 28), (12, 24), (32, 52), (36, 48), (40, 60), (44, 56)]
    assert together("gfx942", 16, 32, loads=True) == [lanes((a, a + 3), (b, b + 3)) for a, b in fours]
    assert together("gfx942", 16, 32, loads=False) == [lanes((n, n + 7)) for n in range(0, 64, 8)]


@pytest.mark.parametrize(
    ("arch", "of_lane", "width", "loads", "expected"),
    [
        ("gfx942", lambda i: 4 * i, 4, True, (2, 2)),
        ("gfx942", lambda i: 0, 4, True, (2, 2)),  # one word for all
        ("gfx942", lambda i: 128 * i, 4, True, (64, 2)),
        ("gfx942", lambda i: 132 * i, 4, True, (2, 2)),  # padded by a word
        ("gfx942", lambda i: 16 * i, 16, False, (8, 8)),
        ("gfx950", lambda i: 16 * i, 16, True, (4, 4)),
        ("gfx942", lambda i: 128 * (i % 16) + 16 * (i // 16), 16, True, (32, 8)),  # rows of 64 halves, not swizzled
        ("gfx942", lambda i: 128 * (i % 16) + 16 * ((i // 16) ^ (i % 8)), 16, True, (8, 8)),
        ("gfx950", lambda i: 256 * i, 8, True, (64, 2)),
        ("gfx942", lambda i: -1, 4, True, (0, 0)),
    ],
)
def test_passes(arch: str, of_lane: Callable[[int], int], width: int, loads: bool, expected: tuple[int, int]) -> None:
    assert passes(arch, of_lane, width, loads=loads) == expected


def test_global_memory_moves_64_bytes() -> None:
    assert geometry.sectors(addresses(lambda i: 4 * i), 4, REQUEST).tolist() == [4]
    assert geometry.sectors(addresses(lambda i: 16 * i), 16, REQUEST).tolist() == [16]


def test_atomics_that_are_loops() -> None:
    """`hip_library` has what clang makes of them."""
    rules = Lds("gfx942")
    assert rules.swapped("atomicmax", 4, shared=False)
    assert not rules.swapped("atomicmax", 4, shared=True)
    assert not rules.swapped("atomicadd", 4, shared=False)


def test_a_wave_reads_a_column_with_conflicts() -> None:
    read = site("spread_conflicting", "shared", "read", "s", "gfx942")
    assert (read.requests, read.lanes, read.wavefronts, read.ideal) == (4, 128, 32, 4)  # 32 threads are half a wave
    assert "8-way bank conflicts" in read.advice


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_product_has_its_operations(arch: str) -> None:
    found = cost("product", arch)
    assert found.flops == {"float16": 2 * 256 * 256 * 256}
    assert {s.requests for s in found.sites if s.space == "tensor cores"} <= {4096, 3072, 1024}
    write = [s for s in found.sites if (s.space, s.operation, s.buffer) == ("shared", "write", "b")]
    assert all(s.wavefronts == 8 * s.requests == s.ideal for s in write)
    assert found.floors == ()
