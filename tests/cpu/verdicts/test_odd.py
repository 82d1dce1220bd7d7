"""Kernels that have what hardly any kernel has (`odd_cases.py`) are judged, or undecided with the code of what is not
understood."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tlcheck.execute.request import Request
from tlcheck.snapshot import codec
from tlcheck.verdicts.judging import verdicts_of

KERNELS = Path(__file__).with_name("odd-0.1.15.zip")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("bits_of_halves", {"U001"}),
        ("asked_by_a_word", set()),
        ("safe_below_zero", {"U001"}),
        ("for_nobody", {"U012", "U031"}),
        ("as_often_as_the_thread", set()),
        ("scan_of_nothing", set()),
        ("register_of_all", {"TLS003"}),
    ],
)
def test_each_has_its_verdict(name: str, found: set[str]) -> None:
    with zipfile.ZipFile(KERNELS) as files:
        told = verdicts_of(codec.loads(files.read(f"{name}.json").decode()), Request())
    assert told.failure is None
    assert told.claims
    rules = {claim.finding.rule for claim in told.claims if claim.finding}
    assert {claim.code for claim in told.claims if claim.code} | rules == found
