"""The call of the device library that an atomic is, and what the table says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.prove import tiles
from tlcheck.program.atomics import Pointer, Site
from tlcheck.program.device_library import LOST, OK, REFUSED, STOPS, WRONG, LibraryCall
from tlcheck.program.instructions import Device, Instruction, instruction, library_call
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.lookup import target
from tlcheck.targets.target import Target

AMPERE, HOPPER = target("sm_80"), target("sm_90")
NEW = Device(HOPPER, "0.1.15")


def site(dtype: str, width: int, value: str = "", order: int | None = None) -> Site:
    """An atomic that is given a pointer to values of its own type, or of another one; a scalar is given by value."""
    _, footprint = tiles.whole(8)
    of = footprint.site
    target = replace(of.target, dtype=dtype)
    given = replace(target, dtype=value or dtype) if width > 1 else Expr("load", value or dtype)
    return replace(of, operation="add", width=width, target=target, value=given, order=order, tile=False)


def verdict(made: Instruction) -> str:
    assert made.behaviour is not None
    return made.behaviour.verdict


@pytest.mark.parametrize(
    ("dtype", "width", "arch", "release", "scope", "destination", "source"),
    [
        ("float32", 4, HOPPER, "0.1.7", "global", 4, 4),
        ("float32", 2, HOPPER, "0.1.15", "global", 2, 2),
        ("float32", 4, AMPERE, "0.1.15", "global", 1, 4),
        ("float32", 2, AMPERE, "0.1.15", "shared", 1, 2),
        ("float16", 2, AMPERE, "0.1.15", "shared.dyn", 2, 2),
        ("bfloat16", 4, HOPPER, "0.1.12", "global", 4, 2),
        ("float16", 4, AMPERE, "0.1.15", "shared", 2, 2),
    ],
)
def test_alignment_is_that_of_the_accesses_in_the_ptx(
    dtype: str, width: int, arch: Target, release: str, scope: str, destination: int, source: int
) -> None:
    made = instruction(site(dtype, width), scope, Device(arch, release))
    assert verdict(made) == OK
    assert (made.destination, made.source) == (destination, source)


@pytest.mark.parametrize(
    ("dtype", "width", "release", "scope", "wanted"),
    [
        ("float32", 2, "0.1.15", "shared", STOPS),
        ("float16", 4, "0.1.15", "shared.dyn", STOPS),
        ("float16", 4, "0.1.11", "global", WRONG),
        ("int32", 2, "0.1.15", "global", REFUSED),
        ("float16", 1, "0.1.6.post2", "global", REFUSED),
        ("float16", 1, "0.1.7", "global", OK),
    ],
)
def test_what_the_device_library_does(dtype: str, width: int, release: str, scope: str, wanted: str) -> None:
    assert verdict(instruction(site(dtype, width), scope, Device(HOPPER, release))) == wanted


@pytest.mark.parametrize(("release", "wanted"), [("0.1.7.post3", REFUSED), ("0.1.8", REFUSED), ("0.1.9", OK)])
def test_pairs_by_value_do_not_compile_in_two_releases(release: str, wanted: str) -> None:
    pair = replace(site("float16", 2), value=Expr("load", "float16x2"))
    assert verdict(instruction(pair, "global", Device(HOPPER, release))) == wanted


def test_values_of_another_type_are_converted_or_reinterpreted() -> None:
    narrowed = site("float16", 2, value="float32")
    assert verdict(instruction(narrowed, "global", Device(HOPPER, "0.1.11"))) == WRONG
    made = instruction(narrowed, "global", NEW)
    assert (verdict(made), made.source) == (OK, 1)
    assert verdict(instruction(site("float16", 2, value="bfloat16"), "global", NEW)) == WRONG


def test_one_value_is_not_a_vector() -> None:
    one, four = Expr("float", "float32", value=1.0), Expr("float", "float32x4", value=1.0)
    given = replace(site("float32", 4), value=one)
    assert "one value for 4 lanes" in instruction(given, "global", NEW).missing
    assert not instruction(replace(given, value=four), "global", NEW).missing


@pytest.mark.parametrize(("order", "wanted"), [(None, OK), (0, OK), (4, LOST)])
def test_a_scalar_float32_loses_its_order(order: int | None, wanted: str) -> None:
    assert verdict(instruction(site("float32", 1, order=order), "global", NEW)) == wanted


@pytest.mark.parametrize(
    ("dtype", "scope", "device"),
    [
        ("float32", "global", Device(HOPPER, "0.1.99")),
        ("float32", "global", Device(target("sm_70"), "0.1.15")),
        ("float32", "global", Device(HOPPER, "")),
        ("float32", "local.fragment", NEW),
        ("float8_e4m3", "global", NEW),
    ],
)
def test_what_was_not_measured_is_not_known(dtype: str, scope: str, device: Device) -> None:
    made = instruction(site(dtype, 1), scope, device)
    assert made.behaviour is None
    assert made.call is not None


def test_a_call_says_how_its_values_are_given() -> None:
    by_pointer = site("float16", 2, value="float32", order=3)
    assert isinstance(by_pointer.value, Pointer)
    assert library_call(by_pointer, "shared.dyn") == LibraryCall("add", "float16", "float32", 2, True, 3, shared=True)
    by_value = replace(by_pointer, value=Expr("load", "bfloat16x2"))
    assert library_call(by_value, "global") == LibraryCall("add", "float16", "bfloat16", 2, False, 3)


def test_a_tile_operator_is_no_call_yet() -> None:
    assert instruction(replace(site("float32", 1), tile=True), "global", NEW) == Instruction()
