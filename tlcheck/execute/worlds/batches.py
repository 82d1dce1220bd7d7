"""Blocks in batches: all of a kernel, as many as fit into memory; or chosen ones, by how much they do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from itertools import product
from math import prod

from tlcheck.execute.schedule.clusters import acts_across, cluster_of, completed
from tlcheck.execute.schedule.launches import grid, kernels, threads_of
from tlcheck.execute.stops import OutOfStatements
from tlcheck.execute.worlds.blocks import Block
from tlcheck.execute.worlds.budget import Budget
from tlcheck.execute.worlds.effort import statements_needed, worlds_that_fit
from tlcheck.snapshot.ir import Function, Thread
from tlcheck.snapshot.walk import statements

_WORTH = 1000  # statements of a block: for fewer it costs less to wait than to compile the kernel again
_THREADS = 1 << 16  # of all worlds of a batch: what each computes with takes ten times what it holds


def all_blocks(
    kernel: Function,
    seeds: Sequence[int],
    sizes: Mapping[str, int | float],
    source: bool,
    budget: Budget,
    needed: Mapping[Block, Set[int]] | None = None,
) -> list[list[tuple[int, Block]]]:
    """Every (seed, block) of a kernel, in batches with all seeds of some blocks. Raises OutOfStatements for too many.

    needed: the blocks that run, with their seeds; None for all.
    """
    extents, threads = grid(kernel, sizes), prod(threads_of(kernel))
    count = prod(extents) if needed is None else len(needed)
    fit = worlds_that_fit(kernel, threads, source, budget, _THREADS // threads)
    cluster = cluster_of(kernel) if acts_across(kernel) else (1, 1, 1)
    size = prod(cluster)
    together = max(1, fit // len(seeds) // size) * size
    if fit == 0 or -(-count // together) * statements_needed(kernel, sizes) > budget.statements:
        raise OutOfStatements("too many blocks of a kernel before the last one")
    blocks = list(needed or [(x, y, z) for z, y, x in product(*[range(n) for n in reversed(extents)])])
    blocks = completed(blocks, cluster) if size > 1 else blocks
    parts = [blocks[start : start + together] for start in range(0, len(blocks), together)]
    return [[(s, block) for s in seeds for block in part if not needed or s in needed[block]] for part in parts]


def alike(function: Function, sizes: Mapping[str, int | float], blocks: Sequence[Block]) -> list[list[Block]]:
    """Blocks with others that execute as many statements: those with longer loops would keep the others waiting."""
    found: dict[int, list[Block]] = {}
    for block in blocks:
        found.setdefault(statements_of(kernels(function)[-1], sizes, block), []).append(block)
    return list(found.values()) if max(found) >= _WORTH else [list(blocks)]


def statements_of(kernel: Function, sizes: Mapping[str, int | float], block: Block) -> int:
    """Return how many statements this block executes at least."""
    threads = [s for s in statements(kernel.body) if isinstance(s, Thread) and s.tag.startswith("blockIdx.")]
    return statements_needed(kernel, {**sizes, **{str(s.var.value): block["xyz".index(s.tag[-1])] for s in threads}})
