"""Loads and stores of many bits, against views of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Array, Kernel, buffer, call, load, multiply, number, random, region
from tlcheck.execute.machine_options import Options
from tlcheck.execute.stops import Illegal, NotModelled, Unaligned
from tlcheck.snapshot.ir import Bind, Expr, If, Seq, Store
from tlcheck.targets.lookup import target

THREADS = 8


def pointer(first: Expr) -> Expr:
    return Expr("call", "handle", (first, number(1), number(3)), "access_ptr")


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize(("bits", "space"), [(32, "g"), (64, "g"), (128, "g"), (256, "g"), (64, "s"), (128, "s")])
def test_bits_go_through(space: str, bits: int, dtype: str, half: bool) -> None:
    """Each thread moves its elements; with a predicate, only the first half of the threads."""
    width = {"float16": 16, "float32": 32, "int8": 8}[dtype]
    count, words = bits // width, bits // 32
    kernel, a, b = Kernel(threads=THREADS), random(dtype, THREADS * count), random(dtype, THREADS * count, seed=1)
    source, target = kernel.tensor("A", dtype, a), kernel.tensor("B", dtype, b)
    first, second = kernel.tile("s", dtype, (THREADS * count,)), kernel.tile("t", dtype, (THREADS * count,))
    at, word = multiply(kernel.tx, count), f"uint32x{words}" if words > 1 else "uint32"
    predicate = (Expr("lt", "bool", (kernel.tx, number(THREADS // 2))),) if half and space == "g" else ()
    read, write = (source, target) if space == "g" else (first, second)
    value = Expr("call", word, (pointer(load(read, at)),), f"ld{space}{bits}")
    found = kernel.run(
        call("copy", region(source), region(first)),
        call("copy", region(target), region(second)),
        Seq((call(f"st{space}{bits}", pointer(load(write, at)), value, *predicate),)),
        *([] if space == "g" else [call("copy", region(second), region(target))]),
    )["B"]
    expected = np.where(np.arange(THREADS * count) < THREADS * count // 2, a, b) if predicate else a
    assert np.array_equal(found, expected)


def test_words_have_the_first_element_lowest_and_a_false_predicate_gives_zero() -> None:
    kernel, a = Kernel(threads=2), np.array([1.0, 2.0, -3.0, 0.5])
    source, target = kernel.tensor("A", "float16", a), kernel.tensor("B", "uint32", np.zeros(2, np.uint32))
    chosen = Expr("eq", "bool", (kernel.tx, number(0)))
    value = Expr("call", "uint32", (pointer(load(source, multiply(kernel.tx, 2))), chosen), "ldg32")
    found = kernel.run(call("stg32", pointer(load(target, kernel.tx)), value))["B"]
    assert found.tolist() == [int(a[:2].astype(np.float16).view(np.uint32)[0]), 0]


def test_floats_that_are_only_passed_as_words_stay_exact() -> None:
    kernel, a = Kernel(threads=2), np.array([0.1, 0.3], np.float32)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", np.zeros(2, np.float32))
    square = Expr("mul", "float32", (load(source, kernel.tx), load(source, kernel.tx)))
    found = kernel.run(
        call("stg32", pointer(load(target, kernel.tx)), Expr("call", "uint32", (square,), "reinterpret"))
    )
    assert found["B"].tolist() == (a.astype(np.float64) ** 2).tolist()


def test_floats_that_are_only_read_as_words_stay_exact() -> None:
    """A sum in memory: as words, each of its steps would be rounded."""
    kernel, a = Kernel(threads=2), np.array([0.1, 0.3], np.float32)
    source, target = kernel.tensor("A", "float32", a), kernel.tensor("B", "float32", np.ones(2, np.float32))
    place = pointer(load(target, kernel.tx))
    words = Expr("call", "uint32", (place,), "ldg32")
    total = Expr("add", "float32", (Expr("call", "float32", (words,), "reinterpret"), load(source, kernel.tx)))
    step = call("stg32", place, Expr("call", "uint32", (total,), "reinterpret"))
    expected = 1.0 + a.astype(np.float64) + a.astype(np.float64)
    assert kernel.run(step, step)["B"].tolist() == expected.tolist()


def zeroed(options: Options, first: int = 0) -> dict[str, Array]:
    """st.bulk by one thread over 32 bytes from an element of float32 on, in shared memory of 16 elements with ones."""
    kernel = Kernel(threads=16, lowered=options)
    shared, out = kernel.tile("s", "float32", (16,)), kernel.tensor("B", "float32", np.full(16, 7.0))
    ones = Store(shared, (kernel.tx,), Expr("float", "float32", (), 1.0))
    bulk = call("ptx_st_bulk_shared", pointer(load(shared, first)), number(32), number(0))
    alone = If(Expr("eq", "bool", (kernel.tx, number(3))), bulk)
    return kernel.run(ones, alone, Store(out, (kernel.tx,), load(shared, kernel.tx)))


def test_bulk_zeros() -> None:
    found = zeroed(Options(source=False, target=target("sm_100")), 4)["B"]
    assert found.tolist() == [1.0] * 4 + [0.0] * 8 + [1.0] * 4


def test_bulk_zeros_begin_at_16_bytes_and_stay_within_the_buffer() -> None:
    with pytest.raises(Unaligned, match="no multiple of 16 bytes"):
        zeroed(Options(source=False, target=target("sm_100")), 2)
    with pytest.raises(Illegal, match="out of bounds"):
        zeroed(Options(source=False, target=target("sm_100")), 12)


def test_bulk_zeros_are_of_sm_100() -> None:
    with pytest.raises(NotModelled, match="ptx_st_bulk_shared on sm_90"):
        zeroed(Options(source=False, target=target("sm_90")))


def test_bulk_zeros_of_merged_memory_are_counted_in_bytes() -> None:
    """Up to 0.1.12 the address is of the whole, and no element of it is a byte."""
    kernel = Kernel(threads=16, lowered=Options(source=False, target=target("sm_100")))
    whole, out = kernel.tile("buf_dyn_shmem", "uint8", (64,)), kernel.tensor("B", "float32", np.full(16, 7.0))
    part = buffer("s", "float32", (16,), "shared.dyn")
    bound = Bind(part.data, call("handle_add_byte_offset", whole.data, number(0)).value)
    ones = Store(part, (kernel.tx,), Expr("float", "float32", (), 1.0))
    place = call("handle_add_byte_offset", whole.data, number(16)).value
    alone = If(Expr("eq", "bool", (kernel.tx, number(3))), call("ptx_st_bulk_shared", place, number(32), number(0)))
    found = kernel.run(bound, ones, alone, Store(out, (kernel.tx,), load(part, kernel.tx)))["B"]
    assert found.tolist() == [1.0] * 4 + [0.0] * 8 + [1.0] * 4
