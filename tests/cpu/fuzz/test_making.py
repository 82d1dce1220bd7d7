"""Kernels of a campaign: the same number makes the same one, and each is Python."""

import ast
from collections import Counter

import pytest

from tlcheck.errors import UsageError
from tlcheck.fuzz.chance import Chance
from tlcheck.fuzz.constructs import constructs
from tlcheck.fuzz.making import make
from tlcheck.fuzz.mutations import MUTATIONS
from tlcheck.fuzz.seeds import SeedKernel, seeds

FILE = "tests/wrong_code/repaired.py"
KERNEL = """import tilelang
import tilelang.language as T

@tilelang.jit
def f():

    @T.prim_func
    def main(A: T.Tensor((64, 32), 'float16'), B: T.Tensor((64, 32), 'float16')):
        with T.Kernel(2, threads=128) as bx:
            a = T.alloc_shared((64, 32), 'float16')
            b = T.alloc_shared((64, 32), 'float16')
            c = T.alloc_fragment((64,), 'float16')
            T.clear(a)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A, a)
                if k > 1:
                    T.gemm(a, a, b)
                T.reduce_sum(b, c, dim=1)
            for i, j in T.Parallel(64, 32):
                B[i, j] = a[i, j] + b[i, j]
    return main
"""


@pytest.fixture(scope="module")
def found() -> list[SeedKernel]:
    return seeds([FILE])


def test_the_same_number_makes_the_same_kernel(found: list[SeedKernel]) -> None:
    first, again = ([make(number, found) for number in range(25)] for _ in range(2))
    assert first == again
    assert len({kernel.text for kernel in first}) == 25


def test_every_kernel_is_python(found: list[SeedKernel]) -> None:
    for number in range(60):
        kernel = make(number, found)
        assert any(isinstance(s, ast.FunctionDef) and s.name == kernel.name for s in ast.parse(kernel.text).body)


def test_composed_kernels_reach_the_language() -> None:
    reached = set().union(*(constructs(make(number).text) for number in range(100)))
    words = {name.split()[0] for name in reached}
    assert {"T.copy", "T.gemm", "T.Pipelined", "T.Parallel", "T.reduce_sum", "T.cumsum", "T.atomic_add"} <= words
    assert {"T.transpose", "T.reshape", "T.reducer_update", "T.vectorized", "while", "slice", "int64"} <= words
    assert {"T.serial from", "T.copy shared fragment"} <= reached


def test_no_construct_is_rare() -> None:
    """Each kind of pipeline, product and atomic stands in a kernel of 500."""
    drawn = {name for number in range(500) for name in make(number).drawn}
    assert {"rows: variable", "order: use, load", "loads: parity", "operand loaded again", "product in branch"} <= drawn
    assert {"sum in memory", "asked of all", "wide_atomics", "tickets", "while", "T.serial to a block"} <= drawn


def test_weights_draw_what_is_seldom() -> None:
    plain, weighted = (
        Counter(name for number in range(80) for name in make(number, (), weights).drawn)
        for weights in ({}, {"scan": 4.0, "load": 0.5})
    )
    assert weighted["scan"] > 2 * plain["scan"]


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_mutation_changes_the_kernel_and_says_how(name: str) -> None:
    for number in range(20):
        tree = ast.parse(KERNEL)
        words = MUTATIONS[name](tree, Chance(number))
        ast.fix_missing_locations(tree)
        text = ast.unparse(tree)
        compile(text, "kernel.py", "exec")
        if words is not None and text != ast.unparse(ast.parse(KERNEL)):
            return
    pytest.fail(f"{name} changes nothing")


def test_a_mutation_without_a_place_says_so() -> None:
    tree = ast.parse("import tilelang\n")
    assert [name for name, mutation in MUTATIONS.items() if mutation(tree, Chance(0)) is not None] == []


def test_seeds_are_kernels_that_need_no_argument(found: list[SeedKernel]) -> None:
    places = {seed.place for seed in found}
    assert f"{FILE}::rotated" in places
    products = [seed for seed in found if seed.function == "product"]
    assert len(products) == 2  # each case with its arguments
    assert "104" in products[0].text


def test_a_seed_that_is_not_there_is_a_mistake_of_the_user() -> None:
    with pytest.raises(UsageError, match="no such file"):
        seeds(["nowhere.py"])
    with pytest.raises(UsageError, match="no kernel found"):
        seeds([f"{FILE}::nothing"])
