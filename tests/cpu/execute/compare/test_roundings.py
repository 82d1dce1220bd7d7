"""Kernels run again with floats in their own types: what is rounded too early, or overflows, shows there alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.cpu.checking import executed
from tests.cpu.mutations.lowered import lowered_mutants
from tests.cpu.mutations.survivors import kernels
from tlcheck.execute.compare.roundings import coarser
from tlcheck.execute.memory.pages import Stored
from tlcheck.execute.memory.values import Array, kind_of, rounded
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Snapshot
from tlcheck.witness import Element

HALF = kind_of("float16")


def narrowed(kernel: str) -> Snapshot:
    """A kernel with one value rounded to 8 bits on its way into an output of 16."""
    snapshot = kernels()[kernel]
    lowered = snapshot.checkpoints["device-tir"]
    mutant = next(m.function for m in lowered_mutants(lowered) if m.kind == "narrow")
    return replace(snapshot, checkpoints={**snapshot.checkpoints, "device-tir": mutant})


def test_a_value_that_is_rounded_on_its_way() -> None:
    (claim,) = [c for c in executed(narrowed("waves sm_80"), Request(1)) if c.kind == "output"]
    assert claim.finding is not None
    assert claim.finding.rule == "TLO001"
    assert claim.finding.what == "C is rounded by more than what is written"
    assert claim.finding.origin is not None
    assert claim.finding.origin.kind == "rounded"
    assert "float8" in claim.finding.origin.words
    witness = claim.finding.witness
    assert isinstance(witness, Element)
    assert witness.inputs.startswith("random inputs of seed 1, floats in their own types; ")
    expected, got = float(witness.expected), float(witness.got)
    assert got != expected
    assert abs(got - expected) <= abs(expected) / 8


def test_the_same_kernel_without_it_agrees_and_says_what_was_run() -> None:
    (claim,) = [c for c in executed(kernels()["waves sm_80"], Request(1)) if c.kind == "output"]
    assert claim.verdict == "agreed"
    assert claim.executed is not None
    assert claim.executed.dtypes == ("float64", "declared")
    assert claim.executed.words.endswith("as float64, one block also in the kernel's own types")


def sides(exact: Array, written: Array, lowered: Array) -> tuple[Stored, Stored, Stored]:
    number = np.arange(len(exact))
    return Stored(number, exact), Stored(number, written), Stored(number, lowered)


@pytest.fixture(name="numbers")
def _numbers() -> Array:
    return np.random.default_rng(0).uniform(-1.0, 1.0, 1000)


def test_as_much_rounding_as_is_written_is_none(numbers: Array) -> None:
    once, twice = rounded(numbers, HALF), rounded(np.asarray(rounded(numbers * 3, HALF)) / 3, HALF)
    exact, written, lowered = sides(numbers, np.asarray(once), np.asarray(twice))
    assert coarser(exact, written, lowered, HALF) is None


def test_few_elements_that_differ_are_a_choice(numbers: Array) -> None:
    once = np.asarray(rounded(numbers, HALF))
    chosen = np.where(np.arange(1000) % 20, once, -once)
    exact, written, lowered = sides(numbers, once, chosen)
    assert coarser(exact, written, lowered, HALF) is None


def test_another_type_in_between_is_seen(numbers: Array) -> None:
    once, early = (np.asarray(rounded(numbers, kind_of(name))) for name in ("float16", "bfloat16"))
    exact, written, lowered = sides(numbers, once, early)
    wrong = coarser(exact, written, lowered, HALF)
    assert wrong is not None
    assert wrong.mean() > 0.4


def test_one_element_that_overflows_is_seen(numbers: Array) -> None:
    once = np.asarray(rounded(numbers, HALF))
    exact, written, lowered = sides(numbers, once, np.where(np.arange(1000) == 7, np.inf, once))
    wrong = coarser(exact, written, lowered, HALF)
    assert wrong is not None
    assert list(np.flatnonzero(wrong)) == [7]


def test_what_overflows_as_written_as_well_is_not_seen(numbers: Array) -> None:
    """Another order of sums has other numbers overflow, if they come near to the largest."""
    once = np.asarray(rounded(numbers, HALF))
    places = np.arange(1000)
    mine, others = np.where(places % 100 == 3, np.inf, once), np.where(places % 100 == 7, np.inf, once)
    assert coarser(*sides(numbers, mine, others), HALF) is None


def test_what_is_no_number_on_one_side_is_not_compared(numbers: Array) -> None:
    """As written others are infinite; of those that are numbers on both sides nothing differs."""
    once = np.asarray(rounded(numbers, HALF))
    mine, others = np.where(np.arange(1000) < 500, once, np.inf), np.where(np.arange(1000) < 500, np.nan, once)
    assert coarser(*sides(numbers, mine, others), HALF) is None


@pytest.mark.parametrize(("kind", "most"), [("float8_e4m3fn", 448.0), ("float8_e4m3", 448.0), ("float8_e5m2", 57344.0)])
def test_floats_of_8_bits_saturate(kind: str, most: float) -> None:
    values = np.array([1e6, -1e6, np.inf, np.nan, 2.0])
    assert np.array_equal(rounded(values, kind_of(kind)), [most, -most, most, np.nan, 2.0], equal_nan=True)
