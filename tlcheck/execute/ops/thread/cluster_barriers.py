"""barrier.cluster: all threads of all blocks of a cluster wait for one another (PTX 9.7.13.4, barrier.cluster).

A thread arrives once, then waits. A wait goes on when every thread of the cluster has arrived, or has left the kernel.
What threads did before an arrival is over for those who wait, unless the arrival is `.relaxed`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tlcheck.execute.compile.program import KernelProgram
from tlcheck.execute.compile.registry import call
from tlcheck.execute.memory.codes import Code, Computation
from tlcheck.execute.memory.frame import Frame, Mask
from tlcheck.execute.memory.values import Array
from tlcheck.execute.ops.thread.cluster_peers import clusters_of
from tlcheck.execute.schedule.agents import agents_of
from tlcheck.execute.stops import Illegal, NotModelled
from tlcheck.snapshot.ir import Expr
from tlcheck.targets.nvidia import WARP

_KEY = "barrier.cluster"
_INITS = "ptx_fence_barrier_init"


@dataclass(eq=False)
class _ClusterBarrier:
    """The barrier of each cluster. come: threads that have arrived and not waited yet, with the phase in which they
    did, (worlds, threads), 0 for none. phase: how many have ended, and one, by the cluster's first world.
    """

    program: KernelProgram
    come: Array
    phase: Array

    @classmethod
    def of(cls, program: KernelProgram) -> _ClusterBarrier:
        """Return the object of a run, made at its first use."""
        worlds, threads = len(program.state.worlds), program.state.threads
        made = cls(program, np.zeros((worlds, threads), np.int64), np.ones(worlds, np.int64))
        found = program.state.shared.setdefault(_KEY, made)
        assert isinstance(found, cls)
        return found

    def arrive(self, mask: Mask, relaxed: bool) -> None:
        """Active threads arrive. Raises Illegal for one that has not waited since it arrived before."""
        twice = np.argwhere(mask & (self.come > 0))
        if len(twice):
            world, thread = (int(i) for i in twice[0])
            what = "a thread arrives at barrier.cluster again, and has not waited"
            raise Illegal(what, self.program.state.line, world, thread)
        leaders = clusters_of(self.program).leaders
        self.come[mask] = np.broadcast_to(self.phase[leaders][:, None], mask.shape)[mask]
        if not relaxed:
            self.program.observers.arrived(_KEY, mask, leaders)
        self._look(np.unique(leaders[mask.any(axis=-1)]))

    def wait(self, frame: Frame) -> None:
        """Active threads wait. Raises Illegal for one that has not arrived."""
        mask, state = np.array(frame.mask()), self.program.state
        early = np.argwhere(mask & (self.come == 0))
        if len(early):
            world, thread = (int(i) for i in early[0])
            raise Illegal("a thread waits at barrier.cluster and has not arrived", state.line, world, thread)
        leaders = clusters_of(self.program).leaders
        mine, until = np.unique(leaders[mask.any(axis=-1)]), self.come.copy()

        def ready() -> bool:
            self._look(mine)
            return bool((until < self.phase[leaders][:, None])[mask].all())

        agents_of(state).wait(ready, lambda: "waits at barrier.cluster for the other blocks", state.at, frame)
        self.come[mask] = 0
        self.program.observers.acquired(_KEY, mask, leaders)

    def _look(self, leaders: Array) -> None:
        """End the phase of those clusters to whose barrier all threads have come that are still there."""
        peers, gone = clusters_of(self.program).peers, agents_of(self.program.state).gone()
        for leader in leaders.tolist():
            worlds = peers[leader]
            if (worlds < 0).any():
                raise NotModelled("a cluster of which some blocks do not run")
            here = self.come[worlds] == self.phase[leader]
            if (here | gone[worlds]).all() and here.any():
                self.phase[leader] += 1
                self.program.observers.phase_ended(_KEY, leader)


def _whole_warps(frame: Frame) -> None:
    """Raise NotModelled where a part of a warp is active (`.aligned`)."""
    mask, width = frame.mask(), min(WARP, frame.lanes)
    lanes = mask[:, : frame.lanes // width * width].reshape(len(mask), -1, width)
    if not (lanes.all(axis=-1) | ~lanes.any(axis=-1)).all():
        raise NotModelled("barrier.cluster by a part of a warp")


def sync_cluster(program: KernelProgram) -> Computation:
    """Arrive and wait."""
    barrier = _ClusterBarrier.of(program)

    def run(frame: Frame) -> int:
        _whole_warps(frame)
        barrier.arrive(np.array(frame.mask()), relaxed=False)
        barrier.wait(frame)
        return 0

    return run


@call("cluster_sync")
def sync(e: Expr, program: KernelProgram) -> Computation:
    """barrier.cluster.arrive and barrier.cluster.wait."""
    return sync_cluster(program)


@call("cluster_arrive", "cluster_arrive_relaxed")
def arrive(e: Expr, program: KernelProgram) -> Computation:
    """barrier.cluster.arrive[.relaxed]."""
    barrier, relaxed = _ClusterBarrier.of(program), e.value == "cluster_arrive_relaxed"

    def run(frame: Frame) -> int:
        if relaxed and _INITS in program.state.shared:
            raise NotModelled("cluster_arrive_relaxed after fence.mbarrier_init")
        _whole_warps(frame)
        barrier.arrive(np.array(frame.mask()), relaxed)
        return 0

    return run


@call("cluster_wait")
def wait(e: Expr, program: KernelProgram) -> Computation:
    """barrier.cluster.wait, which acquires."""
    barrier = _ClusterBarrier.of(program)

    def run(frame: Frame) -> int:
        _whole_warps(frame)
        barrier.wait(frame)
        return 0

    return run


@call("block_rank_in_cluster")
def rank(e: Expr, program: KernelProgram) -> Code:
    """%cluster_ctarank (PTX 10, special registers); (worlds, 1)."""
    ranks = clusters_of(program).rank.astype(np.int32).reshape(-1, 1)
    if (ranks == ranks[0]).all():
        only = int(ranks[0, 0])
        return Code(lambda frame: only, steady=True, uniform=True)
    return Code(lambda frame: ranks, steady=True)
