"""What stands between accesses is there for a reason: a kernel without it has a race, with it none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.thread.test_hardware import FORMS, machine_of
from tlcheck.execute.observe.races import Race
from tlcheck.execute.observe.watching import Watching
from tlcheck.execute.stops import Illegal, Stopped
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, For, Function, Seq, Stmt, Store, Thread
from tlcheck.snapshot.walk import rebuild, statements


def races(name: str, lowered: Function | None = None) -> list[Race]:
    """Those of a form as lowered, or of what was made of it."""
    machine = machine_of(FORMS[name], name, late=True, exact=True, lowered=lowered)
    written = frozenset(str(b.data.value) for b in FORMS[name].checkpoints["source"].buffers)
    watching = Watching(machine.function, written)
    machine.run(*watching(machine))
    return list(watching.watches[0].races.values())


def without(function: Function, call: str, number: int) -> Function:
    """The function without one of the statements that call `call`."""
    found = [s for s in statements(function.body) if isinstance(s, Evaluate) and s.value.value == call]

    def drop(old: Stmt, new: Stmt) -> Stmt:
        return Seq(()) if old is found[number] else new

    return replace(function, body=rebuild(function.body, drop))


@pytest.mark.parametrize("name", sorted(FORMS))
def test_a_right_kernel_has_no_race(name: str) -> None:
    assert races(name) == []


def test_a_warpgroup_needs_no_barrier_after_its_own_product() -> None:
    assert (
        races("gemm_stmatrix", without(FORMS["gemm_stmatrix"].checkpoints["device-tir"], "tvm_storage_sync", 1)) == []
    )


@pytest.mark.parametrize(
    ("name", "call", "number", "buffer", "missing"),
    [
        ("gemm_stmatrix", "tvm_storage_sync", 0, "mbarrier", "a barrier"),
        ("gemm_stmatrix", "tvm_storage_sync", 2, "staged", "a barrier"),
        ("gemm_stmatrix", "fence_proxy_async", 0, "staged", "fence.proxy.async"),
        ("gemm_stmatrix", "mbarrier_wait_parity", 1, "a", "a wait for the copy"),
        ("tma_2d", "ptx_fence_barrier_init", 0, "mbarrier", "fence.proxy.async"),
        ("tma_2d", "tvm_storage_sync", 1, "b", "a wait for the copy"),
        ("tma_2d", "tvm_storage_sync", 2, "b", "a barrier"),
        ("reduce_fp32", "tvm_storage_sync", 0, "a", "a barrier"),
        ("reduce_fp32", "fence_proxy_async", 0, "a", "fence.proxy.async"),
    ],
)
def test_without_synchronization_it_has_one(name: str, call: str, number: int, buffer: str, missing: str) -> None:
    found = races(name, without(FORMS[name].checkpoints["device-tir"], call, number))
    assert (buffer, missing) in {(race.buffer, race.missing) for race in found}
    for race in found:
        assert race.second.origin.stmt is not None
        assert "write" in (race.first.kind, race.second.kind)


def test_a_barrier_at_which_nobody_arrives_is_a_deadlock() -> None:
    lowered = without(FORMS["tma_2d"].checkpoints["device-tir"], "ptx_arrive_barrier", 0)
    with pytest.raises(Stopped, match="deadlock: waits at mbarrier"):
        races("tma_2d", lowered)


@pytest.mark.parametrize(("name", "registers"), [("gemm_nt", "c"), ("rs_fp16", "f")])
def test_registers_that_were_written_need_a_fence_before_wgmma(name: str, registers: str) -> None:
    lowered = without(FORMS[name].checkpoints["device-tir"], "warpgroup_arrive", 0)
    with pytest.raises(Illegal, match=rf"wgmma uses {registers} with no warpgroup_arrive \(wgmma.fence\)"):
        races(name, lowered)


def test_a_fence_before_the_write_does_not_cover_it() -> None:
    """The fence and the write are between the same two barriers."""
    name = "reduce_fp32"
    lowered = FORMS[name].checkpoints["device-tir"]
    loop = next(s for s in statements(lowered.body) if isinstance(s, For))
    early = Seq((Evaluate(Expr("call", "handle", (), "fence_proxy_async")), loop))
    without_fence = without(lowered, "fence_proxy_async", 0)
    first = replace(without_fence, body=rebuild(without_fence.body, lambda old, new: early if old is loop else new))
    assert {race.missing for race in races(name, first)} == {"fence.proxy.async"}


@pytest.mark.parametrize(("fenced", "missing"), [(True, set()), (False, {"fence.proxy.async"})])
def test_a_thread_and_then_a_bulk_copy_write_a_tensor(fenced: bool, missing: set[str]) -> None:
    """The thread's write may land after the copy's, unless a fence stands between them."""
    lowered = FORMS["tma_2d"].checkpoints["device-tir"]
    (pointer,) = (made.args[2] for descriptor, made in lowered.descriptors if descriptor.value == "B_desc")
    bx = next(s.var for s in statements(lowered.body) if isinstance(s, Thread) and s.tag == "blockIdx.x")
    step = [s.var for s in statements(lowered.body) if isinstance(s, For)][-1]
    column, row = (Expr("mul", "int32", (e, Expr("int", "int32", (), n))) for e, n in ((bx, 32), (step, 16 * 64)))
    place = Expr("add", "int32", (row, column))
    tensor = Buffer("B", "float16", (Expr("int", "int32", (), 64 * 64),), "global", pointer)
    write = Store(tensor, (place,), Expr("float", "float16", (), 1.0))

    def with_write(old: Stmt, new: Stmt) -> Stmt:
        if not isinstance(new, Evaluate) or new.value.value not in ("fence_proxy_async", "tma_store"):
            return new
        return Seq((write, new)) if fenced == (new.value.value == "fence_proxy_async") else new

    found = races("tma_2d", replace(lowered, body=rebuild(lowered.body, with_write)))
    assert {race.missing for race in found if race.buffer == "B"} == missing
