"""Tensor memory: allocation, and which thread's registers hold which lane and column.

By the figures of PTX 9.7.16.2.3.1 (matrix fragments of tcgen05.ld and tcgen05.st), not against a device.
"""

from __future__ import annotations

import numpy as np
import pytest

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
from tlcheck.execute.machine_options import Options
from tlcheck.execute.memory.values import kind_of
from tlcheck.execute.ops.thread.tcgen05_copies import pattern
from tlcheck.execute.stops import Deadlock, Illegal, NotModelled
from tlcheck.program.release import Release
from tlcheck.snapshot.ir import Buffer, Expr, For, If, Seq, Stmt, Store
from tlcheck.targets.lookup import target

WARPGROUP = 128
FLOAT, HALF = kind_of("float32"), kind_of("float16")


def lowered(release: str = "0.1.15", late: bool = True) -> Options:
    return Options(source=False, target=target("sm_100"), printed=True, release=Release.of(release), late=late)


def at(buffer: Buffer, index: Expr | int = 0) -> Expr:
    return Expr("call", "handle", (load(buffer, index),), "address_of")


def first_warp(kernel: Kernel, *body: Stmt) -> Stmt:
    return If(Expr("lt", "bool", (kernel.tx, number(32))), Seq(body))


BARRIER = call("tvm_storage_sync", text("shared"))


def allocated(kernel: Kernel, word: Buffer, columns: int) -> list[Stmt]:
    return [first_warp(kernel, call("ptx_init_tensor_memory", at(word), number(columns))), BARRIER]


def freed(kernel: Kernel, word: Buffer, columns: int) -> list[Stmt]:
    return [BARRIER, first_warp(kernel, call("ptx_deallocate_tensor_memory", at(word), number(columns)))]


def moved(name: str, bits: int, times: int, word: Buffer, registers: Buffer, **more: object) -> Stmt:
    """more: packs, lanes, further (columns), lane (of the address), to (the first register)."""
    address = add(load(word, 0), int(str(more.get("lane", 0))) << 16)
    packs, lanes, further = bool(more.get("packs")), int(str(more.get("lanes", 32))), more.get("further", 0)
    assert isinstance(further, int | Expr)
    args = number(bits), number(times), flag(packs), address, number(further), number(lanes)
    return call(f"tcgen05_{name}", *args, at(registers, int(str(more.get("to", 0)))))


# ---- by hand


@pytest.mark.parametrize(
    ("bits", "thread", "register", "lane", "column"),
    [
        (32, 0, 0, 0, 0), (32, 31, 0, 31, 0), (32, 5, 3, 5, 3),  # Figure 183
        (64, 0, 0, 0, 0), (64, 1, 0, 8, 0), (64, 2, 0, 0, 1), (64, 3, 0, 8, 1), (64, 4, 0, 1, 0), (64, 31, 1, 15, 3),
        (128, 0, 0, 0, 0), (128, 3, 0, 0, 3), (128, 4, 0, 1, 0), (128, 0, 1, 8, 0), (128, 5, 2, 1, 5),
        (128, 31, 3, 15, 7),
        (256, 0, 0, 0, 0), (256, 0, 1, 0, 1), (256, 1, 0, 0, 2), (256, 4, 0, 1, 0), (256, 0, 2, 8, 0),
        (256, 31, 7, 15, 15),
    ],
)  # fmt: skip
def test_a_thread_holds_what_the_figures_say(bits: int, thread: int, register: int, lane: int, column: int) -> None:
    found = pattern(16 if bits > 32 else 32, bits, 4 if bits == 32 else 2, packs=False, kind=FLOAT)
    assert (found.lane[register, thread], found.column[register, thread]) == (lane, column)


@pytest.mark.parametrize(("bits", "columns"), [(32, 1), (64, 2), (128, 4), (256, 8)])
def test_each_element_has_one_place(bits: int, columns: int) -> None:
    found = pattern(32, bits, 4, packs=False, kind=FLOAT)
    places = set(zip(found.lane.flat, found.column.flat, strict=True))
    assert places == {(lane, column) for lane in range(32) for column in range(4 * columns)}
    assert len(places) == found.lane.size


def test_halves_of_a_register_share_a_column_or_have_neighbours() -> None:
    shared, packed = (pattern(32, 32, 2, packs, HALF) for packs in (False, True))
    assert shared.column[:, 0].tolist() == [0, 0, 1, 1]
    assert shared.octet[:, 0].tolist() == [0, 2, 0, 2]
    assert packed.column[:, 0].tolist() == [0, 1, 2, 3]
    assert not packed.octet.any()


def test_registers_of_a_further_part_are_counted_as_elements_from_0_1_14_on() -> None:
    """48 columns are 32 and 16; up to 0.1.13 the second part begins 32 halves on, not 64."""
    now, before = (pattern(32, 32, 48, packs=False, kind=HALF, counts_elements=c) for c in (True, False))
    assert now.element.tolist() == list(range(96))
    assert before.element.tolist() == [*range(64), *range(32, 64)]
    assert now.column[:, 0].tolist() == before.column[:, 0].tolist() == [n // 2 for n in range(96)]
    assert before.last.element.tolist() == list(range(64))
    assert before.last.column[:, 0].tolist() == [n // 2 for n in (*range(32), *range(64, 96))]


def test_a_packed_load_of_several_parts_goes_on_as_many_columns_as_registers() -> None:
    """As the device library has it: 16 registers of two columns each, and then column 16 again."""
    found = pattern(32, 32, 24, packs=True, kind=HALF)
    assert found.column[:, 0].tolist() == [*range(32), *range(16, 32)]


# ---- stored and loaded


def carried(first: tuple[str, int, int], second: tuple[str, int, int], count: int, threads: int = WARPGROUP) -> Array:
    """Registers go to tensor memory one way, and come back another way: which of theirs each thread gets."""
    kernel = Kernel(threads=threads, lowered=lowered())
    word, a = kernel.tile("t", "uint32", (1,), "shared"), kernel.tile("a", "float32", (count,), "local")
    b, out = kernel.tile("b", "float32", (count,), "local"), kernel.tensor("D", "float32", (threads, count))
    i, j = variable("i"), variable("j")
    value = Expr("cast", "float32", (add(multiply(kernel.tx, count), i),))
    fill = For(i, number(0), number(count), "serial", Store(a, (i,), value))
    leave = For(j, number(0), number(count), "serial", Store(out, (kernel.tx, j), load(b, j)))
    body = [*allocated(kernel, word, 32), fill, moved(*first, word, a), moved(*second, word, b), leave]
    return kernel.run(*body, *freed(kernel, word, 32))["D"]


def test_what_is_stored_is_loaded() -> None:
    found = carried(("st", 32, 8), ("ld", 32, 8), 8)
    assert np.array_equal(found, np.arange(WARPGROUP * 8).reshape(-1, 8))


def test_another_shape_loads_what_others_stored() -> None:
    """Thread t stored lane t % 32, columns 0 to 15, and gets by 16x256b two lanes in each half of the warp's lanes."""
    found = carried(("st", 32, 16), ("ld", 256, 2), 16)
    for thread in (0, 5, 38, 127):
        warp, t = divmod(thread, 32)
        lanes = [warp * 32 + half * 16 + down * 8 + t // 4 for half in (0, 1) for _ in (0, 1) for down in (0, 1)]
        columns = [step * 8 + 2 * (t % 4) for _ in (0, 1) for step in (0, 1) for _ in (0, 1)]
        wanted = [lane * 16 + column + right for lane, column in zip(lanes, columns, strict=True) for right in (0, 1)]
        assert found[thread].tolist() == wanted


def test_a_warp_reaches_its_own_lanes() -> None:
    """Warps 0 and 4 reach the same ones: the later one's values remain."""
    found = carried(("st", 32, 2), ("ld", 32, 2), 2, threads=2 * WARPGROUP)
    assert np.array_equal(found[:WARPGROUP], found[WARPGROUP:])
    assert found[0].tolist() == [256.0, 257.0]


def test_what_nobody_stored_is_poison() -> None:
    kernel = Kernel(threads=32, lowered=lowered())
    word, a = kernel.tile("t", "uint32", (1,), "shared"), kernel.tile("a", "float32", (2,), "local")
    out = kernel.tensor("D", "float32", (32,))
    a_store = Store(a, (number(0),), Expr("float", "float32", (), 7.0))
    body = [*allocated(kernel, word, 32), a_store, moved("st", 32, 1, word, a), moved("ld", 32, 2, word, a)]
    found = kernel.run(*body, Store(out, (kernel.tx,), load(a, 1)), *freed(kernel, word, 32))["D"]
    assert poisoned(found).all()


def test_a_new_allocation_of_freed_columns_is_poison() -> None:
    kernel = Kernel(threads=32, lowered=lowered())
    word, a = kernel.tile("t", "uint32", (1,), "shared"), kernel.tile("a", "float32", (1,), "local")
    out = kernel.tensor("D", "float32", (32,))
    first = [*allocated(kernel, word, 512), Store(a, (number(0),), Expr("float", "float32", (), 7.0))]
    first += [moved("st", 32, 1, word, a), *freed(kernel, word, 512)]
    again = [*allocated(kernel, word, 512), moved("ld", 32, 1, word, a), Store(out, (kernel.tx,), load(a, 0))]
    assert poisoned(kernel.run(*first, *again, *freed(kernel, word, 512))["D"]).all()


# ---- what is forbidden


def with_registers(*columns: int, threads: int = 32) -> tuple[Kernel, Buffer, Buffer, list[Stmt]]:
    kernel = Kernel(threads=threads, lowered=lowered())
    word, a = kernel.tile("t", "uint32", (1,), "shared"), kernel.tile("a", "float32", (64,), "local")
    return kernel, word, a, [s for n in columns for s in allocated(kernel, word, n)]


@pytest.mark.parametrize("columns", [16, 48, 1024])
def test_columns_are_a_power_of_two(columns: int) -> None:
    kernel, _, _, body = with_registers(columns)
    with pytest.raises(Illegal, match=f"tcgen05.alloc of {columns} columns"):
        kernel.run(*body)


def test_more_columns_than_there_are_block() -> None:
    kernel, _, _, body = with_registers(512, 32)
    with pytest.raises(Deadlock, match="waits for 32 columns of tensor memory, of which 0 of 512 are free"):
        kernel.run(*body)


def test_columns_have_to_be_freed() -> None:
    kernel, _, _, body = with_registers(64)
    with pytest.raises(Illegal, match="64 columns of tensor memory are not freed"):
        kernel.run(*body)


def test_what_is_freed_is_an_allocation() -> None:
    kernel, word, _, body = with_registers(64)
    with pytest.raises(Illegal, match="dealloc of 32 columns"):
        kernel.run(*body, *freed(kernel, word, 32))


@pytest.mark.parametrize(("further", "column"), [(32, 512), (-32, 448)])
def test_columns_of_nobody_are_out_of_bounds(further: int, column: int) -> None:
    kernel, word, a, body = with_registers(32)
    with pytest.raises(Illegal, match=f"tcgen05.st to t out of bounds: column {column} of tensor memory"):
        kernel.run(*body, moved("st", 32, 32, word, a, further=further))


def test_an_address_is_the_same_in_a_warp() -> None:
    kernel, word, a, body = with_registers(64)
    with pytest.raises(Illegal, match="addresses that differ within a warp"):
        kernel.run(*body, moved("ld", 32, 1, word, a, further=kernel.tx))


def test_lanes_of_another_warp_are_undecided() -> None:
    kernel, word, a, body = with_registers(64, threads=64)
    with pytest.raises(NotModelled, match="lanes that are another warp's"):
        kernel.run(*body, moved("ld", 32, 1, word, a, lane=64))


def test_a_part_of_a_warp_is_undecided() -> None:
    kernel, word, a, body = with_registers(64)
    half = If(Expr("lt", "bool", (kernel.tx, number(16))), moved("ld", 32, 1, word, a))
    with pytest.raises(NotModelled, match="by a part of a warp"):
        kernel.run(*body, half)


@pytest.mark.parametrize("name", ["ptx_init_tensor_memory", "ptx_deallocate_tensor_memory", "tcgen05_mma_arrive"])
def test_an_instruction_of_two_blocks_needs_a_cluster(name: str) -> None:
    kernel = Kernel(threads=32, lowered=lowered())
    word = kernel.tile("t", "uint32", (1,), "shared")
    with pytest.raises(Illegal, match=f"{name} of cta_group::2 without a cluster of pairs of blocks"):
        kernel.run(call(name, at(word), number(32), notes={"use_2cta": "1"}))
