"""Blocks that cannot run together, since a branch waits more often in one than in another, are judged one by one.

The kernel of the archive, lowered for sm_90 with warps that are specialized (rows = 1024, tile = 64, fp16):
`for k in T.Pipelined(by + 1, num_stages=2)` copies A[by, k] and B[k], multiplies them, copies D[k], and adds
max(AB, 0) D to the block's tile of C.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.mutations.lowered import lowered_mutants
from tests.hardware.snapshots import unpack
from tlcheck.execute.compare.apart import UNWRITTEN, joined, requests
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.request import Request
from tlcheck.execute.stops import Deadlock
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.reasons import NOT_MODELLED, UNSAID, Reason
from tlcheck.snapshot.ir import Snapshot

(RIGHT,) = unpack(Path(__file__).parents[1] / "uneven-0.1.15.zip").values()
AGREED, ELSEWHERE = OutputOutcome("C", "agreed"), OutputOutcome("C", "undecided", UNWRITTEN)
UNKNOWN = OutputOutcome("C", "undecided", Reason(NOT_MODELLED, "a_call_of_tomorrow"))


def mutant(name: str) -> Snapshot:
    function = next(m.function for m in lowered_mutants(RIGHT.checkpoints["device-tir"]) if m.name == name)
    return replace(RIGHT, checkpoints={**RIGHT.checkpoints, "device-tir": function})


def test_a_wait_for_the_other_phase_is_refuted_in_the_block_that_does_least() -> None:
    """Together no block comes to an end, nor to a deadlock that is its own."""
    found = execute(mutant("weaken mbarrier_wait_parity 3"))
    assert found.blocks == ((0, 0, 0),)
    assert isinstance(found.illegal, Deadlock)
    assert [race.missing for race in found.races] == ["a wait for the copy"]


def test_the_kernel_is_right_in_all_blocks() -> None:
    found = execute(RIGHT)
    assert found.is_clean
    assert found.outputs == (AGREED,)
    assert len(found.blocks) == 3


def test_blocks_that_do_little_come_first_then_each_seed() -> None:
    levels = BothLevels(RIGHT, Request())
    asked = requests(levels)
    assert [request.blocks for request in asked] == [((0, 0, 0),), ((7, 0, 0),), ((15, 0, 0),)]
    assert {request.course for request in asked} == {levels.course}
    alone = requests(BothLevels(RIGHT, asked[0]))
    assert [(request.blocks, request.seeds) for request in alone] == [(((0, 0, 0),), (0,)), (((0, 0, 0),), (1,))]
    assert requests(BothLevels(RIGHT, alone[0])) == []


@pytest.mark.parametrize(
    ("outcomes", "together"),
    [
        ((AGREED, ELSEWHERE, AGREED), AGREED),
        ((ELSEWHERE, ELSEWHERE), ELSEWHERE),
        ((AGREED, UNKNOWN, ELSEWHERE), UNKNOWN),
    ],
)
def test_an_output_agrees_if_all_blocks_that_write_it_do(
    outcomes: tuple[OutputOutcome, ...], together: OutputOutcome
) -> None:
    levels = BothLevels(RIGHT, Request())
    parts = [Execution((outcome,), ((0, 0, 0),), 16, (0,)) for outcome in outcomes]
    found = joined(levels, parts, are_ordered=True)
    assert found.outputs == (together,)
    assert (len(found.blocks), found.seeds) == (3, (0, 1))


@pytest.mark.parametrize("are_ordered", [True, False])
def test_the_order_of_blocks_is_known_only_where_they_ran_side_by_side(are_ordered: bool) -> None:
    parts = [Execution((AGREED,), ((0, 0, 0),), 16, (0,), ordered={"C": UNSAID, "a": UNSAID})]
    found = joined(BothLevels(RIGHT, Request()), parts, are_ordered)
    assert found.ordered == {"C": "" if are_ordered else "its blocks could not run together", "a": ""}


def test_what_is_found_in_one_block_is_what_is_said() -> None:
    clean = Execution((AGREED,), ((0, 0, 0),), 16, (0,))
    wrong = Execution((OutputOutcome("C", "refuted"),), ((7, 0, 0),), 16, (0,))
    assert joined(BothLevels(RIGHT, Request()), [clean, wrong], are_ordered=True) is wrong


def test_nothing_is_said_of_a_block_that_could_not_be_executed() -> None:
    clean = Execution((AGREED,), ((0, 0, 0),), 16, (0,), ordered={"a": UNSAID}, lawful=("a",))
    stopped = Execution((UNKNOWN,))
    assert joined(BothLevels(RIGHT, Request()), [clean, stopped, clean], are_ordered=True) is stopped
