"""Names of instructions that multiply matrices, as a gate counts them: `mma m16n8k16 fp16 fp16 fp32`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile

from tlcheck.signatures.signature import CountedAs
from tlcheck.signatures.table import family_of, signature_of
from tlcheck.signatures.tcgen05 import bits, constant_bits, descriptor, is_of_pair, shape_of, weights_stay
from tlcheck.snapshot.ir import Expr

_PREFIX = re.compile("ptx_|tvm_")
_SHAPE = re.compile(r"m\d+n\d+k\d+")
_OPERANDS = 2  # of a product without factors
_SUMS = {0: "fp16", 1: "fp32", 2: "int32"}  # by their code in a descriptor (PTX 9.7.16.4.2)


def product_name(e: Expr) -> str:
    """Return the kind of a product, its shape and its types, without the order of rows and columns."""
    family = family_of(e)
    words = _WORDS[family.counted](e) if family is not None and family.counted is not None else ()
    return " ".join((_PREFIX.sub("", str(e.value), count=1).replace("_", " "), *words))


def _of_arguments(e: Expr) -> Iterable[str]:
    """Return the words and numbers before the operands, the shape first: block scaling names the sums before it."""
    named = takewhile(lambda a: a.op in ("str", "int"), e.args)
    words = [str(a.value) for a in named if a.dtype != "bool" and a.value not in ("row", "col")]
    return sorted(words, key=lambda word: not _SHAPE.fullmatch(word))


def _of_name(e: Expr) -> Iterable[str]:
    return (str(e.args[0].value),)


def _of_descriptor(e: Expr) -> Iterable[str]:
    """Yield the shape if it is constant, the types of A and of the sums, and the form. K follows from the type of A."""
    word, signature = constant_bits(descriptor(e)), signature_of(e)
    m, n = shape_of(word)
    yield from (f"m{m}n{n}" if word else "m?n?", str(e.args[0].value))
    is_scaled = signature is not None and len(signature.reads) > _OPERANDS
    sums = _SUMS.get(bits(word, 4, 2), "?") if word else "?"
    yield "fp32" if is_scaled else sums  # block scaling has no other sums
    if weights_stay(e):
        yield "ws"
    if is_of_pair(e):
        yield "cta_group::2"


_WORDS: Mapping[CountedAs, Callable[[Expr], Iterable[str]]] = {
    CountedAs.PRODUCT: _of_arguments,
    CountedAs.NAMED_PRODUCT: _of_name,
    CountedAs.TENSOR_PRODUCT: _of_descriptor,
}
