"""What a rule is, and how the rules of this package are found."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import tlcheck.verdicts.rules
from tlcheck.prove.difference import Witness
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import Subject

_FILE = re.compile(r"^tla(\d{3})_(\w+)$")


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule broken at one atomic. `what` is one sentence that starts with what is wrong; `advice` says what to do
    besides
    changing the release."""

    what: str
    witness: Witness
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """id: TLA001. name: lanes-not-contiguous. page: Markdown. basic: of several rules broken, the lowest is the
    finding.
    """

    id: str
    name: str
    page: str
    basic: int
    check: Callable[[Subject, Evidence], Broken | None]

    @property
    def title(self) -> str:
        """The page's first line, without the id."""
        return self.page.splitlines()[0].partition(": ")[2]


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, most basic first."""
    found: list[Rule] = []
    for info in pkgutil.iter_modules(tlcheck.verdicts.rules.__path__):
        match = _FILE.match(info.name)
        if match:
            module = importlib.import_module(f"tlcheck.verdicts.rules.{info.name}")
            name = match[2].replace("_", "-")
            found.append(Rule(f"TLA{match[1]}", name, str(module.__doc__).strip(), module.BASIC, module.check))
    return tuple(sorted(found, key=lambda r: (r.basic, r.id)))
