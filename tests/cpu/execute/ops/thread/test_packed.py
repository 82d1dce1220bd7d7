"""Packed numbers: decoders that kernels bring along, and DP4A, against the numbers that were packed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.execute.ops.thread.test_wide import pointer
from tests.cpu.execute.ops.tile.building import Array, Kernel, call, load, multiply, number, random, text
from tlcheck.execute.ops.thread import imported
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr, Stmt, Store

THREADS = 4
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])  # e2m1, by its four bits
SOURCE = """
template <typename T1, typename T2>
__device__ void decode_other(T1 *a, T2 *b, const int N = 16)
{ // }
  for (;;) { }
}
"""


def extern(name: str, *args: Expr) -> Stmt:
    return call("call_extern", text(name), *args)


def decoded(name: str, words: Array, form: str, each: int, *count: Expr, known: bool = True) -> Array:
    """Return what a decoder makes of words, one for each thread."""
    kernel = Kernel(threads=len(words))
    source = kernel.tensor("A", "int8", words.view(np.int8))
    target = kernel.tensor("B", form, (each * len(words),))
    places = pointer(load(source, multiply(kernel.tx, 4))), pointer(load(target, multiply(kernel.tx, each)))
    with pytest.MonkeyPatch.context() as patch:
        if known:
            patch.setattr(imported, "digest", lambda text, name: imported._DECODERS[name].digest)
        return kernel.run(extern(name, *places, *count))["B"]


WORDS = np.array([0, 0xFFFFFFFF, 0x76543210, 0xFEDCBA98, 0x1B2D3C4F], np.uint32)


def fields(words: Array, width: int) -> Array:
    """The fields of this many bits of each word, the lowest first."""
    return np.asarray((words[:, None] >> np.arange(0, 32, width, dtype=np.uint32)) & np.uint32((1 << width) - 1))


@pytest.mark.parametrize(("name", "less"), [("decode_i2u_to_i8s", 0), ("decode_i2s_to_i8s", 2)])
def test_two_bits(name: str, less: int) -> None:
    """BufferElement 4i + k is field i of byte k."""
    expected = fields(WORDS, 2).reshape(-1, 4, 4).transpose(0, 2, 1).reshape(-1).astype(np.int8) - less
    assert np.array_equal(decoded(name, WORDS, "int8", 16), expected)


@pytest.mark.parametrize(("name", "less"), [("decode_i4u_to_f16", 0), ("decode_i4s_to_f16", 8)])
def test_four_bits(name: str, less: int) -> None:
    """Elements 2i and 2i + 1 are field i of the lower and of the upper half."""
    expected = fields(WORDS, 4).reshape(-1, 2, 4).transpose(0, 2, 1).reshape(-1).astype(np.float64) - less
    assert np.array_equal(decoded(name, WORDS, "float16", 8), expected)


def test_twiddled_fp4() -> None:
    """Every number in every place."""
    twiddled = np.array([_twiddle(np.roll(np.arange(16), n)[:8]) for n in range(16)], np.uint32)
    expected = np.concatenate([FP4[np.roll(np.arange(16), n)[:8]] for n in range(16)])
    found = decoded("decode_fp4_to_bf16_twiddling", twiddled, "bfloat16", 8, number(1))
    assert np.array_equal(found, expected)


def _twiddle(numbers: Array) -> int:
    """The word of eight e2m1, of which the first four go to the upper half: each bit where the PTX finds it."""
    word = 0
    for place, value in enumerate(numbers.tolist()):
        half, slot = 16 * (place < 4), place % 4
        sign, rest = value >> 3, value & 7
        bits = [(15, sign), (8, rest >> 2), (7, rest >> 1 & 1), (6, rest & 1)]
        for at, bit in bits:
            back = {0: 0, 1: -3, 2: -6}.get(slot)
            if back is None:
                back = {15: -1, 8: 3, 7: 3, 6: 7}[at]
            word |= bit << (half + at + back)
    return int.from_bytes(word.to_bytes(4, "little"), "big")


def test_a_function_of_another_text_is_not_modelled() -> None:
    with pytest.raises(NotModelled, match="another one than TileLang's"):
        decoded("decode_i4u_to_f16", WORDS, "float16", 8, known=False)


def test_a_definition_ends_with_its_brace_and_comments_and_spaces_say_nothing() -> None:
    spaced = SOURCE.replace(" for", "\n\t for").replace("// }", "// something")
    assert imported.digest(SOURCE + "int x;", "decode_other") == imported.digest(spaced, "decode_other")
    assert imported.digest(SOURCE.replace("16", "8"), "decode_other") != imported.digest(SOURCE, "decode_other")


def test_dp4a_adds_the_products_of_four_bytes() -> None:
    kernel = Kernel(threads=THREADS)
    a, b, c = random("int8", THREADS * 4), random("int8", THREADS * 4, seed=1), random("int32", THREADS, seed=2)
    contents = {"A": ("int8", a), "B": ("int8", b), "C": ("int32", c)}
    buffers = [kernel.tensor(name, *held) for name, held in contents.items()]
    at = (multiply(kernel.tx, 4), multiply(kernel.tx, 4), kernel.tx)
    found = kernel.run(extern("DP4A", *[pointer(load(x, i)) for x, i in zip(buffers, at, strict=True)]))["C"]
    products = a.astype(np.int64) * b.astype(np.int64)
    assert np.array_equal(found, (c + products.reshape(-1, 4).sum(1)).astype(np.int32))


def test_a_buffer_of_pairs() -> None:
    """An element of the buffer is a vector: element i has the numbers 2i and 2i + 1."""
    kernel, a = Kernel(threads=THREADS), random("float16", THREADS, 2)
    source, target = kernel.tensor("A", "float16", a), kernel.tensor("B", "float16", (THREADS,))
    pairs = kernel.tile("p", "float16x2", (3,), "local")
    row = Expr("ramp", "int32x2", (number(0), number(1)), 2)
    read = Expr("load", "float16x2", (kernel.tx, row), buffer=source)
    halves = [
        Expr("shuffle", "float16", (replace(load(pairs, 2), dtype="float16x2"), number(lane)), 1) for lane in range(2)
    ]
    total = Expr("add", "float16", tuple(halves))
    found = kernel.run(Store(pairs, (number(2),), read), Store(target, (kernel.tx,), total))["B"]
    assert np.array_equal(found, a.sum(axis=1))
