"""Tests that share what is dear to set up stay in one process."""

from __future__ import annotations

import os

import pytest


@pytest.mark.xdist_group("groups")
def test_a_group_is_part_of_the_name_by_which_tests_are_given_out(request: pytest.FixtureRequest) -> None:
    """Later releases of pytest than pytest-xdist knows drop it in silence, and every module is set up twice."""
    name = request.node.nodeid
    assert name.endswith("@groups") if "PYTEST_XDIST_WORKER" in os.environ else "@" not in name


@pytest.mark.toolchain
def test_tests_of_a_folder_that_need_a_toolchain_are_one_and_slow(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("slow") is not None
    name = request.node.nodeid
    assert name.endswith("@tests/cpu") if "PYTEST_XDIST_WORKER" in os.environ else "@" not in name
