"""mfma: a wave multiplies matrices that its lanes hold in registers; transposing reads that fetch them."""

from __future__ import annotations

from tlcheck.signatures.signature import Address, Collective, CountedAs, Family, Signature

FAMILY = Family(
    "mfma",
    'CDNA3 ISA and CDNA4 ISA, "Matrix Arithmetic Instructions"',
    {
        "tvm_mfma": Signature(
            reads=(Address(6, offset=7), Address(8, offset=9)),
            updates=(Address(10, offset=11),),
            collective=Collective.WARP,
        )
    },
    needs="mfma",
    counted=CountedAs.NAMED_PRODUCT,
)

TRANSPOSED = Family(
    "ds_read_tr",
    'CDNA4 ISA, "LDS", DS_READ_B64_TR_B16 and DS_READ_B64_TR_B8',
    {
        name: Signature(reads=(Address(0),), exchanges=True, collective=Collective.WARP)
        for name in ("ds_read_tr16_b64", "ds_read_tr8_b64")
    },
    needs="ds_read_tr",
)
