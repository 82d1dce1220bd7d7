"""Mutants of whole kernels as lowered: `make mutants`. The tests of `tests/cpu` take a sample of them."""

from __future__ import annotations

import pytest

from tests.cpu.mutations.survivors import chosen, kernels, table, unexpected, verdict


@pytest.mark.parametrize("kernel", sorted(kernels()))
def test_mutants_are_noticed_or_known(kernel: str) -> None:
    function = kernels()[kernel].checkpoints["device-tir"]
    assert verdict(kernels()[kernel], function) == "clean"
    assert not unexpected(kernel, chosen(function))


def test_most_mutants_that_are_not_equivalent_are_noticed() -> None:
    """An undecided mutant is not noticed."""
    survivors = [s for of_kernel in table().values() for s in of_kernel.values()]
    equivalent = sum(s.verdict == "equivalent" for s in survivors)
    made = sum(1 for s in kernels().values() for _ in chosen(s.checkpoints["device-tir"]))
    assert (len(survivors) - equivalent) <= 0.05 * (made - equivalent)


def test_the_table_names_mutants_that_are_made() -> None:
    for kernel, survivors in table().items():
        assert set(survivors) <= {m.name for m in chosen(kernels()[kernel].checkpoints["device-tir"])}
