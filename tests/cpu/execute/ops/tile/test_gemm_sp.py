"""T.gemm_sp, against a dense product of a matrix that is pruned and compressed here."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Array, Kernel, call, flag, number, random, region
from tlcheck.execute.stops import NotModelled

M, N, K = 4, 5, 32


def pruned(dtype: str) -> tuple[Array, Array, list[list[int]]]:
    """A matrix of which each group keeps its elements at random places; these elements; 4 bits for each group."""
    group, kept = (2, 1) if dtype == "float32" else (4, 2)
    a, generator = random(dtype, M, K), np.random.default_rng(3)
    dense, elements, places = np.zeros_like(a), [], []
    for row in range(M):
        for first in range(0, K, group):
            chosen = sorted(generator.choice(group, kept, replace=False).tolist())
            dense[row, [first + c for c in chosen]] = a[row, [first + c for c in chosen]]
            elements += [a[row, first + c] for c in chosen]
            places.append({0: 0b0100, 1: 0b1110}[chosen[0]] if group == 2 else chosen[0] | chosen[1] << 2)
    count = len(places) // M
    return (
        dense,
        np.array(elements, a.dtype).reshape(M, K // 2),
        [places[r * count : (r + 1) * count] for r in range(M)],
    )


def packed(places: list[list[int]], dtype: str) -> Array:
    bits = int(dtype[3:])
    each = bits // 4
    rows = [
        [sum(p << 4 * i for i, p in enumerate(row[g : g + each])) for g in range(0, len(row), each)] for row in places
    ]
    return np.array(rows, np.uint64).astype(f"uint{bits}").view(dtype)


@pytest.mark.parametrize("metadata", ["int8", "int16", "int32"])
@pytest.mark.parametrize("across", list(itertools.product([False, True], repeat=3)))
@pytest.mark.parametrize(("dtype", "result"), [("float16", "float32"), ("float32", "float32"), ("int8", "int32")])
def test_products(dtype: str, result: str, across: tuple[bool, bool, bool], metadata: str) -> None:
    dense, kept, places = pruned(dtype)
    e, b, c = packed(places, metadata), random(dtype, K, N, seed=1), random(result, M, N, seed=2)
    kernel = Kernel()
    arrays = [x.T.copy() if turned else x for x, turned in zip((kept, e, b), across, strict=True)]
    kinds = (dtype, metadata, dtype)
    operands = [kernel.tensor(n, k, x) for n, k, x in zip("AEB", kinds, arrays, strict=True)]
    target = kernel.tensor("C", result, c)
    sizes = [number(n) for n in (M, N, K, 0)]
    step = call("gemm_sp", *[region(o) for o in (*operands, target)], *[flag(f) for f in across], *sizes, flag(False))
    wide = np.int64 if result == "int32" else np.float64
    expected = (c.astype(wide) + dense.astype(wide) @ b.astype(wide)).astype(c.dtype)
    assert np.array_equal(kernel.run(step)["C"], expected)


def test_metadata_in_the_order_of_cutlass_is_not_modelled() -> None:
    kernel = Kernel()
    tensors = [kernel.tensor(name, "float16", [M, K]) for name in "AEBC"]
    sizes = [number(n) for n in (M, N, K, 0)]
    with pytest.raises(NotModelled, match="CUTLASS"):
        kernel.run(call("gemm_sp", *[region(t) for t in tensors], flag(False), flag(False), *sizes, flag(False)))
