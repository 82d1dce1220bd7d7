from __future__ import annotations

from tlcheck.program.device_library import LOST, OK, WRONG, Behaviour, LibraryCall, device_library, read
from tlcheck.toolchain.probes.table import results, text

ADD = LibraryCall("add", "float32", "float32")
ORDERED = LibraryCall("add", "float32", "float32", order=4)
PAIR = LibraryCall("add", "float16", "float32", 2, pointer=True, returns=True, shared=True)
RIGHT = Behaviour(OK, "", ("atom.add.f32",), (4, 4))
WEAK = Behaviour(LOST, "acq_rel is asked for", ("atom.add.f32",), (4, 4))
OTHER = Behaviour(WRONG, "adds 0", ("cvt.rn.f16x2.f32", "atom.add.noftz.f16x2"))
WHEELS = {"0.1.10": "b", "0.1.9": "a"}
MEASURED = {
    ("0.1.9", 90): {ADD: RIGHT, ORDERED: WEAK, PAIR: OTHER},
    ("0.1.10", 90): {ADD: RIGHT, PAIR: RIGHT},
    ("0.1.9", 80): {ADD: RIGHT},
}


def test_a_table_says_what_was_put_into_it_and_nothing_else() -> None:
    table = read(text("2026-01-02", "nvcc 13.0", WHEELS, MEASURED))
    assert results(table) == MEASURED
    assert list(table.wheels) == ["0.1.9", "0.1.10"]
    assert table.behaviour("0.1.9", 90, ORDERED) == WEAK
    assert table.behaviour("0.1.9+cu128", 90, PAIR) == OTHER
    assert table.behaviour("0.1.10", 90, ORDERED) is None
    assert table.behaviour("0.1.10", 80, ADD) is None
    assert table.behaviour("0.1.9", 100, ADD) is None
    assert table.behaviour("0.1.11", 90, ADD) is None
    assert table.behaviour("unknown", 90, ADD) is None


def test_the_table_of_tlcheck_is_as_the_tool_writes_it() -> None:
    table = device_library()
    assert read(text(table.date, table.compiler, table.wheels, results(table))) == table
