"""tcgen05.mma and tcgen05.commit: against matrices that are laid out by hand, and what nobody has waited for.

By PTX 9.7.16.4 (descriptors), 9.7.16.5.1 (canonical layouts) and 9.7.16.10.5 (data paths), not against a device.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.cpu.execute.ops.thread.test_tensor_memory import allocated, at, first_warp, freed, lowered, moved
from tests.cpu.execute.ops.tile.building import (
    Array,
    Kernel,
    add,
    call,
    flag,
    load,
    multiply,
    number,
    poisoned,
    text,
    variable,
)
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.ops.thread.tcgen05_forms import ProductForm, decode, rows_and_columns
from tlcheck.execute.stops import Deadlock, Illegal, NotModelled
from tlcheck.snapshot.ir import Buffer, Expr, For, If, Stmt, Store

THREADS = 128
CODES = {"float16": 0, "bfloat16": 1, "float8_e4m3fn": 0, "float8_e5m2": 1, "uint8": 0, "int8": 1}
CODES |= {"float6_e2m3_unpacked": 3, "float6_e3m2_unpacked": 4}
SUMS = {"float16": 0, "float32": 1, "int32": 2}


def word(m: int, n: int, dtype: str, total: str, a_by_k: bool = True, b_by_k: bool = True) -> int:
    """PTX 9.7.16.4.2, table of the instruction descriptor."""
    kinds = CODES[dtype] << 7 | CODES[dtype] << 10 | SUMS[total] << 4
    return kinds | (not a_by_k) << 15 | (not b_by_k) << 16 | n >> 3 << 17 | m >> 4 << 24


def image(matrix: Array, width: int, by_k: bool, span: int) -> tuple[Array, int, int]:
    """A matrix (M or N, K) as shared memory, element after element, with LBO and SBO in bytes.

    Blocks of 8 lines of `span` bytes each; within a block the 16-byte units of line i are exchanged by i.
    """
    lines = matrix if by_k else matrix.T  # neighbours lie side by side
    rows, columns = lines.shape
    per = span // width
    found = np.zeros(-(-columns // per) * rows * per, matrix.dtype)
    for row in range(rows):
        for column in range(columns):
            block, inner = divmod(column, per)
            octet = inner * width
            unit = (octet // 16) ^ (row % 8 >> {128: 0, 64: 1, 32: 2}[span])
            place = block * rows * span + row * span + unit * 16 + octet % 16
            found[place // width] = lines[row, column]
    return found, rows * span, 8 * span


def product(
    m: int, n: int, k: int, dtype: str = "bfloat16", total: str = "float32", *,
    a_by_k: bool = True, b_by_k: bool = True, span: int = 128, stays: bool = False,
    waits: bool = True, commits: bool = True, adds: int = 0, times: int = 1,
    late: bool = True, mask: int = 0, parity: int = 0, by_all: bool = False,
) -> tuple[Array, Array]:  # fmt: skip
    """D of one or several instructions, as (lanes, columns) of tensor memory, and the product itself."""
    kernel = Kernel(threads=THREADS, lowered=lowered(late=late))
    rng, kind = np.random.default_rng(m + n + k), kind_of(dtype)
    a, b = (rng.integers(0 if kind.family == "uint" else -4, 5, (rows, k)).astype(kind.array) for rows in (m, n))
    columns = max(32, 1 << (n - 1).bit_length())
    base, out = kernel.tile("t", "uint32", (1,), "shared"), kernel.tensor("D", total, (THREADS, columns))
    done, local = kernel.tile("done", "uint64", (1,), "shared.barrier"), kernel.tile("r", total, (columns,), "local")
    body: list[Stmt] = []
    descriptors: list[Stmt] = []
    for name, matrix, by_k in (("A", a, a_by_k), ("B", b, b_by_k)):
        flat, leading, step = image(matrix, kind.octets, by_k, span)
        shared, source = kernel.tile(f"{name}s", dtype, (flat.size,)), kernel.tensor(name, dtype, flat)
        body.append(_each(kernel, flat.size, _copying(shared, source)))
        made = kernel.tile(f"{name}d", "uint64", (1,), "local.descriptor.tcgen05_smem")
        layout = {128: 2, 64: 4, 32: 6}[span]
        descriptors.append(call("initialize_tcgen05_descriptor", load(made, 0), at(shared), number(leading >> 4),
                                number(step >> 4), number(0), flag(False), number(layout)))  # fmt: skip
    row_octets = 32  # of K in one instruction
    steps: list[Stmt] = []
    for at_k in range(k * kind.octets // row_octets * times):
        inner = at_k % (k * kind.octets // row_octets)
        offsets = []
        for rows, by_k in ((m, a_by_k), (n, b_by_k)):
            lines = row_octets // kind.octets
            along = inner * row_octets // span * rows * span + inner * row_octets % span
            offsets.append(along if by_k else inner * lines * span)
        masks = [number(mask)] * 4
        named = _tile(kernel, "Ad").data, number(offsets[0]), _tile(kernel, "Bd").data, number(offsets[1])
        form = number(word(m, n, dtype, total, a_by_k, b_by_k))
        kinds = text({"bfloat16": "bf16", "float16": "fp16"}.get(dtype, dtype.replace("_unpacked", "fn")))
        args = kinds, *named, base.data, number(0), form, number(1 if at_k else adds), *masks, flag(stays), flag(False)
        steps.append(call("ptx_tcgen05_mma_ss", *args))
    arrives = [call("tcgen05_mma_arrive", at(done))] if commits else []
    body += [_elected(kernel, call("ptx_init_barrier_thread_count", load(done, 0), number(1)))]
    body += allocated(kernel, base, columns)
    body += [first_warp(kernel, *descriptors, call("fence_proxy_async"), *steps, *([] if by_all else arrives))]
    body += arrives if by_all else []
    if waits:
        body.append(call("mbarrier_wait_parity", load(done, 0), number(parity)))
    body.append(moved("ld", 32, columns, base, local))
    body.append(_loop(columns, lambda i: Store(out, (kernel.tx, i), load(local, i))))
    found = kernel.run(*body, *freed(kernel, base, columns))["D"]
    return found, (a.astype(np.int64) @ b.T.astype(np.int64) * times).astype(np.float64)


def _copying(shared: Buffer, source: Buffer) -> Callable[[Expr], Stmt]:
    return lambda i: Store(shared, (i,), load(source, i))


def _tile(kernel: Kernel, name: str) -> Buffer:
    return next(b for b in kernel.tiles if b.name == name)


def _elected(kernel: Kernel, body: Stmt) -> Stmt:
    return If(Expr("eq", "bool", (kernel.tx, number(0))), body)


def _loop(count: int, make: Callable[[Expr], Stmt]) -> Stmt:
    i = variable("i")
    return For(i, number(0), number(count), "serial", make(i))


def _each(kernel: Kernel, count: int, make: Callable[[Expr], Stmt]) -> Stmt:
    i = variable("i")
    return For(i, number(0), number(count // THREADS), "serial", make(add(multiply(i, THREADS), kernel.tx)))


# ---- descriptors and layouts


def test_an_instruction_descriptor_says_shape_and_kinds() -> None:
    found = decode(136316048, "f16")  # as TileLang writes it for 128 x 128 of bfloat16
    assert (found.m, found.n, found.k, found.left.name, found.right.name) == (128, 128, 16, "bfloat16", "bfloat16")
    assert (found.sum.name, found.left_by_k, found.right_by_k) == ("float32", True, True)
    assert not decode(136381584, "f16").right_by_k


@pytest.mark.parametrize(("place", "what"), [(2, "sparse"), (3, "saturation"), (13, "negated"), (30, "shift")])
def test_what_no_descriptor_of_a_known_form_says(place: int, what: str) -> None:
    with pytest.raises(NotModelled, match=what):
        decode(136316048 | 1 << place, "f16")


@pytest.mark.parametrize(
    ("m", "n", "stays", "row", "column", "lane", "place"),
    [
        (128, 64, False, 77, 9, 77, 9),  # Layout D
        (64, 64, False, 15, 9, 15, 9), (64, 64, False, 16, 9, 32, 9), (64, 64, False, 63, 0, 111, 0),  # Layout F
        (64, 64, True, 63, 31, 63, 31), (64, 64, True, 0, 32, 64, 0), (64, 64, True, 63, 63, 127, 31),  # Layout E
        (32, 64, True, 31, 15, 31, 15), (32, 64, True, 0, 16, 32, 0), (32, 64, True, 31, 63, 127, 15),  # Layout G
    ],
)  # fmt: skip
def test_sums_lie_where_the_manual_says(
    m: int, n: int, stays: bool, row: int, column: int, lane: int, place: int
) -> None:
    lanes, columns = rows_and_columns(m, n, stays)
    assert (lanes[row, column], columns[row, column]) == (lane, place)


@pytest.mark.parametrize(
    ("m", "n", "dtype", "stays", "lawful"),
    [
        (128, 16, "bfloat16", False, True), (128, 24, "bfloat16", False, False), (64, 24, "bfloat16", False, True),
        (64, 256, "bfloat16", False, True), (64, 264, "bfloat16", False, False), (32, 64, "bfloat16", False, False),
        (32, 64, "bfloat16", True, True), (32, 32, "bfloat16", True, False), (128, 24, "int8", False, True),
        (128, 40, "int8", False, False),
    ],
)  # fmt: skip
def test_which_shapes_there_are(m: int, n: int, dtype: str, stays: bool, lawful: bool) -> None:
    kind = kind_of(dtype)
    form = ProductForm(m, n, 256 // kind.bits, kind, kind, kind_of("float32"), True, True, stays)
    assert form.is_lawful == lawful


# ---- products


@pytest.mark.parametrize("span", [128, 64, 32])
@pytest.mark.parametrize(("a_by_k", "b_by_k"), [(True, True), (True, False), (False, True), (False, False)])
def test_swizzles_and_majors(span: int, a_by_k: bool, b_by_k: bool) -> None:
    found, wanted = product(128, 64, 64, a_by_k=a_by_k, b_by_k=b_by_k, span=span)
    assert np.array_equal(found[:, :64], wanted)


@pytest.mark.parametrize("dtype", CODES)
def test_kinds(dtype: str) -> None:
    found, wanted = product(128, 32, 128, dtype, "int32" if "int" in dtype else "float32")
    assert np.array_equal(found[:, :32], wanted)


def test_half_the_lanes_of_each_warp() -> None:
    """M of 64 without .ws (Layout F): the other lanes stay as they are."""
    found, wanted = product(64, 32, 16)
    lanes = np.arange(128).reshape(4, 32)
    assert np.array_equal(found[lanes[:, :16].reshape(-1), :32], wanted)
    assert poisoned(found[lanes[:, 16:].reshape(-1), :32]).all()


def test_halves_of_n_below_one_another() -> None:
    """M of 64 with .ws (Layout E)."""
    found, wanted = product(64, 64, 16, stays=True)
    assert np.array_equal(np.hstack([found[:64, :32], found[64:, :32]]), wanted)


def test_products_of_several_instructions_are_added() -> None:
    found, wanted = product(128, 32, 64, times=3)
    assert np.array_equal(found[:, :32], wanted)


def test_sums_that_nothing_has_set_stay_poison() -> None:
    found, _ = product(128, 32, 16, adds=1)
    assert poisoned(found).all()


# ---- order


def test_sums_are_poison_until_somebody_waits() -> None:
    found, _ = product(128, 32, 64, waits=False)
    assert poisoned(found).all()


def test_without_a_commit_the_wait_never_ends() -> None:
    with pytest.raises(Deadlock, match="waits at done"):
        product(128, 32, 64, commits=False)


def test_a_wait_for_the_other_parity_waits_for_nothing() -> None:
    found, _ = product(128, 32, 64, parity=1)
    assert poisoned(found).all()


def test_a_commit_of_a_warp_without_products_is_complete_at_once() -> None:
    """Four warps arrive where one is waited for, three of them before the product is complete."""
    found, _ = product(128, 32, 64, by_all=True)
    assert poisoned(found).all()


def test_products_may_be_complete_at_once() -> None:
    found, wanted = product(128, 32, 64, waits=False, late=False)
    assert np.array_equal(found[:, :32], wanted)


# ---- what is not modelled, or there is not


def test_lanes_that_are_left_out_are_undecided() -> None:
    with pytest.raises(NotModelled, match="leaves out lanes"):
        product(128, 32, 16, mask=1)


def test_a_shape_that_there_is_not() -> None:
    with pytest.raises(Illegal, match="128 x 24 x 16 with A of bfloat16: there is no such shape"):
        product(128, 24, 16)
