"""T.gemm in all its forms, against NumPy's matrix product."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import (
    Array,
    Kernel,
    call,
    flag,
    number,
    poisoned,
    random,
    region,
    whole_pointer,
)
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Evaluate, Expr

M, N, K = 6, 5, 8


def form(across: bool, rows: int, columns: int) -> tuple[int, int]:
    return (columns, rows) if across else (rows, columns)


def product(operands: list[Expr], across: tuple[bool, bool], clear: Expr, name: str = "gemm") -> Evaluate:
    sizes = [number(n) for n in (M, N, K)]
    return call(name, *operands, flag(across[0]), flag(across[1]), *sizes, number(1), clear, *[number(0)] * 3)


def kernel_of(a: Array, b: Array, c: Array, dtype: str, accumulator: str, exact: bool = True) -> Kernel:
    kernel = Kernel(exact=exact)
    for name, array, kind in (("A", a, dtype), ("B", b, dtype), ("C", c, accumulator)):
        kernel.tensor(name, kind, array)
        kernel.tile(f"{name}_s", kind, array.shape, "local.fragment" if name == "C" else "shared.dyn")
    return kernel


def run(kernel: Kernel, step: Evaluate) -> Array:
    """Copy the operands in, do the product, copy the result out."""
    tensors, tiles = [b for b, _ in kernel.tensors.values()], kernel.tiles
    copies = [call("copy", region(t), region(s)) for t, s in zip(tensors, tiles, strict=True)]
    return kernel.run(*copies, step, call("copy", region(tiles[2]), region(tensors[2])))["C"]


@pytest.mark.parametrize("name", ["gemm", "gemm_py", "gemm_v1", "gemm_v2", "wgmma_gemm"])
@pytest.mark.parametrize("clear", [False, True])
@pytest.mark.parametrize("across", list(itertools.product([False, True], [False, True])))
def test_flags_say_what_is_transposed_and_cleared(across: tuple[bool, bool], clear: bool, name: str) -> None:
    a, b = random("float16", *form(across[0], M, K)), random("float16", *form(across[1], K, N), seed=1)
    c = random("float32", M, N, seed=2)
    kernel = kernel_of(a, b, c, "float16", "float32")
    found = run(kernel, product([region(t) for t in kernel.tiles], across, flag(clear), name))
    expected = (a.T if across[0] else a) @ (b.T if across[1] else b) + (0 if clear else c)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("dtype", "accumulator"),
    [("int8", "int32"), ("uint8", "int32"), ("int32", "int32"), ("float8_e4m3fn", "float32"), ("bfloat16", "float32")],
)
def test_dtypes(dtype: str, accumulator: str) -> None:
    """Integers wrap at the accumulator's width."""
    a, b, c = random(dtype, M, K), random(dtype, K, N, seed=1), random(accumulator, M, N, seed=2)
    kernel = kernel_of(a, b, c, dtype, accumulator)
    found = run(kernel, product([region(t) for t in kernel.tiles], (False, False), flag(False)))
    wide = np.int64 if accumulator == "int32" else np.float64
    with np.errstate(over="ignore"):
        expected = (c.astype(wide) + a.astype(wide) @ b.astype(wide)).astype(c.dtype)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("terms", [16, 48])
def test_real_sums_are_rounded_after_each_step_of_the_tensor_cores(dtype: str, terms: int) -> None:
    """Sixteen numbers of 16 bits are added by themselves, whatever T.gemm multiplies at once."""
    small = np.dtype(np.float16) if dtype == "float16" else np.dtype(ml_dtypes.bfloat16)
    sides = random("float16", M, terms) / 3, random("float16", terms, N, seed=1)
    a, b = (side.astype(np.float16) for side in sides)
    kernel = kernel_of(a, b, np.zeros((M, N)), "float16", dtype, exact=False)
    found = run(kernel, product([region(t) for t in kernel.tiles], (False, False), flag(True)))
    wide = a.astype(np.float64), b.astype(np.float64)
    expected = np.zeros((M, N))
    for first in range(0, terms, 16):
        part = wide[0][:, first : first + 16] @ wide[1][first : first + 16]
        expected = (expected + part).astype(small).astype(np.float64)
    assert np.array_equal(found, expected)
    once = (wide[0] @ wide[1]).astype(small).astype(np.float64)
    assert np.array_equal(found, once) == (terms == 16)


def test_real_sums_of_float32_are_rounded_once() -> None:
    a, b = (random("float16", *shape).astype(np.float16) / 3 for shape in ((M, 48), (48, N)))
    kernel = kernel_of(a, b, np.zeros((M, N)), "float16", "float32", exact=False)
    found = run(kernel, product([region(t) for t in kernel.tiles], (False, False), flag(True)))
    assert np.array_equal(found, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32))


def test_clearing_on_a_condition_of_the_block() -> None:
    kernel, a, b = Kernel(blocks=3), random("float32", M, K), random("float32", K, N, seed=1)
    c = random("float32", 3, M, N, seed=2)
    tensors = [kernel.tensor(n, "float32", x) for n, x in (("A", a), ("B", b), ("C", c))]
    accumulator = kernel.tile("f", "float32", (M, N), "local.fragment")
    first = Expr("eq", "bool", (kernel.bx, number(1)))
    part = region(tensors[2], (kernel.bx, 0, 0), (1, M, N))
    found = kernel.run(
        call("copy", part, region(accumulator)),
        product([region(tensors[0]), region(tensors[1]), region(accumulator)], (False, False), first),
        call("copy", region(accumulator), part),
    )["C"]
    expected = a @ b + c
    expected[1] = a @ b
    assert np.array_equal(found, expected)


def test_stages_and_columns_of_larger_tiles() -> None:
    a, b, c = random("float32", 2, M, 20), random("float32", 3, K, N, seed=1), np.zeros((M, N))
    kernel = kernel_of(a, b, c, "float32", "float32")
    first = region(kernel.tiles[0], (1, 0, 4), (1, M, K))
    second = region(kernel.tiles[1], (2, 0, 0), (1, K, N))
    found = run(kernel, product([first, second, region(kernel.tiles[2])], (False, False), flag(True)))
    assert np.array_equal(found, a[1, :, 4:12] @ b[2])


def test_pointers_with_strides_and_offsets() -> None:
    """As 0.1.6 passes them: a pointer to the stage, the first column as an offset."""
    a, b, c = random("float32", 2, M, 20), random("float32", N, K + 3, seed=1), random("float32", M, N, seed=2)
    kernel = kernel_of(a, b, c, "float32", "float32")
    pointers = [
        whole_pointer(kernel.tiles[0], M * 20),
        whole_pointer(kernel.tiles[1]),
        whole_pointer(kernel.tiles[2]),
    ]
    sizes, strides = [number(n) for n in (M, N, K, 1)], [number(n) for n in (20, K + 3, 4, 3)]
    step = call("gemm", *pointers, flag(False), flag(True), *sizes, flag(False), *strides)
    assert np.array_equal(run(kernel, step), a[1, :, 4:12] @ b[:, 3:].T + c)


def test_a_pointer_to_a_tile_of_another_shape() -> None:
    """The rows of a reshaped tile go over its last two axes."""
    a, b, c = random("float32", 2, M // 2, K), random("float32", K, N, seed=1), random("float32", M, N, seed=2)
    kernel = kernel_of(a, b, c, "float32", "float32")
    pointers = [whole_pointer(tile) for tile in kernel.tiles[:3]]
    sizes, strides = [number(n) for n in (M, N, K, 1)], [number(n) for n in (K, N, 0, 0)]
    step = call("gemm", *pointers, flag(False), flag(False), *sizes, flag(False), *strides)
    assert np.array_equal(run(kernel, step), a.reshape(M, K) @ b + c)


def test_poison_of_an_operand_reaches_its_row() -> None:
    kernel, b = Kernel(), random("float32", K, N)
    source, target = kernel.tensor("B", "float32", b), kernel.tensor("C", "float32", [M, N])
    operand, accumulator = kernel.tile("a", "float32", (M, K)), kernel.tile("f", "float32", (M, N), "local.fragment")
    one = Expr("float", "float32", (), 1.0)
    found = kernel.run(
        call("fill", region(operand, (0, 0), (M - 1, K)), one),
        product([region(operand), region(source), region(accumulator)], (False, False), flag(True)),
        call("copy", region(accumulator), region(target)),
    )["C"]
    assert poisoned(found[M - 1]).all()
    assert np.array_equal(found[:-1], np.ones((M - 1, K)) @ b)


def test_what_is_not_one_matrix_is_not_modelled() -> None:
    a, b, c = random("float32", 2, M, K), random("float32", K, N), np.zeros((M, N))
    kernel = kernel_of(a, b, c, "float32", "float32")
    with pytest.raises(NotModelled, match="more than two axes"):
        run(kernel, product([region(t) for t in kernel.tiles], (False, False), flag(True)))
