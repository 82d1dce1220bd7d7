"""pytest of another environment, with the one version that it asks for."""

from __future__ import annotations

from importlib.metadata import DistributionFinder, version

import pytest

from tlcheck.lower.client import tools
from tlcheck.worker.borrowed import VARIABLE, BorrowedFinder


@pytest.mark.parametrize(("name", "found"), [("pluggy", [version("pluggy")]), ("numpy", []), (None, [])])
def test_versions_of_what_is_borrowed(name: str | None, found: list[str]) -> None:
    context = DistributionFinder.Context() if name is None else DistributionFinder.Context(name=name)
    assert [one.version for one in BorrowedFinder(tools()[VARIABLE]).find_distributions(context)] == found
