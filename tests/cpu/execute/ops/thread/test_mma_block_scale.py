"""mma with block scaling against NumPy, with fragments and factors laid out by the formulas of PTX 9.7.14.3."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Array, Kernel, add, call, load, multiply, number, text
from tlcheck.execute.machine_options import Options
from tlcheck.execute.stops import Illegal, NotModelled
from tlcheck.snapshot.ir import Buffer, Evaluate, Expr, For
from tlcheck.targets.lookup import target

LANE = np.arange(32)
NARROW = ("mxf4nvf4", 4, "e2m1", "ue4m3")


def _held(matrix: Array, run: int) -> Array:
    """Split rows (16 or 8, K) by thread: of each 4 runs of neighbours one, 8 rows down, then further on."""
    parts = [
        matrix[down + LANE // 4][LANE[:, None], step + LANE[:, None] % 4 * run + np.arange(run)]
        for step in range(0, matrix.shape[1], 4 * run)
        for down in range(0, len(matrix), 8)
    ]
    return np.concatenate(parts, axis=1)


def _decoded(octets: Array, of: str) -> Array:
    if of == "ue4m3":
        return np.asarray(octets.view(ml_dtypes.float8_e4m3fn).astype(np.float64))
    return np.asarray(np.exp2(octets.astype(np.float64) - 127))


def _address(of: Buffer, place: Expr) -> Expr:
    return Expr("call", "handle", (load(of, place),), "address_of")


def _product(
    kernel: Kernel, form: tuple[str, int, str, str], selectors: tuple[int | Expr, ...], held: dict[str, Array]
) -> Evaluate:
    kind, count, kinds, of = form
    dtype = {"e2m1": "float4_e2m1fn", "e4m3": "float8_e4m3fn"}[kinds]
    a, b = (kernel.tensor(name, dtype, held[name]) for name in "AB")
    c = kernel.tensor("C", "float32", np.zeros((32, 4)))
    of_a, of_b = (kernel.tensor(f"F{name}", "uint32", held[f"F{name}"]) for name in "AB")
    k = 64 if kinds == "e2m1" else 32
    words = [text(w) for w in ("float32", f"m16n8k{k}", "row", "col", kind)]
    words += [number(count), text(kinds), text(kinds), text(of)]
    registers = [e for x, n in ((a, k // 2), (b, k // 4), (c, 4)) for e in (x.data, multiply(kernel.tx, n))]
    factors = [_address(x, kernel.tx) for x in (of_a, of_b)]
    return call("ptx_mma_block_scale", *words, *registers, *factors, *[number(s) for s in selectors])


@pytest.mark.parametrize(
    ("form", "selectors"),
    [
        (NARROW, ()),
        (NARROW, (0, 1, 0, 2)),
        (("mxf4nvf4", 2, "e2m1", "ue8m0"), (2, 0, 0, 3)),
        (("mxf4", 2, "e2m1", "ue8m0"), (0, 1, 2, 1)),
        (("mxf8f6f4", 1, "e4m3", "ue8m0"), (3, 1, 1, 2)),
    ],
)
def test_rows_and_columns_have_factors(form: tuple[str, int, str, str], selectors: tuple[int, ...]) -> None:
    _, count, kinds, of = form
    k, run = (64, 8) if kinds == "e2m1" else (32, 4)
    random = np.random.default_rng(0)
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6])
    a, b = random.choice(numbers, (16, k)), random.choice(numbers, (8, k))
    octets = {
        name: random.integers(*((48, 72) if of == "ue4m3" else (124, 131)), (32, 4)).astype(np.uint8) for name in "AB"
    }
    held = {"A": _held(a, run), "B": _held(b, run)}
    held |= {f"F{name}": words.view(np.uint32)[:, 0] for name, words in octets.items()}
    kernel = Kernel(lowered=Options(source=False, target=target("sm_120")))
    found = kernel.run(_product(kernel, form, selectors, held))["C"]

    byte_a, thread_a, byte_b, thread_b = selectors or (0, 0, 0, 0)
    row, column = np.arange(16), np.arange(8)
    of_a = _decoded(octets["A"][row % 8 * 4 + 2 * thread_a + row // 8, byte_a : byte_a + count], of)
    of_b = _decoded(octets["B"][column * 4 + thread_b, byte_b : byte_b + count], of)
    whole = (a * of_a.repeat(k // count, axis=1)) @ (b * of_b.repeat(k // count, axis=1)).T
    expected = [whole[LANE // 4 + down, LANE % 4 * 2 + i] for down in (0, 8) for i in (0, 1)]
    assert np.array_equal(found, np.stack(expected, axis=1))


def test_each_step_of_a_loop_has_numbers_of_its_own() -> None:
    random = np.random.default_rng(1)
    a, b = np.ones((16, 64)), np.ones((8, 64))
    words = {name: random.integers(48, 72, (32, 4)).astype(np.uint8) for name in "AB"}
    held = {"A": _held(a, 8), "B": _held(b, 8)} | {f"F{n}": w.view(np.uint32)[:, 0] for n, w in words.items()}
    kernel = Kernel(lowered=Options(source=False, target=target("sm_120")))
    step = Expr("var", "int32", (), "step", 10**9)
    product = _product(kernel, NARROW, (0, Expr("floormod", "int32", (step, number(2))), 0, step), held)
    found = kernel.run(For(step, number(0), number(4), "unrolled", product))["C"]
    of_a, of_b = (_decoded(words[name], "ue4m3").reshape(8, 4, 4) for name in "AB")
    total = sum(of_a[:, 2 * (i % 2)] @ of_b[:, i].T for i in range(4)) * 16
    assert np.array_equal(found[:, 0], total[LANE // 4, LANE % 4 * 2])


def test_other_numbers_and_forms() -> None:
    held = {"A": np.zeros((32, 32)), "B": np.zeros((32, 16)), "FA": np.zeros(32), "FB": np.zeros(32)}
    for selectors in ((1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 0, 4)):
        kernel = Kernel(lowered=Options(source=False, target=target("sm_120")))
        with pytest.raises(Illegal, match="there are none"):
            kernel.run(_product(kernel, NARROW, selectors, held))
    kernel = Kernel(lowered=Options(source=False, target=target("sm_120")))
    with pytest.raises(NotModelled, match="ptx_mma_block_scale"):
        kernel.run(_product(kernel, ("mxf8f6f4", 2, "e2m1", "ue8m0"), (), held))
    kernel = Kernel(lowered=Options(source=False, target=target("sm_120")))
    with pytest.raises(NotModelled, match="numbers that differ within a warp"):
        kernel.run(_product(kernel, NARROW, (0, Expr("floormod", "int32", (add(kernel.tx, 0), number(2))), 0, 0), held))
