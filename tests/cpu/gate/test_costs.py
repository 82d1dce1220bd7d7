"""Test what the gate says where accesses cost more: on lowered kernels of which one has a fault that costs time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.cost.kernels import cost, line_of, snapshot
from tests.cpu.gate.comparing import compared, made
from tlcheck.cli import gate
from tlcheck.facts.extract import facts_of
from tlcheck.gate.nvcc import CompiledCuda
from tlcheck.gate.outcome import LoweredSide

KERNELS = ["product", "product_linear", "wide", "narrow", "contiguous", "softmax_rows"]


def side(name: str, arch: str = "sm_80") -> LoweredSide:
    before = made()
    result = replace(before.result, cost=cost(name, arch))
    lowered = snapshot(name, arch)
    return replace(before, result=result, facts=facts_of(lowered), line=1, digest=name)


def risks(before: LoweredSide, after: LoweredSide) -> dict[tuple[str, str], int]:
    """Kind and subject -> line."""
    found = compared(before, after).outcomes
    return {(o.kind, o.subject): o.line for o in found if o.klass == "slower-risk"}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_against_itself_says_nothing(name: str) -> None:
    assert compared(side(name), side(name)).outcomes == ()


def test_a_layout_without_its_swizzle() -> None:
    found = risks(side("product"), side("product_linear"))
    line = line_of("T.gemm(a, b, c)")
    assert found["bank conflicts", "a"] == found["bank conflicts", "b"] == line


def test_a_copy_that_lost_its_vector_width() -> None:
    assert risks(side("wide"), side("narrow"))["read", "A"] == line_of("T.copy(A[0:64, 0:64], tile)")


def test_a_gemm_that_lost_wgmma() -> None:
    found = risks(side("product", "sm_90"), side("product_of_32_rows", "sm_90"))
    assert found["tensor cores", ""] == line_of("T.gemm(a, b, c)")


def test_a_pipeline_with_a_stage_less() -> None:
    found = risks(side("product_three_stages", "sm_90"), side("product", "sm_90"))
    assert found["copies in flight", ""] == line_of("T.copy(B[ko * bk, bx * bn], b)")


def test_without_counts_there_is_nothing_to_compare() -> None:
    bare = replace(side("product_linear"), result=made().result)
    assert ("bank conflicts", "a") not in risks(side("product"), bare)


def test_registers_that_leave_room_for_fewer_blocks() -> None:
    few, many = (replace(side("wide"), compiled=CompiledCuda(registers=count)) for count in (32, 168))
    found = [o for o in compared(few, many).outcomes if o.klass == "slower-risk"]
    assert [(o.kind, o.words) for o in found] == [
        ("occupancy", "at most 3 instead of 16 blocks fit on a multiprocessor, by registers")
    ]
    assert not [o for o in compared(many, few).outcomes if o.klass == "slower-risk"]
    assert not [o for o in compared(few, replace(many, compiled=None)).outcomes if o.klass == "slower-risk"]


@pytest.mark.parametrize(
    ("given", "classes"), [("slower", ("slower-risk",)), ("wrong,sync-risk", ("wrong", "sync-risk")), ("none", ())]
)
def test_a_class_of_risks_has_a_short_name(given: str, classes: tuple[str, ...]) -> None:
    assert gate._failing(given) == classes
