"""Tell what the conditions of a kernel's branches have to do with each other, and with what stands in the branches."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tlcheck.fuzz.constructs import SCANS

if TYPE_CHECKING:
    from tlcheck.fuzz.traits import KernelTraits


def changes_what_it_asked(t: KernelTraits) -> bool:
    """Whether a branch writes the shared memory that its condition reads."""
    for n, p in enumerate(t.all):
        if isinstance(p.stmt, ast.If):
            asked = {name for name in p.names if t.scopes.get(name) == "shared"}
            if any(q.written in asked or (q.name in SCANS and q.names & asked) for q in t.inside(n)):
                return True
    return False


def asks_twice(t: KernelTraits) -> bool:
    """Whether two branches have one condition."""
    tests = [ast.unparse(p.stmt.test) for p in t.all if isinstance(p.stmt, ast.If)]
    return len(tests) > len(set(tests))
