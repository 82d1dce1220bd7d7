"""wgmma: a warpgroup multiplies matrices from shared memory, or from registers and shared memory.

A matrix in shared memory is named by a descriptor, which is read when the instruction is, and the matrix later.
"""

from __future__ import annotations

from tlcheck.signatures.signature import Address, Collective, Completion, CountedAs, Family, Fence, Proxy, Signature


def _product(*reads: int, adds: int) -> Signature:
    """A product of what is named by arguments, each with its offset behind it. adds: the argument of the sums."""
    return Signature(
        reads=tuple(Address(at, offset=at + 1) for at in reads),
        updates=(Address(adds, offset=adds + 1),),
        asynchronous=Completion.WGMMA_GROUP,
        proxy=Proxy.ASYNC,
        collective=Collective.WARPGROUP,
    )


_WAIT = Signature(awaits=Completion.WGMMA_GROUP, collective=Collective.WARPGROUP)

FAMILY = Family(
    "wgmma",
    "PTX 9.7.15; wgmma.mma_async.sp: PTX 9.7.15.6",
    {
        "ptx_wgmma_ss": _product(6, 8, adds=10),
        "ptx_wgmma_rs": _product(5, 7, adds=9),
        "ptx_wgmma_sp_ss": _product(6, 8, 11, adds=13),  # the second is the metadata
        "ptx_wgmma_sp_rs": _product(5, 7, 10, adds=12),
        "warpgroup_arrive": Signature(fence=Fence.REGISTERS, collective=Collective.WARPGROUP),
        "warpgroup_commit_batch": Signature(commits=Completion.WGMMA_GROUP, collective=Collective.WARPGROUP),
        "warpgroup_wait": _WAIT,
        "wait_wgmma": _WAIT,
    },
    needs="wgmma",
    counted=CountedAs.PRODUCT,
)

DESCRIPTORS = Family(
    "matrix descriptor",
    "PTX 9.7.15.5.1",
    {
        "initialize_wgmma_descriptor": Signature(writes=(Address(0),)),
    },
    needs="wgmma",
)

DESCRIPTOR_OFFSETS = Family(
    "matrix descriptor's start",
    "PTX 9.7.15.5.1, 9.7.16.4.1",
    {"increase_descriptor_offset": Signature(updates=(Address(0),))},
    needs="cp.async.bulk",
)
"""A descriptor of wgmma or of tcgen05: the start is the same bits of both."""
