"""Whole kernels that TileLang lowers for sm_100: executed to the end, and with one thing changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.cpu.mutations.tools import binary, called, integer, with_argument, with_statement
from tests.fixtures.index import FOLDER
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.request import Request
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Seq, Snapshot, Stmt
from tlcheck.snapshot.walk import statements

Change = Callable[[Stmt], Stmt]


def fixture(name: str) -> Snapshot:
    return codec.loads((FOLDER / "tensor_memory" / f"{name}.snapshot.json").read_text(encoding="utf-8"))


def verdicts(found: Execution) -> dict[str, str]:
    return {outcome.name: outcome.verdict for outcome in found.outputs}


def changed(name: str, number: int, change: Change, kernel: str = "serial-0.1.15") -> Execution:
    """The kernel with the `number`-th call of a name changed, executed."""
    snapshot = fixture(kernel)
    lowered = snapshot.checkpoints["device-tir"]
    calls = [stmt for stmt in statements(lowered.body) if called(stmt) == name]
    now = with_statement(lowered, calls[number], change)
    return execute(replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": now}), Request())


def gone(stmt: Stmt) -> Stmt:
    return Seq(())


def more(at: int, by: int) -> Change:
    return lambda stmt: with_argument(stmt, at, lambda e: binary("add", e, integer(by)))


def test_a_product_is_executed_to_the_end() -> None:
    found = execute(fixture("serial-0.1.15"), Request())
    assert verdicts(found) == {"C": "agreed"}
    assert not found.races
    assert set(found.ordered.values()) == {""}


def test_a_copy_into_what_a_product_still_reads_is_a_race() -> None:
    """The pipeline of 0.1.15 loads the stage of this step before it waits for the product of this step."""
    found = execute(fixture("pipelined-0.1.15"), Request())
    assert {race.buffer for race in found.races} == {"a", "b"}
    assert all(race.first.kind == "read" and race.first.proxy == "async" for race in found.races)
    assert all(race.second.kind == "write" and "tcgen05.commit" in race.missing for race in found.races)


@pytest.mark.parametrize(("release", "verdict"), [("0.1.13", "refuted"), ("0.1.14", "agreed")])
def test_the_second_part_of_a_load_of_16_bits(release: str, verdict: str) -> None:
    """Up to 0.1.13 the device library counts words where its pointer counts elements."""
    assert verdicts(execute(fixture(f"parted-{release}"), Request())) == {"D": verdict}


def test_a_product_that_nobody_waits_for_is_noticed() -> None:
    found = changed("mbarrier_wait_parity", 0, gone)
    assert verdicts(found) == {"C": "refuted"}
    assert {race.buffer for race in found.races} >= {"a", "b"}


def test_a_product_that_is_not_committed_is_noticed() -> None:
    found = changed("tcgen05_mma_arrive", 0, gone)
    assert found.illegal is not None
    assert str(found.illegal).startswith("deadlock: waits at done[0] for parity 0, where 0 of 1 arrivals have come")


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        ("tcgen05_ld", more(4, 32), "column 512 of tensor memory is not allocated"),
        ("ptx_tcgen05_mma_ss", more(6, 1), "column 512 of tensor memory is not allocated"),
        ("ptx_deallocate_tensor_memory", gone, "128 columns of tensor memory are not freed"),
        ("ptx_init_tensor_memory", more(1, -64), "is not allocated"),
    ],
)
def test_columns_that_are_not_the_buffers(name: str, change: Change, what: str) -> None:
    found = changed(name, 0, change)
    assert found.illegal is not None
    assert what in str(found.illegal)


def test_sums_that_are_not_cleared_are_noticed() -> None:
    found = changed("ptx_tcgen05_mma_ss", 0, lambda stmt: with_argument(stmt, 8, lambda e: integer(1)))
    assert verdicts(found) == {"C": "refuted"}


def test_another_step_of_k_is_noticed() -> None:
    assert verdicts(changed("ptx_tcgen05_mma_ss", 0, more(2, 32))) == {"C": "refuted"}


def test_columns_of_another_part_are_noticed() -> None:
    found = changed("tcgen05_ld", 0, lambda stmt: with_argument(stmt, 3, lambda e: e), "parted-0.1.14")
    assert verdicts(found) == {"D": "agreed"}
    moved = changed("tcgen05_st", 0, more(4, 16), "parted-0.1.14")
    assert verdicts(moved) == {"D": "refuted"}


def test_a_missing_barrier_before_the_product_is_noticed() -> None:
    snapshot = fixture("serial-0.1.15")
    calls = [s for s in statements(snapshot.checkpoints["device-tir"].body) if called(s) == "tvm_storage_sync"]
    found = [changed("tvm_storage_sync", number, gone) for number in range(len(calls))]
    assert any({"a", "b"} <= {race.buffer for race in one.races} for one in found)
