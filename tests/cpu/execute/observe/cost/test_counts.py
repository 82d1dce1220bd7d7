"""Counts of whole kernels, known by hand: see tests/fixtures/cost.py."""

from __future__ import annotations

import pytest

from tests.cpu.cost.kernels import cost, line_of, site


def test_a_column_eight_words_apart_has_eight_way_conflicts() -> None:
    read = site("spread_conflicting", "shared", "read", "s")
    assert (read.requests, read.wavefronts, read.ideal, read.lanes) == (4, 32, 4, 128)  # 4 columns, one warp
    assert read.limit == "bank conflicts"
    assert "8-way bank conflicts" in read.advice
    assert read.line == line_of("B[j, i] = s[i, 2 * j]")
    assert cost("spread_conflicting").sites[0] == read  # the worst comes first


def test_nine_words_apart_there_are_none() -> None:
    read = site("spread_padded", "shared", "read", "s")
    assert (read.requests, read.wavefronts, read.ideal, read.limit) == (4, 4, 4, "")


def test_neighbours_are_loaded_at_once() -> None:
    read = site("conflicting", "shared", "read", "s")  # 8 columns: two loads of 16 bytes, on an H100 as well
    assert (read.requests, read.width, read.wavefronts, read.ideal) == (2, 16, 16, 8)
    apart = site("padded", "shared", "read", "s")  # 36 bytes apart they are no multiples of 16
    assert (apart.requests, apart.width, apart.wavefronts, apart.ideal) == (8, 4, 8, 8)


def test_a_stride_of_a_sector_costs_a_sector_for_each_lane() -> None:
    read, write = (site("apart", "global", *which) for which in (("read", "A"), ("write", "B")))
    assert (read.requests, read.sectors, read.least) == (128, 128 * 32, 128 * 4)  # 32 blocks of 4 warps
    assert (read.limit, read.line) == ("sectors", line_of("A[(b * 128 + i) * stride] + 1.0"))
    assert "32 sectors a request where 4 would do" in read.advice
    assert (write.sectors_per_request, write.limit) == (4, "")


def test_neighbours_cost_four_sectors() -> None:
    read = site("contiguous", "global", "read", "A")
    assert (read.requests, read.sectors_per_request, read.limit) == (128, 4, "")


def test_an_odd_pitch_loses_the_vector() -> None:
    wide, narrow = (site(name, "global", "read", "A") for name in ("wide", "narrow"))
    assert (wide.width, wide.requests, wide.limit) == (16, 64 * 64 // 8 // 32, "")
    assert (narrow.width, narrow.requests, narrow.limit) == (2, 64 * 64 // 32, "width")
    assert narrow.line == line_of("T.copy(A[0:64, 0:64], tile)")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_a_product_has_its_operations(arch: str) -> None:
    found = cost("product", arch)
    assert found.flops == {"float16": 2 * 256 * 256 * 256}
    assert found.shared_bytes >= 2 * (64 * 64 + 64 * 128) * 2
    assert found.floors
    assert all(floor.seconds > 0 for floor in found.floors)


def test_32_rows_lose_wgmma() -> None:
    kept, lost = (
        {s.instruction.split()[0]: s for s in cost(name, "sm_90").sites if s.space == "tensor cores"}
        for name in ("product", "product_of_32_rows")
    )
    assert list(kept) == ["wgmma"]
    assert kept["wgmma"].limit == ""
    assert list(lost) == ["mma"]
    assert (lost["mma"].limit, lost["mma"].line) == ("tensor core form", line_of("T.gemm(a, b, c)"))


def test_a_layout_without_its_swizzle_conflicts() -> None:
    plain = [s for s in cost("product_linear").sites if s.instruction.startswith("ldmatrix")]
    swizzled = [s for s in cost("product").sites if s.instruction.startswith("ldmatrix")]
    assert {s.conflict for s in swizzled} == {1.0}
    assert {s.conflict for s in plain} == {8.0}  # 8 rows, 128 or 256 bytes apart, in one bank
    assert {s.line for s in plain} == {line_of("T.gemm(a, b, c)")}


def test_a_stage_more_has_more_in_flight() -> None:
    tile = (64 * 64 + 64 * 128) * 2
    assert cost("product", "sm_90").in_flight == 2 * tile
    assert cost("product_three_stages", "sm_90").in_flight == 3 * tile


def test_a_softmax_is_read_and_written_once() -> None:
    found = cost("softmax_rows")
    assert found.once == 2 * 128 * 512 * 2
    assert {s.limit for s in found.sites if s.space == "global"} == {""}


def test_what_a_tile_operator_becomes_has_its_line() -> None:
    lines = {(s.instruction, s.buffer): s.line for s in cost("product", "sm_90").sites if s.space == "global"}
    assert lines["bulk copy", "A"] == line_of("T.copy(A[by * bm, ko * bk], a)")
    assert lines["bulk copy", "B"] == line_of("T.copy(B[ko * bk, bx * bn], b)")


def test_floating_point_operations_of_threads() -> None:
    assert cost("apart").arithmetic == {"float32": 4096}  # one addition for each element
    assert cost("wide").arithmetic == {}
    elements = 128 * 512  # of which each is compared, and subtracted from, raised, added up and divided
    assert 5 * elements <= cost("softmax_rows").arithmetic["float32"] < 6 * elements
    (floor,) = [f for f in cost("softmax_rows").floors if f.unit == "arithmetic, float32"]
    assert floor.seconds == cost("softmax_rows").arithmetic["float32"] / 19.5e12


def test_mbarriers_are_barriers_and_no_accesses() -> None:
    sites = cost("product", "sm_90").sites
    assert {s.instruction for s in sites if s.space == "barrier"} >= {"mbarrier wait", "mbarrier arrival"}
    assert {s.buffer for s in sites if s.space == "shared"} == {"a", "b"}
