"""How many threads a block has."""

from __future__ import annotations

import ast

from tlcheck.execute.reasons import NotModelled
from tlcheck.snapshot.ir import Block, Expr, Function, Thread
from tlcheck.snapshot.walk import statements


def threads_of(function: Function) -> tuple[int, int, int]:
    """Threads of a block, x first: of its thread statements, else of the annotation of its outermost block.

    The annotation is left as it was when a pass adds threads, so the statements win.
    """
    found = [1, 1, 1]
    declared: tuple[int, ...] = ()
    launched = False
    for stmt in statements(function.body):
        if isinstance(stmt, Thread) and stmt.tag.startswith("threadIdx."):
            found["xyz".index(stmt.tag[-1])] = _constant(stmt.extent)
            launched = True
        if isinstance(stmt, Block) and not declared:
            declared = _declared(stmt)
    if not launched and declared:
        found = [*declared, 1, 1, 1][:3]
    return found[0], found[1], found[2]


def _declared(block: Block) -> tuple[int, ...]:
    threads: tuple[Expr, ...] = getattr(block, "threads", ())
    if threads:
        return tuple(_constant(e) for e in threads)
    text = dict(block.annotations).get("tl.launch_threads", "")
    return tuple(int(n) for n in ast.literal_eval(text)) if text else ()


def _constant(e: Expr) -> int:
    if e.op != "int" or not isinstance(e.value, int):
        raise NotModelled("launch with a varying number of threads")
    return e.value
