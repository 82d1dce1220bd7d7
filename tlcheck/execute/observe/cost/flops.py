"""Floating-point operations of a statement, by dtype: each operator and each function of math is one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tlcheck.execute.memory.values import kind_of, lanes_of
from tlcheck.signatures.calls import is_external, library_name, name_of_call
from tlcheck.snapshot.ir import Expr, Stmt
from tlcheck.snapshot.operators import named
from tlcheck.snapshot.walk import expressions, postorder

_OPERATORS = named("ring", "extremum") | {"div", "truncdiv", "floordiv"}
_FUNCTIONS = frozenset(
    "exp exp2 exp10 log log2 log10 log1p sqrt rsqrt tanh sin cos tan pow erf sigmoid atan fma fabs".split()
)


def operations(stmt: Stmt) -> Mapping[str, int]:
    """Return how many one thread does, by dtype; an operation on a vector counts for each of its lanes."""
    found: dict[str, int] = defaultdict(int)
    for e in postorder(expressions(stmt)):
        if _is_counted(e) and kind_of(e.dtype).is_float:
            found[kind_of(e.dtype).name] += lanes_of(e.dtype)
    return found


def _is_counted(e: Expr) -> bool:
    """Whether it is an operator, or a function of math."""
    if e.op != "call":
        return e.op in _OPERATORS
    name = library_name(name_of_call(e)) if is_external(e) else name_of_call(e)
    return name in _FUNCTIONS or name.rpartition("::")[2].removeprefix("__").removesuffix("f") in _FUNCTIONS
