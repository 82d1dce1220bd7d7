"""Registers that the warps of a block ask for with T.set_max_nreg, against those that there are.

PTX ISA, "Miscellaneous Instructions: setmaxnreg": a warp that asks for more is supplied from the pool of its block and
waits until there are enough; a warp that asks for fewer gives them back. The block got its pool at its launch: at most
its share of the multiprocessor's registers (`__launch_bounds__`), a multiple of 8 for each thread (CUDA C++ Programming
Guide, "Compute Capabilities"). The number is a multiple of 8 from 24 to 256.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np

from tlcheck.execute.memory.plain import evaluated
from tlcheck.execute.stops import NotModelled
from tlcheck.program.launch import registers_set, sets_registers
from tlcheck.snapshot.ir import If, Stmt, Thread
from tlcheck.snapshot.walk import children, statements

_FEWEST, _MOST, _STEP = 24, 256, 8


def unencodable(body: Stmt) -> int | None:
    """The first number of registers that the instruction cannot have; None if there is none."""
    asked = (n for stmt in statements(body) if (n := registers_set(stmt)) is not None)
    return next((n for n in asked if not _FEWEST <= n <= _MOST or n % _STEP), None)


def share_of_block(registers: int, threads: int, blocks: int) -> int:
    """Registers that a block of so many threads has at most, where a multiprocessor has to hold several."""
    return registers // (threads * max(1, blocks)) // _STEP * _STEP * threads


def registers_of_block(body: Stmt, block: Mapping[str, int]) -> int:
    """Registers that the threads of a block have when each has called T.set_max_nreg; at least so many.

    A thread that calls it more than once counts with its lowest number, one that does not with none, and 0 is for
    branches that are not understood. block: threads along each axis.
    """
    values: dict[str, Any] = {}
    number = np.arange(prod(block.values()))
    for stmt in statements(body):
        if isinstance(stmt, Thread) and stmt.tag.startswith("threadIdx."):
            axis = stmt.tag[-1]
            before = prod(n for other, n in block.items() if other < axis)
            values[str(stmt.var.value)] = number // before % block.get(axis, 1)
    lowest = np.full(number.shape, _MOST + 1)
    try:
        for asked, threads in _by_threads(body, values, np.ones(number.shape, bool)):
            lowest = np.where(threads, np.minimum(lowest, min(asked, _MOST + 1)), lowest)
    except NotModelled:
        return 0
    return int(lowest[lowest <= _MOST].sum())


def _by_threads(stmt: Stmt, values: Mapping[str, Any], threads: Any) -> Iterator[tuple[int, Any]]:
    """Each call's number, with the threads that run it. Raises NotModelled where more than their indices decides."""
    asked = registers_set(stmt)
    if asked is not None:
        yield asked, threads
    elif isinstance(stmt, If) and sets_registers(stmt):
        holds = np.asarray(evaluated(stmt.condition, values), bool)
        yield from _by_threads(stmt.then, values, threads & holds)
        if stmt.orelse is not None:
            yield from _by_threads(stmt.orelse, values, threads & ~holds)
    else:
        for child in children(stmt):
            yield from _by_threads(child, values, threads)
