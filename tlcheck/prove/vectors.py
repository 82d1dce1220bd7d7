"""One lane of the vector expressions that passes make."""

from __future__ import annotations

from tlcheck.program.walk import Scope
from tlcheck.snapshot.dtypes import dtype_of
from tlcheck.snapshot.ir import Expr
from tlcheck.snapshot.walk import postorder, substitute

MAX_DEPTH = 8  # of variables, or registers, that hold one another


def at_lane(expr: Expr, lane: Expr | None, scope: Scope) -> Expr:
    """One lane of a vector expression: a ramp becomes base + stride * lane, a vector that is held in a variable that
    lane of its value.
    """
    # the expression with its variables that hold vectors replaced by what they hold
    held = {uid: value for uid, value in scope.bindings if dtype_of(value.dtype).lanes > 1}
    for _ in range(MAX_DEPTH if held else 0):
        before, expr = expr, substitute([expr], held)[0]
        if expr is before:
            break
    if _is_scalar(expr):
        return expr
    made: dict[Expr, Expr] = {}
    for e in postorder([expr]):
        made[e] = e if _is_scalar(e) else _one_lane(e, tuple(made[a] for a in e.args), lane)
    return made[expr]


def _is_scalar(e: Expr) -> bool:
    return dtype_of(e.dtype).lanes == 1 and not any(dtype_of(a.dtype).lanes > 1 for a in e.args)


def _one_lane(e: Expr, args: tuple[Expr, ...], lane: Expr | None) -> Expr:
    if e.op == "ramp":
        base, stride = args
        assert lane is not None
        return Expr("add", base.dtype, (base, Expr("mul", base.dtype, (stride, lane))))
    if e.op == "broadcast":
        return args[0]
    return Expr(e.op, dtype_of(e.dtype).name, args, e.value, e.uid, e.buffer, e.annotations)
