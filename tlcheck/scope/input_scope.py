"""Say why an output that agreed on some inputs may not on others."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tlcheck.execute.compare.formula_equality import Formulas
from tlcheck.program.lines import nearest_line
from tlcheck.program.steering import Steering
from tlcheck.scope.claim_scope import Limit
from tlcheck.signatures.calls import name_of_call
from tlcheck.snapshot.ir import Expr, Function, Stmt
from tlcheck.snapshot.operators import named
from tlcheck.snapshot.walk import expressions, postorder, statements

_COMPARISONS = named("comparison", "extremum")
_COMPARE = tuple("max min relu clamp floor ceil round trunc isnan isinf isfinite sort topk".split())


def limit_of(source: Function, sizes: Collection[str], formulas: Formulas | None) -> Limit:
    """The reason that other inputs may end otherwise. sizes: names of numbers that are known."""
    steering = Steering(source, sizes)
    for found, reason in (
        (steering.steered(), "tensors decide what runs or where it accesses"),
        (_choices(source, steering), "values of tensors are compared"),
    ):
        stmt = next(found, None)
        if stmt is not None:
            return Limit("inputs", reason, stmt.line or nearest_line(source, stmt))
    if formulas is None or not formulas.reason:
        return Limit("inputs", "values were compared, not formulas")
    return Limit("inputs", formulas.reason, formulas.line)


def _choices(source: Function, steering: Steering) -> Iterator[Stmt]:
    """The statements that take one of several values by comparing what memory holds."""
    for stmt in statements(source.body):
        nodes = postorder(expressions(stmt))
        if any(_compares(e) or (e.op in _COMPARISONS and steering.depends([e])) for e in nodes):
            yield stmt


def _compares(e: Expr) -> bool:
    """Whether it is a call that chooses among values, by its name or as a reduction's argument says."""
    if e.op != "call":
        return False
    says = (name_of_call(e), *(str(a.value) for a in e.args if a.op == "str"))
    return any(word in name.lower() for name in says for word in _COMPARE)
