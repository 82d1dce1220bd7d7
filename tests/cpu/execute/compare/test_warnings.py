"""Outputs that no block writes in full, and waits for no copy, are warnings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.warnings import idle_waits_of, unwritten_of
from tlcheck.execute.request import SOURCE, Request
from tlcheck.snapshot.ir import Function, Seq, Snapshot, Store

THREADS = 32


def half() -> Snapshot:
    """Each thread copies an element into the first half of the output."""
    kernel = Kernel(threads=THREADS)
    a, out = kernel.tensor("A", "float32", (THREADS,)), kernel.tensor("B", "float32", (2 * THREADS,))
    body = (Store(out, (kernel.tx,), load(a, kernel.tx)),)
    return kernel.snapshot(body, body)


def test_an_output_that_begins_with_what_matters() -> None:
    function = half().checkpoints[SOURCE]
    assert [fault.buffer for fault in unwritten_of(function, {})] == ["B"]
    assert [fault.buffer for fault in unwritten_of(function, {}, frozenset({"B"}))] == ["B"]
    assert list(unwritten_of(function, {}, frozenset())) == []


def test_the_inputs_of_a_case() -> None:
    given = {0: {"A": np.ones(THREADS, np.float32), "B": np.zeros(2 * THREADS, np.float32)}}
    asked = replace(Request(seeds=(0,)), given=given)
    for poisoned, warned in ((frozenset({"B"}), ["B"]), (frozenset[str](), [])):
        found = execute(half(), replace(asked, poisoned=poisoned))
        assert [fault.buffer for fault in found.faults if fault.warning] == warned


@pytest.mark.parametrize("wait", ["ptx_wait_group", "ptx_wait_all", "cp_async_wait_all"])
def test_a_wait_in_a_kernel_without_copies_waits_for_nothing(wait: str) -> None:
    waiting = call(wait, number(0))
    (fault,) = idle_waits_of(Function("main", (), (), (), waiting))
    assert fault.buffer == f"T.{wait}"
    body = Seq((call("ptx_commit_group"), waiting))
    assert list(idle_waits_of(Function("main", (), (), (), body))) == []
