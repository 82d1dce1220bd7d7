"""A glance suspects what a watch reports, whatever an access is: both follow the same story."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel
from tlcheck.execute.compile.addresses import constant
from tlcheck.execute.compile.elements import BufferElement
from tlcheck.execute.machine import Machine
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.state import Origin, World
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.observe.glance import Glance
from tlcheck.execute.observe.race_watch import Watch
from tlcheck.snapshot.ir import Evaluate, Expr, Seq

THREADS = 64
CELLS = np.arange(4).reshape(-1, 1, 1)  # that one thread names
FIRST, ALL = np.arange(THREADS)[None] == 0, np.ones((1, THREADS), np.bool_)
OTHER = np.arange(THREADS)[None] == THREADS - 1  # of another warp
BLOCK, VALUE = np.ones((1, 1), np.bool_), np.zeros((4, 1, 1))
LATER = np.array([True])
ORIGINS = [Origin(Evaluate(Expr("int", "int32", (), number), line=number)) for number in range(4)]


class Follower:
    """Events of a buffer in shared memory, told to a watch or a glance."""

    def __init__(self, by: type[Watch | Glance], lanes: int = 0) -> None:
        kernel = Kernel(threads=THREADS)
        tiles = [kernel.tile(name, "float32", [64]) for name in ("s", "t")]
        machine = Machine(
            kernel.function(Seq(())), (THREADS, 1, 1), [World(0)], {}, {}, Options(False, plain=by is Watch)
        )
        self.to = by(machine, frozenset())
        program = machine.program(self.to)
        places = []
        for tile in tiles:
            program.allocate(tile)
            about = tile.name, kind_of(tile.dtype), program.pointers.root(tile.data.uid)
            places.append(BufferElement(machine.state, program.observers, *about, constant(0), []))
        self.place, self._elsewhere = places
        self.place.lanes = lanes

    @property
    def conflicts(self) -> bool:
        if isinstance(self.to, Glance):
            return bool(self.to.found)
        return bool(self.to.races)

    def write(self, by: Mask = FIRST) -> None:
        self.to.write(self.place, CELLS, by, ORIGINS[0], VALUE + 1)

    def read(self, by: Mask = FIRST) -> None:
        self.to.read(self.place, CELLS, by, ORIGINS[1])

    def atomic(self, by: Mask = FIRST) -> None:
        self.to.atomic(self.place, CELLS, by, ORIGINS[2])

    def copy(self) -> None:
        self.to.copy_issued(self.place, CELLS, FIRST, ORIGINS[3], VALUE)

    def landed(self) -> None:
        self.to.copy_landed(self.place, CELLS, FIRST)

    def load(self, elsewhere: bool = False, later: Mask | None = None) -> None:
        place = self._elsewhere if elsewhere else self.place
        self.to.bulk_load_issued(place, CELLS, BLOCK, FIRST, ORIGINS[3], "full", VALUE, later)

    def product(self, kind: str, by: Mask = FIRST, origin: int = 3) -> None:
        self.to.tensor_product_issued(self.place, CELLS, BLOCK, by, ORIGINS[origin], kind, "async")

    def crossed(self) -> None:
        self.to.proxy_crossed(self.place, CELLS, OTHER, ORIGINS[3])

    def barrier(self) -> None:
        self.to.barrier(ALL)

    def fence(self) -> None:
        self.to.proxy_fence(FIRST)

    def waited(self) -> None:
        self.to.phase_ended("full", 0)
        self.to.acquired("full", ALL)

    def completed(self) -> None:
        self.to.tensor_product_landed(self.place, CELLS, BLOCK, FIRST)


Told = Callable[[Follower], None]
STORIES: dict[str, tuple[list[Told], bool]] = {
    "a write, a read": ([Follower.write, lambda f: f.read(OTHER)], True),
    "a write, a barrier, a read": ([Follower.write, Follower.barrier, lambda f: f.read(OTHER)], False),
    "two reads": ([Follower.read, lambda f: f.read(OTHER)], False),
    "two atomics": ([Follower.atomic, lambda f: f.atomic(OTHER)], False),
    "an atomic, a read": ([Follower.atomic, lambda f: f.read(OTHER)], True),
    "a copy, a barrier": ([Follower.copy, Follower.barrier, Follower.read], True),
    "a copy that lands": ([Follower.copy, Follower.landed, Follower.read], False),
    "a copy that lands for one thread": ([Follower.copy, Follower.landed, lambda f: f.read(OTHER)], True),
    "a load, a barrier": ([Follower.load, Follower.barrier, Follower.read], True),
    "a load that is waited for": ([Follower.load, Follower.waited, Follower.read], False),
    "a load of which a later phase may have need": (
        [lambda f: f.load(later=LATER), Follower.waited, Follower.read],
        True,
    ),
    "a load of which two phases are waited for": (
        [lambda f: f.load(later=LATER), Follower.waited, Follower.waited, Follower.read],
        False,
    ),
    "a write, a barrier, a load": ([Follower.write, Follower.barrier, Follower.load], True),
    "a write, a fence, a load": ([Follower.write, Follower.fence, Follower.barrier, Follower.load], False),
    "a write, a barrier, a crossing": ([Follower.write, Follower.barrier, Follower.crossed], True),
    "a write, a fence, a crossing": ([Follower.write, Follower.fence, Follower.barrier, Follower.crossed], False),
    "a fence that goes with a load": (
        [Follower.write, Follower.fence, lambda f: f.load(elsewhere=True), Follower.waited, Follower.crossed],
        False,
    ),
    "a fence after a load": (
        [Follower.write, lambda f: f.load(elsewhere=True), Follower.fence, Follower.waited, Follower.crossed],
        True,
    ),
    "two products": ([lambda f: f.product("write"), lambda f: f.product("write", origin=2)], False),
    "two products of two threads": ([lambda f: f.product("write"), lambda f: f.product("write", OTHER)], True),
    "a product reads what one adds": ([lambda f: f.product("write"), lambda f: f.product("read")], True),
    "a product, a write": ([lambda f: f.product("read"), Follower.barrier, Follower.write], True),
    "a product that lands": ([lambda f: f.product("read"), Follower.completed, Follower.write], False),
    "a write, a product": ([Follower.write, lambda f: f.product("read")], True),
}


@pytest.mark.parametrize("by", [Watch, Glance])
@pytest.mark.parametrize(("story", "conflicts"), STORIES.values(), ids=list(STORIES))
def test_what_has_to_stand_between_two_accesses(story: list[Told], conflicts: bool, by: type[Watch | Glance]) -> None:
    follower = Follower(by)
    for told in story:
        assert not follower.conflicts
        told(follower)
    assert follower.conflicts is conflicts


@pytest.mark.parametrize("by", [Watch, Glance])
def test_accesses_of_tensor_memory_take_fences_around_a_barrier(by: type[Watch | Glance]) -> None:
    for fenced in (False, True):
        follower = Follower(by, lanes=128)
        follower.write()
        if fenced:
            follower.to.tensor_fence(ALL, after=False)
        follower.barrier()
        if fenced:
            follower.to.tensor_fence(ALL, after=True)
        follower.read(OTHER)
        assert follower.conflicts is not fenced


def test_what_is_there_is_written_without_harm() -> None:
    """A watch knows values, a glance does not."""
    for by in (Watch, Glance):
        follower = Follower(by)
        for lanes in (FIRST, OTHER):
            follower.to.write(follower.place, CELLS, lanes, ORIGINS[0], VALUE)
            follower.place.memory.put(CELLS, VALUE, lanes, follower.place.kind)
        assert follower.conflicts is (by is Glance)
