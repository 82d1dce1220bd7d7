"""What a target does not have is refuted without a compiler: threads, grids, shared memory, cooperative grids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, text, variable
from tlcheck.execute.request import Request
from tlcheck.program.launch import asked_by_source
from tlcheck.snapshot.ir import Alloc, Attr, Expr, For, If, Seq, Snapshot, Stmt, Store, Thread
from tlcheck.verdicts.claim import Claim
from tlcheck.verdicts.judging import verdicts_of


def using(floats: int, arch: str, stages: int = 0, written: int = 0, scope: str = "shared.dyn") -> Snapshot:
    """A kernel of which a block as lowered has so many floats in shared memory, and as written `written` of them in a
    pipeline of stages."""
    kernel = Kernel(threads=64)
    source, out, tx = kernel.tensor("A", "float32", (64,)), kernel.tensor("B", "float32", (64,)), kernel.tx
    barrier = call("tvm_storage_sync", text("shared"))

    def through(size: int) -> Sequence[Stmt]:
        shared = kernel.tile("s", "float32", (size,), scope)
        kernel.tiles.clear()
        body = (Store(shared, (tx,), load(source, tx)), barrier, Store(out, (tx,), load(shared, tx)), barrier)
        loop = For(variable("k"), number(0), number(1), "serial", Seq(body), (("num_stages", str(stages)),))
        return (Alloc(shared), loop)

    return replace(kernel.snapshot(through(written or floats), through(floats)), target=arch)


def refusals(snapshot: Snapshot, request: Request | None = None) -> list[tuple[str, str, str]]:
    """Rule, blame and sentence of each refuted claim, of which the first has the outputs under it."""
    claims = verdicts_of(snapshot, request).claims
    found = [c for c in claims if c.finding is not None]
    return [(c.finding.rule, c.finding.blame, c.finding.what) for c in found if c.finding is not None]


@pytest.mark.parametrize(
    ("arch", "floats", "words"),
    [
        ("gfx942", 16384, ""),
        ("gfx942", 16385, "a block needs 65,540 bytes of LDS, and gfx942 has 65,536 for one"),
        ("gfx950", 40960, ""),
        ("sm_90", 58112, ""),
        ("sm_90", 58113, "a block needs 232,452 bytes of shared memory, and sm_90 has 232,448 for one"),
        ("sm_120", 25344, ""),
        ("sm_120", 42032, "a block needs 168,128 bytes of shared memory, and sm_120 has 101,376 for one"),
    ],
)
def test_more_shared_memory_than_there_is(arch: str, floats: int, words: str) -> None:
    assert refusals(using(floats, arch)) == ([("TLS009", "author", words)] if words else [])
    (claim,) = [c for c in verdicts_of(using(floats, arch), Request()).claims if words in _what(c)][:1]
    if words:
        assert [(c.kind, c.verdict, c.code) for c in claim.also] == [("output", "undecided", "U028")]


def _what(claim: Claim) -> str:
    return "" if claim.finding is None else claim.finding.what


def test_static_shared_memory_has_a_limit_of_its_own() -> None:
    assert refusals(using(12288, "sm_90", scope="shared")) == []
    what = "a block declares 49,156 bytes of static shared memory, and may have 49,152"
    assert refusals(using(12289, "sm_90", scope="shared")) == [("TLS009", "author", what)]


def test_arrays_of_the_source_end_at_multiples_of_16_bytes() -> None:
    kernel = Kernel()
    for name in "st":
        kernel.tile(name, "int8", (17,))
    assert asked_by_source(kernel.function()) == 64


def test_memory_that_lowering_adds_is_the_compilers() -> None:
    (found,) = refusals(using(60000, "sm_90", stages=2, written=20000))
    assert found[:2] == ("TLS009", "author"), "two stages may need three versions"
    (found,) = refusals(using(60001, "sm_90", stages=2, written=20000))
    assert found[:2] == ("TLL003", "compiler")
    (found,) = refusals(using(60000, "sm_90", stages=0, written=20000))
    assert found[:2] == ("TLL003", "compiler")


def asking(threads: int, added: int = 0, axis: str = "x", blocks: int = 1, *, meets: bool = False) -> Snapshot:
    """A kernel with so many threads in a block, and `added` more as lowered, and blocks along an axis of the grid."""
    kernel = Kernel(threads=threads)
    out = kernel.tensor("B", "float32", (1,))
    store = Store(out, (number(0),), number(1))
    body = (call("sync_grid"), store) if meets else (store,)
    snapshot = kernel.snapshot(body, body)
    grown = Kernel(threads=threads + added, tensors=kernel.tensors, tx=kernel.tx, bx=kernel.bx).snapshot(body, body)
    functions = {"source": snapshot.checkpoints["source"], "device-tir": grown.checkpoints["device-tir"]}
    gridded = {
        at: replace(f, body=Thread(variable("b"), f"blockIdx.{axis}", number(blocks), f.body))
        for at, f in functions.items()
    }
    return replace(snapshot, checkpoints=gridded)


def test_threads_of_a_block() -> None:
    assert refusals(asking(1024)) == []
    what = "a block has 1,025 threads, and at most 1,024 are allowed"
    assert refusals(asking(1025)) == [("TLS009", "author", what)]
    what = "a block has 1,152 threads, and at most 1,024 are allowed"
    assert refusals(asking(1024, added=128)) == [("TLL003", "compiler", what)]


@pytest.mark.parametrize("axis", ["y", "z"])
def test_extents_of_a_grid(axis: str) -> None:
    assert refusals(asking(32, axis=axis, blocks=65535)) == []
    what = f"the grid has 65,536 blocks along {axis}, and at most 65,535 are allowed"
    assert refusals(asking(32, axis=axis, blocks=65536)) == [("TLS009", "author", what)]


def test_a_cooperative_grid_is_resident_at_once() -> None:
    assert refusals(asking(1024, axis="y", blocks=264, meets=True)) == []
    assert refusals(asking(1024, axis="y", blocks=265)) == []
    what = "T.sync_grid needs all 265 blocks at once, and 132 multiprocessors hold 264 (threads)"
    assert refusals(asking(1024, axis="y", blocks=265, meets=True)) == [("TLS009", "author", what)]


def registering(
    threads: int, first: int, others: int, *, own: bool = True, arch: str = "sm_90", blocks: int = 1
) -> Snapshot:
    """Of a block the first 128 threads ask for so many registers, and the others for so many. own: as written too.

    blocks: that a multiprocessor has to hold (T.annotate_min_blocks_per_sm).
    """
    kernel = Kernel(threads=threads)
    store = Store(kernel.tensor("B", "float32", (threads,)), (kernel.tx,), number(1))
    asks = [Seq((call("set_max_nreg", number(n), number(1)), store)) for n in (first, others)]
    group = Expr("floordiv", "int32", (kernel.tx, number(128)))
    lowered = Attr("tl.min_blocks_per_sm", number(blocks), If(Expr("lt", "bool", (group, number(1))), *asks))
    return replace(kernel.snapshot((lowered if own else store,), (lowered,)), target=arch)


def test_registers_of_a_block() -> None:
    assert refusals(registering(384, 24, 240)) == [], "3,072 + 61,440"
    what = "T.set_max_nreg asks for 67,584 registers in a block, and a block has at most 64,512: a warp waits for ever"
    assert refusals(registering(384, 48, 240)) == [("TLS009", "author", what)]
    assert refusals(registering(384, 48, 240, own=False)) == [("TLL003", "compiler", what)]
    assert refusals(registering(384, 48, 240, arch="sm_80")) == [], "which compiles to nothing"


def test_registers_of_blocks_that_are_resident_together() -> None:
    """240 and 24 for 128 threads each are 264 of the 256 that a thread of one group and one of the other share."""
    assert refusals(registering(256, 24, 240, own=False)) == []
    assert refusals(registering(256, 24, 232, own=False, blocks=2)) == []
    what = (
        "T.set_max_nreg asks for 33,792 registers in a block, and a block has at most 32,768 where a multiprocessor"
        " holds 2 blocks: a warp waits for ever"
    )
    assert refusals(registering(256, 24, 240, own=False, blocks=2)) == [("TLL003", "compiler", what)]
    assert refusals(registering(256, 24, 240, blocks=9)) == [], (
        "2,304 threads are more than it holds: the compiler ignores it"
    )


@pytest.mark.parametrize("registers", [16, 100, 264])
def test_registers_that_the_instruction_cannot_name(registers: int) -> None:
    what = f"T.set_max_nreg asks for {registers} registers: no multiple of 8 from 24 to 256"
    assert refusals(registering(128, registers, 24)) == [("TLS009", "author", what)]


@pytest.mark.parametrize(("arch", "compiler"), [("sm_90", "nvcc"), ("gfx942", "hipcc")])
@pytest.mark.parametrize(("release", "compiles"), [("0.1.13", False), ("0.1.14", True)])
def test_a_vectors_choice_that_does_not_compile(arch: str, compiler: str, release: str, compiles: bool) -> None:
    kernel = Kernel(threads=1)
    given, out = kernel.tensor("A", "float32", (4,)), kernel.tensor("B", "float32", (4,))
    four = Expr("ramp", "int32x4", (number(0), number(1)), 4)
    value = Expr("load", "float32x4", (four,), buffer=given)
    chosen = Expr("select", "float32x4", (Expr("lt", "boolx4", (value, value)), value, value))
    stored = (Store(out, (four,), chosen),)
    snapshot = replace(kernel.snapshot(stored, stored), target=arch, toolchain={"tilelang": release})
    words = f"a choice by a vector of conditions (float32x4), which {compiler} refuses"
    assert refusals(snapshot) == ([] if compiles else [("TLL003", "compiler", words)])


def test_a_vectors_negation_that_does_not_compile() -> None:
    kernel = Kernel(threads=1)
    given, out = kernel.tensor("A", "bool", (4,)), kernel.tensor("B", "bool", (4,))
    four = Expr("ramp", "int32x4", (number(0), number(1)), 4)
    stored = (Store(out, (four,), Expr("not", "boolx4", (Expr("load", "boolx4", (four,), buffer=given),))),)
    snapshot = replace(kernel.snapshot(stored, stored), target="gfx942", toolchain={"tilelang": "0.1.13"})
    assert refusals(snapshot) == [("TLL003", "compiler", "! of a vector (boolx4), which hipcc refuses")]
