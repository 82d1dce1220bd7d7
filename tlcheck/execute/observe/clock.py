"""Happens-before within a block, or a cluster of blocks: vector clocks of its warps.

Agents are the warps of all blocks of a cluster and their mbarriers, those of rank 0 first.
`clocks[world, warp, agent]` is the latest time of an agent that a warp knows to be over; a warp's own time stands where
it is the agent. The time of an mbarrier is the number of its phases that have ended: a bulk copy is over with the phase
that needs its bytes.

A barrier joins the clocks of its warps. An arrival at an mbarrier joins the warp's clock into what is released there.
The end of a phase publishes that, and a wait joins what was published into the waiter's clock. Each synchronization
begins the warp's next epoch, which is EPOCH times long: threads of one warp are ordered unless they are in one epoch.

A product of a tensor core is an agent's, too: after the warps of a block come as many for the products of each. One
knows what its warp knew when it issued a product. Its time moves on when products are complete, and goes to those who
wait for their commit: what the warp itself does after the commit does not.

`fenced[world, warp, other]` is the time of another warp up to which the async proxy sees its writes, for whoever
follows this warp. fence.proxy.async sets it (PTX ISA 8.2.3.1, "Proxies"); then it travels as clocks do. A fence moves
its warp's time on by one, within the epoch.

Accesses of tensor memory are ordered by a synchronization of threads only with tcgen05.fence::before_thread_sync before
it and ::after_thread_sync after it (PTX 9.7.16.6.4). `handed[world, warp, other]` is the time of another warp up to
which its accesses are, for whoever follows this warp; `tensor` the same for what this warp does after its last fence.
Whoever waits for an mbarrier that a tcgen05.commit completes needs neither: the products are complete (CUTLASS has no
fence there, although the manual shows one).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from tlcheck.execute.events import Observer
from tlcheck.execute.memory.frame import Mask
from tlcheck.execute.memory.values import Array
from tlcheck.execute.observe.accesses import AccessedCells
from tlcheck.execute.schedule.clusters import Clusters

PENDING = np.iinfo(np.int32).max  # the time of a copy under way: over for nobody
EPOCH = 1 << 6  # times from one synchronization of a warp to the next
BARRIERS = 128  # mbarriers of a block that have a time of their own, if it has no more


def same_epoch(one: Array, other: Array | int) -> Array:
    """Whether no synchronization of a warp lies between two of its times: they differ in their lowest bits alone."""
    return np.asarray((one ^ other) < EPOCH)


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """Times of agents: that of agent `agent` of a cluster is at `first + agent` in `VectorClock.own_times`, flat."""

    array: Array
    first: Array
    agent: Array

    def owners(self, at: tuple[Array, ...]) -> Array:
        """The agents of the times at some places, as indices into `VectorClock.own_times`, flat."""
        return np.broadcast_to(_at(self.first, at) + _at(self.agent, at), at[0].shape)

    def steps(self, steps: Array, at: tuple[Array, ...]) -> Array:
        """Return how far the agents of the times at some places step."""
        return np.asarray(steps.reshape(-1).take(self.owners(at)))


def _at(values: Array, at: tuple[Array, ...]) -> Array:
    """Some places of values that broadcast to more axes, and along those of length 1."""
    own = at[len(at) - values.ndim :]
    return np.asarray(values[tuple([0 if size == 1 else each for each, size in zip(own, values.shape, strict=True)])])


class VectorClock(Observer):
    """The clocks of the blocks that run: each method is an event of synchronization, by active threads of `mask`.

    mask: (worlds, threads). key: the barrier that an event is about. overtaken: warps, the first of each branch, that
    may wait for ever (see `phase_waited`). warps: of a block, those that stand for products included. cores: of warp w
    it is w + cores; 0 where products are not told apart from their warp. barriers: mbarriers of a block.
    """

    def __init__(
        self,
        threads: int,
        width: int,
        worlds: int,
        clusters: Clusters | None = None,
        products: bool = False,
        barriers: int = BARRIERS,
    ) -> None:
        """threads: of a block. width: threads of a warp. worlds: how many there are.

        products: whether tensor cores have times of their own. barriers: mbarriers of a block that have.
        """
        self.barriers = barriers
        warps = -(-threads // width)
        self.cores = warps if products else 0
        self.warps, self.width, self.worlds = warps + self.cores, width, worlds
        size, numbers = 1 if clusters is None else clusters.size, np.arange(worlds)
        rank = np.zeros(worlds, np.int64) if clusters is None else clusters.rank
        self.peers = numbers[:, None] if clusters is None else clusters.peers
        self.leaders = numbers if clusters is None else clusters.leaders
        self.rank = rank
        self.rows = size * self.warps  # warps of a cluster
        self.agents = self.rows + size * barriers
        self.first_row, self._first_barrier = rank * self.warps, self.rows + rank * barriers
        self.clocks = np.zeros((worlds, self.warps, self.agents), np.int32)
        self._own = (self.first_row[:, None] + np.arange(self.warps)).reshape(worlds, self.warps)
        self.clocks[numbers[:, None], np.arange(self.warps), self._own] = EPOCH
        self._own_at = np.arange(self._own.size) * self.agents + self._own.reshape(-1)  # in `clocks`, flat
        self.fenced, self.handed, self.tensor = np.zeros((3, worlds, self.warps, self.rows), np.int32)
        self.overtaken: set[int] = set()
        self._mbarriers: dict[object, int] = {}  # mbarriers: their numbers among the agents
        self._released: dict[object, tuple[Array, ...]] = {}  # clocks and fences of those who have arrived
        self._published: dict[object, tuple[Array, ...]] = {}  # the same, as of the end of the last phase
        self._waited: dict[tuple[object, int], dict[int, list[tuple[Array, Array]]]] = {}  # by statement: warps, times

    # ---- events

    def barrier(self, mask: Mask) -> None:
        """All warps with active threads have met, in each world."""
        for world, warps in self._warps_of(mask):
            self.clocks[world, warps] = self.clocks[world, warps].max(axis=0)
            for known in (self.fenced, self.handed):
                known[world, warps] = known[world, warps].max(axis=0)
            self._next_epoch(world, warps)

    def warp_barrier(self, mask: Mask) -> None:
        """__syncwarp."""
        for world, warps in self._warps_of(mask):
            self._next_epoch(world, warps)

    def arrived(self, key: object, mask: Mask, at: Array | None = None) -> None:
        """Active warps have arrived at a barrier: they release what they know. at: see `Observer.arrived`."""
        released = self._released.setdefault(key, self._nothing())
        for world, warps in self._warps_of(mask):
            self._release(released, world if at is None else int(at[world]), world, warps)
            self._next_epoch(world, warps)

    def fences_released(self, key: object, mask: Mask, at: Array | None = None) -> None:
        """Active threads have issued bulk copies that complete `key`: fences before the issue go with their bytes."""
        fenced = self._released.setdefault(key, self._nothing())[1]
        for world, warps in self._warps_of(mask):
            there = world if at is None else int(at[world])
            fenced[there] = np.maximum(fenced[there], self.fenced[world, warps].max(axis=0))

    def response_asked(self, key: object, mask: Mask, at: Array) -> None:
        """Active threads have asked for what completes a barrier of the worlds `at`: it comes after what they know.

        An asynchronous operation comes after the instructions before it (PTX ISA 8.9.1.1), so that those who wait for
        it do, too. Of the warp itself earlier epochs alone count: what it does now may stand after the request.
        """
        told = self._released.setdefault(key, self._nothing())[0]
        for world, warps in self._warps_of(mask):
            known, own = self.clocks[world, warps], self._own[world, warps]
            known[np.arange(len(warps)), own] -= EPOCH
            told[at[world]] = np.maximum(told[at[world]], known.max(axis=0))

    def phase_ended(self, key: object, world: int) -> None:
        """A phase of a barrier has ended in a world: what was released goes to those who wait from now on."""
        published = self._published.setdefault(key, self._nothing())
        released = self._released.setdefault(key, self._nothing())
        for told, known in zip(published, released, strict=True):
            told[world] = known[world]
        clocks = published[0]
        for waits in self._waited.pop((key, world), {}).values():
            warps, times = (np.concatenate(each) for each in zip(*waits, strict=True))
            if (clocks[world, self._own[world, warps]] < times).all():
                self.overtaken.add(int(warps[0]))
        agent = int(self.agent(key, world))
        clocks[world, agent] += 1
        released[0][world, agent] = clocks[world, agent]

    def acquired(self, key: object, mask: Mask, at: Array | None = None) -> None:
        """Active warps have waited for a barrier: they know what its last phase has published. at: as for `arrived`."""
        published = self._published.setdefault(key, self._nothing())
        for world, warps in self._warps_of(mask):
            there = world if at is None else int(at[world])
            for known, told in zip((*self._carried, self.tensor), published, strict=True):
                known[world, warps] = np.maximum(known[world, warps], told[there])

    def phase_waited(self, key: object, mask: Mask, place: int = 0) -> None:
        """Active warps have waited for a phase of an mbarrier, by its parity.

        If the next phase may end before they do, one of the same parity may be all that is left to wait for: they are
        overtaken unless those who end it know that some of the warps that wait at this statement have gone on.
        """
        for world, warps in self._warps_of(mask):
            waits = self._waited.setdefault((key, world), {}).setdefault(place, [])
            waits.append((warps, self.own_of(world, warps)))

    def proxy_fence(self, mask: Mask) -> None:
        """fence.proxy.async by active threads: the async proxy sees what their warps know to be over."""
        for world, warps in self._warps_of(mask):
            self.fenced[world, warps] = self.clocks[world, warps][:, : self.rows]
            self.step(world, warps, self.own_of(world, warps) % EPOCH < EPOCH - 1)

    def tensor_fence(self, mask: Mask, after: bool) -> None:
        """tcgen05.fence by active threads: before a synchronization of threads, or after one."""
        for world, warps in self._warps_of(mask):
            if after:
                self.tensor[world, warps] = np.maximum(self.tensor[world, warps], self.handed[world, warps])
            else:
                self.handed[world, warps] = np.maximum(self.handed[world, warps], self.tensor[world, warps])
                self.handed[world, warps, self._own[world, warps]] = self.own_of(world, warps)

    def products_released(self, key: object, mask: Mask, at: Array) -> None:
        """Active threads issue a tcgen05.commit: its arrival at a barrier of `at` releases what they know."""
        released = self._released.setdefault(key, self._nothing())
        for world, warps in self._warps_of(mask):
            self._release(released, int(at[world]), world, warps)
            self._next_epoch(world, warps)

    def products_finished(self, key: object, mask: Mask, at: Array) -> None:
        """A tcgen05.commit of active threads arrives at a barrier of the worlds `at`: its products are complete.

        They are over with the time of their tensor core. What their warp has done meanwhile is not.
        """
        released, *_, finished = self._released.setdefault(key, self._nothing())
        for world, warps in self._warps_of(mask):
            cores = warps + self.cores
            own, there, times = self._own[world, cores], int(at[world]), self.own_of(world, cores)
            for told in (released, finished):
                told[there, own] = np.maximum(told[there, own], times)
            self._next_epoch(world, cores)

    def product_begins(self, mask: Mask) -> None:
        """Active threads issue a product: it comes after what their warps know (PTX ISA 8.9.1.1)."""
        for world, warps in self._warps_of(mask):
            for known in (*self._carried, self.tensor):
                known[world, warps + self.cores] = np.maximum(known[world, warps + self.cores], known[world, warps])

    def step(self, world: int, warps: Array, those: Mask) -> None:
        """Move the time of some warps on by one, within the epoch."""
        self.clocks[world, warps, self._own[world, warps]] += those

    # ---- what agents know

    def now(self, cells: AccessedCells) -> Array:
        """The own time of the warp that accesses each cell."""
        return self._own_of_rows(cells.row)

    def known(self, cells: AccessedCells, agent: Array) -> Array:
        """The latest time of an agent that whoever accesses each cell knows to be over.

        agent: (cells,), or (rows, 1) for all cells.
        """
        return np.asarray(self.clocks.reshape(-1).take(cells.row * self.agents + agent))

    def fenced_of(self, cells: AccessedCells, warp: Array) -> Array:
        """The time of a warp up to which fences before each access cover its writes."""
        return np.asarray(self.fenced.reshape(-1).take(cells.row * self.rows + warp))

    def tensor_of(self, cells: AccessedCells, warp: Array) -> Array:
        """The time of a warp up to which fences order its accesses of tensor memory before each one.

        warp: (cells,), or (rows, 1) for all cells.
        """
        found = self.tensor.reshape(-1).take(cells.row * self.rows + warp)
        for warps, _ in self.current(cells, cells.warp):
            found[warp == warps] = PENDING  # its own come in their order
        return np.asarray(found)

    def current(self, cells: AccessedCells, now: Array) -> Iterator[tuple[Array, Array]]:
        """The warp that accesses each cell with its time `now`, and for a product also the warp that has issued it."""
        yield cells.warp, now
        if self.cores and len(cells.warp) and cells.warp[0] % self.warps >= self.cores:
            yield cells.warp - self.cores, self._own_of_rows(cells.row - self.cores)

    def agent(self, key: object, world: int | Array) -> Array:
        """The number of an mbarrier of a world among the agents."""
        number = self._mbarriers.setdefault(key, len(self._mbarriers) % self.barriers)
        return np.asarray(self._first_barrier[world] + number)

    def own_of(self, world: int, warps: Array) -> Array:
        """The own times of some warps of a world."""
        return np.asarray(self.clocks[world, warps, self._own[world, warps]])

    def phases(self, key: object) -> Array:
        """Return how many phases of an mbarrier have ended, (worlds,)."""
        worlds = np.arange(self.worlds)
        return np.asarray(self._published.setdefault(key, self._nothing())[0][worlds, self.agent(key, worlds)])

    def phase_after(self, key: object, later: Mask | None) -> Array:
        """The phase of an mbarrier that surely needs the bytes of a copy that begins now, (worlds,).

        later: (worlds,), where it may be the one after the next; None for nowhere.
        """
        return self.phases(key) + (1 if later is None else 1 + later)

    # ---- all times, for `recurrence`

    def own_times(self) -> Array:
        """The time of each agent of a cluster at its first world, (worlds, agents); 0 elsewhere."""
        found = np.zeros((self.worlds, self.agents), np.int32)
        found[self.leaders[:, None], self._own] = np.asarray(
            self.clocks.reshape(-1).take(self._own_at).reshape(self._own.shape)
        )
        worlds = np.arange(self.worlds)
        for key in self._published:
            if key in self._mbarriers:
                agents = self.agent(key, worlds)
                found[self.leaders, agents] = self._published[key][0][worlds, agents]
        return found

    def times(self) -> Iterator[Times]:
        """Every array of times."""
        first, agents = self.leaders * self.agents, np.arange(self.agents)
        yield Times(self.clocks, first[:, None, None], agents)
        for known in (self.fenced, self.handed, self.tensor):
            yield Times(known, first[:, None, None], agents[: self.rows])
        for clocks, *fences in (*self._published.values(), *self._released.values()):
            yield Times(clocks, first[:, None], agents)
            yield from (Times(told, first[:, None], agents[: self.rows]) for told in fences)
        for (_, world), places in self._waited.items():
            for warps, times in chain.from_iterable(places.values()):
                yield Times(times, first[world], self._own[world, warps])

    # ---- inside

    def _warps_of(self, mask: Mask) -> Iterator[tuple[int, Array]]:
        """The worlds with active threads, and their warps."""
        active = np.logical_or.reduceat(mask, np.arange(0, mask.shape[1], self.width), axis=1)
        for world in range(self.worlds):
            warps = np.flatnonzero(active[world])
            if len(warps):
                yield world, warps

    def _release(self, released: tuple[Array, ...], there: int, world: int, warps: Array) -> None:
        """What some warps of a world know joins what is released at a barrier of the world `there`."""
        for told, known in zip(released, self._carried, strict=False):
            told[there] = np.maximum(told[there], known[world, warps].max(axis=0))

    def _own_of_rows(self, row: Array) -> Array:
        """The own times of warps by their row among those of all worlds."""
        return np.asarray(self.clocks.reshape(-1).take(self._own_at.take(row)))

    def _next_epoch(self, world: int, warps: Array) -> None:
        self.clocks[world, warps, self._own[world, warps]] = (self.own_of(world, warps) // EPOCH + 1) * EPOCH

    @property
    def _carried(self) -> tuple[Array, Array, Array]:
        """Return what travels with a synchronization of threads."""
        return self.clocks, self.fenced, self.handed

    def _nothing(self) -> tuple[Array, ...]:
        return tuple([np.zeros((self.worlds, of), np.int32) for of in (self.agents, self.rows, self.rows, self.rows)])
