"""Waits for a phase by its parity, when the next phase may end first: a deadlock that one order of branches hides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.mutations.lowered import lowered_mutants
from tests.cpu.mutations.survivors import kernels
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.request import Request
from tlcheck.execute.stops import Deadlock


def executed(kernel: str, mutant: str = "") -> Execution:
    snapshot = kernels()[kernel]
    function = snapshot.checkpoints["device-tir"]
    if mutant:
        function = next(m.function for m in lowered_mutants(function) if m.name == mutant)
    return execute(replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": function}), Request(2, (0,)))


@pytest.mark.parametrize("mutant", ["stage mbarrier_wait_parity 0", "stage ptx_arrive_barrier 0"])
def test_a_producer_that_may_be_overtaken_waits_for_ever(mutant: str) -> None:
    found = executed("tma_4d sm_90", mutant).illegal
    assert isinstance(found, Deadlock)
    assert str(found).endswith("where the branch of warp 0 comes last")


def test_in_an_earlier_kernel_of_the_function_too() -> None:
    assert isinstance(executed("parts sm_90", "hoist ptx_arrive_barrier 0").illegal, Deadlock)


@pytest.mark.parametrize("kernel", ["tma_4d sm_90", "parts sm_90"])
def test_a_producer_whose_consumers_wait_for_it_does_not(kernel: str) -> None:
    assert executed(kernel).is_clean
