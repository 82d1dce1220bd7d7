"""Atomics that return what was there: threads may come in any order, and what does not hang on it is decided."""

from __future__ import annotations

import pytest

from tests.cpu.execute.ops.tile.building import Kernel, load, number, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.snapshot.ir import Bind, Expr, If, Seq, Stmt, Store

THREADS = 32


class Tickets:
    """Each thread draws a ticket and stores an element of A where it says."""

    def __init__(self) -> None:
        self.kernel = Kernel(threads=THREADS)
        self.a = self.kernel.tensor("A", "float32", (THREADS,))
        self.n = self.kernel.tensor("N", "int32", (1,))
        self.b = self.kernel.tensor("B", "float32", (4 * THREADS,))

    def stored(self, source: Expr, factor: float = 1.0, places: int = 0, further: int = 0) -> Stmt:
        """places: where it is not 0, so many elements are all that the threads have. further: than the ticket says."""
        address = Expr("call", "handle", (load(self.n, 0),), "address_of")
        ticket = Expr("call", "int32", (address, number(1)), "atomic_add_ret_elem_op")
        if places:
            ticket = Expr("floormod", "int32", (ticket, number(places)))
        ticket = Expr("add", "int32", (ticket, number(further)))
        value = Expr("mul", "float32", (load(self.a, source), Expr("float", "float32", (), factor)))
        return Store(self.b, (ticket,), value)

    def judged(self, written: Stmt, lowered: Stmt) -> OutputOutcome:
        outcomes = execute(self.kernel.snapshot((written,), (lowered,))).outputs
        return next(o for o in outcomes if o.name == "B")


@pytest.fixture(name="tickets")
def _tickets() -> Tickets:
    return Tickets()


def test_threads_in_another_order_agree(tickets: Tickets) -> None:
    last_first = Expr("sub", "int32", (number(THREADS - 1), tickets.kernel.tx))
    assert tickets.judged(tickets.stored(tickets.kernel.tx), tickets.stored(last_first)).verdict == "agreed"


def test_a_value_that_no_order_stores_is_refuted(tickets: Tickets) -> None:
    found = tickets.judged(tickets.stored(tickets.kernel.tx), tickets.stored(tickets.kernel.tx, factor=1.5))
    assert found.verdict == "refuted"
    assert found.difference is not None
    assert float(found.difference.got) == 1.5 * float(found.difference.expected)


def test_another_place_than_any_order_has_is_refuted(tickets: Tickets) -> None:
    found = tickets.judged(tickets.stored(tickets.kernel.tx), tickets.stored(tickets.kernel.tx, further=1))
    assert found.verdict == "refuted"


def test_an_element_that_is_stored_twice_is_refuted(tickets: Tickets) -> None:
    halved = Expr("floordiv", "int32", (tickets.kernel.tx, number(2)))
    assert tickets.judged(tickets.stored(tickets.kernel.tx), tickets.stored(halved)).verdict == "refuted"


def test_what_the_last_thread_leaves_is_undecided(tickets: Tickets) -> None:
    """Two threads have each place."""
    last_first = Expr("sub", "int32", (number(THREADS - 1), tickets.kernel.tx))
    written, lowered = (tickets.stored(e, places=THREADS // 2) for e in (tickets.kernel.tx, last_first))
    found = tickets.judged(written, lowered)
    assert (found.verdict, found.reason) == ("undecided", "it depends on the order of atomics")


@pytest.mark.parametrize(("decided", "verdict"), [(False, "refuted"), (True, "undecided")])
def test_what_no_ticket_decides_has_its_place(tickets: Tickets, decided: bool, verdict: str) -> None:
    """The same elements in reverse are another output, unless a ticket says which of them are stored."""
    address = Expr("call", "handle", (load(tickets.n, 0),), "address_of")
    drawn = variable("t")
    draws = Bind(drawn, Expr("call", "int32", (address, number(1)), "atomic_add_ret_elem_op"))

    def stored(place: Expr) -> Stmt:
        store: Stmt = Store(tickets.b, (place,), load(tickets.a, tickets.kernel.tx))
        return Seq((draws, If(Expr("lt", "bool", (drawn, number(20))), store, None) if decided else store))

    last_first = Expr("sub", "int32", (number(THREADS - 1), tickets.kernel.tx))
    assert tickets.judged(stored(tickets.kernel.tx), stored(last_first)).verdict == verdict
