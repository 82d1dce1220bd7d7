"""T.any_of and T.all_of, T.assume and T.device_assert, annotations of buffers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Kernel, call, load, number, random, region, text
from tlcheck.execute.ops.tile.annotations import entries
from tlcheck.execute.stops import Illegal, NotModelled
from tlcheck.snapshot.ir import Expr, Store


@pytest.mark.parametrize("dtype", ["bool", "int32"])
@pytest.mark.parametrize("name", ["any_of", "all_of", "tl::Any", "tl::All"])
def test_runs_of_memory(name: str, dtype: str) -> None:
    """Of each row from the second element on, also as the device library has it."""
    rows = np.array([[1, 0, 0, 0], [0, 0, 2, 0], [0, 1, 1, 3], [1, 1, 1, 1]])
    kernel = Kernel(threads=4)
    source = kernel.tensor("A", dtype, rows.astype(dtype))
    target, tile = kernel.tensor("B", "bool", [4]), kernel.tile("s", dtype, (4, 4))
    pointer = Expr("call", "handle", (load(tile, kernel.tx, 1), number(3), number(1)), "access_ptr")
    library = "::" in name
    value = Expr(
        "call", "bool", ((text(name),) if library else ()) + (pointer, number(3)), "call_extern" if library else name
    )
    found = kernel.run(call("copy", region(source), region(tile)), Store(target, (kernel.tx,), value))["B"]
    assert np.array_equal(found, (rows[:, 1:] != 0).any(1) if "ny" in name else (rows[:, 1:] != 0).all(1))


@pytest.mark.parametrize("name", ["assume", "device_assert"])
def test_promises(name: str) -> None:
    """Those that hold do nothing; another one names the thread."""
    kernel = Kernel(threads=4, blocks=2)
    kernel.tensor("B", "int32", np.zeros(4))
    kernel.run(call(name, Expr("lt", "bool", (kernel.tx, number(4)))))
    with pytest.raises(Illegal, match=f"T.{name} does not hold") as stopped:
        kernel.run(call(name, Expr("ne", "bool", (kernel.tx, number(2)))))
    assert (stopped.value.world, stopped.value.lane) == (0, 2)


def test_entries_of_an_annotation() -> None:
    assert entries("{}") == {}
    assert entries("{A: 1.0}") == {"A": "1.0"}
    assert entries("{A: {op: sum, rep: all}, B_1: {op: max}}") == {"A": "{op: sum, rep: all}", "B_1": "{op: max}"}


def test_a_safe_value_that_is_no_number_is_not_modelled() -> None:
    kernel = Kernel()
    kernel.annotations["safe_value_map"] = "{A: x}"
    source, tile = kernel.tensor("A", "float32", random("float32", 4)), kernel.tile("s", "float32", (4,))
    with pytest.raises(NotModelled, match="safe value x"):
        kernel.run(call("copy", region(source), region(tile)))
