"""Make records and text for programs of results; parts that several reports share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

_Form = TypeVar("_Form")


@dataclass(frozen=True)
class LoweredWith:
    """A toolchain. name: as the user named it. versions: of what determines the IR, `tilelang` and others."""

    name: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class ClocksReport:
    """The GPU's clocks, as nvidia-smi tells them, before and after everything ran."""

    before: Mapping[str, str]
    after: Mapping[str, str]


def record(form: type[_Form], *sources: object, **fields: object) -> _Form:
    """Make a record of a report. Each field is the one given, else what the first source with this attribute has."""
    names = [name for name in form.__annotations__ if name not in fields]
    found = {name: getattr(source, name) for source in reversed(sources) for name in names if hasattr(source, name)}
    return form(**found, **fields)


def as_json(report: Any) -> str:
    """A report's classes as indented JSON, in ASCII: texts of kernels may be no valid Unicode."""
    plain = msgspec.to_builtins(report)
    try:
        text = msgspec.json.format(json.dumps(plain), indent=2)  # many times as fast as Python's own
    except msgspec.DecodeError:
        text = json.dumps(plain, indent=2)
    return text + "\n"
