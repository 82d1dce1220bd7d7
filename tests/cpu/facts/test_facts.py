"""Facts of committed snapshots: what real wheels made, against what is known of the kernels."""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod

import pytest

from tests.cpu.cost.kernels import snapshot as lowered_product
from tests.fixtures.index import Fixture, read
from tlcheck.facts import Facts, changes, from_json, to_json
from tlcheck.facts.extract import facts_of
from tlcheck.snapshot.ir import Evaluate, Seq, Stmt
from tlcheck.snapshot.walk import rebuild

ERA = [f for f in read().fixtures if f.path.startswith("era/")]
OPERATIONS = {"read", "write", "atomic"}


def facts(name: str, release: str) -> Facts:
    (fixture,) = (f for f in ERA if f.path == f"era/{name}-{release}")
    return facts_of(fixture.snapshot())


@pytest.mark.parametrize("fixture", ERA, ids=lambda f: f.path)
def test_facts_are_deterministic_and_survive_json(fixture: Fixture) -> None:
    found, again = facts_of(fixture.snapshot()), facts_of(fixture.snapshot())
    assert found == again
    assert from_json(json.loads(json.dumps(to_json(found)))) == found
    assert changes(found, again) == ()
    assert found.threads >= 32
    assert found.accesses
    assert {access.operation for access in found.accesses} <= OPERATIONS


def test_facts_do_not_read_the_source() -> None:
    """Releases differ in what is bound and inlined before the first pass."""
    snapshot = ERA[0].snapshot()
    other = replace(ERA[-1].snapshot().checkpoints["intent"], name="other")
    assert facts_of(replace(snapshot, checkpoints={"source": other, **snapshot.checkpoints})) == facts_of(snapshot)


TILES = [f for f in ERA if "tile_small" in f.path or "annotated_" in f.path]


@pytest.mark.parametrize("fixture", TILES, ids=lambda f: f.path)
def test_every_element_of_a_tile_is_added_once(fixture: Fixture) -> None:
    """These kernels add a whole buffer: what their atomics move in all blocks is its number of elements, except where
    threads beyond the tile add it once more (TLA005, up to 0.1.7.post2).
    """
    found = facts_of(fixture.snapshot())
    (atomic,) = (access for access in found.accesses if access.operation == "atomic")
    (target,) = (buffer for buffer in found.buffers if buffer.name == atomic.buffer)
    blocks = prod(count.number for count in found.grid) if "gemm" not in fixture.path else 1  # a gemm splits its sum
    twice = any(a.finding and a.finding.rule == "TLA005" for a in fixture.report().claims)
    assert atomic.elements * atomic.count.number * blocks == prod(map(int, target.shape)) * (2 if twice else 1)


def test_a_gemm_on_tensor_cores() -> None:
    found = facts("loop_pipelined", "0.1.15")
    (wgmma,) = found.instructions
    assert (wgmma.name, wgmma.count.number) == ("wgmma ss m64n64k16 fp16 fp16 fp32", 4 * 4)
    shapes = {buffer.name: (buffer.role, buffer.shape) for buffer in found.buffers}
    assert shapes["a"] == ("shared", ("64", "64"))
    assert found.shared_bytes == (2 + 1) * 64 * 64 * 2
    layouts = {layout.buffer: layout for layout in found.layouts}
    assert (layouts["a"].kind, layouts["a"].annotated) == ("swizzle 128B", False)
    assert layouts["a"].digest == layouts["w"].digest


@pytest.mark.parametrize(
    ("path", "name", "count"),
    [
        ("tensor_memory/serial", "tcgen05 mma ss m128n128 bf16 fp32", 4 * 4),  # steps of K, parts of a step
        ("tensor_memory/pipelined", "tcgen05 mma ss m128n128 bf16 fp32", 2 * 4 + 4 + 4),  # two steps behind the loop
        ("tensor_memory/scaled", "tcgen05 mma blockscaled ss m128n128 e4m3 fp32", 4 * 2),
        ("clusters/two_blocks", "tcgen05 mma ss m256n128 bf16 fp32 cta_group::2", 3 * 4),  # of the block that issues
        ("blackwell/narrow", "mma block scale m16n8k64 float32 mxf4nvf4 4 e2m1 e2m1 ue4m3", 2 * 2 * 2),  # of one warp
    ],
)
def test_products_of_blackwell_are_counted_as_often_as_they_are_issued(path: str, name: str, count: int) -> None:
    """One warp issues those in tensor memory: its elected thread does, within the device library."""
    (fixture,) = (f for f in read().fixtures if f.path == f"{path}-0.1.15")
    assert [(i.name, i.count.number) for i in facts_of(fixture.snapshot()).instructions] == [(name, count)]


@pytest.mark.parametrize(("arch", "loops"), [("gfx942", 4), ("gfx950", 3 + 1)])
def test_products_of_amd_are_counted_by_wave(arch: str, loops: int) -> None:
    """Each of two waves has 2 x 8 tiles of 16 x 16, and four parts in each step of K."""
    found = facts_of(lowered_product("product", arch)).instructions
    assert [(i.name, i.count.number) for i in found] == [("mfma f32_16x16x16f16", 2 * loops * 4 * 2 * 8)]


@pytest.mark.parametrize(
    ("arch", "words"),
    [
        ("gfx942", "512 mfma f32_16x16x16f16 -> 1024 mfma f32_16x16x16f16"),
        ("sm_100", "16 tcgen05 mma ss m128n128 bf16 fp32 -> 32 tcgen05 mma ss m128n128 bf16 fp32"),
    ],
)
def test_twice_the_products_are_a_change_of_tensor_cores(arch: str, words: str) -> None:
    """A release that issues each product once more."""
    (serial,) = (f for f in read().fixtures if f.path == "tensor_memory/serial-0.1.15")
    snapshot = lowered_product("product", arch) if arch == "gfx942" else serial.snapshot()
    doubled = {name: replace(f, body=rebuild(f.body, _twice)) for name, f in snapshot.checkpoints.items()}
    (change,) = changes(facts_of(snapshot), facts_of(replace(snapshot, checkpoints=doubled)))
    assert change.words == f"kernel: {words} in a block"


def _twice(old: Stmt, new: Stmt) -> Stmt:
    is_product = isinstance(new, Evaluate) and new.value.value in ("tvm_mfma", "ptx_tcgen05_mma_ss")
    return Seq((new, new)) if is_product else new


def test_instructions_of_a_warp_are_counted_by_its_width() -> None:
    """A warp of twice the threads has half the instructions; an unknown target has the usual ones."""
    (fixture,) = (f for f in read().fixtures if f.path == "wrong/short_wait-0.1.9")
    snapshot, counts = fixture.snapshot(), {}
    for arch in ("sm_90", "gfx942", ""):
        found = facts_of(replace(snapshot, target=arch)).accesses
        counts[arch] = [a.count.number for a in found if a.instruction.startswith("ldmatrix")]
    assert counts["sm_90"] == counts[""] == [2 * count for count in counts["gfx942"]] != []


def test_stages_of_a_pipeline() -> None:
    (loop,) = facts("loop_pipelined", "0.1.7").loops
    assert (loop.name, loop.stages) == ("k", 2)


def test_threads_that_a_guard_keeps_away_are_not_counted() -> None:
    """Of the 256 threads of this kernel 128 compute; one loads."""
    found = facts("loop_pipelined", "0.1.15")
    assert found.threads == 256
    assert {(a.buffer, a.instruction, a.count.number) for a in found.accesses if a.operation != "write"} == {
        ("A", "TMA", 4),
        ("B", "AtomicAddx2", 4 * 16 * 128),
        ("W", "TMA", 1),
    }


def test_one_expression_at_two_places_is_counted_at_both() -> None:
    """The two branches of this tail have the same atomic, one object in the snapshot."""
    (atomic,) = (a for a in facts("tail_tile_symbolic", "0.1.6.post2").accesses if a.operation == "atomic")
    assert atomic.count.number == 16 * 128


def test_a_tail_is_counted_for_a_block_in_the_middle_and_sizes_are_kept_as_text() -> None:
    found = facts("tail_tile_symbolic", "0.1.15")
    assert any(not count.text.isdigit() for count in found.grid if count.text)
    assert any(not dim.isdigit() for buffer in found.buffers for dim in buffer.shape)
