"""Findings that are known: by how they show, from the data file `known.toml`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from tlcheck.fuzz.outcome import Symptom

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def _known() -> Mapping[Symptom, str]:
    content: dict[str, Any] = tomllib.loads((files("tlcheck.fuzz") / "known.toml").read_text(encoding="utf-8"))
    return {Symptom(*shows): name for name, entry in content.items() for shows in entry["shows"]}


def known(symptom: Symptom) -> str:
    """Return the name of the finding (docs/findings.md) that shows like this; empty for none."""
    return _known().get(symptom, "")
