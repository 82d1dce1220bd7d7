"""Blocks on a multiprocessor, with the limits of CUDA's table in the test."""

from __future__ import annotations

import pytest

from tlcheck.cost.occupancy import resident_blocks
from tlcheck.targets.lookup import target


@pytest.mark.parametrize(
    ("arch", "threads", "shared", "expected"),
    [
        ("sm_120", 128, 168_128, (0, "shared memory")),  # of 101,376 bytes
        ("sm_120", 128, 101_376, (1, "shared memory")),
        ("sm_90", 128, 168_128, (1, "shared memory")),
        ("sm_90", 128, 49_152, (4, "shared memory")),  # 228 KiB by 48 and 1 each
        ("sm_80", 256, 1_024, (8, "threads")),
        ("sm_75", 33, 0, (16, "blocks")),  # two warps, and 1,024 threads
        ("sm_80", 32, 0, (32, "blocks")),
        ("sm_75", 64, 65_536, (1, "shared memory")),
    ],
)
def test_resident_blocks(arch: str, threads: int, shared: int, expected: tuple[int, str]) -> None:
    assert resident_blocks(target(arch), threads, shared) == expected


@pytest.mark.parametrize(
    ("threads", "registers", "expected"),
    [
        (128, 168, (3, "registers")),  # 65,536 by 4 warps of 5,376
        (128, 255, (2, "registers")),
        (256, 33, (6, "registers")),  # 1,056 registers of a warp take 1,280
        (128, 32, (16, "registers")),
    ],
)
def test_registers_limit_blocks(threads: int, registers: int, expected: tuple[int, str]) -> None:
    assert resident_blocks(target("sm_90"), threads, 0, registers) == expected


@pytest.mark.parametrize(
    ("arch", "threads", "shared", "registers", "expected"),
    [
        ("gfx942", 256, 16_384, 0, (4, "shared memory")),
        ("gfx942", 256, 21_700, 0, (2, "shared memory")),  # 22,016 in units of 512: not three times in 64 KiB
        ("gfx950", 256, 32_001, 0, (4, "shared memory")),  # 33,280 in units of 1,280: not five times in 160 KiB
        ("gfx942", 256, 65_537, 0, (0, "shared memory")),
        ("gfx942", 256, 0, 128, (4, "registers")),  # 512 of a SIMD for each lane
        ("gfx942", 256, 0, 129, (3, "registers")),  # in units of 8: 136
        ("gfx942", 256, 0, 512, (1, "registers")),
        ("gfx942", 512, 0, 264, (0, "registers")),  # one wave on each SIMD, and the block has 8
        ("gfx942", 64, 0, 64, (32, "blocks")),
    ],
)
def test_waves_of_a_compute_unit(
    arch: str, threads: int, shared: int, registers: int, expected: tuple[int, str]
) -> None:
    """Registers are VGPRs and AGPRs together."""
    assert resident_blocks(target(arch), threads, shared, registers) == expected
