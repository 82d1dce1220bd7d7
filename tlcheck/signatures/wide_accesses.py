"""ld and st of 32 to 256 bits by a thread: T.ldg32 to T.stg256, T.lds32 to T.sts128."""

from __future__ import annotations

from tlcheck.signatures.signature import Address, Family, Signature

_LOAD, _STORE = Signature(reads=(Address(0),)), Signature(writes=(Address(0),))

FAMILY = Family(
    "ld and st",
    "PTX 9.7.9",
    {
        **{f"ldg{bits}": _LOAD for bits in (32, 64, 128, 256)},
        **{f"lds{bits}": _LOAD for bits in (32, 64, 128)},
        **{f"stg{bits}": _STORE for bits in (32, 64, 128, 256)},
        **{f"sts{bits}": _STORE for bits in (32, 64, 128)},
    },
)

BULK = Family("st.bulk", "PTX 9.7.9.14", {"ptx_st_bulk_shared": _STORE}, needs="st.bulk")
