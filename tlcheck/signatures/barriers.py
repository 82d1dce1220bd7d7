"""Barriers of a block, of a warp, of a cluster, and of all blocks."""

from __future__ import annotations

from tlcheck.signatures.calls import name_of_call
from tlcheck.signatures.signature import Collective, Family, Form, Signature
from tlcheck.snapshot.ir import Expr

_WARP = Signature(releases=True, collective=Collective.WARP)
_BLOCK = Signature(waits=True, releases=True, collective=Collective.BLOCK)
_CLUSTER = Signature(waits=True, releases=True, collective=Collective.CLUSTER)
_GRID = Signature(waits=True, releases=True, collective=Collective.GRID)


def _sync(name: str, args: tuple[Expr, ...]) -> Signature:
    """(scope[, number, threads])."""
    return {"warp": _WARP, "cluster": _CLUSTER, "global": _GRID}.get(str(args[0].value) if args else "", _BLOCK)


_SYNC_THREADS: dict[str, Signature | Form] = {
    "tvm_storage_sync": _sync,
    "sync_threads": _BLOCK,
    "sync_threads_partial": _BLOCK,
}

FAMILY = Family(
    "bar.sync",
    "PTX 9.7.13.1, bar; bar.warp.sync; grid synchronization (CUDA, cooperative groups)",
    {
        **_SYNC_THREADS,
        "syncthreads_count": _BLOCK,
        "syncthreads_or": _BLOCK,
        "syncthreads_and": _BLOCK,
        "__syncthreads_count": _BLOCK,
        "__syncthreads_or": _BLOCK,
        "__syncthreads_and": _BLOCK,
        "sync_warp": _WARP,
        "syncwarp": _WARP,
        "sync_grid": _GRID,
    },
)

CLUSTERS = Family(
    "barrier.cluster",
    "PTX 9.7.13.4; 10, %cluster_ctarank",
    {
        "cluster_sync": _CLUSTER,
        "cluster_arrive": Signature(releases=True, collective=Collective.CLUSTER),
        "cluster_arrive_relaxed": Signature(collective=Collective.CLUSTER),
        "cluster_wait": Signature(waits=True, collective=Collective.CLUSTER),
        "block_rank_in_cluster": Signature(of_block=True),
    },
    needs="cluster",
)

ARRIVALS = Family(
    "bar.arrive",
    "PTX 9.7.13.1",
    {"named_barrier_arrive": Signature(releases=True, collective=Collective.BLOCK)},
    needs="barrier",
)


def is_sync_threads(e: Expr) -> bool:
    """Whether a call is T.sync_threads, as a release writes it: a barrier of the block that returns nothing."""
    name = name_of_call(e)
    if e.op != "call" or name not in _SYNC_THREADS:
        return False
    return name != "tvm_storage_sync" or _sync(name, e.args) is _BLOCK
