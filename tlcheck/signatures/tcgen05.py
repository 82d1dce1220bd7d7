"""tcgen05: tensor memory, and products of matrices that are added to it.

Tensor memory has no pointers. A place in it is a number; the allocation of a kernel is known by the word of shared
memory that keeps that number, which stands here for the memory itself.
"""

from __future__ import annotations

from tlcheck.signatures.signature import Address, Collective, Completion, CountedAs, Family, Fence, Proxy, Signature
from tlcheck.snapshot.ir import Expr

_DESCRIPTOR = 7  # of the arguments of a product: the instruction descriptor
_WEIGHTS_STAY = {"ptx_tcgen05_mma_ss": 13}  # of the arguments: whether it is tcgen05.mma.ws
_OF_TWO_BLOCKS = {"ptx_tcgen05_mma_ss": 14, "ptx_tcgen05_mma_ts": 13, "ptx_tcgen05_mma_blockscaled_ss": 15}


def descriptor(e: Expr) -> Expr:
    """Return the instruction descriptor of a product (PTX 9.7.16.4.2)."""
    return e.args[_DESCRIPTOR]


def constant_bits(e: Expr) -> int:
    """Return the constant in a descriptor to which what varies is added with `bitwise_or`."""
    if e.op == "int" and isinstance(e.value, int):
        return e.value
    if e.op == "bitwise_or" or (e.op == "call" and e.value == "bitwise_or"):
        return sum(constant_bits(a) for a in e.args)
    return 0


def shape_of(word: int) -> tuple[int, int]:
    """Return M and N of the product that an instruction descriptor describes."""
    return bits(word, 24, 5) << 4, bits(word, 17, 6) << 3


def bits(word: int, place: int, width: int) -> int:
    """Return a field of an instruction descriptor."""
    return word >> place & ((1 << width) - 1)


def weights_stay(e: Expr) -> bool:
    """Whether a call is tcgen05.mma.ws."""
    return _is_set(e, _WEIGHTS_STAY)


def is_of_pair(e: Expr) -> bool:
    """Whether a call is an instruction of two blocks of a cluster (.cta_group::2)."""
    return _is_set(e, _OF_TWO_BLOCKS) or dict(e.annotations).get("use_2cta", "0") not in ("0", "False")


def _is_set(e: Expr, places: dict[str, int]) -> bool:
    place = places.get(str(e.value))
    return place is not None and len(e.args) > place and bool(e.args[place].value)


def _product(*reads: int, adds: int) -> Signature:
    """A product of what is named by arguments, each with its offset behind it. adds: the argument of the sums."""
    return Signature(
        reads=tuple(Address(at, offset=at + 1) for at in reads),
        updates=(Address(adds, offset=adds + 1),),
        asynchronous=Completion.TENSOR_COMMIT,
        proxy=Proxy.ASYNC,
        collective=Collective.WARP,
    )


def _load(name: str, args: tuple[Expr, ...]) -> Signature:
    """(bits, number, pack, address, columns further on[, lanes], registers)."""
    return Signature(writes=(Address(_registers(args)),), collective=Collective.WARPGROUP)


def _store(name: str, args: tuple[Expr, ...]) -> Signature:
    """Return the signature as `_load` does; the registers are read."""
    return Signature(reads=(Address(_registers(args)),), collective=Collective.WARPGROUP)


def _registers(args: tuple[Expr, ...]) -> int:
    if len(args) < 6:
        raise IndexError
    return len(args) - 1


_FENCE = Signature(fence=Fence.TENSOR_MEMORY)

FAMILY = Family(
    "tcgen05",
    "PTX 9.7.16",
    {
        "ptx_init_tensor_memory": Signature(writes=(Address(0),), collective=Collective.WARP),
        "ptx_deallocate_tensor_memory": Signature(reads=(Address(0),), collective=Collective.WARP),
        "tcgen05_ld": _load,
        "tcgen05_st": _store,
        "ptx_tcgen05_cp_warpx4": Signature(
            reads=(Address(0),),
            writes=(Address(1, offset=2),),
            asynchronous=Completion.TENSOR_COMMIT,
            proxy=Proxy.ASYNC,
            collective=Collective.WARP,
        ),
        "ptx_tcgen05_sf_warp_transpose": Signature(updates=(Address(0),), collective=Collective.WARP),
        "tcgen05_mma_arrive": Signature(
            mbarrier=0, releases=True, commits=Completion.TENSOR_COMMIT, collective=Collective.WARP
        ),
        "tcgen05_before_thread_sync": _FENCE,
        "tcgen05_after_thread_sync": _FENCE,
    },
    needs="tcgen05",
)

# Scale factors on their way from shared memory into tensor memory: the source and the destination come first.
SCALE_COPIES = frozenset(name for name in FAMILY.signatures if name.startswith("ptx_tcgen05_cp_"))

PRODUCTS = Family(
    "tcgen05.mma",
    "PTX 9.7.16.10",
    {
        "ptx_tcgen05_mma_ss": _product(1, 3, adds=5),
        "ptx_tcgen05_mma_ts": _product(1, 3, adds=5),
        "ptx_tcgen05_mma_blockscaled_ss": Signature(
            reads=(Address(1, offset=2), Address(3, offset=4), Address(9, offset=10), Address(11, offset=12)),
            updates=(Address(5, offset=6),),
            asynchronous=Completion.TENSOR_COMMIT,
            proxy=Proxy.ASYNC,
            collective=Collective.WARP,
        ),
    },
    needs="tcgen05",
    counted=CountedAs.TENSOR_PRODUCT,
)

DESCRIPTORS = Family(
    "tcgen05 matrix descriptor",
    "PTX 9.7.16.4.1",
    {"initialize_tcgen05_descriptor": Signature(writes=(Address(0),))},
    needs="tcgen05",
)
