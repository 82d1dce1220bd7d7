"""Loops that wait for memory let others run: blocks and branches that come later in the schedule."""

from __future__ import annotations

import pytest

from tests.cpu.execute.observe.test_tensors_in_order import store
from tests.cpu.execute.ops.tile.building import Kernel, add, call, load, number
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.execution import Execution
from tlcheck.snapshot.ir import Expr, If, Seq, Stmt, While

RELAXED, ACQUIRE, RELEASE = 0, 2, 3
BLOCKS = 3


def is_less(a: Expr, b: Expr) -> Expr:
    return Expr("lt", "bool", (a, b))


def address(element: Expr) -> Expr:
    return Expr("call", "handle", (element,), "address_of")


def until_set(flag: Expr, order: int) -> Stmt:
    read = Expr("call", "int32", (address(flag), number(order)), "atomic_load_elem_op")
    return While(Expr("eq", "bool", (read, number(0))), Seq(()), line=7)


def chain(acquire: int = ACQUIRE, release: int = RELEASE, last: int = BLOCKS) -> Execution:
    """Each block adds its number to what the next one wrote, which it waits for. last: blocks that do not wait."""
    kernel = Kernel(threads=1, blocks=BLOCKS)
    flags, sums = (kernel.tensor(name, "int32", (BLOCKS + 1,)) for name in ("F", "S"))
    here, following = kernel.bx, add(kernel.bx, number(1))
    body = (
        If(is_less(here, number(last - 1)), until_set(load(flags, following), acquire), None),
        If(
            is_less(here, number(last - 1)),
            store(sums, here, add(load(sums, following), here)),
            store(sums, here, here),
        ),
        call("atomic_store_elem_op", address(load(flags, here)), number(1), number(release)),
    )
    return execute(kernel.snapshot(body, body))


def verdicts(found: Execution) -> set[tuple[str, str]]:
    return {(outcome.verdict, outcome.reason) for outcome in found.outputs}


def test_a_block_waits_for_one_that_comes_later() -> None:
    found = chain()
    assert verdicts(found) == {("agreed", "")}
    assert (found.races, found.contested) == ((), ())


@pytest.mark.parametrize("orders", [(RELAXED, RELEASE), (ACQUIRE, RELAXED)])
def test_to_have_waited_is_no_order(orders: tuple[int, int]) -> None:
    assert {race.parameter for race, _ in chain(*orders).contested} == {"S"}


def test_a_flag_that_nobody_sets() -> None:
    """The last block waits as well."""
    said = "in the blocks that run, a loop never ends (line 7)"
    assert verdicts(chain(last=BLOCKS + 1)) == {("undecided", said)}


@pytest.mark.parametrize("order", [ACQUIRE, RELAXED])
def test_a_warp_waits_for_another_one_of_its_block(order: int) -> None:
    kernel = Kernel(threads=64)
    flag, given, out = (kernel.tensor(n, "int32", (size,)) for n, size in (("F", 1), ("G", 32), ("O", 32)))
    is_first = Expr("eq", "bool", (kernel.tx, number(32)))
    there = Expr("sub", "int32", (kernel.tx, number(32)))
    waits = Seq((until_set(load(flag, 0), order), store(out, kernel.tx, load(given, kernel.tx))))
    publish = call("atomic_store_elem_op", address(load(flag, 0)), number(1), number(RELEASE))
    gives = Seq((store(given, there, number(5)), call("sync_warp"), If(is_first, publish, None)))
    body = (If(is_less(kernel.tx, number(32)), waits, gives),)
    found = execute(kernel.snapshot(body, body))
    assert bool(found.contested) == (order == RELAXED)
    if order == ACQUIRE:
        assert verdicts(found) == {("agreed", "")}
