"""Changes between the releases that made the committed snapshots, and what must not be one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.facts.test_facts import facts
from tlcheck.facts import Facts, changes
from tlcheck.facts.extract import facts_of
from tlcheck.facts.kernel_facts import AccessFacts, BufferFacts, Count, InstructionFacts, LayoutFacts, Loop, Sync
from tlcheck.snapshot.ir import Snapshot


def words(before: Facts, after: Facts) -> list[str]:
    return [change.words for change in changes(before, after)]


def test_scalarized_atomics_are_named_first_and_may_be_slower() -> None:
    found = changes(facts("annotated_source", "0.1.7"), facts("annotated_source", "0.1.7.post1"))
    assert found[0].words == "B: AtomicAddx4 -> 4 x AtomicAdd"
    assert found[0].slower
    assert found[1].words == "staged: read float32x4 -> 4 x float32"


def test_the_other_way_is_not_slower() -> None:
    (found,) = changes(facts("invariant_rows", "0.1.7.post2"), facts("invariant_rows", "0.1.7.post3"))
    assert (found.words, found.slower) == ("B: 4 x AtomicAdd -> AtomicAddx4", False)


def test_a_lost_memory_order_is_a_change() -> None:
    (found,) = changes(facts("memory_order_fp16", "0.1.13"), facts("memory_order_fp16", "0.1.14"))
    assert found.words == "B: AtomicAddx2 -> AtomicAddx2 (memory order 4)"


def test_an_atomic_that_is_repeated_is_a_change() -> None:
    (found,) = changes(facts("previous_value", "0.1.10"), facts("previous_value", "0.1.11"))
    assert (found.words, found.slower) == ("N: 128 AtomicAdd -> 384 AtomicAdd in a block", True)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("tile_small", "0.1.7.post3", "0.1.15"),  # three dialects of a plain tile
        ("explicit_x2", "0.1.6.post2", "0.1.15"),
        ("shared_histogram", "0.1.7", "0.1.15"),
        ("tail_tile_odd", "0.1.6.post2", "0.1.15"),  # the tail's predicate stands elsewhere
        ("tail_tile_symbolic", "0.1.9", "0.1.15"),
        ("annotated_gemm", "0.1.9", "0.1.15"),
        ("annotated_gemm", "0.1.7.post1", "0.1.8"),
        ("loop_pipelined", "0.1.9", "0.1.15"),  # versions of a buffer appear before the first checkpoint
        ("tma_tile", "0.1.9", "0.1.15"),
    ],
)
def test_what_releases_only_spell_differently_is_no_change(name: str, before: str, after: str) -> None:
    assert words(facts(name, before), facts(name, after)) == []


KERNEL = Facts(
    "0.1.15",
    grid=(Count(8),),
    threads=128,
    shared_bytes=8192,
    buffers=(
        BufferFacts("A", "parameter", "float16", ("64", "64")),
        BufferFacts("a", "shared", "float16", ("64", "64"), 8192),
    ),
    loops=(Loop("k", ("8",), 2),),
    layouts=(LayoutFacts("a", True, "swizzle 128B", "1", "map"),),
    accesses=(AccessFacts("A", "global", "read", "float16x8", 8, Count(512)),),
    syncs=(Sync("barrier", "before read of a", Count(8)),),
    instructions=(InstructionFacts("mma m16n8k16 fp16 fp16 fp32", Count(64)),),
    functions=("exp2",),
)


def test_what_the_author_wrote_comes_before_what_follows_from_it() -> None:
    """A larger tile changes loops, accesses, memory and instructions too: the tile is named first."""
    larger = replace(
        KERNEL,
        shared_bytes=16384,
        buffers=(KERNEL.buffers[0], BufferFacts("a", "shared", "float16", ("128", "64"), 16384)),
        loops=(Loop("k", ("4",), 2),),
        accesses=(AccessFacts("A", "global", "read", "float16x8", 8, Count(1024)),),
        instructions=(InstructionFacts("mma m16n8k16 fp16 fp16 fp32", Count(128)),),
    )
    assert words(KERNEL, larger) == [
        "a: 64 x 64 -> 128 x 64",
        "loop k: 8 -> 4",
        "kernel: 64 mma m16n8k16 fp16 fp16 fp32 -> 128 mma m16n8k16 fp16 fp16 fp32 in a block",
        "A: read 512 float16x8 -> 1024 float16x8 in a block",
        "shared memory: 8192 -> 16384 bytes",
        "a: 8192 -> 16384 bytes",
    ]


@pytest.mark.parametrize(
    ("edited", "first"),
    [
        (replace(KERNEL, loops=(Loop("k", ("8",), 3),), shared_bytes=12288), "loop k: 2 -> 3 stages"),
        (replace(KERNEL, layouts=(), accesses=()), "a: layout swizzle 128B -> no layout"),
        (replace(KERNEL, threads=256), "block: 128 -> 256 threads"),
        (replace(KERNEL, grid=(Count(16),)), "grid: 8 -> 16"),
        (replace(KERNEL, syncs=()), "kernel: barrier removed before read of a"),
        (replace(KERNEL, functions=()), "kernel: functions exp2 -> none"),
        (
            replace(KERNEL, accesses=(AccessFacts("A", "global", "read", "float16", 1, Count(4096)),)),
            "A: read float16x8 -> 8 x float16",
        ),
    ],
)
def test_one_edit_is_named_by_the_first_change(edited: Facts, first: str) -> None:
    assert words(KERNEL, edited)[0] == first
    assert changes(edited, edited) == ()


@pytest.mark.parametrize(("times", "risk"), [(7, "sync-risk"), (15, "changed"), (16, "slower-risk")])
def test_twice_as_many_barriers_may_be_slower(times: int, risk: str) -> None:
    (change,) = changes(KERNEL, replace(KERNEL, syncs=(Sync("barrier", "before read of a", Count(times)),)))
    assert (change.risk, change.words) == (risk, f"kernel: barrier before read of a: 8 -> {times} times")


def test_the_same_change_of_several_buffers_is_one() -> None:
    dtypes = [replace(KERNEL, buffers=tuple(replace(b, dtype=t) for b in KERNEL.buffers)) for t in ("int8", "int16")]
    assert words(*dtypes) == ["A, a: int8 -> int16"]


def test_loops_of_different_releases_are_not_compared() -> None:
    assert words(KERNEL, replace(KERNEL, release="0.1.9", loops=(Loop("k", ("7",), 2),))) == []


def test_versions_that_appear_earlier_in_another_release_are_no_other_shape() -> None:
    versions = (KERNEL.buffers[0], replace(KERNEL.buffers[1], shape=("2", "64", "64")))
    assert words(KERNEL, replace(KERNEL, release="0.1.9", buffers=versions)) == []
    assert words(KERNEL, replace(KERNEL, buffers=versions)) == ["a: 64 x 64 -> 2 x 64 x 64"]


def test_a_snapshot_without_checkpoints_has_no_facts_and_no_changes() -> None:
    empty = facts_of(Snapshot("c", "f.py", 1, {"tilelang": "0.1.15"}, "sm_90", {}, {}, {}, {}))
    assert changes(empty, empty) == ()


@pytest.mark.parametrize("form", ["wgmma ss m64n64k16 fp16 fp16 fp32", "tcgen05 mma ss m128n128 bf16 fp32"])
def test_products_of_a_warp_in_place_of_larger_ones_may_be_slower(form: str) -> None:
    larger = replace(KERNEL, instructions=(InstructionFacts(form, Count(4)),))
    assert [change.risk for change in changes(larger, KERNEL)] == ["slower-risk"]
    assert [change.risk for change in changes(KERNEL, larger)] == ["changed"]
    assert [change.risk for change in changes(larger, replace(KERNEL, instructions=()))] == ["changed"]
