"""cp.async.bulk and cp.async.bulk.tensor: copies and reductions by the tensor memory accelerator (TMA)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tlcheck.signatures.signature import Address, Collective, Completion, Family, Proxy, Signature
from tlcheck.snapshot.ir import Expr

_TILED, _IM2COL = "create_tma_descriptor", "create_tma_im2col_descriptor"
DESCRIPTORS = frozenset((_TILED, _IM2COL))


@dataclass(frozen=True, slots=True, eq=False)
class TensorMap:
    """A tensor map, by the call that makes it (CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col).

    The numbers of the innermost axis stand first.

    pixels: whether its boxes are of pixels (im2col). number: of the type of the elements. tensor: the pointer.
    sizes, octets: of the tensor, and its strides in bytes.
    fields: the sizes of a box, then the strides of elements in it; of pixels the strides, then the corners, the pixels
    and the channels. After these come interleave, swizzle, L2 promotion and fill.
    """

    pixels: bool
    number: Expr
    tensor: Expr
    sizes: tuple[Expr, ...]
    octets: tuple[Expr, ...]
    fields: tuple[Expr, ...]

    @property
    def rank(self) -> int:
        return len(self.sizes)


def tensor_map(e: Expr) -> TensorMap | None:
    """Return the tensor map that a call makes; None for another call, or one whose rank is no number."""
    if e.op != "call" or e.value not in DESCRIPTORS or len(e.args) < 3:
        return None
    number, rank, tensor, *fields = e.args
    if not isinstance(rank.value, int):
        return None
    n = rank.value
    return TensorMap(
        e.value == _IM2COL, number, tensor, tuple(fields[:n]), tuple(fields[n : 2 * n]), tuple(fields[2 * n :])
    )


def is_descriptor(e: Expr) -> bool:
    """Whether an argument is a tensor map: the call that makes it, or a parameter of the kernel."""
    return e.op == "var" or (e.op == "call" and e.value in DESCRIPTORS)


def _load(name: str, args: tuple[Expr, ...]) -> Signature:
    """(descriptor, mbarrier, shared address, coordinates, hint) or (shared address, address, mbarrier, bytes, hint)."""
    by_map = is_descriptor(args[0])
    tensor, shared, mbarrier = (0, 2, 1) if by_map else (1, 0, 2)
    return Signature(
        reads=(Address(tensor),),
        writes=(Address(shared),),
        mbarrier=mbarrier,
        size=None if by_map else 3,
        coordinates=3 if by_map else None,
        asynchronous=Completion.MBARRIER,
        proxy=Proxy.ASYNC,
        collective=Collective.ELECTED,
    )


def _multicast(name: str, args: tuple[Expr, ...]) -> Signature:
    """(descriptor, mbarrier, shared address, mask, coordinates, hint)."""
    return replace(_load(name, args), coordinates=4, collective=Collective.CLUSTER)


def _store(name: str, args: tuple[Expr, ...]) -> Signature:
    """(descriptor, shared address, coordinates, whether to add, hint) or (address, shared address, bytes, ...).

    Up to 0.1.7.post1 additions of bytes have the two addresses in the other order.
    """
    adds, by_map = len(args) >= 4 and args[-2].value == 1, is_descriptor(args[0])
    swapped = not by_map and _is_shared(args[0], unknown=adds)
    shared, tensor = (Address(0), Address(1)) if swapped else (Address(1), Address(0))
    return Signature(
        reads=(shared,),
        writes=() if adds else (tensor,),
        updates=(tensor,) if adds else (),
        size=None if by_map else 2,
        coordinates=2 if by_map else None,
        asynchronous=Completion.BULK_GROUP,
        proxy=Proxy.ASYNC,
        collective=Collective.ELECTED,
    )


def _is_shared(address: Expr, unknown: bool) -> bool:
    """Whether an address is one of shared memory; `unknown` where it does not say."""
    buffer = address.args[0].buffer if address.op == "call" and address.args else None
    return buffer.scope.startswith("shared") if buffer is not None and buffer.scope else unknown


FAMILY = Family(
    "cp.async.bulk",
    "PTX 9.7.9.25.5, 9.7.9.27",
    {
        "tma_load": _load,
        "tma_load_im2col": _load,
        "tma_load_multicast": _multicast,
        "tma_store_cluster": Signature(
            reads=(Address(1),),
            writes=(Address(0),),
            mbarrier=4,
            size=3,
            releases=True,
            asynchronous=Completion.MBARRIER,
            proxy=Proxy.ASYNC,
            collective=Collective.CLUSTER,
        ),
        "tma_store": _store,
        "tma_store_arrive": Signature(commits=Completion.BULK_GROUP),
        "tma_store_wait": Signature(awaits=Completion.BULK_GROUP),
    },
    needs="cp.async.bulk",
)

LOADS = frozenset(name for name, form in FAMILY.signatures.items() if form in (_load, _multicast))
"""Copies from a tensor to shared memory."""

ROWS = Family(
    "cp.async.bulk of four rows",
    "PTX 9.7.9.27.1.2, tile::gather4",
    {
        "tma_load_gather4": _load,
        "tma_store_scatter4": Signature(
            reads=(Address(1),),
            writes=(Address(0),),
            coordinates=2,
            asynchronous=Completion.BULK_GROUP,
            proxy=Proxy.ASYNC,
            collective=Collective.ELECTED,
        ),
    },
    needs="cp.async.bulk.gather4",
)

REMOTE = Family(
    "st.shared::cluster",
    "PTX 9.7.9.11, st; 9.7.9.24, mapa",
    {"ptx_cluster_store": Signature(writes=(Address(0),), collective=Collective.CLUSTER)},
    needs="cluster",
)

_QUERY = Signature(reads=(Address(0),), of_block=True)

LAUNCHES = Family(
    "clusterlaunchcontrol",
    "PTX 9.7.13.17",
    {
        **dict.fromkeys(
            ("clc_try_cancel", "clc_try_cancel_multicast"),
            Signature(
                writes=(Address(0),),
                mbarrier=1,
                asynchronous=Completion.MBARRIER,
                proxy=Proxy.ASYNC,
                collective=Collective.CLUSTER,
            ),
        ),
        **dict.fromkeys(("clc_is_canceled", *(f"clc_get_first_ctaid_{axis}" for axis in "xyz")), _QUERY),
    },
    needs="clusterlaunchcontrol",
)
