"""A kernel as lowered with one thing changed is refuted; the mutants that are not, each with its reason."""

from __future__ import annotations

from dataclasses import replace

from tests.cpu.execute.test_hardware import FORMS
from tests.cpu.mutations.lowered import lowered_mutants
from tlcheck.execute.run import Request, execute

SURVIVORS = {
    "move ptx_arrive_barrier_expect_tx 0": "equivalent: the bytes are announced before the phase can end, as before",
    "move fence_proxy_async 0": "equivalent: the thread that begins the store fences after the barrier",
    "move tvm_storage_sync 1": "equivalent: it changes places with the binding of a constant",
    "weaken barrier id 0": "equivalent: another free barrier, for the same threads",
    "weaken barrier id 1": "equivalent: another free barrier, for the same threads",
    "drop guard 0": "equivalent: a prefetch of a descriptor, which changes nothing",
    "drop guard 3": "equivalent: all threads store the same tile, after the same barrier",
    "drop guard 1": "equivalent: all threads make the barriers alike, before the first synchronization",
}


def test_mutants_of_a_bulk_copy_through_shared_memory() -> None:
    snapshot = FORMS["tma_2d"]
    left = set()
    for mutant in lowered_mutants(snapshot.checkpoints["device-tir"]):
        if mutant.what == "ptx_init_barrier_thread_count" and mutant.number > 2:
            continue
        changed = replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": mutant.function})
        if execute(changed, Request(blocks=2)).is_clean:
            left.add(mutant.name)
    assert left == set(SURVIVORS)
