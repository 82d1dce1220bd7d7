"""cp.async: a thread copies 4, 8 or 16 bytes from global to shared memory."""

from __future__ import annotations

from tlcheck.signatures.signature import Address, Completion, CountedAs, Family, Signature
from tlcheck.snapshot.ir import Expr


def _copy(name: str, args: tuple[Expr, ...]) -> Signature:
    """(destination, source, size[, predicate]).

    In old releases (destination, its offset in bytes, source, its offset in elements, size[, predicate]).
    """
    old, size = len(args) > 4, 4 if len(args) > 4 else 2
    return Signature(
        reads=(Address(2, offset=3) if old else Address(1),),
        writes=(Address(0, offset=1, octets=True) if old else Address(0),),
        size=size,
        predicate=size + 1 if len(args) == size + 2 else None,
        asynchronous=Completion.CP_ASYNC_GROUP,
    )


_WAIT_ALL = Signature(commits=Completion.CP_ASYNC_GROUP, awaits=Completion.CP_ASYNC_GROUP)
_ARRIVE = Signature(mbarrier=0, releases=True)  # when all copies that the thread has begun are complete

FAMILY = Family(
    "cp.async",
    "PTX 9.7.9.25.3; cp.async.mbarrier.arrive: PTX 9.7.13.15",
    {
        "ptx_cp_async": _copy,
        "ptx_commit_group": Signature(commits=Completion.CP_ASYNC_GROUP),
        "ptx_wait_group": Signature(awaits=Completion.CP_ASYNC_GROUP),
        "ptx_wait_all": _WAIT_ALL,
        "cp_async_wait_all": _WAIT_ALL,
        "ptx_cp_async_barrier": _ARRIVE,
        "ptx_cp_async_barrier_noinc": _ARRIVE,
    },
    needs="cp.async",
    counted=CountedAs.COPY,
)
