"""Every mutant of every kernel: `make mutants`. The tests of `tests/cpu` take a sample of them."""

from __future__ import annotations

import pytest

from tests.cpu.mutations.judge import CHANGED, judged
from tests.cpu.mutations.kernels import all_mutants, coverage, kernels, mistakes, read_table
from tests.fixtures.index import Fixture


@pytest.mark.parametrize("fixture", [pytest.param(f, id=f.path) for f in kernels()])
def test_all_mutants(fixture: Fixture) -> None:
    """The oracle judges as many as tests/cpu/mutations/coverage.csv says: fewer are a loss, more belong into it."""
    snapshot, expected = fixture.snapshot(), read_table()[fixture.path]
    found = list(judged(snapshot, all_mutants(fixture, snapshot)))
    wrong = mistakes(fixture, found)
    assert not wrong, "\n".join(map(str, wrong))
    assert coverage(found) == expected, sorted({j.detail for j in found if not j.covered})
    if expected.judged and not expected.left:
        assert len({j.kind for j in found if j.truth == CHANGED}) >= 7
