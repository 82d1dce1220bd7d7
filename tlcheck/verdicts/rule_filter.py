"""`--select` and `--ignore`: which rules count, by their ids or how these begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tlcheck.errors import UsageError, did_you_mean
from tlcheck.verdicts.rules.rule_pages import pages


@dataclass(frozen=True)
class RuleFilter:
    """Rules that count, and rules that do not. select: all rules where empty. A longer id goes over a shorter one."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def reason(self, rule: str) -> str:
        """Return the option that leaves a rule out; empty if it counts."""
        selected, ignored = _longest(self.select, rule), _longest(self.ignore, rule)
        if ignored and len(ignored) >= len(selected):
            return f"--ignore {ignored}"
        return f"--select {','.join(self.select)}" if self.select and not selected else ""


EVERY_RULE = RuleFilter()


def rule_ids(option: str, text: str) -> tuple[str, ...]:
    """Read the comma list of an option. Raises UsageError for what no rule's id begins with."""
    known = [page.id for page in pages()]
    found = tuple(part.strip().upper() for part in text.split(",") if part.strip())
    for part in found:
        if not any(rule.startswith(part) for rule in known):
            hint = did_you_mean(part, known) or " (`tlcheck explain` lists all)"
            raise UsageError(f"{option} {part}: no rule's id begins so{hint}")
    return found


def _longest(prefixes: Sequence[str], rule: str) -> str:
    return max((prefix for prefix in prefixes if rule.startswith(prefix)), key=len, default="")
