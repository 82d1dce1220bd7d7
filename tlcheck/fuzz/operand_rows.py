"""Tell whether a kernel reads a fixed row of a tile that it multiplies."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlcheck.fuzz.traits import KernelTraits


def reads_row_of_operand(t: KernelTraits) -> bool:
    """Whether a loop over elements reads an operand of a product in shared memory at a row that no loop gives."""
    products = [a for p in t.all if p.name == "gemm" and p.call is not None for a in p.call.args[:2]]
    operands = {a.id for a in products if isinstance(a, ast.Name) and t.scopes.get(a.id) == "shared"}
    for p in t.all:
        loops = {
            n.id for s in p.around if isinstance(s, ast.For) for n in ast.walk(s.target) if isinstance(n, ast.Name)
        }
        for node in (n for head in p.heads for n in ast.walk(head)):
            match node:
                case ast.Subscript(value=ast.Name(id=name), slice=ast.Tuple(elts=[row, *_])) if name in operands:
                    if loops and not loops & {n.id for n in ast.walk(row) if isinstance(n, ast.Name)}:
                        return True
    return False
