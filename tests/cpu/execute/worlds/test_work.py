"""A kernel with much work runs in fewer of the usual worlds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.cpu.execute.worlds.test_demand import BX, _doubled, _function, _moved, _op
from tlcheck.cli.execution_options import ExecutionOptions
from tlcheck.config import Config
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import ALL, Request
from tlcheck.execute.worlds import demand
from tlcheck.execute.worlds.budget import Budget
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.snapshot.ir import Expr, Function, Snapshot, Stmt

USUAL = {(seed, x) for seed in (0, 1) for x in (0, 31, 63)}


def _snapshot(*kernels: Stmt) -> Snapshot:
    checkpoints: dict[str, Function] = {
        "source": _function(*kernels),
        "device-tir": _function(*kernels, lowered=len(kernels) > 1),
    }
    return Snapshot("kernel", "kernel.py", 1, {"tilelang": "0.1.15"}, "sm_90", {}, {}, checkpoints, {})


def _request(work: int | None, **more: Any) -> Request:
    return Request(budget=Budget(work=work), **more)


def _worlds(request: Request) -> set[tuple[int, int]]:
    return {(world.seed, world.block[0]) for world in BothLevels(_snapshot(_doubled()), request).worlds}


@pytest.mark.parametrize(
    ("work", "worlds"),
    [(None, USUAL), (6 * 32, USUAL), (6 * 32 - 1, {(0, 0), (0, 63), (1, 31)}), (3 * 32 - 1, {(0, 0), (1, 63)})],
    ids=["any", "enough", "less", "little"],
)
def test_with_much_work_fewer_blocks_run(work: int | None, worlds: set[tuple[int, int]]) -> None:
    """A statement of 32 threads in each block. Blocks that may race have the same inputs; no seed is left out."""
    assert _worlds(_request(work)) == worlds


def test_blocks_that_are_named_run_whatever_it_takes() -> None:
    assert _worlds(_request(1, blocks=((5, 0, 0), (6, 0, 0)))) == {(seed, x) for seed in (0, 1) for x in (5, 6)}
    assert len(_worlds(_request(1, blocks=ALL))) == 2 * 64


def test_one_block_keeps_its_seeds() -> None:
    assert _worlds(_request(1, blocks=1)) == {(0, 0), (1, 0)}


def test_kernels_before_run_where_each_seed_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their work counts as well: of the second kernel alone it would not be too much."""
    monkeypatch.setattr(demand, "_FEW", 0)
    monkeypatch.setattr(demand, "chosen", lambda functions, sizes, most: [])
    snapshot = _snapshot(_doubled(), _moved(BX))
    levels = BothLevels(snapshot, _request(8 * 32))
    assert {(world.seed, world.block[0]) for world in levels.worlds} == {(0, 0), (0, 63), (1, 31)}
    assert levels.choice.needed(levels.worlds) == [{(0, 0, 0): {0}, (31, 0, 0): {1}, (63, 0, 0): {0}}]
    found = execute(snapshot, _request(8 * 32))
    assert {outcome.verdict for outcome in found.outputs} == {"agreed"}
    assert (len(found.blocks), found.seeds) == (3, (0, 1))


def test_what_is_wrong_is_found_in_fewer_blocks() -> None:
    wrong = _function(_doubled(_op("sub", Expr("int", "int32", (), 63), BX)))
    snapshot = replace(_snapshot(_doubled()), checkpoints={"source": _function(_doubled()), "device-tir": wrong})
    found = execute(snapshot, _request(1))
    assert [outcome.verdict for outcome in found.outputs if outcome.name == "B"] == ["refuted"]


@pytest.mark.parametrize(
    ("said", "config", "limited"),
    [
        ({}, {}, True),
        ({"budget": "1000"}, {}, True),
        ({"blocks": 4}, {}, False),
        ({"seeds": 2}, {}, False),
        ({"seed": 1}, {}, False),
        ({}, {"blocks": 8}, False),
    ],
    ids=["nothing", "budget", "blocks", "seeds", "seed", "project"],
)
def test_blocks_and_seeds_that_the_user_names_all_run(
    said: dict[str, Any], config: dict[str, Any], limited: bool
) -> None:
    request = ExecutionOptions(**said).certain_request(replace(Config(), **config))
    assert (request.budget.work is not None) == limited
