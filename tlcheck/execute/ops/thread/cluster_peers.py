"""Other blocks of a cluster, as threads name them: mapa, and what lies there (PTX 9.7.9.24, mapa; 5.1.6)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.events import Observer
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.frame import Frame, Mask, everywhere
from tlcheck.execute.memory.values import Array, Value
from tlcheck.execute.schedule.clusters import Clusters
from tlcheck.execute.stops import Illegal, NotModelled


def clusters_of(program: KernelProgram) -> Clusters:
    """The clusters of a run."""
    return Clusters.of(program.state, program.function)


def destinations(rank: Value, frame: Frame, program: KernelProgram) -> Iterator[tuple[Mask, Array]]:
    """The active lanes that name one rank, (worlds, lanes), and the worlds of that rank, (worlds,); own ones elsewhere.

    Raises Illegal for a rank that the cluster has not.
    """
    mask, clusters = np.array(frame.mask()), clusters_of(program)
    named = np.broadcast_to(np.asarray(rank), mask.shape)
    for one in np.unique(named[mask]).tolist():
        lanes = mask & (named == one)
        worlds = np.flatnonzero(lanes.any(axis=-1))
        if not 0 <= one < clusters.size:
            what = f"block {one} of a cluster of {clusters.size}"
            raise Illegal(what, program.state.line, int(worlds[0]), int(lanes[worlds[0]].argmax()))
        at = np.arange(len(mask))
        at[worlds] = [clusters.world(world, one) for world in worlds.tolist()]
        yield lanes, at


def moved(place: BufferElement, position: Array, at: Array) -> Array:
    """Flat positions (elements, worlds, lanes) of each world's own block as those of the worlds `at`."""
    memory = place.memory
    if not isinstance(memory, Cells) or not memory.shared:
        raise NotModelled(f"{place.name}, which is no shared memory, of another block")
    return np.asarray(position + (at - np.arange(len(at))).reshape(-1, 1))


def store_at(place: BufferElement, frame: Frame, value: Value, at: Array) -> None:
    """Write elements of other blocks in the active lanes."""
    position, mask = place.allowed(place.located(frame), frame)
    where, observers = moved(place, place.memory.flat_position(position), at), place.observers
    watched = observers.covers(place)
    lanes, origin = everywhere(mask, frame), place.state.origin(frame)
    if watched:
        observers.write(place, where, lanes, origin, value)
    observers.acting(frame)
    place.memory.put(where, value, mask, place.kind)
    if watched:
        observers.written(place, where, lanes, origin, value)


def used_at(place: BufferElement | None, frame: Frame, at: Array) -> None:
    """Publish that active threads use a barrier of other blocks."""
    if place is not None and place.observers.hear(Observer.atomic):
        position, _ = place.position(frame)
        where = moved(place, place.memory.flat_position(position), at)
        place.observers.atomic(place, where, frame.mask(), place.state.origin(frame))
