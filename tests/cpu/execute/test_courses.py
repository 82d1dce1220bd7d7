"""Numbers drawn for integer tensors take a kernel everywhere it can go, as far as some do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.mutations.lowered import lowered_mutants
from tests.fixtures.index import read
from tlcheck.execute.run import Request, execute


@pytest.mark.parametrize("name", ["delete mbarrier_wait_parity 0", "delete ptx_arrive_barrier_expect_tx 0"])
def test_a_loop_whose_length_is_read_from_memory_runs_often_enough_for_its_pipeline(name: str) -> None:
    """Each number below 8 would end it before the steady part of its pipeline begins."""
    snapshot = next(f for f in read().fixtures if f.path == "era/loop_ragged_pipelined-0.1.15").snapshot()
    assert execute(snapshot, Request(blocks=4)).is_clean
    mutant = next(m for m in lowered_mutants(snapshot.checkpoints["device-tir"]) if m.name == name)
    changed = replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": mutant.function})
    assert not execute(changed, Request(blocks=4)).is_clean
