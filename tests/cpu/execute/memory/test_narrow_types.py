"""Types of less than 8 bits: numbers, their bits, and bytes that are seen as several of them."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, region
from tlcheck.execute.memory.cells import Cells
from tlcheck.execute.memory.values import bits_of, converted, from_bits, kind_of
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr, Store

FLOATS = {
    "float4_e2m1fn": ml_dtypes.float4_e2m1fn,
    "float6_e2m3fn": ml_dtypes.float6_e2m3fn,
    "float6_e3m2fn": ml_dtypes.float6_e3m2fn,
}


@pytest.mark.parametrize("name", FLOATS)
def test_floats_have_their_bits(name: str) -> None:
    kind = kind_of(name)
    bits = np.arange(1 << kind.bits, dtype=np.uint8)
    values = from_bits(bits, kind)
    assert np.array_equal(values, bits.view(FLOATS[name]).astype(np.float64))
    assert np.array_equal(from_bits(bits_of(values, kind), kind), values)
    assert converted(1e6, kind_of("float32"), kind, exact=False) == values.max()


def test_integers_of_four_bits() -> None:
    signed, unsigned, wide = kind_of("int4"), kind_of("uint4"), kind_of("int32")
    bits = np.arange(16, dtype=np.uint8)
    assert from_bits(bits, signed).tolist() == [*range(8), *range(-8, 0)]
    assert bits_of(from_bits(bits, signed), signed).tolist() == bits.tolist()
    numbers = np.array([7, 8, -8, -9, 17], np.int32)
    assert np.asarray(converted(numbers, wide, signed, exact=True)).tolist() == [7, -8, -8, 7, 1]
    assert np.asarray(converted(numbers, wide, unsigned, exact=True)).tolist() == [7, 8, 8, 7, 1]
    assert [converted(n, wide, signed, exact=True) for n in (8, -9)] == [-8, 7]


def test_a_byte_is_two_numbers_the_lower_half_first() -> None:
    kernel, octets = Kernel(), np.arange(0, 256, 8, dtype=np.uint8)
    source, target = kernel.tensor("A", "uint8", octets), kernel.tensor("B", "float32", [64])
    halves = replace(source, dtype="float4_e2m1fn", shape=(number(64),))
    found = kernel.run(call("copy", region(halves), region(target)))["B"]
    nibbles = np.stack([octets & 15, octets >> 4], axis=-1).reshape(-1)
    assert np.array_equal(found, nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float64))


def test_bytes_of_shared_memory_are_two_numbers_each() -> None:
    kernel, octets = Kernel(threads=1), np.arange(0, 256, 8, dtype=np.uint8)
    source, target = kernel.tensor("A", "uint8", octets), kernel.tensor("B", "float4_e2m1fn", [64])
    tile = kernel.tile("tile", "uint8", [octets.size])
    halves = replace(tile, dtype="float4_e2m1fn", shape=(number(64),))
    copies = [call("copy", region(source), region(tile)), call("copy", region(halves), region(target))]
    found = kernel.run(*copies)["B"]
    nibbles = np.stack([octets & 15, octets >> 4], axis=-1).reshape(-1)
    assert np.array_equal(found, nibbles.view(ml_dtypes.float4_e2m1fn).astype(np.float64))


def test_types_that_share_bits_and_atomics_are_not_modelled() -> None:
    with pytest.raises(NotModelled, match="one memory as int8 and float6_e2m3fn"):
        Cells(64, (kind_of("int8"), kind_of("float6_e2m3fn")), (0,), 1)
    kernel = Kernel(threads=32)
    a, b = kernel.tensor("A", "int4", [32]), kernel.tensor("B", "int32", [32])
    address = Expr("call", "handle", (load(a, kernel.tx),), "address_of")
    value = Expr("call", "int32", (address,), "atomic_load_elem_op")
    with pytest.raises(NotModelled, match="an atomic on int4"):
        kernel.run(Store(b, (kernel.tx,), value))
