"""A sample of `make mutants`: what executing whole kernels notices, and the survivors of two of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.mutations.lowered import lowered_mutants
from tests.cpu.mutations.survivors import chosen, difference, kernels, table, unexpected, verdict
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.request import Request

ILLEGAL = [
    ("two_stages sm_90", "drop guard 0", "several threads make mbarrier[0]"),
    ("two_stages sm_90", "shift tma_load 1", "bulk copy of b beyond the end of its memory"),
    ("norm sm_90", "shift tma_store 0", "bulk copy of s beyond the end of its memory"),
    ("two_stages sm_90", "shift initialize_wgmma_descriptor 1", "wgmma reads b beyond the end of its memory"),
    ("softmax sm_90", "delete warpgroup_arrive 1", "wgmma uses p with no warpgroup_arrive (wgmma.fence)"),
]
UNFENCED = [
    ("two_stages sm_90", "move fence_proxy_async 0", "staged"),  # a bulk store is issued, then comes the fence
    ("waves sm_90", "move fence_proxy_async 0", "a"),  # wgmma is issued, then comes the fence
]


def executed(kernel: str, name: str) -> Execution:
    snapshot = kernels()[kernel]
    mutant = next(m for m in lowered_mutants(snapshot.checkpoints["device-tir"]) if m.name == name)
    changed = replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": mutant.function})
    return execute(changed, Request(blocks=2))


@pytest.mark.parametrize(("kernel", "name", "what"), ILLEGAL)
def test_what_the_machine_forbids(kernel: str, name: str, what: str) -> None:
    assert str(executed(kernel, name).illegal).startswith(what)


@pytest.mark.parametrize(("kernel", "name", "buffer"), UNFENCED)
def test_a_fence_after_the_instruction_that_reads_comes_too_late(kernel: str, name: str, buffer: str) -> None:
    assert (buffer, "fence.proxy.async") in {(race.buffer, race.missing) for race in executed(kernel, name).races}


@pytest.mark.parametrize("name", ["tails sm_80", "loop_ragged_pipelined sm_80"])
def test_copies_whose_predicate_never_holds_arrive_as_zeros(name: str) -> None:
    kernel = kernels()[name]
    assert verdict(kernel, kernel.checkpoints["device-tir"]) == "clean"


def test_a_fence_before_a_bulk_copy_is_on_the_way_to_those_who_wait_for_its_bytes() -> None:
    """It stands after the arrival, and before the copy that ends the phase."""
    kernel = kernels()["tails sm_90"]
    assert verdict(kernel, kernel.checkpoints["device-tir"]) == "clean"
    found = executed("tails sm_90", "delete fence_proxy_async 0")
    assert {(race.buffer, race.missing) for race in found.races} == {("a", "fence.proxy.async")}


@pytest.mark.parametrize("kernel", ["halves sm_80", "prefixes sm_90", "halves gfx942"])
def test_mutants_are_noticed_or_known(kernel: str) -> None:
    assert not unexpected(kernel, chosen(kernels()[kernel].checkpoints["device-tir"]))


def test_a_survivor_that_no_table_has_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of both directions: noticed in spite of the table, too."""
    known = table()["rows sm_80"]
    name = next(iter(known))
    every = {m.name: m for m in chosen(kernels()["rows sm_80"].checkpoints["device-tir"])}
    noticed = next(n for n in every if n.startswith("shift store"))
    monkeypatch.setitem(table(), "rows sm_80", {noticed: known[name]})
    found = unexpected("rows sm_80", iter([every[name], every[noticed]]))
    assert found == [f"{name}: clean, not in the table", f"{noticed}: noticed, equivalent"]


def test_what_a_mutant_changes_is_shown() -> None:
    shown = difference("rows sm_80", "delete tvm_storage_sync 2").splitlines()
    assert [line for line in shown if line.startswith("-    ")] == ['-    T.tvm_storage_sync("shared.dyn")']
