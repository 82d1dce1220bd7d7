"""Test how far an output that agreed reaches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.thread.test_hardware import FORMS
from tlcheck import reasons
from tlcheck.execute.compare.diagnosis import Diagnosis
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.formula_equality import Formulas
from tlcheck.execute.compare.output_outcome import OutputOutcome
from tlcheck.execute.request import Request
from tlcheck.reasons import Reason
from tlcheck.scope.claim_scope import ClaimScope, Limit
from tlcheck.snapshot.ir import Expr, If, Seq, Snapshot, Stmt, Store
from tlcheck.verdicts.execution_claims import claims_of


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (ClaimScope("all", "drawn"), "all blocks, drawn inputs, these sizes"),
        (ClaimScope("some", "given"), "some blocks, given inputs, these sizes"),
        (
            ClaimScope("all", "drawn", not_taken=(7, 3, 7)),
            "all blocks, drawn inputs, these sizes; not taken: line 3, 7",
        ),
        (ClaimScope("all", "drawn", not_taken=(0,)), "all blocks, drawn inputs, these sizes; branches not taken"),
        (
            ClaimScope("some", "drawn", limits=(Limit("blocks", "why", 4), Limit("inputs", "how"))),
            "some blocks, drawn inputs, these sizes; blocks: why (line 4); inputs: how",
        ),
    ],
)
def test_a_scope_in_words(scope: ClaimScope, words: str) -> None:
    assert scope.words == words


def agreed(snapshot: Snapshot, execution: Execution, request: Request) -> ClaimScope | None:
    """The scope of the only claim of an execution in which the first output agreed."""
    (claim,) = claims_of(snapshot, Diagnosis(execution, {}, None), request)
    return claim.scope


def test_the_scope_says_what_ran() -> None:
    snapshot = FORMS["gemm_store_fp32"]
    name = str(snapshot.checkpoints["source"].buffers[-1].data.value)
    one = Execution((OutputOutcome(name, "agreed"),), ((0, 0, 0),), 3, (0, 1), unreached=(12,))
    values = Limit("inputs", "values were compared, not formulas")
    every = ClaimScope("all", "drawn", not_taken=(12,), limits=(values,))
    assert agreed(snapshot, replace(one, of=1), Request()) == every
    assert agreed(snapshot, replace(one, of=1), Request(given={0: {}})) == replace(every, inputs="given")
    some = Limit("blocks", "the lowered kernel writes other elements than the source")
    other = replace(one, same_elements=False)
    assert agreed(snapshot, other, Request()) == replace(every, blocks="some", limits=(some, values))
    assert agreed(snapshot, replace(one, outputs=(OutputOutcome(name, "undecided"),)), Request()) is None


def test_an_output_is_proved_for_all_blocks_and_inputs_of_known_sizes() -> None:
    snapshot = FORMS["gemm_store_fp32"]
    name = str(snapshot.checkpoints["source"].buffers[-1].data.value)
    all_inputs = Formulas(frozenset((name,)))
    one = Execution((OutputOutcome(name, "agreed"),), ((0, 0, 0),), 1, (0, 1), formulas=all_inputs)
    (claim,) = claims_of(snapshot, Diagnosis(one, {}, None), Request())
    assert (claim.verdict, claim.basis, claim.scope) == ("proved", "execution", ClaimScope("all", "all"))
    for less in (
        replace(one, of=3, same_elements=False),
        replace(one, unreached=(12,)),
        replace(one, sizes=(("n", 64),)),
        replace(one, ordered={name: Reason(reasons.SOURCE_RACE, "why")}),
        replace(one, formulas=Formulas(frozenset(), "why", 7)),
    ):
        claim = claims_of(snapshot, Diagnosis(less, {}, None), Request())[-1]
        assert (claim.kind, claim.verdict) == ("output", "agreed")
    assert claim.scope is not None
    assert claim.scope.limits == (Limit("inputs", "why", 7),)


@pytest.mark.parametrize(
    ("condition", "value", "reason"),
    [
        (None, None, "values were compared, not formulas"),
        ("lt", None, "tensors decide what runs or where it accesses"),
        (None, "max", "values of tensors are compared"),
    ],
)
def test_the_scope_says_what_hangs_on_inputs(condition: str | None, value: str | None, reason: str) -> None:
    snapshot = FORMS["gemm_store_fp32"]
    source = snapshot.checkpoints["source"]
    buffer = source.buffers[-1]
    zero = Expr("int", "int32", (), 0)
    element = Expr("load", buffer.dtype, tuple(zero for _ in buffer.shape), None, 0, buffer)
    number = element if value is None else Expr(value, buffer.dtype, (element, element))
    store: Stmt = Store(buffer, element.args, number, line=5)
    if condition is not None:
        store = If(Expr(condition, "bool", (element, element)), store, line=5)
    changed = replace(source, body=Seq((store, source.body)))
    snapshot = replace(snapshot, checkpoints={**snapshot.checkpoints, "source": changed})
    ran = Execution((OutputOutcome(str(buffer.data.value), "agreed"),), ((0, 0, 0),), 1, (0,))
    scope = agreed(snapshot, ran, Request())
    assert scope is not None
    assert scope.limits == (Limit("inputs", reason, 0 if reason.startswith("values were") else 5),)
