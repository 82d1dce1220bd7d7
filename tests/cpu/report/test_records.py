"""Records of reports, made of the results that they tell."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import msgspec
import pytest

from tlcheck.report.records import record


@dataclass(frozen=True)
class Told:
    case: str
    line: int
    words: str


class Renamed(msgspec.Struct, frozen=True, rename={"old": "from"}):
    old: str
    line: int


def test_a_field_is_the_one_given_else_of_the_first_source_that_has_it() -> None:
    first, second = SimpleNamespace(line=1, words="first"), SimpleNamespace(line=2, case="a.py::k", words="second")
    assert record(Told, first, second, words="given") == Told("a.py::k", 1, "given")


def test_fields_go_by_their_own_names_not_by_those_in_json() -> None:
    assert record(Renamed, SimpleNamespace(old="0.1.9", line=3)) == Renamed("0.1.9", 3)


def test_a_field_that_nothing_has_is_a_fault() -> None:
    with pytest.raises(TypeError, match="words"):
        record(Told, SimpleNamespace(case="a.py::k", line=1))
