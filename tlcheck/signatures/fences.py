"""Fences: between the generic proxy and the async proxy, and of what a thread has done before."""

from __future__ import annotations

from tlcheck.signatures.signature import Family, Fence, Signature

FAMILY = Family(
    "fence",
    "PTX 9.7.13.5",
    {
        "fence_proxy_async": Signature(fence=Fence.PROXY),
        "ptx_fence_barrier_init": Signature(fence=Fence.MBARRIER_INIT),
    },
    needs="cp.async.bulk",
)

THREAD_FENCES = {"__threadfence_block": False, "__threadfence": True, "__threadfence_system": True}
"""fence.sc by their names in CUDA, with whether they count for threads of other blocks."""

THREADS = Family(
    "membar",
    "PTX 9.7.13.4, fence; CUDA C++ Programming Guide, Memory Fence Functions",
    dict.fromkeys(THREAD_FENCES, Signature(fence=Fence.THREADS)),
)
