"""Find what a tcgen05.mma multiplies: its instruction descriptor (PTX 9.7.16.4.2), and where its matrices lie in tensor
memory (PTX 9.7.16.10.5, "Data Path Layout Organization").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tlcheck.execute.memory.values import Array, Kind, kind_of
from tlcheck.execute.ops.thread.mma import kind_named
from tlcheck.execute.stops import Illegal, NotModelled
from tlcheck.signatures.tcgen05 import bits, constant_bits, descriptor, is_of_pair, shape_of, weights_stay
from tlcheck.snapshot.ir import Expr

LANES = 128  # of tensor memory
_ROW_BITS = 256  # of a row of A that one instruction multiplies
# of each kind of instruction: elements of A and B, and of the sums, by their codes
_ELEMENTS = {
    "f16": {0: "float16", 1: "bfloat16"},
    "tf32": {2: "float32"},
    "f8f6f4": {
        0: "float8_e4m3fn",
        1: "float8_e5m2",
        3: "float6_e2m3_unpacked",
        4: "float6_e3m2_unpacked",
        5: "float4_e2m1_unpacked",
    },
    "i8": {0: "uint8", 1: "int8"},
}
_SUMS = {
    "f16": {0: "float16", 1: "float32"},
    "tf32": {1: "float32"},
    "f8f6f4": {0: "float16", 1: "float32"},
    "i8": {2: "int32"},
}
_KIND_OF = {
    "float16": "f16",
    "bfloat16": "f16",
    "float32": "tf32",
    "float8_e4m3fn": "f8f6f4",
    "float8_e5m2": "f8f6f4",
    "float6_e2m3fn": "f8f6f4",
    "float6_e3m2fn": "f8f6f4",
    "float4_e2m1fn": "f8f6f4",
    "int8": "i8",
    "uint8": "i8",
}
_NOT_MODELLED = {
    (0, 2): "a sparsity selector",
    (2, 1): "sparse A",
    (3, 1): "saturation",
    (13, 2): "a negated operand",
    (30, 2): "a shift of B",
}


@dataclass(frozen=True)
class ProductForm:
    """An instruction: shape, kinds of A, B and the sums, which operands are K-major. stays: whether it is .ws. blocks:
    1, or 2 for a pair of blocks (.cta_group::2), of which each has half of the rows of A and of the columns of B.
    """

    m: int
    n: int
    k: int
    left: Kind
    right: Kind
    sum: Kind
    left_by_k: bool
    right_by_k: bool
    stays: bool
    blocks: int = 1

    @property
    def is_lawful(self) -> bool:
        """Whether the instruction has this shape (PTX 9.7.16.2.1, tables of shapes)."""
        m, n = self.m, self.n
        if self.blocks > 1:
            return m in (128, 256) and n % 16 == 0 and 16 <= n <= 256
        if self.stays:
            return m in (32, 64, 128) and n in (64, 128, 256)
        if not 8 <= n <= 256:
            return False
        if self.left.family in ("int", "uint"):
            return m in (64, 128) and (n in (8, 24) or n % 16 == 0)
        return (m == 64 and n % 8 == 0) or (m == 128 and n % 16 == 0)


def form_of(e: Expr) -> ProductForm:
    """The form of a call. Raises NotModelled for one that is not known."""
    word = descriptor(e)
    if word.op != "int" or not isinstance(word.value, int):
        raise NotModelled(f"{e.value} with an instruction descriptor that is no constant")
    named = kind_named(e.args[0])
    kind = _KIND_OF.get(named.name)
    if kind is None:
        raise NotModelled(f"{e.value} of {named.name}")
    return replace(decode(word.value, kind, weights_stay(e)), blocks=2 if is_of_pair(e) else 1)


SCALE_BITS = 3 << 29 | 3 << 4
"""The bits of a block-scaled instruction's descriptor that say which byte of a word is the factor of A, and of B."""


def scaled_form_of(e: Expr) -> ProductForm:
    """The form of a block-scaled product. Raises NotModelled for one that is not known.

    Its descriptor may vary in the numbers of the factors alone, which are added with `bitwise_or`.
    """
    word, named = constant_bits(descriptor(e)), kind_named(e.args[0])
    if _KIND_OF.get(named.name) != "f8f6f4" or not word >> 23 & 1 or word >> 31:
        raise NotModelled(f"{e.value} of {named.name} with the descriptor {word:#x}")
    plain = word & ~SCALE_BITS & ~(1 << 23) | 1 << 4  # its sums are float32
    return replace(decode(plain, "f8f6f4"), blocks=2 if is_of_pair(e) else 1)


def numbers_of(word: Array, constant: int) -> tuple[Array, Array]:
    """Return which byte of a word is the factor of A, and of B. Raises NotModelled for descriptors that differ
    elsewhere.
    """
    if ((word ^ constant) & ~SCALE_BITS & 0xFFFFFFFF).any():
        raise NotModelled("tcgen05.mma with a descriptor that varies")
    return word >> 29 & 3, word >> 4 & 3


def decode(word: int, kind: str, stays: bool = False) -> ProductForm:
    """Return what the bits of an instruction descriptor say, for an instruction of a kind such as f16."""
    for (place, width), what in _NOT_MODELLED.items():
        if bits(word, place, width):
            raise NotModelled(f"tcgen05.mma with {what}")
    try:
        left, right = (kind_of(_ELEMENTS[kind][bits(word, place, 3)]) for place in (7, 10))
        total = kind_of(_SUMS[kind][bits(word, 4, 2)])
    except KeyError:
        raise NotModelled(f"tcgen05.mma.kind::{kind} with the descriptor {word:#x}") from None
    left_by_k, right_by_k = (not bits(word, place, 1) for place in (15, 16))
    m, n = shape_of(word)
    return ProductForm(m, n, _ROW_BITS // left.bits, left, right, total, left_by_k, right_by_k, stays)


def refuse_other_shapes(form: ProductForm, line: int, world: int, thread: int) -> None:
    """Raise Illegal for a shape that no instruction has."""
    if not form.is_lawful:
        ws = ".ws" if form.stays else ".cta_group::2" if form.blocks > 1 else ""
        what = f"tcgen05.mma{ws} of {form.m} x {form.n} x {form.k} with A of {form.left.name}: there is no such shape"
        raise Illegal(what, line, world, thread)


@lru_cache(maxsize=32)
def rows_and_columns(m: int, n: int, stays: bool, blocks: int = 1) -> tuple[Array, Array]:
    """Lane and column, from the sums' address on, of each element of an M x N matrix of sums; both (m, n).

    M of 128 has a lane for each row (Layout D), M of 64 the lower half of the lanes of each warp (Layout F). With .ws,
    M of 64 has two halves of N below one another (Layout E), M of 32 four quarters (Layout G). Each of two blocks has
    half of the rows: of 256 with a lane for each (Layout A), of 128 with two halves of N below one another (Layout B).
    """
    if blocks > 1:
        return _in_halves(m // 2, n)
    row, column = (np.asarray(a) for a in np.broadcast_arrays(*np.ogrid[:m, :n]))
    if m == 64 and not stays:
        return row // 16 * 32 + row % 16, column
    if m in (32, 64):
        part = n * m // 128
        return column // part * m + row, column % part
    return row, column


def _in_halves(rows: int, n: int) -> tuple[Array, Array]:
    """The same of each of two blocks, one after the other."""
    row, column = (np.concatenate([a, a]) for a in np.broadcast_arrays(*np.ogrid[:rows, :n]))
    if rows == LANES:
        return row, column
    return column // (n // 2) * rows + row, column % (n // 2)
