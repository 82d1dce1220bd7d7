"""Outputs that the kernel as written leaves to chance: what half of depends on nothing is not agreed.

Floats that nobody has written are NaN. Integers have no such value: others tell what hangs on them.
"""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, buffer, call, load, number, region, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Alloc, Bind, Expr, If, Seq, Stmt, Store

THREADS = 64


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
@pytest.mark.parametrize(
    ("written", "verdict", "reason"),
    [
        (THREADS, "agreed", ""),
        (THREADS - 8, "agreed", ""),
        (THREADS // 2, "undecided", "as written, 50% of it depends on memory that nothing wrote"),
        (0, "undecided", "as written, all of it depends on memory that nothing wrote"),
    ],
)
def test_registers_that_some_threads_set(written: int, verdict: str, reason: str, dtype: str) -> None:
    kernel = Kernel(threads=THREADS)
    a, b = kernel.tensor("A", dtype, (THREADS,)), kernel.tensor("B", dtype, (THREADS,))
    register = kernel.tile("r", dtype, (1,), "local")
    some = _where(kernel, written, Store(register, (number(0),), load(a, kernel.tx)))
    assert _outcome(kernel, some, Store(b, (kernel.tx,), load(register, 0))) == (verdict, reason)


@pytest.mark.parametrize("written", [THREADS, THREADS - 8])
def test_what_nobody_set_is_told_of_an_output_that_is_wrong_elsewhere(written: int) -> None:
    kernel = Kernel(threads=THREADS)
    a, b = kernel.tensor("A", "float32", (THREADS,)), kernel.tensor("B", "float32", (THREADS,))
    register = kernel.tile("r", "float32", (1,), "local")
    some = _where(kernel, written, Store(register, (number(0),), load(a, kernel.tx)))
    double = Expr("add", "float32", (load(register, 0), load(register, 0)))
    bodies = ([some, Store(b, (kernel.tx,), value)] for value in (load(register, 0), double))
    found = execute(kernel.snapshot(*bodies), Request())
    assert [outcome.verdict for outcome in found.outputs] == ["refuted"]
    assert [fault.buffer for fault in found.faults if not fault.warning] == ([] if written == THREADS else ["r"])


@pytest.mark.parametrize(("written", "verdict"), [(THREADS, "agreed"), (0, "undecided")])
def test_integers_made_of_floats_that_nobody_set(written: int, verdict: str) -> None:
    kernel = Kernel(threads=THREADS)
    a, b = kernel.tensor("A", "float32", (THREADS,)), kernel.tensor("B", "int32", (THREADS,))
    register = kernel.tile("r", "float32", (1,), "local")
    some = _where(kernel, written, Store(register, (number(0),), load(a, kernel.tx)))
    more = Expr("add", "float32", (load(register, 0), Expr("float", "float32", (), 1.0)))
    assert _outcome(kernel, some, Store(b, (kernel.tx,), Expr("cast", "int32", (more,))))[0] == verdict


@pytest.mark.parametrize("name", ["copy", "atomicmax"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_tile_of_floats_that_nobody_set_in_a_tensor(dtype: str, name: str) -> None:
    """A tile operator makes integers of the floats without a cast."""
    kernel = Kernel(threads=THREADS)
    b, tile = kernel.tensor("B", dtype, (THREADS,)), kernel.tile("f", "float32", (THREADS,), "local.fragment")
    ((verdict, reason),) = _outcomes(kernel, call(name, region(tile), region(b)))
    assert verdict == "undecided"
    assert reason.endswith("of it depends on memory that nothing wrote")


@pytest.mark.parametrize("op", ["min", "max"])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32"])
def test_an_extremum_with_an_integer_that_nobody_set(dtype: str, op: str) -> None:
    """Unset numbers are at both ends of their type: between them, the other number could always win."""
    kernel = Kernel(threads=THREADS)
    a, b = kernel.tensor("A", dtype, (THREADS,)), kernel.tensor("B", dtype, (THREADS,))
    register = kernel.tile("r", dtype, (1,), "local")
    more = Expr(op, dtype, (load(register, 0), load(a, kernel.tx)))
    assert _outcome(kernel, Store(b, (kernel.tx,), more))[0] == "undecided"


@pytest.mark.parametrize(("written", "verdict"), [(THREADS, "agreed"), (0, "undecided")])
def test_an_index_that_nobody_set(written: int, verdict: str) -> None:
    """Unset numbers are large: any of them leads out of the tensor, where 0 is read. A small one would not."""
    kernel = Kernel(threads=THREADS)
    a, b = kernel.tensor("A", "float32", (THREADS,)), kernel.tensor("B", "float32", (THREADS,))
    register, row = kernel.tile("r", "int32", (1,), "local"), variable("row")
    some = _where(kernel, written, Store(register, (number(0),), kernel.tx))
    index, read = Bind(row, load(register, 0)), Store(b, (kernel.tx,), load(a, row))
    zero = Store(b, (kernel.tx,), Expr("float", "float32", (), 0.0))
    inside = Expr("and", "bool", (Expr("ge", "bool", (row, number(0))), Expr("lt", "bool", (row, number(THREADS)))))
    found = execute(kernel.snapshot([some, index, read], [some, index, If(inside, read, zero)]), Request())
    assert [outcome.verdict for outcome in found.outputs] == [verdict]
    assert [fault.buffer for fault in found.faults if not fault.warning] == ([] if written else ["r"])


@pytest.mark.parametrize(("lanes", "verdict"), [(32, "agreed"), (16, "undecided")])
def test_shuffles_from_lanes_that_take_no_part(lanes: int, verdict: str) -> None:
    kernel = Kernel(threads=32)
    b = kernel.tensor("B", "int32", (32,))
    mask = Expr("int", "uint32", (), 0xFFFFFFFF)
    name = Expr("str", "", (), "__shfl_xor_sync")
    value = Expr("call", "int32", (name, mask, kernel.tx, number(16), number(32)), "call_extern")
    assert _outcome(kernel, _where(kernel, lanes, Store(b, (kernel.tx,), value)))[0] == verdict


def test_an_address_that_nobody_set() -> None:
    """In bounds with the usual number, out of bounds with another one."""
    kernel = Kernel(threads=1)
    tile, b = kernel.tile("s", "float32", (64,), "shared"), kernel.tensor("B", "float32", (1,))
    register = kernel.tile("r", "uint8", (1,), "local")
    place = Expr("sub", "int32", (number(0xB5), Expr("cast", "int32", (load(register, 0),))))
    set_first = Store(tile, (number(0),), Expr("float", "float32", (), 1.0))
    c = kernel.tensor("C", "float32", (1,))
    body = [set_first, Store(b, (number(0),), load(tile, place)), Store(c, (number(0),), load(tile, 0))]
    (first, reason), (second, other) = _outcomes(kernel, *body, seeds=(0,))
    assert first == second == "undecided"
    assert reason == other
    assert reason.startswith("as written, with other numbers where nothing wrote: ")


def _where(kernel: Kernel, below: int, body: Stmt) -> Stmt:
    return If(Expr("lt", "bool", (kernel.tx, number(below))), body, None)


def _outcome(kernel: Kernel, *body: Stmt) -> tuple[str, str]:
    (found,) = _outcomes(kernel, *body)
    return found


def _outcomes(kernel: Kernel, *body: Stmt, seeds: tuple[int, ...] = (0, 1)) -> list[tuple[str, str]]:
    """Verdict and reason of each output of a kernel that is lowered to itself."""
    same = (Seq(body),)
    return [(o.verdict, o.reason) for o in execute(kernel.snapshot(same, same), Request(seeds=seeds)).outputs]


@pytest.mark.parametrize("operation", ["max", "min"])
def test_the_value_of_an_atomic_that_returns_none(operation: str) -> None:
    """TileLang 0.1.7.post3 to 0.1.12 print nothing in its place: `O[tx] = ;`."""
    kernel = Kernel(threads=1)
    n, o = kernel.tensor("N", "int32", (1,)), kernel.tensor("O", "int32", (1,))
    name = f"atomic_{operation}_elem_op"
    value = Expr("call", "int32", (load(n, 0), number(3)), name)
    said = ("undecided", f"the value of {name}, which returns none")
    assert set(_outcomes(kernel, Store(o, (number(0),), value))) == {said}


@pytest.mark.parametrize(("distance", "used", "told"), [(8, True, False), (16, False, False), (16, True, True)])
def test_a_shuffled_value_that_is_undefined_is_told_where_an_output_has_it(
    distance: int, used: bool, told: bool
) -> None:
    """The first half of a warp shuffles, within itself or with the other half, which takes no part."""
    kernel = Kernel(threads=32)
    a, b = (kernel.tensor(name, "float32", (32,)) for name in "AB")
    register = kernel.tile("r", "float32", (1,), "local")
    mask, own = Expr("int", "uint32", (), 0xFFFFFFFF), load(a, kernel.tx)
    shuffled = Expr("call", "float32", (mask, own, number(distance), number(32)), "shfl_xor_sync")
    some = _where(kernel, 16, Store(register, (number(0),), shuffled))
    body = (Store(register, (number(0),), own), some, Store(b, (kernel.tx,), load(register, 0) if used else own))
    faults = execute(kernel.snapshot(body, body)).faults
    assert [fault.problem for fault in faults] == (["source-absent-lane"] if told else [])
    assert all("16 of 32 elements of B" in fault.what for fault in faults)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("seed", [0, 1])
def test_two_integers_that_nobody_set_do_not_cancel_each_other(seed: int, dtype: str) -> None:
    kernel = Kernel(threads=THREADS)
    b = kernel.tensor("B", dtype, (THREADS,))
    tile = kernel.tile("s", dtype, (THREADS,), "shared")
    other = Expr("sub", "int32", (number(THREADS - 1), kernel.tx))
    store = Store(b, (kernel.tx,), Expr("sub", dtype, (load(tile, kernel.tx), load(tile, other))))
    ((verdict, reason),) = _outcomes(kernel, store, seeds=(seed,))
    assert verdict == "undecided"
    assert reason.endswith("depends on memory that nothing wrote")


@pytest.mark.parametrize(("sets", "raced"), [(False, []), (True, ["t"])])
def test_a_race_for_another_buffers_value_where_nothing_is_set_is_nobodys(sets: bool, raced: list[str]) -> None:
    """As lowered t lies in the memory of s, which other threads have written without a barrier."""
    kernel = Kernel(threads=THREADS)
    a, b = kernel.tensor("A", "float32", (THREADS,)), kernel.tensor("B", "float32", (THREADS,))
    s, t = kernel.tile("s", "float32", (THREADS,)), buffer("t", "float32", (THREADS,), "shared.dyn")
    mirrored = Expr("sub", "int32", (number(THREADS - 1), kernel.tx))
    store, read = Store(s, (kernel.tx,), load(a, kernel.tx)), Store(b, (kernel.tx,), load(t, mirrored))
    merged = Bind(t.data, Expr("call", "handle", (s.data, number(0)), "handle_add_byte_offset"))
    own = [call("fill", region(t), number(1))] if sets else []
    found = execute(kernel.snapshot([Alloc(t), store, *own, read], [Seq((merged, store, read))]), Request())
    assert [race.buffer for race in found.races] == raced
    assert ("nothing has set t" in found.ordered.get("t", "")) is not sets


def test_a_read_of_nothing_excuses_no_race_for_what_is_set_later() -> None:
    """C gets what nobody has set of t, then B gets what is set; as lowered B gets the value of s in some order."""
    kernel = Kernel(threads=THREADS)
    a, b, c = (kernel.tensor(name, "float32", (THREADS,)) for name in "ABC")
    s, t = kernel.tile("s", "float32", (THREADS,)), buffer("t", "float32", (THREADS,), "shared.dyn")
    mirrored = Expr("sub", "int32", (number(THREADS - 1), kernel.tx))
    unset, store = Store(c, (kernel.tx,), load(t, kernel.tx)), Store(s, (kernel.tx,), load(a, kernel.tx))
    read = Store(b, (kernel.tx,), load(t, mirrored))
    merged = Bind(t.data, Expr("call", "handle", (s.data, number(0)), "handle_add_byte_offset"))
    source = [Alloc(t), unset, store, call("fill", region(t), number(1)), read]
    found = execute(kernel.snapshot(source, [Seq((merged, unset, store, read))]), Request())
    assert [race.buffer for race in found.races] == ["t"]
