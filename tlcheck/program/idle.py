"""Find which threads compute what only others use: replicas of a value that one of them stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tlcheck.program.unused import live_registers, values_of
from tlcheck.snapshot.arrays import ArrayNumbers
from tlcheck.snapshot.ir import Expr, Function, If, Stmt, Store, Thread
from tlcheck.snapshot.operators import meaning
from tlcheck.snapshot.walk import children, expressions, postorder, statements

Lanes = npt.NDArray[np.bool_]

_MOST_KINDS = 32  # of threads that take other ways
_NUMBERS = ArrayNumbers()


@lru_cache(maxsize=16)
def using(function: Function, threads: int) -> Mapping[Stmt, Lanes]:
    """The stores into registers that some threads do not use, each with those that do, (threads,).

    A thread uses a register if it reaches a memory, a condition, an index or a call in what the thread runs, as far as
    conditions on threadIdx.x alone say. A call may hand it to another thread.
    """
    runs = dict(_runs(function, threads))
    guards = list({id(lanes): lanes for lanes in runs.values()}.values())
    if all(lanes.all() for lanes in guards):
        return {}
    kinds, kind_of = np.unique(np.array(guards), axis=1, return_inverse=True)
    if kinds.shape[1] > _MOST_KINDS:
        return {}
    place = {id(lanes): number for number, lanes in enumerate(guards)}
    values = values_of(function)
    used: dict[Stmt, Lanes] = {s: np.zeros(threads, np.bool_) for s in values if isinstance(s, Store)}
    for kind in range(kinds.shape[1]):
        own = [s for s in runs if kinds[place[id(runs[s])], kind]]
        live = live_registers(own, values, _handed(own, values))
        for stmt, lanes in used.items():
            if values[stmt] in live:
                lanes |= kind_of.ravel() == kind
    return {stmt: lanes for stmt, lanes in used.items() if not lanes.all()}


def _handed(own: list[Stmt], values: Mapping[Stmt, int]) -> Iterator[Expr]:
    """The calls that give registers a value: another thread may take their operands."""
    return (e for s in own if s in values for e in postorder(expressions(s)) if e.op == "call")


def _runs(function: Function, threads: int) -> Iterator[tuple[Stmt, Lanes]]:
    """Each statement, and which threads may run it."""
    launched = [s for s in statements(function.body) if isinstance(s, Thread) and s.tag.startswith("threadIdx.")]
    is_flat = all(s.tag == "threadIdx.x" or s.extent.value == 1 for s in launched)
    uids = {s.var.uid for s in launched if s.tag == "threadIdx.x"} if is_flat else set()
    left: list[tuple[Stmt, Lanes]] = [(function.body, np.ones(threads, np.bool_))]
    while left:
        stmt, lanes = left.pop()
        yield stmt, lanes
        holds = _of_thread(stmt.condition, uids, threads) if isinstance(stmt, If) else None
        for child in children(stmt):
            if holds is None:
                left.append((child, lanes))
            else:
                assert isinstance(stmt, If)
                left.append((child, lanes & (holds if child is stmt.then else ~holds)))


def _of_thread(condition: Expr, uids: set[int], threads: int) -> Lanes | None:
    """Whether a condition holds, for each thread; None where it hangs on anything but threadIdx.x."""
    found: dict[Expr, Any] = {}
    for e in postorder([condition]):
        if e.op == "int":
            found[e] = e.value
        elif e.op == "var" and e.uid in uids:
            found[e] = np.arange(threads)
        elif e.args and all(arg in found for arg in e.args) and (computed := meaning(e, _NUMBERS)) is not None:
            found[e] = computed(*(found[arg] for arg in e.args))
        else:
            return None
    return np.broadcast_to(np.asarray(found[condition], np.bool_), (threads,))
