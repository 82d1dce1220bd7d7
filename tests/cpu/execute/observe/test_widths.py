"""A warp is as wide as the target's: threads of one warp are ordered by its own barrier, those of two are not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.observe.test_settled import SHARED, THREADS, TX
from tlcheck.execute.compile import registry
from tlcheck.execute.events import Side
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.frame import Frame
from tlcheck.execute.memory.state import World
from tlcheck.execute.observe.glance import Glance
from tlcheck.execute.observe.race_watch import Watch
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.snapshot.ir import Alloc, Evaluate, Expr, Function, Seq, Store, Thread
from tlcheck.targets.lookup import target

registry.load()
WARP_BARRIER = Evaluate(Expr("call", "handle", (), "sync_warp"))
MIRRORED = Expr("sub", "int32", (Expr("int", "int32", (), THREADS - 1), TX))
READ = Evaluate(Expr("load", "int32", (MIRRORED,), None, 0, SHARED))


def _machine(arch: str, plain: bool, behind: int | None = None) -> Machine:
    """Each thread writes an element; after a barrier of its warp it reads that of another thread."""
    body = Seq((Alloc(SHARED), Store(SHARED, (TX,), TX), WARP_BARRIER, READ))
    inner = Thread(TX, "threadIdx.x", Expr("int", "int32", (), THREADS), body)
    options = Options(False, plain=plain, target=target(arch), behind=behind)
    return Machine(Function("main", (), (), (), inner), (THREADS, 1, 1), (World(0),), {}, {}, options)


@pytest.mark.parametrize(("arch", "raced"), [("sm_90", True), ("gfx942", False)])
def test_a_barrier_of_a_warp_orders_as_many_threads_as_it_has(arch: str, raced: bool) -> None:
    """Thread 0 reads what thread 63 has written: another warp of 32 threads, or the same of 64."""
    machine = _machine(arch, plain=True)
    watch = Watch(machine, frozenset())
    machine.run(watch)
    assert bool(watch.races) is raced


@pytest.mark.parametrize(("arch", "suspected"), [("sm_90", True), ("gfx942", False)])
def test_a_glance_suspects_what_another_warp_has_written(arch: str, suspected: bool) -> None:
    machine = _machine(arch, plain=False)
    watch = Glance(machine, frozenset())
    machine.run(watch)
    assert bool(watch.found) is suspected


@pytest.mark.parametrize(("arch", "warps"), [("sm_90", (1, 1)), ("gfx942", (0, 0))])
def test_the_warps_of_a_branch(arch: str, warps: tuple[int, int]) -> None:
    lanes = np.arange(THREADS)[None] >= 40
    side = Side.of((), lanes, target(arch).warp)
    assert (side.warps.tolist(), side.last.tolist()) == ([warps[0]], [warps[1]])


@pytest.mark.parametrize(("arch", "last"), [("sm_90", "a"), ("gfx942", "b")])
def test_the_branch_of_a_warp_comes_last(arch: str, last: str) -> None:
    """Threads 32 and up are warp 1 of 32 threads, which is behind; of 64 threads no thread is in warp 1."""
    machine, order = _machine(arch, plain=True, behind=1), []
    upper = np.arange(THREADS)[None] >= 32
    agents_of(machine.state).fork(
        [
            (Frame({}, 1, THREADS, upper), lambda frame: order.append("a")),
            (Frame({}, 1, THREADS, ~upper), lambda frame: order.append("b")),
        ]
    )
    assert order[-1] == last
