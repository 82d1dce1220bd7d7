"""Runs the lowered kernel, counts, and scales what the blocks do to the grid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from tlcheck import reasons
from tlcheck.cost.advice import advised
from tlcheck.cost.kernel_cost import Floor, KernelCost, SiteCost
from tlcheck.cost.occupancy import resident_blocks
from tlcheck.cost.site_lines import SourceLines
from tlcheck.errors import fault
from tlcheck.execute.compare.counting import Counted, counted
from tlcheck.execute.observe.cost.counter import Counter
from tlcheck.execute.observe.cost.sites import COLUMNS, CountedSite
from tlcheck.execute.request import ALL, Request
from tlcheck.execute.schedule.launches import kernels, threads_of
from tlcheck.execute.stops import MEMORY, Stopped
from tlcheck.execute.worlds.courses import levels_of
from tlcheck.execute.worlds.levels import BothLevels
from tlcheck.execute.worlds.weights import representatives, weights
from tlcheck.program.launch import requests
from tlcheck.snapshot.ir import Function, Snapshot
from tlcheck.snapshot.text import render
from tlcheck.targets.lookup import target
from tlcheck.targets.peaks import BANKED, PEAKS, Peaks
from tlcheck.targets.target import Target

BLOCKS = 8  # that run, unless the user says more
_UNKNOWN_RATE = 4096.0  # operations a clock of one multiprocessor's tensor cores, where no peak is published
_LANES = 128.0  # operations a clock of one multiprocessor's threads, likewise
_FROM_L2 = 64  # bytes a clock between the L2 cache and one multiprocessor


def cost_of(snapshot: Snapshot, request: Request) -> KernelCost:
    """The cost of a lowered kernel on the inputs of the request's first seed. Raises Stopped, and says why.

    blocks: one of each class runs, as far as the request allows as many.
    """
    try:
        levels = _with_classes(snapshot, replace(request, seeds=request.seeds[:1]))
        return cost_by(counted(levels), snapshot)
    except Stopped:
        raise
    except RecursionError as error:
        raise Stopped("nested too deeply", reasons.NESTED) from error
    except MemoryError as error:
        raise Stopped(str(MEMORY), MEMORY.kind) from error
    except Exception as error:  # a fault of ours, or a snapshot that no compiler makes
        raise Stopped(fault(error), reasons.INTERNAL) from error


def cost_by(counts: Counted, snapshot: Snapshot) -> KernelCost:
    """The cost that was counted."""
    return _Measured(counts, target(snapshot.target)).cost()


def _with_classes(snapshot: Snapshot, request: Request) -> BothLevels:
    """The levels with a block of each class, as far as there are few enough; else with the usual blocks."""
    levels = levels_of(snapshot, request)
    if not isinstance(request.blocks, int) or request.blocks >= min(ALL, prod(levels.extents)):
        return levels
    with suppress(Stopped):
        function = kernels(levels.lowered)[-1]
        chosen = tuple(representatives(function, levels.sizes, request.blocks))
        return levels_of(snapshot, replace(request, blocks=chosen))
    return levels


class _Measured:
    """The cost that counts make."""

    def __init__(self, counts: Counted, target_of: Target) -> None:
        self._counts, self._target = counts, target_of
        self._peaks = PEAKS.get(target_of.arch.rstrip("af"))

    def cost(self) -> KernelCost:
        rows, ran, of, like = self._scaled()
        sites = self._sites(rows)
        flops, once = _by_dtype(sites, "tensor cores"), self._once(sites)
        arithmetic = _by_dtype(sites, "arithmetic")
        asked, threads = shared_bytes(self._counts.lowered), prod(threads_of(kernels(self._counts.lowered)[-1]))
        resident, limiter = resident_blocks(self._target, threads, asked)
        return KernelCost(
            blocks=ran,
            of=of,
            like=like,
            sizes=self._counts.sizes,
            threads=threads,
            shared_bytes=asked,
            resident=resident,
            limiter=limiter,
            in_flight=max([int(c.flights.most.max(initial=0)) for c in self._counts.counters], default=0),
            global_bytes=sum(site.moved for site in sites if site.space == "global"),
            once=once,
            flops=flops,
            arithmetic=arithmetic,
            intensity=round((sum(flops.values()) + sum(arithmetic.values())) / once, 3) if once else 0.0,
            part=self._peaks.part if self._peaks is not None else "",
            floors=_floors(sites, flops, arithmetic, once, self._peaks),
            sites=sites,
        )

    def _scaled(self) -> tuple[list[tuple[CountedSite, dict[str, Any]]], int, int, int]:
        """All sites with their counts in the whole grids of all kernels; blocks that ran, of how many, how many alike.

        Blocks are those of the last kernel.
        """
        by_kernel: dict[int, list[Counter]] = defaultdict(list)
        for counter in self._counts.counters:
            by_kernel[id(counter.machine.function)].append(counter)
        found: dict[tuple[object, ...], tuple[CountedSite, Any]] = {}
        ran = of = like = 0
        for counters in by_kernel.values():
            blocks = [world.block for counter in counters for world in counter.machine.worlds]
            scale = weights(counters[0].machine.function, self._counts.sizes, blocks)
            ran, of, like = len(blocks), scale.of, scale.like
            each = np.array(scale.each)
            for counter in counters:
                mine, each = each[: counter.sites.worlds], each[counter.sites.worlds :]
                for key, counts in counter.sites.counts.items():
                    before = found[key][1] if key in found else 0
                    found[key] = counter.sites.known[key], before + counts @ mine
        rows = []
        for site, sums in found.values():
            rows.append((site, dict(zip(COLUMNS, np.rint(sums).astype(int).tolist(), strict=True))))
        return rows, ran, of, like

    def _sites(self, rows: Sequence[tuple[CountedSite, dict[str, Any]]]) -> tuple[SiteCost, ...]:
        """The worst first: what could be saved, then what is done."""
        text, lines = render(self._counts.lowered), SourceLines(self._counts.source)
        made = [
            SiteCost(
                line=lines.of(site),
                tir_line=text.line_of(site.stmt) if site.stmt is not None else 0,
                space=site.space,
                operation=site.operation,
                buffer=site.buffer,
                instruction=site.form,
                width=site.width,
                **counts,
            )
            for site, counts in rows
            if counts["requests"]
        ]
        clocks = [_clocks(site, self._peaks) for site in made]
        total = sum(clocks) or 1.0
        found = []
        for bare, own in zip(made, clocks, strict=True):
            site = advised(replace(bare, share=round(own / total, 4)), self._target)
            found.append((own - _least_clocks(site, own), own, site))
        found.sort(key=lambda one: (not one[2].limit, -one[0] if one[2].limit else 0.0, -one[1], one[2].tir_line))
        return tuple([site for *_, site in found])

    def _once(self, sites: Sequence[SiteCost]) -> int:
        """Bytes of global memory if each tensor is moved once, as far as its bytes are asked for."""
        sizes = self._counts.tensors
        asked: dict[tuple[str, bool], int] = defaultdict(int)
        for site in sites:
            if site.space == "global":
                asked[site.buffer, site.operation == "read"] += site.useful
        return sum(min(octets, sizes.get(name, octets)) for (name, _), octets in asked.items())


def shared_bytes(lowered: Function) -> int:
    """Shared memory that a block of the last kernel asks for; 0 where an array's size is not constant."""
    return requests(lowered, lambda e: e.value if isinstance(e.value, int) else None)[-1].shared


def _clocks(site: SiteCost, peaks: Peaks | None) -> float:
    """Clocks of one multiprocessor for a site's work, by the unit that does it."""
    if site.space == "shared":
        return float(site.wavefronts or -(-site.moved // BANKED))
    if site.space == "global":
        return max(site.requests, site.moved / _FROM_L2)
    if site.space == "arithmetic":
        known = peaks.arithmetic.get(site.instruction) if peaks is not None else None
        return site.flops / _each(known, peaks, _LANES)
    if site.space == "tensor cores":
        rate = peaks.tensor_rate(site.instruction.split()[-1]) if peaks is not None else None
        return site.flops / _each(rate, peaks, _UNKNOWN_RATE)
    return 0.0


def _each(rate: float | None, peaks: Peaks | None, otherwise: float) -> float:
    """Operations a clock of one multiprocessor, of operations a second."""
    return otherwise if rate is None or peaks is None else rate / (peaks.clock * peaks.multiprocessors)


def _least_clocks(site: SiteCost, clocks: float) -> float:
    """The same without what its limit costs."""
    if site.limit == "bank conflicts":
        return float(site.ideal)
    if site.limit == "sectors":
        return clocks * site.least / site.sectors
    if site.limit == "width":
        return clocks * site.width / 16
    return clocks / 2 if site.limit else clocks


def _by_dtype(sites: Sequence[SiteCost], space: str) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for site in sites:
        if site.flops and site.space == space:
            found[site.instruction.split()[-1]] += site.flops
    return dict(sorted(found.items()))


def _floors(
    sites: Sequence[SiteCost],
    flops: Mapping[str, int],
    arithmetic: Mapping[str, int],
    once: int,
    peaks: Peaks | None,
) -> tuple[Floor, ...]:
    if peaks is None:
        return ()
    shared = sum(site.moved for site in sites if site.space in ("shared", "tensor cores"))
    found = [("memory", float(once), peaks.memory), ("shared memory", float(shared), peaks.shared * peaks.boost)]
    for dtype, operations in flops.items():
        rate = peaks.tensor_rate(dtype)
        if rate is not None:
            found.append((f"tensor cores, {dtype}", float(operations), rate * peaks.boost))
    for dtype, operations in arithmetic.items():
        if dtype in peaks.arithmetic:
            found.append((f"arithmetic, {dtype}", float(operations), peaks.arithmetic[dtype] * peaks.boost))
    made = [Floor(unit, amount, peak, amount / peak) for unit, amount, peak in found if amount]
    return tuple(sorted(made, key=lambda floor: -floor.seconds))
