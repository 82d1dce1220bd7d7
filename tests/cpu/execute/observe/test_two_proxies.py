"""Shared memory that threads write, then a bulk copy: through another proxy, so that a fence has to stand between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.thread.test_hardware import FORMS
from tests.cpu.mutations.tools import called, integer, with_statement
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Bind, Evaluate, Expr, Seq, Stmt, Store, Thread
from tlcheck.snapshot.walk import expressions, postorder, statements

FENCE = Evaluate(Expr("call", "handle", (), "fence_proxy_async"))


@pytest.mark.parametrize(("fences", "missing"), [((), {"fence.proxy.async"}), ((FENCE,), set())])
@pytest.mark.parametrize("plain", [False, True])
def test_a_fence_stands_between_a_threads_write_and_a_bulk_load(
    plain: bool, fences: tuple[Stmt, ...], missing: set[str]
) -> None:
    """All threads write the tile that the first bulk load fills after a barrier."""
    snapshot = FORMS["tma_2d"]
    lowered = snapshot.checkpoints["device-tir"]
    every = list(statements(lowered.body))
    load = next(s for s in every if called(s) == "tma_load")
    loads = [e.buffer for e in postorder(expressions(load)) if e.op == "load"]
    tile = next(buffer for buffer in loads if buffer is not None and buffer.name == "a")
    thread = next(s.var for s in every if isinstance(s, (Thread, Bind)) and s.var.value == "tx")
    barrier = next(s for s in every if called(s) == "tvm_storage_sync")
    tile = replace(tile, shape=(integer(1024),))
    write = Store(tile, (thread,), Expr("cast", tile.dtype, (integer(0),)))
    now = with_statement(lowered, barrier, lambda stmt: Seq((write, *fences, stmt)))
    changed = replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": now})
    found = execute(changed, Request(blocks=1, seeds=(0,), plain=plain))
    assert {race.missing for race in found.races} == missing
