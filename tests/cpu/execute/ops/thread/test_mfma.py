"""mfma against NumPy, by the words of the CDNA3 and CDNA4 ISA; not against a device."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import (
    Array,
    Kernel,
    add,
    call,
    load,
    multiply,
    number,
    random,
    region,
    text,
    variable,
)
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.ops.thread.mfma import fragments
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr, Layout, Stmt, Store
from tlcheck.targets.lookup import target

WAVE = 64
BOTH = ("gfx942", "gfx950")
# name -> types of A, B and C, m, k, and the archs that have it
KNOWN = {
    "f32_16x16x4f32": ("float32", "float32", "float32", 16, 4, BOTH),
    "f32_32x32x2f32": ("float32", "float32", "float32", 32, 2, BOTH),
    "f32_16x16x16f16": ("float16", "float16", "float32", 16, 16, BOTH),
    "f32_32x32x8f16": ("float16", "float16", "float32", 32, 8, BOTH),
    "f32_16x16x16bf16_1k": ("bfloat16", "bfloat16", "float32", 16, 16, BOTH),
    "f32_32x32x8bf16_1k": ("bfloat16", "bfloat16", "float32", 32, 8, BOTH),
    "i32_16x16x32_i8": ("int8", "int8", "int32", 16, 32, BOTH),
    "i32_32x32x16_i8": ("int8", "int8", "int32", 32, 16, BOTH),
    "f32_16x16x32_f16": ("float16", "float16", "float32", 16, 32, ("gfx950",)),
    "f32_16x16x32_bf16": ("bfloat16", "bfloat16", "float32", 16, 32, ("gfx950",)),
    "f32_32x32x16_f16": ("float16", "float16", "float32", 32, 16, ("gfx950",)),
    "i32_16x16x64_i8": ("int8", "int8", "int32", 16, 64, ("gfx950",)),
    "i32_32x32x32_i8": ("int8", "int8", "int32", 32, 32, ("gfx950",)),
}


def lowered(arch: str, exact: bool = True) -> Options:
    return Options(source=False, exact=exact, target=target(arch), printed=True)


def product(name: str, kinds: tuple[str, str, str], m: int, k: int, arch: str, contents: tuple[Array, Array]) -> Array:
    """Return what two waves make of A (waves, m, k) and B (waves, k, m), each with the registers that the ISA says.

    Vectors of A and B are the second ones of their registers: the index counts vectors.
    """
    waves = 2
    kernel = Kernel(threads=waves * WAVE, lowered=lowered(arch))
    each, sums = m * k // WAVE, m * m // WAVE
    lane, row = np.arange(WAVE), np.arange(sums)
    along = lane[:, None] // m * each + np.arange(each)
    a = contents[0][:, (lane % m)[:, None], along].reshape(-1, each)
    b = contents[1][:, along, (lane % m)[:, None]].reshape(-1, each)
    tensors = [kernel.tensor(n, kind, values) for n, kind, values in (("A", kinds[0], a), ("B", kinds[1], b))]
    out = kernel.tensor("C", kinds[2], (waves * WAVE, sums))
    own = [
        kernel.tile(f"{n}_l", kind, (size,), "local")
        for n, kind, size in (("a", kinds[0], 2 * each), ("b", kinds[1], 2 * each), ("c", kinds[2], sums))
    ]
    body: list[Stmt] = [Store(own[2], (number(i),), number(0)) for i in range(sums)]
    for tensor, local in zip(tensors, own, strict=False):
        body += [Store(local, (number(each + i),), load(tensor, kernel.tx, i)) for i in range(each)]
    types = [text(kinds[at] + (f"x{size}" if size > 1 else "")) for at, size in enumerate((each, each, sums))]
    body.append(
        call(
            "tvm_mfma",
            text(name),
            text("row"),
            text("row"),
            *types,
            own[0].data,
            number(1),
            own[1].data,
            number(1),
            own[2].data,
            number(0),
        )
    )
    body += [Store(out, (kernel.tx, number(i)), load(own[2], i)) for i in range(sums)]
    found = kernel.run(*body)["C"].reshape(waves, WAVE, sums)
    whole = np.zeros((waves, m, m))
    down = row // 4 * (4 * WAVE // m) + lane[:, None] // m * 4 + row % 4
    whole[:, down, (lane % m)[:, None]] = found
    return whole


@pytest.mark.parametrize("name", KNOWN)
def test_a_wave_multiplies_as_numpy_does(name: str) -> None:
    a_kind, b_kind, c_kind, m, k, archs = KNOWN[name]
    a, b = random(a_kind, 2, m, k), random(b_kind, 2, k, m, seed=1)
    for arch in archs:
        found = product(name, (a_kind, b_kind, c_kind), m, k, arch, (a, b))
        assert np.array_equal(found, a.astype(np.float64) @ b.astype(np.float64))
    for arch in set(BOTH) - set(archs):
        with pytest.raises(NotModelled, match=f"^mfma {name} on {arch}$"):
            product(name, (a_kind, b_kind, c_kind), m, k, arch, (a, b))


@pytest.mark.parametrize(("m", "k"), [(16, 16), (32, 8), (16, 64), (32, 32)])
def test_every_element_of_a_matrix_is_one_lanes(m: int, k: int) -> None:
    for at, shape in zip(fragments(m, k), ((m, k), (k, m), (m, m)), strict=True):
        held = {tuple(place) for place in at.reshape(-1, 2).tolist()}
        assert at.shape[1] == WAVE
        assert len(held) == at.shape[0] * WAVE == shape[0] * shape[1]
        assert at.reshape(-1, 2).max(axis=0).tolist() == [shape[0] - 1, shape[1] - 1]


@pytest.mark.parametrize(
    "name", ["f16_16x16x16f16", "f32_16x16x16i8", "i32_16x16x16f16", "f32_4x4x4f16", "f32_16x32x8f16", "nonsense"]
)
def test_what_no_manual_names_is_not_modelled(name: str) -> None:
    with pytest.raises(NotModelled, match=f"^mfma {name}"):
        product(name, ("float16", "float16", "float32"), 16, 16, "gfx942", (np.zeros((2, 16, 16)),) * 2)


def test_types_that_the_name_does_not_mean_are_not_modelled() -> None:
    with pytest.raises(NotModelled, match=r"^mfma of bfloat16 where it multiplies float16$"):
        product("f32_16x16x16f16", ("bfloat16",) * 2 + ("float32",), 16, 16, "gfx942", (np.zeros((2, 16, 16)),) * 2)


@pytest.mark.parametrize(
    ("name", "kind", "own", "arch"),
    [
        ("fp8", "float8_e4m3fn", "float8_e4m3fnuz", "gfx942"),
        ("bf8", "float8_e5m2", "float8_e5m2fnuz", "gfx942"),
        ("fp8", "float8_e4m3fnuz", "float8_e4m3fn", "gfx950"),
        ("fp8", "float8_e4m3fnuz", "float8_e4m3fnuz", "gfx942"),
        ("fp8", "float8_e4m3fn", "float8_e4m3fn", "gfx950"),
    ],
)
def test_an_arch_has_one_format_of_eight_bits(name: str, kind: str, own: str, arch: str) -> None:
    """FNUZ on gfx942, OCP on gfx950: the bits of the kernel's numbers count, not their format."""
    a, b = random(kind, 2, 16, 32), random(kind, 2, 32, 16, seed=1)
    found = product(f"f32_16x16x32_{name}_{name}", (kind, kind, "float32"), 16, 32, arch, (a, b))
    taken = [
        values.astype(kind_of(kind).memory).view(np.uint8).view(getattr(ml_dtypes, own)).astype(np.float64)
        for values in (a, b)
    ]
    assert np.array_equal(found, taken[0] @ taken[1])
    assert np.array_equal(taken[0], a) == (kind == own)


def test_products_add_up() -> None:
    """Three of them, of the vectors that their indices name."""
    kernel, a = Kernel(threads=WAVE, lowered=lowered("gfx942")), random("float16", WAVE, 12)
    source, out = kernel.tensor("A", "float16", a), kernel.tensor("C", "float32", (WAVE, 4))
    left, sums = kernel.tile("a_l", "float16", (12,), "local"), kernel.tile("c_l", "float32", (4,), "local")
    types = [text("float16x4"), text("float16x4"), text("float32x4")]
    args = (text("f32_16x16x16f16"), text("row"), text("row"), *types)
    stores = [Store(left, (number(i),), load(source, kernel.tx, i)) for i in range(12)]
    clear = [Store(sums, (number(i),), number(0)) for i in range(4)]
    calls = [
        call("tvm_mfma", *args, left.data, number(i), left.data, number(i), sums.data, number(0)) for i in range(3)
    ]
    found = kernel.run(*stores, *clear, *calls, *[Store(out, (kernel.tx, number(i)), load(sums, i)) for i in range(4)])
    matrices = a.reshape(4, 16, 3, 4).transpose(2, 1, 0, 3).reshape(3, 16, 16)
    total = sum(one @ one.T for one in matrices)
    assert np.array_equal(found["C"].reshape(4, 16, 4).transpose(0, 2, 1).reshape(16, 16), total)


def of_a_fragment(kernel: Kernel, layout: bool) -> Array:
    """A source kernel that multiplies into a fragment, whose layout says which lane has which element."""
    a, b = random("float16", 16, 16), random("float16", 16, 16, seed=1)
    left, right = (kernel.tensor(n, "float16", values) for n, values in (("A", a), ("B", b)))
    out, sums = kernel.tensor("C", "float32", (16, 16)), kernel.tile("c", "float32", (16, 16), "local.fragment")
    own = [kernel.tile(n, "float16", (4,), "local") for n in ("a_l", "b_l")]
    if layout:
        i, j = variable("i"), variable("j")
        lane = add(multiply(Expr("floordiv", "int32", (i, number(4))), 16), j)
        held = Layout((i, j), (number(16), number(16)), (Expr("floormod", "int32", (i, number(4))),), lane)
        kernel.layouts.append((sums.data, held))
    tx = kernel.tx
    row, first = Expr("floormod", "int32", (tx, number(16))), multiply(Expr("floordiv", "int32", (tx, number(16))), 4)
    body: list[Stmt] = [call("fill", region(sums), number(0))]
    body += [Store(own[0], (number(n),), load(left, row, add(first, n))) for n in range(4)]
    body += [Store(own[1], (number(n),), load(right, add(first, n), row)) for n in range(4)]
    types = [text("float16x4"), text("float16x4"), text("float32x4")]
    places = (own[0].data, number(0), own[1].data, number(0), sums.data, number(0))
    body.append(call("tvm_mfma", text("f32_16x16x16f16"), text("row"), text("row"), *types, *places))
    body.append(call("copy", region(sums), region(out)))
    found: Array = kernel.run(*body)["C"] - a @ b
    return found


def test_a_fragment_of_the_source_is_the_lanes_registers() -> None:
    options = Options(source=True, target=target("gfx942"))
    assert not of_a_fragment(Kernel(threads=WAVE, lowered=options), layout=True).any()
    with pytest.raises(NotModelled, match=r"^tvm_mfma on c, a fragment without a layout$"):
        of_a_fragment(Kernel(threads=WAVE, lowered=options), layout=False)
