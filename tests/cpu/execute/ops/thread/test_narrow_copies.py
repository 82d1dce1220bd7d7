"""Bulk copies of 4-bit numbers: two in a byte of shared memory, or a byte for each (cuTensorMapEncodeTiled, 16U4)."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, buffer, call, load, number, variable
from tlcheck.execute.machine_options import Options
from tlcheck.execute.stops import Illegal
from tlcheck.snapshot.ir import Alloc, Expr, For, Seq, Stmt, Store
from tlcheck.targets.lookup import target

ROWS, COLUMNS = 4, 128
PACKED, APART = (13, "float4_e2m1fn"), (14, "custom[float4_e2m1_unpacked]")
NUMBERS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.5, -1, -1.5, -2, -3, -4, -6])


def _copied(kernel: Kernel, form: tuple[int, str], announced: int, swizzle: int = 0) -> Stmt:
    """A tensor's rows 1 and 2 to shared memory, and from there to another tensor."""
    number_of, dtype = form
    a = kernel.tensor("A", "float4_e2m1fn", np.random.default_rng(0).choice(NUMBERS, (ROWS, COLUMNS)))
    b, tile = kernel.tensor("B", "float32", [2 * COLUMNS]), kernel.tile("s", dtype, (2 * COLUMNS,))
    bar, i = buffer("bar", "uint64", [1], "shared.barrier"), variable("i")
    sizes = (COLUMNS, ROWS, 1, COLUMNS // 2, COLUMNS, 2, 1, 1, 0, swizzle, 2, 0)
    args = (number(number_of), number(2), a.data, *map(number, sizes))
    map_, first = Expr("call", "handle", args, "create_tma_descriptor"), load(bar, 0)
    address = Expr("call", "handle", (load(tile, 0),), "address_of")
    value = Expr("cast", "float32", (load(tile, i),))
    body = (
        call("ptx_init_barrier_thread_count", first, number(1)),
        call("mbarrier_expect_tx", first, number(announced)),
        call("tma_load", map_, first, address, number(0), number(1), number(0)),
        call("ptx_arrive_barrier", first),
        call("mbarrier_wait_parity", first, number(0)),
        For(i, number(0), number(2 * COLUMNS), "serial", Store(b, (i,), value)),
    )
    return Seq((Alloc(bar), *body))


def _kernel() -> Kernel:
    return Kernel(threads=1, lowered=Options(source=False, target=target("sm_100")))


@pytest.mark.parametrize("form", [PACKED, APART])
def test_rows_come_and_complete_half_a_byte_for_each_number(form: tuple[int, str]) -> None:
    kernel = _kernel()
    found = kernel.run(_copied(kernel, form, COLUMNS))
    assert np.array_equal(found["B"].reshape(2, COLUMNS), found["A"].reshape(ROWS, COLUMNS)[1:3])


def test_other_numbers_of_bytes_never_come() -> None:
    kernel = _kernel()
    with pytest.raises(Illegal, match="deadlock"):
        kernel.run(_copied(kernel, APART, 2 * COLUMNS))


def test_a_swizzle_exchanges_units_of_16_bytes() -> None:
    """32 packed numbers are a unit; the second row of 64 bytes has its units exchanged by address bits 7 and 8."""
    kernel = _kernel()
    found = kernel.run(_copied(kernel, PACKED, COLUMNS, swizzle=2))
    rows = found["A"].reshape(ROWS, COLUMNS)[1:3]
    octets = np.arange(COLUMNS)
    places = octets ^ (octets >> 3 & 0x30)
    laid = np.zeros(2 * COLUMNS)
    for octet, place in zip(octets, places, strict=True):
        laid[2 * place : 2 * place + 2] = rows.reshape(-1)[2 * octet : 2 * octet + 2]
    assert np.array_equal(found["B"], laid)
