"""Loops over elements in which a part of a warp has work: where TileLang can put no barrier."""

from __future__ import annotations

import ast
import math
from typing import TYPE_CHECKING

from tlcheck.targets.nvidia import WARP

if TYPE_CHECKING:
    from tlcheck.fuzz.traits import KernelTraits


def adds_by_few(t: KernelTraits) -> bool:
    """Whether such a loop has atomics of shared memory."""
    for p in t.all:
        if not p.name.startswith("atomic_") or p.call is None or not p.call.args:
            continue
        target = p.call.args[0]
        changed = target.value if isinstance(target, ast.Subscript) else target
        loops = [s.iter for s in p.around if isinstance(s, ast.For) and isinstance(s.iter, ast.Call)]
        sizes = [a for e in loops if ast.unparse(e.func) == "T.Parallel" for a in e.args]
        numbers = [a.value for a in sizes if isinstance(a, ast.Constant) and isinstance(a.value, int)]
        of_shared = isinstance(changed, ast.Name) and t.scopes.get(changed.id) == "shared"
        if of_shared and sizes and len(numbers) == len(sizes) and math.prod(numbers) < WARP:
            return True
    return False
