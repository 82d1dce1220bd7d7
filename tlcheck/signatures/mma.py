"""mma.sync: a warp multiplies matrices that its threads hold in registers."""

from __future__ import annotations

from tlcheck.signatures.signature import Address, Collective, CountedAs, Family, Signature

_A, _B, _C, _METADATA = Address(6, offset=7), Address(8, offset=9), Address(10, offset=11), Address(12, offset=13)

MMA = Family(
    "mma",
    "PTX 9.7.14.5",
    {"ptx_mma": Signature(reads=(_A, _B), updates=(_C,), collective=Collective.WARP)},
    needs="mma",
    counted=CountedAs.PRODUCT,
)

MMA_SP = Family(
    "mma.sp",
    "PTX 9.7.14.6",
    {"ptx_mma_sp": Signature(reads=(_A, _B, _METADATA), updates=(_C,), collective=Collective.WARP)},
    needs="mma.sp",
    counted=CountedAs.PRODUCT,
)

MMA_BLOCK_SCALE = Family(
    "mma with block scaling",
    "PTX 9.7.14.3",
    {
        "ptx_mma_block_scale": Signature(
            reads=(Address(9, offset=10), Address(11, offset=12), Address(15), Address(16)),
            updates=(Address(13, offset=14),),
            collective=Collective.WARP,
        )
    },
    needs="mma.block_scale",
    counted=CountedAs.PRODUCT,
)
