"""Define what a rule is, and how the rules of this package are found.

A rule that the proofs find has `check`, and `BASIC`: of several that are broken, the one with the lowest is the
finding. A rule that an execution finds has `PROBLEM` instead: what the execution calls it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import tlcheck.verdicts.rules
from tlcheck.prove.evidence import Evidence
from tlcheck.prove.subject import PreparedSnapshot
from tlcheck.verdicts.rules.rule_pages import MODULE
from tlcheck.witness import Addition


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule broken at one atomic. `what` is one sentence that starts with what is wrong; `advice` says what to do
    besides changing the release. site: which of the sites that are compared shows it. own: the kernel itself says so,
    and no pass of TileLang's makes it. Without a witness it is no finding, but nothing is proved.
    """

    what: str
    witness: Addition | None
    advice: str = ""
    site: int = 0
    own: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """id: TLA001. name: lanes-not-contiguous. page: Markdown. check: None for a rule of executions, see `problem`."""

    id: str
    name: str
    page: str
    basic: int
    check: Callable[[PreparedSnapshot, Evidence], Broken | None] | None
    problem: str = ""

    @property
    def title(self) -> str:
        """The page's first line, without the id."""
        return self.page.splitlines()[0].partition(": ")[2]


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, most basic first."""
    names = [info.name for info in pkgutil.iter_modules(tlcheck.verdicts.rules.__path__)]
    made = [_rule(name) for name in names if MODULE.fullmatch(name)]
    return tuple(sorted(made, key=lambda r: (r.basic, r.id)))


def rule_of(problem: str) -> Rule:
    """The rule that an execution's problem breaks. Raises KeyError for an unknown one."""
    return {rule.problem: rule for rule in rules() if rule.problem}[problem]


def _rule(name: str) -> Rule:
    module = importlib.import_module(f"tlcheck.verdicts.rules.{name}")
    check = getattr(module, "check", None)
    basic, problem = (module.BASIC, "") if check is not None else (0, module.PROBLEM)
    identifier, _, slug = name.partition("_")
    return Rule(identifier.upper(), slug.replace("_", "-"), str(module.__doc__).strip(), basic, check, problem)
