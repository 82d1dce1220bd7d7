"""Findings that are known: by how they show and by what their kernels have, from the data file `known.toml`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

from tlcheck.fuzz.outcome import Symptom
from tlcheck.fuzz.traits import traits
from tlcheck.toolchain.releases import RELEASES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class KnownFinding:
    """A finding of docs/findings.md. shows: patterns of symptoms (`*`: anything), of which one has to fit.

    says: regular expressions that are found in what the claim says. source: those that are found in the kernel, on one
    line each. has, without: traits of the kernel (`TRAITS`). releases: that have it.
    """

    name: str
    shows: tuple[Symptom, ...]
    says: tuple[str, ...]
    source: tuple[str, ...]
    has: frozenset[str]
    without: frozenset[str]
    releases: tuple[str, ...]

    def is_in(self, text: str, release: str) -> bool:
        """Whether a kernel may have this finding. release: that has to be one of its own, if it is a release."""
        return (
            (release not in RELEASES or release in self.releases)
            and all(re.search(each, text) for each in self.source)
            and self.has <= traits(text)
            and not self.without & traits(text)
        )

    def fits(self, symptom: Symptom, says: str) -> bool:
        """Whether one of the patterns is of this symptom, and its claim says what it has to."""
        return all(re.search(each, says) for each in self.says) and any(
            all(fnmatchcase(own, wanted) for own, wanted in zip(astuple(symptom), astuple(each), strict=True))
            for each in self.shows
        )


@cache
def findings() -> tuple[KnownFinding, ...]:
    """Return what is in the data file. Those that ask for more come first."""
    content: dict[str, Any] = tomllib.loads((files("tlcheck.fuzz") / "known.toml").read_text(encoding="utf-8"))
    found = [_finding(name, entry) for name, entry in content.items()]
    return tuple(sorted(found, key=lambda f: (not f.says, -len(f.has), -len(f.source))))


def _finding(name: str, entry: Mapping[str, Any]) -> KnownFinding:
    shows = tuple(Symptom(*each) for each in (*entry["shows"], *entry.get("like", ())))
    has, without = (frozenset(entry.get(key, ())) for key in ("has", "without"))
    source, releases = tuple(entry.get("source", ())), tuple(entry["releases"])
    return KnownFinding(name, shows, tuple(entry.get("says", ())), source, has, without, releases)


def known(symptom: Symptom, says: str, text: str, release: str) -> str:
    """Return the name of the finding (docs/findings.md) that shows like this; empty for none.

    says: the sentences of the claim. text: of the kernel. release: of TileLang; an unknown one may have any finding.
    """
    fitting = (f.name for f in findings() if f.fits(symptom, says) and f.is_in(text, release))
    return next(fitting, "")
