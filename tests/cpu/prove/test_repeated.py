"""An atomic that is made once where the source makes it several times, or the other way round."""

from __future__ import annotations

import pytest

from tests.cpu.prove.handmade import STEP, THREAD, add, load, number, operation, own, status, tensor
from tlcheck.snapshot.ir import For, Stmt

VALUES, RESULTS = tensor("F", "float32", 256, 91_041), tensor("S", "float32", 64, 91_042)
OPERATIONS = ["atomic_max_elem_op", "atomic_min_elem_op", "atomic_add_elem_op"]


def once(name: str, thread: int = 0) -> Stmt:
    """The atomic of each thread from `thread` on."""
    begun = () if not thread else (operation("le", number(thread), THREAD),)
    return add(load(RESULTS, THREAD), own(VALUES), *begun, name=name)


def twice(stmt: Stmt) -> Stmt:
    return For(STEP, number(0), number(2), "serial", stmt)


def verdict(source: Stmt, lowered: Stmt) -> str:
    return status(source, lowered, VALUES, RESULTS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_maximum_that_is_taken_again_changes_nothing_but_a_sum_does(name: str) -> None:
    expected = "different" if name == "atomic_add_elem_op" else "same"
    assert verdict(twice(once(name)), once(name)) == expected
    assert verdict(once(name), twice(once(name))) == expected


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_value_that_is_never_taken_is_missed(name: str) -> None:
    assert verdict(twice(once(name)), twice(once(name, thread=1))) == "different"
    assert verdict(twice(once(name)), once(name, thread=1)) == "different"


def test_a_maximum_that_is_given_back_is_another_the_second_time() -> None:
    name = "atomic_max_ret_elem_op"
    assert verdict(twice(once(name)), once(name)) == "different"


def test_an_addition_that_becomes_a_maximum_is_compared_with_each_of_its_times() -> None:
    assert verdict(twice(once("atomic_add_elem_op")), once("atomic_max_elem_op")) == "different"
    assert verdict(twice(once("atomic_add_elem_op")), twice(once("atomic_max_elem_op"))) == "same"
