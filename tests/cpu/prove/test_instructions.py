from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.prove import tiles
from tlcheck.program.atomics import Pointer, Site
from tlcheck.program.instructions import Device, Instruction, instruction
from tlcheck.snapshot.ir import Expr

AMPERE, HOPPER = 80, 90
OLDEST, SCALARS, FLOATS_ONLY, QUADS, RETURNED = (0, 1, 6), (0, 1, 7), (0, 1, 11), (0, 1, 12), (0, 1, 13)
NEW = (0, 1, 15)


def site(dtype: str, width: int, value: str = "") -> Site:
    """A vector atomic that is given a pointer to values of its own type, or of another one."""
    _, footprint = tiles.whole(8)
    of = footprint.site
    target = replace(of.target, dtype=dtype)
    return replace(of, width=width, target=target, value=replace(target, dtype=value or dtype))


@pytest.mark.parametrize(
    ("dtype", "width", "arch", "release", "scope", "destination", "source"),
    [
        ("float32", 4, HOPPER, SCALARS, "global", 4, 4),
        ("float32", 2, HOPPER, NEW, "global", 2, 2),
        ("float32", 4, AMPERE, SCALARS, "global", 1, 4),
        ("float32", 2, AMPERE, NEW, "shared", 1, 2),
        ("float16", 2, AMPERE, OLDEST, "shared.dyn", 2, 2),
        ("bfloat16", 4, HOPPER, QUADS, "global", 4, 2),
        ("float16", 4, AMPERE, QUADS, "shared", 2, 2),
    ],
)
def test_what_the_device_has(
    dtype: str, width: int, arch: int, release: tuple[int, ...], scope: str, destination: int, source: int
) -> None:
    assert instruction(site(dtype, width), scope, Device(arch, release)) == Instruction(destination, source)


@pytest.mark.parametrize(
    ("dtype", "width", "arch", "release", "scope", "missing"),
    [
        ("float32", 4, AMPERE, OLDEST, "global", "from sm_90 on"),
        ("float32", 2, HOPPER, NEW, "shared", "global memory only"),
        ("float16", 4, HOPPER, NEW, "shared.dyn", "global memory only"),
        ("float16", 4, HOPPER, FLOATS_ONLY, "global", "for float32 only"),
        ("bfloat16", 4, AMPERE, FLOATS_ONLY, "global", "for float32 only"),
        ("int32", 4, HOPPER, NEW, "global", "does not exist"),
    ],
)
def test_what_the_device_has_not(
    dtype: str, width: int, arch: int, release: tuple[int, ...], scope: str, missing: str
) -> None:
    assert missing in instruction(site(dtype, width), scope, Device(arch, release)).missing


def test_four_lanes_of_16_bits_that_are_given_back_are_two_pairs() -> None:
    returning = replace(site("float16", 4), returns=True)
    assert instruction(returning, "global", Device(HOPPER, QUADS)).missing
    assert instruction(returning, "global", Device(HOPPER, RETURNED)) == Instruction(2, 2)


def test_values_behind_a_pointer_are_read_as_the_type_of_the_destination() -> None:
    narrowed = site("float16", 2, value="float32")
    assert "reads values of float32 as float16" in instruction(narrowed, "global", Device(HOPPER, FLOATS_ONLY)).missing
    assert instruction(narrowed, "global", Device(HOPPER, QUADS)) == Instruction(2, 1)
    assert instruction(site("float32", 2, value="float16"), "global", Device(HOPPER, NEW)).missing


def test_one_value_is_not_a_vector() -> None:
    one, four = Expr("float", "float32", value=1.0), Expr("float", "float32x4", value=1.0)
    given = replace(site("float32", 4), value=one)
    assert "one value for 4 lanes" in instruction(given, "global", Device(HOPPER, NEW)).missing
    assert not instruction(replace(given, value=four), "global", Device(HOPPER, NEW)).missing


@pytest.mark.parametrize(("order", "missing"), [(0, False), (None, False), (3, True)])
def test_16_bits_with_a_memory_order_are_for_global_memory(order: int | None, missing: bool) -> None:
    ordered = replace(site("float16", 1), order=order)
    assert isinstance(ordered.value, Pointer)
    assert bool(instruction(ordered, "shared", Device(HOPPER, NEW)).missing) == missing
    assert not instruction(ordered, "global", Device(HOPPER, NEW)).missing
    assert not instruction(ordered, "shared", Device(HOPPER, OLDEST)).missing
