"""Define what an execution may take, in statements and bytes: counted, so that it is the same on every machine."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Budget:
    """statements: of one run at one level; a statement takes some 50 microseconds. bytes: of the machine's memory.

    seconds: of the processor, for all runs of one execution: a backstop, which the others should make needless.
    work: statements of all threads of a run as lowered, of which a million take 0.1 to 0.3 s. With more, fewer of the
    usual blocks run, and not each of them with all seeds. None for any.
    """

    statements: int = 400_000
    bytes: int = 1 << 31
    seconds: float = 600.0
    work: int | None = 1 << 24


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_BUDGET = re.compile(r"(?P<statements>\d+)(,(?P<bytes>\d+)(?P<unit>[KMG]?))?", re.IGNORECASE)


def parsed(text: str) -> Budget:
    """`STATEMENTS` or `STATEMENTS,BYTES`, such as `4000000,8G`. Raises ValueError."""
    found = _BUDGET.fullmatch(text.strip())
    if found is None or not int(found["statements"]) or found["bytes"] == "0":
        raise ValueError(f"{text!r} is no budget: give STATEMENTS or STATEMENTS,BYTES, such as 4000000,8G")
    budget = Budget(statements=int(found["statements"]))
    if found["bytes"] is None:
        return budget
    return replace(budget, bytes=int(found["bytes"]) * _UNITS[found["unit"].upper()])
