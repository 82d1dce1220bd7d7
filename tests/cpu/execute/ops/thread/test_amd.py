"""What AMD's targets do otherwise than NVIDIA's: copies into LDS, barriers, reductions, transposing reads.

By the words of the ISA and of TileLang's tl_templates/hip; not against a device.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Array, Kernel, add, call, load, number, poisoned, random, text
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.values import kind_of, reinterpreted
from tlcheck.execute.ops.thread.ds_read_tr import exchanged
from tlcheck.execute.ops.thread.lds_copies import of_waves
from tlcheck.execute.request import Request
from tlcheck.execute.stops import Entangled, Illegal, NotModelled
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, For, If, Seq, Snapshot, Stmt, Store
from tlcheck.targets.lookup import target

WAVE = 64
NEW, OLD = "0.1.15", "0.1.12"


def lowered(arch: str = "gfx942", release: str = NEW, late: bool = True) -> Options:
    return Options(source=False, target=target(arch), printed=True, release=Release.of(release), late=late)


def at(buffer: Buffer, index: Expr | int) -> Expr:
    return Expr("call", "handle", (load(buffer, index),), "address_of")


def less(a: Expr, b: int) -> Expr:
    return Expr("lt", "bool", (a, number(b)))


BARRIER = call("tvm_storage_sync", text("shared"))


# ---- copies into LDS


def copied(
    count: int, options: Options, *, swapped: bool = False, wait: int | None = 0, threads: int = 2 * WAVE,
    predicate: Expr | None = None, kernel: Kernel | None = None,
) -> Array:  # fmt: skip
    """`count` float32 of each thread go to LDS and from there out. wait: for all but so many; None for no wait."""
    kernel = kernel or Kernel(threads=threads, lowered=options)
    a = random("float32", threads * count)
    source, out = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", (threads * count,))
    shared = kernel.tile("s", "float32", (threads * count + 3,), "shared")
    tx: Expr = kernel.tx
    to = Expr("call", "int32", (tx, number(1)), "bitwise_xor") if swapped else tx
    more = () if predicate is None else (predicate,)
    each = number(count)
    begin = call(
        "ptx_cp_async",
        at(shared, Expr("mul", "int32", (to, each))),
        at(source, Expr("mul", "int32", (tx, each))),
        each,
        *more,
    )
    body: list[Stmt] = [begin, call("ptx_commit_group")]
    if wait is not None:
        body.append(call("ptx_wait_group", number(wait)))
    body.append(BARRIER)
    index = [add(Expr("mul", "int32", (tx, each)), i) for i in range(count)]
    found = kernel.run(*body, *[Store(out, (i,), load(shared, i)) for i in index])["B"]
    return np.where(poisoned(found), np.nan, found - a)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_what_is_waited_for_arrives(count: int) -> None:
    assert not copied(count, lowered()).any()


def test_four_bytes_are_under_way_until_they_are_waited_for() -> None:
    """A barrier waits for LDS alone. More bytes go through registers, as any load and store."""
    assert np.isnan(copied(1, lowered(), wait=None)).all()
    assert np.isnan(copied(1, lowered(), wait=1)).all()
    assert not copied(1, lowered(late=False), wait=None).any()
    assert not copied(2, lowered(), wait=None).any()
    assert not copied(4, lowered(), wait=1).any()


@pytest.mark.parametrize(
    ("predicate", "wait", "arrives"),
    [(None, None, True), (None, 1, True), (40, None, True), (0, None, False), (0, 1, False), (0, 0, True)],
)
@pytest.mark.parametrize("first", ["direct", "registers"])
def test_a_load_that_is_stored_has_returned_after_older_copies(
    predicate: int | None, wait: int | None, arrives: bool, first: str
) -> None:
    """Loads return in their order: what goes through registers is stored before the barrier, if a lane loads at all."""
    kernel, a = Kernel(threads=WAVE, lowered=lowered("gfx950")), random("float32", WAVE)
    source, out = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", (WAVE,))
    wide = kernel.tensor("W", "float32", random("float32", 4 * WAVE))
    s, w = kernel.tile("s", "float32", (WAVE,), "shared"), kernel.tile("w", "float32", (4 * WAVE,), "shared")
    four = Expr("mul", "int32", (kernel.tx, number(4)))
    more = () if predicate is None else (less(kernel.tx, predicate),)
    direct = call("ptx_cp_async", at(s, kernel.tx), at(source, kernel.tx), number(1))
    registers = call("ptx_cp_async", at(w, four), at(wide, four), number(4), *more)
    body = [direct, registers] if first == "direct" else [registers, direct]
    body += [] if wait is None else [call("ptx_wait_group", number(wait))]
    found = kernel.run(*body, BARRIER, Store(out, (kernel.tx,), load(s, kernel.tx)))["B"]
    if first == "direct":
        assert poisoned(found).any() != arrives
    else:
        assert poisoned(found).any() == (wait != 0)


def test_a_load_of_another_wave_says_nothing() -> None:
    kernel, a = Kernel(threads=2 * WAVE, lowered=lowered("gfx950")), random("float32", WAVE)
    source, out = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", (WAVE,))
    wide = kernel.tensor("W", "float32", random("float32", 8 * WAVE))
    s, w = kernel.tile("s", "float32", (WAVE,), "shared"), kernel.tile("w", "float32", (8 * WAVE,), "shared")
    four, first = Expr("mul", "int32", (kernel.tx, number(4))), less(kernel.tx, WAVE)
    direct = If(first, call("ptx_cp_async", at(s, kernel.tx), at(source, kernel.tx), number(1)))
    registers = If(Expr("not", "bool", (first,)), call("ptx_cp_async", at(w, four), at(wide, four), number(4)))
    out_of = If(first, Store(out, (kernel.tx,), load(s, kernel.tx)))
    assert poisoned(kernel.run(direct, registers, BARRIER, out_of)["B"]).all()


def test_an_empty_group_is_none() -> None:
    """`s_waitcnt vmcnt(1)` leaves a copy under way that CUDA's wait, with an empty group behind it, waits for."""
    body = []
    for arch in ("sm_90", "gfx942"):
        options = Options(source=False, target=target(arch), printed=True, release=Release.of(NEW))
        kernel = Kernel(threads=WAVE, lowered=options)
        source, out = kernel.tensor("A", "float32", random("float32", WAVE)), kernel.tensor("B", "float32", (WAVE,))
        shared = kernel.tile("s", "float32", (WAVE,), "shared")
        copy = call("ptx_cp_async", at(shared, kernel.tx), at(source, kernel.tx), number(1))
        commit, wait = call("ptx_commit_group"), call("ptx_wait_group", number(1))
        store = Store(out, (kernel.tx,), load(shared, kernel.tx))
        body.append(poisoned(kernel.run(copy, commit, commit, wait, BARRIER, store)["B"]).any())
    assert body == [False, True]


def test_lanes_of_a_direct_copy_lie_side_by_side() -> None:
    """One instruction has one address: lanes that exchange their places do not get what the kernel says."""
    with pytest.raises(Illegal, match=r"^copy of 4 bytes into s by one instruction of a wave, -8 bytes off in LDS$"):
        copied(1, lowered(), swapped=True)
    assert not copied(2, lowered(), swapped=False).any()


def test_a_direct_copy_whose_first_lane_is_idle_goes_elsewhere() -> None:
    """The address is that of the first active lane, and lane l writes 4 l bytes after it."""
    kernel = Kernel(threads=WAVE, lowered=lowered())
    late = Expr("not", "bool", (less(kernel.tx, 3),))
    with pytest.raises(Illegal, match=r"12 bytes off in LDS$") as refused:
        copied(1, lowered(), predicate=late, kernel=kernel, threads=WAVE)
    assert refused.value.lane == 3
    kernel = Kernel(threads=WAVE, lowered=lowered())
    found = copied(1, lowered(), predicate=less(kernel.tx, 40), kernel=kernel, threads=WAVE)
    assert not found[:40].any()
    assert np.array_equal(found[40:], -random("float32", WAVE)[40:])


@pytest.mark.parametrize(("release", "kept"), [(OLD, False), ("0.1.14", True), (NEW, True)])
def test_zeros_of_a_predicate_take_a_dword(release: str, kept: bool) -> None:
    """Up to 0.1.12 they took 16 bytes, and what lies behind (pull request 2721)."""
    kernel = Kernel(threads=WAVE, lowered=lowered(release=release))
    a = random("float32", 4)
    source, out = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", (4,))
    shared = kernel.tile("s", "float32", (4,), "shared")
    first = less(kernel.tx, 1)
    fill = [Store(shared, (number(i),), number(i + 1)) for i in range(4)]
    copy = call("ptx_cp_async", at(shared, 0), at(source, 0), number(1), Expr("int", "bool", (), 0))
    out_of = [Store(out, (number(i),), load(shared, i)) for i in range(4)]
    found = kernel.run(If(first, Seq((*fill, copy, call("ptx_wait_group", number(0)), *out_of))))["B"]
    assert found.tolist() == ([0, 2, 3, 4] if kept else [0, 0, 0, 0])


def test_lanes_of_a_wave_wait_together() -> None:
    mask = np.zeros((2, 100), np.bool_)
    mask[0, 70] = mask[1, 3] = True
    assert of_waves(mask).tolist() == [[False] * 64 + [True] * 36, [True] * 64 + [False] * 36]


# ---- barriers


def summed(sync: Stmt, release: str) -> Snapshot:
    """Each thread of a wave adds what its neighbour has written to LDS."""
    kernel = Kernel(threads=WAVE)
    source, out = kernel.tensor("A", "float32", (WAVE,)), kernel.tensor("B", "float32", (WAVE,))
    shared, tx = kernel.tile("s", "float32", (WAVE,), "shared"), kernel.tx
    other = Expr("call", "int32", (tx, number(32)), "bitwise_xor")
    put, get = Store(shared, (tx,), load(source, tx)), Store(out, (tx,), load(shared, other))
    found = kernel.snapshot((put, BARRIER, get), (put, sync, get))
    return replace(found, target="gfx942", toolchain={"tilelang": release})


def races(snapshot: Snapshot) -> list[str]:
    found = execute(snapshot, Request())
    assert found.outputs[0].verdict == "agreed"
    return [race.buffer for race in found.races]


def test_sync_warp_orders_a_wave_where_it_is_printed() -> None:
    """Up to 0.1.13 nothing is printed for it, and the compiler may move accesses across (pull request 2872)."""
    assert races(summed(call("sync_warp"), NEW)) == races(summed(call("sync_warp"), "0.1.14")) == []
    assert races(summed(call("sync_warp"), OLD)) == races(summed(call("sync_warp"), "0.1.13")) == ["s"]


def test_a_barrier_of_a_wave_is_never_printed() -> None:
    assert races(summed(call("tvm_storage_sync", text("warp")), NEW)) == ["s"]
    assert races(summed(call("tvm_storage_sync", text("shared")), OLD)) == []


def some(threads: int) -> Stmt:
    return call("tvm_storage_sync", text("shared"), number(1), number(threads))


def test_a_barrier_of_some_threads_counts_all_of_the_block() -> None:
    """__syncthreads() is what is printed: the first wave's own barrier takes the one that the second wave needs."""
    kernel = Kernel(threads=2 * WAVE)
    source, out = kernel.tensor("A", "float32", (2 * WAVE,)), kernel.tensor("B", "float32", (2 * WAVE,))
    shared, tx = kernel.tile("s", "float32", (2 * WAVE,), "shared"), kernel.tx
    put = Store(shared, (tx,), load(source, tx))
    get = Store(out, (tx,), load(shared, Expr("call", "int32", (tx, number(WAVE)), "bitwise_xor")))
    for own, raced in ((some(WAVE), ["s"]), (call("sync_warp"), [])):
        lowered_code = (If(less(tx, WAVE), own), put, BARRIER, get)
        found = replace(
            kernel.snapshot((put, BARRIER, get), lowered_code), target="gfx942", toolchain={"tilelang": NEW}
        )
        assert list(dict.fromkeys(race.buffer for race in execute(found, Request()).races)) == raced


@pytest.mark.parametrize("threads", [WAVE, 2 * WAVE])
def test_a_barrier_waits_for_no_wave_that_has_ended(threads: int) -> None:
    """CDNA3 ISA, S_BARRIER. What follows is done: no phase of the barrier is left behind."""
    kernel = Kernel(threads=2 * WAVE, lowered=lowered())
    out = kernel.tensor("B", "int32", (2 * WAVE,))
    first = (some(threads), Store(out, (kernel.tx,), number(1)), BARRIER, Store(out, (kernel.tx,), number(2)))
    found = kernel.run(If(less(kernel.tx, WAVE), Seq(first)))["B"]
    assert found[:WAVE].tolist() == [2] * WAVE


def test_in_a_loop_the_others_may_go_on_and_end() -> None:
    """The hardware lets them: the second wave comes to its end, and no barrier waits for it. That is not modelled."""
    kernel = Kernel(threads=2 * WAVE, lowered=lowered())
    k = Expr("var", "int32", (), "k", 1001)
    with pytest.raises(Entangled, match="threads that wait for each other in a divergent branch"):
        kernel.run(For(k, number(0), number(2), "serial", If(less(kernel.tx, WAVE), some(WAVE))))


# ---- reductions and exchanges


@pytest.mark.parametrize("threads", [32, 64, 128, 256])
def test_all_reduce_shuffles_within_waves_of_64(threads: int) -> None:
    """From 128 threads on through the workspace."""
    kernel, a = Kernel(threads=256, lowered=lowered()), random("int32", 256) % 100
    source, out = kernel.tensor("A", "int32", a), kernel.tensor("B", "int32", (256,))
    workspace = kernel.tile("w", "int32", (256,), "shared")
    args = (at(workspace, 0),) if threads > WAVE else ()
    name = text(f"tl::AllReduce<tl::SumOp, {threads}, 1, 0>::run")
    value = Expr("call", "int32", (name, load(source, kernel.tx), *args), "call_extern")
    found = kernel.run(Store(out, (kernel.tx,), value))["B"]
    assert np.array_equal(found, a.reshape(-1, threads).sum(axis=1).repeat(threads))


def test_nobody_waits_for_lanes_that_are_absent_from_a_shuffle() -> None:
    """As on NVIDIA part of a warp would, and a barrier of the rest would never let go."""
    kernel = Kernel(threads=WAVE, lowered=lowered())
    out, own = kernel.tensor("B", "int32", (WAVE,)), kernel.tile("o", "int32", (1,), "local")
    name = text("tl::AllReduce<tl::SumOp, 16, 1, 0>::run")
    total = Expr("call", "int32", (name, load(own, 0)), "call_extern")
    first = If(Expr("lt", "bool", (kernel.tx, number(48))), Store(own, (number(0),), total))
    barrier, stored = call("tvm_storage_sync", text("shared")), Store(out, (kernel.tx,), load(own, 0))
    found = kernel.run(Store(own, (number(0),), number(1)), first, barrier, stored)["B"]
    assert found.tolist() == [16] * 48 + [1] * 16


def test_a_batch_has_no_barrier_of_its_own() -> None:
    kernel, a = Kernel(threads=128, lowered=lowered()), random("int32", 128, 2) % 100
    source, out = kernel.tensor("A", "int32", a), kernel.tensor("B", "int32", (128, 2))
    own, workspace = kernel.tile("o", "int32", (2,), "local"), kernel.tile("w", "int32", (256,), "shared")
    reduce = call(
        "call_extern", text("tl::AllReduce<tl::MaxOp, 128, 1, 0, 2, 128>::run_batch"), at(own, 0), at(workspace, 0)
    )
    put = [Store(own, (number(i),), load(source, kernel.tx, i)) for i in range(2)]
    get = [Store(out, (kernel.tx, number(i)), load(own, i)) for i in range(2)]
    assert np.array_equal(kernel.run(*put, reduce, *get)["B"], np.broadcast_to(a.max(axis=0), (128, 2)))


def test_warp_reduce_stays_within_32_lanes() -> None:
    """The device library gives its shuffles a width of 32."""
    kernel, a = Kernel(threads=WAVE, lowered=lowered()), random("float32", WAVE)
    source, out = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", (WAVE,))
    value = Expr("call", "float32", (load(source, kernel.tx),), "warp_reduce_sum")
    found = kernel.run(Store(out, (kernel.tx,), value))["B"]
    assert np.array_equal(found, a.reshape(2, 32).sum(axis=1).repeat(32))


def test_a_ballot_has_64_bits() -> None:
    kernel = Kernel(threads=WAVE, lowered=lowered())
    out = kernel.tensor("B", "uint64", (WAVE,))
    odd = Expr("eq", "bool", (Expr("floormod", "int32", (kernel.tx, number(2))), number(1)))
    found = kernel.run(Store(out, (kernel.tx,), Expr("call", "uint64", (odd,), "ballot")))["B"]
    assert set(found.tolist()) == {0xAAAAAAAAAAAAAAAA}


@pytest.mark.parametrize(("bits", "each"), [(16, 4), (8, 8)])
def test_sixteen_lanes_get_the_columns_of_what_they_read(bits: int, each: int) -> None:
    """Lanes hold rows of 16 elements, one row after the other."""
    rows = np.arange(WAVE * each).reshape(1, WAVE, each)
    found = exchanged(np.moveaxis(rows, -1, 0))[:, 0].reshape(each, 4, 16)
    for block in range(4):
        matrix = rows[0, 16 * block : 16 * block + 16].reshape(each, 16)
        assert np.array_equal(found[:, block], matrix)
    assert bits * each == 64


@pytest.mark.parametrize(("bits", "dtype"), [(16, "float16"), (8, "int8")])
def test_a_transposing_read(bits: int, dtype: str) -> None:
    """B as MFMA wants it, of a matrix whose columns lie side by side."""
    each, kernel = 64 // bits, Kernel(threads=WAVE, lowered=lowered("gfx950"))
    a = random(dtype, WAVE * each)
    source, out = kernel.tensor("A", dtype, a), kernel.tensor("B", "uint32", (WAVE, 2))
    shared, tx = kernel.tile("s", dtype, (WAVE * each,), "shared"), kernel.tx
    first = Expr("mul", "int32", (tx, number(each)))
    put = [Store(shared, (add(first, i),), load(source, add(first, i))) for i in range(each)]
    pair = Expr("ramp", "int32x2", (number(0), number(1)), 2)
    read = Expr("call", "uint32x2", (at(shared, first),), f"ds_read_tr{bits}_b64")
    found = kernel.run(*put, BARRIER, Store(out, (tx, pair), read))["B"]
    words = np.ascontiguousarray(found.astype(np.uint32)).view(kind_of(dtype).memory).reshape(4, 16, each)
    assert np.array_equal(words.astype(np.float64), a.reshape(4, each, 16).transpose(0, 2, 1).astype(np.float64))


def test_a_transposing_read_is_gfx950s() -> None:
    kernel = Kernel(threads=WAVE, lowered=lowered())
    shared = kernel.tile("s", "float16", (256,), "shared")
    with pytest.raises(NotModelled, match=r"^ds_read_tr16_b64 on gfx942$"):
        kernel.run(Evaluate(Expr("call", "uint32x2", (at(shared, 0),), "ds_read_tr16_b64")))


# ---- formats of eight bits


def test_a_cast_takes_the_bits_for_the_archs_own_format() -> None:
    """1.0 of e4m3fn is 0.5 on gfx942: the exponent's bias is one more."""
    for arch, expected in (("gfx942", 0.5), ("gfx950", 1.0)):
        kernel = Kernel(threads=WAVE, lowered=lowered(arch))
        source, out = kernel.tensor("A", "float8_e4m3fn", np.ones(WAVE)), kernel.tensor("B", "float32", (WAVE,))
        value = Expr("cast", "float32", (load(source, kernel.tx),))
        assert set(kernel.run(Store(out, (kernel.tx,), value))["B"].tolist()) == {expected}


def test_a_cast_there_and_back_is_the_same() -> None:
    kernel, a = Kernel(threads=WAVE, lowered=lowered()), random("float8_e4m3fn", WAVE)
    source, out = kernel.tensor("A", "float32", a), kernel.tensor("B", "float8_e4m3fn", (WAVE,))
    found = kernel.run(Store(out, (kernel.tx,), Expr("cast", "float8_e4m3fn", (load(source, kernel.tx),))))["B"]
    assert np.array_equal(found, 2 * a)  # as whoever reads the tensor as e4m3fn


def test_special_numbers_of_the_formats() -> None:
    ocp, fnuz = kind_of("float8_e4m3fn"), kind_of("float8_e4m3fnuz")
    taken = np.asarray(reinterpreted(np.array([448.0, -0.0, np.nan, 2.0**-9]), ocp, fnuz, exact=False))
    assert np.array_equal(taken, [224.0, np.nan, 240.0, 2.0**-10], equal_nan=True)
    assert reinterpreted(1.0, ocp, fnuz, exact=False) == reinterpreted(1.0, ocp, fnuz, exact=True) == 0.5
    assert np.array_equal(reinterpreted(taken[[0, 3]], fnuz, ocp, exact=False), [448.0, 2.0**-9])


def test_numbers_of_another_format_are_not_computed_with() -> None:
    kernel = Kernel(threads=WAVE, lowered=lowered())
    source, out = kernel.tensor("A", "float8_e4m3fn", np.ones(WAVE)), kernel.tensor("B", "float8_e4m3fn", (WAVE,))
    value = Expr("max", "float8_e4m3fn", (load(source, kernel.tx), load(source, kernel.tx)))
    with pytest.raises(NotModelled, match=r"^max of float8_e4m3fn on gfx942$"):
        kernel.run(Store(out, (kernel.tx,), value))


def scanned(name: str, length: int, *, threads: int = 32, release: str = NEW) -> tuple[Array, Array]:
    """Return what was in LDS, and what a scan made of it; NaN where that is undefined."""
    kernel, a = Kernel(threads=threads, lowered=lowered(release=release)), random("float32", length)
    source, out = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", (length,))
    shared = kernel.tile("s", "float32", (length,), "shared")
    scan = call("call_extern", text(f"tl::{name}::run"), at(shared, 0), at(shared, 0), number(length))
    first = less(kernel.tx, 1)
    put = If(first, Seq(tuple(Store(shared, (number(i),), load(source, i)) for i in range(length))))
    get = If(first, Seq(tuple(Store(out, (number(i),), load(shared, i)) for i in range(length))))
    found = kernel.run(put, BARRIER, scan, BARRIER, get)["B"]
    return a, np.where(poisoned(found), np.nan, found)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [5, 32])
def test_half_a_wave_scans_as_many_elements_as_it_has_threads(length: int, reverse: bool) -> None:
    a, found = scanned(f"CumSum1D<32, {str(reverse).lower()}>", length)
    assert np.array_equal(found, a[::-1].cumsum()[::-1] if reverse else a.cumsum())


def test_half_a_wave_leaves_half_of_each_segment() -> None:
    """Segments have 64 elements, and the carry comes from a lane that is not there."""
    a, found = scanned("CumSum1D<32, false>", 100)
    assert np.array_equal(found[:32], a.cumsum()[:32])
    assert np.array_equal(found[32:64], a[32:64])
    assert np.isnan(found[64:96]).all()
    assert np.array_equal(found[96:], a[96:])


def test_half_a_wave_scans_back_to_the_last_whole_segment() -> None:
    a, found = scanned("CumMax1D<32, true>", 70)
    assert np.array_equal(found[64:], np.maximum.accumulate(a[64:][::-1])[::-1])
    assert np.isnan(found[:32]).all()
    assert np.array_equal(found[32:64], a[32:64])
    assert np.isnan(scanned("CumMax1D<32, true>", 100)[1][64:96]).all()  # 36 of them: more than there are lanes


def test_a_scan_by_less_than_a_wave_that_is_not_modelled() -> None:
    """Up to 0.1.10 it does not compile, nor does any by 16 threads; rows of a matrix divide by zero."""
    refused = "which the device library does not compile"
    for name, threads, release, why in (
        ("CumSum1D<32>", 32, "0.1.10", "where a warp has 64"),
        ("CumSum1D<16>", 16, NEW, refused),
        ("CumSum1D<96>", 96, NEW, refused),
    ):
        with pytest.raises(NotModelled, match=rf"^a scan by {threads} threads, {why}$"):
            scanned(name, 64, threads=threads, release=release)
    kernel = Kernel(threads=32, lowered=lowered())
    shared = kernel.tile("s", "float32", (64,), "shared")
    scan = call("call_extern", text("tl::CumSum2D<32, 1>::run"), at(shared, 0), at(shared, 0), number(2), number(32))
    with pytest.raises(NotModelled, match=r"^a scan by 32 threads"):
        kernel.run(scan)


def test_a_reduction_of_halves_that_meets_a_nan_is_not_modelled() -> None:
    for dtype, known in (("float16", False), ("float32", True)):
        kernel, a = Kernel(threads=WAVE, lowered=lowered()), np.ones(WAVE)
        a[5] = np.nan
        source, out = kernel.tensor("A", dtype, a), kernel.tensor("B", dtype, (WAVE,))
        name = text("tl::AllReduce<tl::MaxOp, 64, 1, 0>::run")
        store = Store(out, (kernel.tx,), Expr("call", dtype, (name, load(source, kernel.tx)), "call_extern"))
        if known:
            assert set(kernel.run(store)["B"].tolist()) == {1.0}
            continue
        with pytest.raises(NotModelled, match=r"^a reduction of float16 that has a NaN$"):
            kernel.run(store)


def test_sync_warp_of_the_author_orders_a_wave() -> None:
    """The race is the compiler's if the author has put it there and the release prints nothing."""
    kernel = Kernel(threads=WAVE)
    source, out = kernel.tensor("A", "float32", (WAVE,)), kernel.tensor("B", "float32", (WAVE,))
    shared, tx = kernel.tile("s", "float32", (WAVE,), "shared"), kernel.tx
    other = Expr("call", "int32", (tx, number(32)), "bitwise_xor")
    put, get = Store(shared, (tx,), load(source, tx)), Store(out, (tx,), load(shared, other))
    for sync, blamed in ((call("sync_warp"), "compiler"), (Evaluate(number(0)), "author")):
        snapshot = kernel.snapshot((put, sync, get), (put, sync, get))
        configs = {"tl.disable_thread_storage_sync": "1"}
        snapshot = replace(snapshot, target="gfx942", toolchain={"tilelang": OLD}, pass_configs=configs)
        found = execute(snapshot, Request())
        assert [race.buffer for race in found.races] == (["s"] if blamed == "compiler" else [])
        assert [race.buffer for race, _ in found.contested] == ([] if blamed == "compiler" else ["s"])
