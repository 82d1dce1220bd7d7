"""Random numbers: what they are must not matter, that they are the same each time does."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cpu.execute.ops.tile.building import Array, Kernel, call, number, parallel, text, variable
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.stops import NotModelled
from tlcheck.snapshot.ir import Expr, For, If, Store

THREADS, DRAWS = 32, 64


def draws(value: Expr, seed: int = 7, sequence: bool = True) -> Array:
    """(threads, draws), of two blocks with the same sequences."""
    kernel, step = Kernel(threads=THREADS, blocks=2), variable("i")
    dtype = value.dtype
    target = kernel.tensor("B", dtype, [2, THREADS, DRAWS])
    first = kernel.tx if sequence else number(0)
    store = Store(target, (kernel.bx, kernel.tx, step), value)
    loop = For(step, number(0), number(DRAWS), "serial", store)
    found = kernel.run(call("rng_init", number(seed), first, number(0), text("curandStatePhilox4_32_10_t")), loop)["B"]
    assert np.array_equal(found[0], found[1])
    first_block: Array = found[0]
    return first_block


def uniform(dist: str) -> Expr:
    return Expr("call", "float32", (text(dist),), "rng_rand_float")


INTEGER = Expr("call", "uint32", (), "rng_rand")


def test_draws_depend_on_seed_sequence_and_number_alone() -> None:
    found = draws(INTEGER)
    assert np.array_equal(found, draws(INTEGER))
    assert len(np.unique(found)) == found.size
    assert not (found == draws(INTEGER, seed=8)).any()
    same = draws(INTEGER, sequence=False)
    assert (same == same[:1]).all()


def test_distributions() -> None:
    """2,048 numbers: means and deviations within five standard errors."""
    flat, normal = draws(uniform("uniform")), draws(uniform("normal"))
    assert flat.min() > 0.0
    assert flat.max() <= 1.0
    assert abs(flat.mean() - 0.5) < 5 * 0.289 / flat.size**0.5
    assert abs(normal.mean()) < 5 / normal.size**0.5
    assert abs(normal.std() - 1.0) < 5 / (2 * normal.size) ** 0.5


def test_only_threads_that_draw_go_on() -> None:
    kernel = Kernel(threads=4)
    target = kernel.tensor("B", "uint32", [2, 4])
    even = Expr("lt", "bool", (kernel.tx, number(2)))
    begin = call("rng_init", number(1), number(5), number(0), text(""))
    first = If(even, Store(target, (number(0), kernel.tx), INTEGER))
    found = kernel.run(begin, first, Store(target, (number(1), kernel.tx), INTEGER))["B"]
    assert found[0, 0] == found[0, 1] == found[1, 2] == found[1, 3]
    assert found[1, 0] == found[1, 1] != found[1, 2]


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "agreed"), (2.0, "refuted")])
def test_which_element_gets_which_number_does_not_matter(factor: float, verdict: str) -> None:
    """As written in a T.Parallel, as lowered by each thread and the other way round; what becomes of them does."""
    kernel, i = Kernel(threads=THREADS), variable("i")
    target = kernel.tensor("B", "float32", [THREADS])
    begin = call("rng_init", number(1), kernel.tx, number(0), text("curandStatePhilox4_32_10_t"))
    value = uniform("uniform")
    lowered = Store(
        target,
        (Expr("sub", "int32", (number(THREADS - 1), kernel.tx)),),
        Expr("mul", "float32", (value, Expr("float", "float32", (), factor))),
    )
    snapshot = kernel.snapshot([begin, parallel([THREADS], [i], Store(target, (i,), value))], [begin, lowered])
    assert [(o.name, o.verdict) for o in execute(snapshot).outputs] == [("B", verdict)]


def test_without_another_level_draws_in_parallel_loops_are_not_modelled() -> None:
    kernel, i = Kernel(), variable("i")
    target = kernel.tensor("B", "uint32", [4])
    with pytest.raises(NotModelled, match=r"in T\.Parallel"):
        kernel.run(parallel([4], [i], Store(target, (i,), INTEGER)))
