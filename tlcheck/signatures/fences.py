"""Fences between the generic proxy and the async proxy."""

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
