"""mbarrier: barriers in shared memory that count arrivals and bytes."""

from __future__ import annotations

from tlcheck.signatures.signature import Collective, Completion, Family, Signature

_ARRIVE = Signature(mbarrier=0, releases=True)

FAMILY = Family(
    "mbarrier",
    "PTX 9.7.13.15",
    {
        "create_barriers": Signature(),
        "create_list_of_mbarrier": Signature(),
        "ptx_init_barrier_thread_count": Signature(mbarrier=0),
        "ptx_arrive_barrier": _ARRIVE,
        "mbarrier_arrive": _ARRIVE,
        "ptx_arrive_cluster_barrier": Signature(mbarrier=0, releases=True, collective=Collective.CLUSTER),
        "ptx_arrive_barrier_expect_tx": _ARRIVE,
        "mbarrier_arrive_expect_tx": _ARRIVE,
        "mbarrier_expect_tx": Signature(mbarrier=0),
        "mbarrier_wait_parity": Signature(mbarrier=0, waits=True, awaits=Completion.MBARRIER),
    },
    needs="mbarrier",
)
