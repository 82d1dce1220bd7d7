"""ldmatrix and stmatrix: a warp moves 8x8 matrices between shared memory and registers."""

from __future__ import annotations

from tlcheck.signatures.signature import Address, Collective, CountedAs, Family, Signature
from tlcheck.snapshot.ir import Expr


def _load(name: str, args: tuple[Expr, ...]) -> Signature:
    """(transposed, number, source, destination).

    In old releases (transposed, number, ".b16", destination, its offset in elements, source, its offset).
    """
    target, source = (Address(3, offset=4), Address(5, offset=6)) if len(args) > 4 else (Address(3), Address(2))
    return Signature(reads=(source,), writes=(target,), collective=Collective.WARP)


LDMATRIX = Family("ldmatrix", "PTX 9.7.14.5.15", {"ptx_ldmatrix": _load}, needs="ldmatrix", counted=CountedAs.MATRICES)

STMATRIX = Family(
    "stmatrix",
    "PTX 9.7.14.5.16",
    {"ptx_stmatrix": Signature(writes=(Address(2),), collective=Collective.WARP)},
    needs="stmatrix",
    counted=CountedAs.MATRICES,
)
