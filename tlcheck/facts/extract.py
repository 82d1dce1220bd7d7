"""Extract a snapshot's facts."""

from __future__ import annotations

from tlcheck.facts.access_census import Census
from tlcheck.facts.buffers import buffers, loops, shared_bytes
from tlcheck.facts.kernel_facts import Count, Facts
from tlcheck.facts.layout_digests import layouts
from tlcheck.facts.synchronization import synchronization
from tlcheck.facts.trips import Trips
from tlcheck.lower.runs import release_of
from tlcheck.program.walk import Program, walk
from tlcheck.snapshot.checkpoint import Checkpoint
from tlcheck.snapshot.ir import Attr, Expr, Snapshot, Thread
from tlcheck.snapshot.walk import statements
from tlcheck.targets.lookup import warp_of

_SPECIALIZED = "kWarpSpecializationScope"
_LOOKED_AT = tuple(map(str, Checkpoint))[1:]  # at the source, releases differ in what they have bound and inlined


def facts_of(snapshot: Snapshot) -> Facts:
    """The facts of a kernel: what is written, from `intent`; as lowered, from the last checkpoint that was reached."""
    functions = {name: snapshot.checkpoints[name] for name in _LOOKED_AT if name in snapshot.checkpoints}
    if not functions:
        return Facts(release_of(snapshot.toolchain))
    programs = [walk(function) for function in functions.values()]
    source, lowered = programs[0], programs[-1]
    trips = Trips(lowered)
    census = Census(lowered, trips, release_of(snapshot.toolchain), warp_of(snapshot.target))
    grid, threads = _launch(lowered, trips)
    inferred = programs[list(functions).index(Checkpoint.TILE_OPS)] if Checkpoint.TILE_OPS in functions else None
    return Facts(
        release=release_of(snapshot.toolchain),
        grid=grid,
        threads=threads,
        shared_bytes=shared_bytes(lowered),
        specialized=any(isinstance(s, Attr) and s.key == _SPECIALIZED for s in statements(lowered.function.body)),
        buffers=buffers(programs, Trips(source)),
        loops=loops(functions, Trips(source)),
        layouts=layouts(source, inferred),
        accesses=census.accesses(),
        syncs=synchronization(lowered, census.events, trips),
        instructions=census.instructions(),
        functions=tuple(sorted(census.functions)),
    )


def _launch(program: Program, trips: Trips) -> tuple[tuple[Count, ...], int]:
    """Extents of the grid, x first, and the threads of a block."""
    found = {s.tag: s.extent for s in statements(program.function.body) if isinstance(s, Thread)}
    grid = tuple(_extent(found[tag], trips) for tag in sorted(found) if tag.startswith("blockIdx"))
    threads = 1
    for tag in found:
        threads *= trips.number(found[tag]) if tag.startswith("threadIdx") else 1
    return grid, threads


def _extent(extent: Expr, trips: Trips) -> Count:
    text = trips.text(extent)
    return Count(trips.number(extent), "" if text.isdigit() else text)
