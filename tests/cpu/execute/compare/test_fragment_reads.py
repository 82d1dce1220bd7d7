"""An element of a fragment that one thread stores is in its registers alone: a read by others is the author's fault."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number, parallel, region, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.snapshot.ir import Expr, For, Stmt, Store

THREADS = 32


def _executed(stored: str, read: str, *, wrong: bool = True) -> Execution:
    """A goes through a fragment to B. stored, read: how. wrong: all of B is A[0] as lowered."""
    kernel = Kernel(threads=THREADS)
    a, b = (kernel.tensor(name, "int32", (THREADS,)) for name in "AB")
    f, i = kernel.tile("f", "int32", (THREADS,), "local.fragment"), variable("i")
    other = Expr("floormod", "int32", (add(kernel.tx, 16), number(THREADS)))
    stores: dict[str, Stmt] = {
        "thread": Store(f, (kernel.tx,), load(a, kernel.tx)),
        "threads": For(i, number(0), number(THREADS), "serial", Store(f, (i,), load(a, i))),
        "parallel": parallel((THREADS,), (i,), Store(f, (i,), load(a, i))),
        "tile": call("copy", region(a), region(f)),
    }
    reads: dict[str, Stmt] = {
        "own": Store(b, (kernel.tx,), load(f, kernel.tx)),
        "other": Store(b, (kernel.tx,), load(f, other)),
        "parallel": parallel((THREADS,), (i,), Store(b, (i,), load(f, i))),
        "tile": call("copy", region(f), region(b)),
    }
    right = other if read == "other" else kernel.tx
    lowered = Store(b, (kernel.tx,), load(a, 0 if wrong else right))
    return execute(kernel.snapshot([stores[stored], reads[read]], [lowered]))


def _told(found: Execution) -> tuple[list[str], list[str]]:
    """The verdicts on B, and what the author has done."""
    outcomes: list[str] = [o.verdict for o in found.outputs if o.name == "B"]
    return outcomes, [fault.what for fault in found.faults if fault.problem == "source-fragment"]


@pytest.mark.parametrize("wrong", [True, False])
def test_a_thread_reads_what_another_one_has_stored(wrong: bool) -> None:
    outcomes, told = _told(_executed("thread", "other", wrong=wrong))
    assert told == ["thread 0 reads f[16], which thread 16 has stored in its own registers"]
    assert outcomes == ["undecided" if wrong else "agreed"]


@pytest.mark.parametrize("read", ["parallel", "tile"])
def test_who_reads_an_element_in_a_tile_operator_matters_where_an_output_is_wrong(read: str) -> None:
    outcomes, told = _told(_executed("thread", read))
    assert (outcomes, told) == (["undecided"], ["the block reads f[0], which thread 0 has stored in its own registers"])
    assert _told(_executed("thread", read, wrong=False)) == (["agreed"], [])


@pytest.mark.parametrize(
    ("stored", "read"), [("thread", "own"), ("threads", "tile"), ("parallel", "other"), ("tile", "other")]
)
def test_what_every_thread_has_is_defined(stored: str, read: str) -> None:
    """TileLang is to blame where that is wrong."""
    assert _told(_executed(stored, read)) == (["refuted"], [])
