"""How far an output that agreed reaches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.execute.ops.thread.test_hardware import FORMS
from tlcheck.execute.compare.diagnosis import Diagnosis
from tlcheck.execute.compare.execution import Execution
from tlcheck.execute.compare.outcome import OutputOutcome
from tlcheck.execute.request import Request
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.execution_claims import claims_of
from tlcheck.verdicts.scope import Limit, Scope


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (Scope("all", "drawn"), "all blocks, drawn inputs, these sizes"),
        (Scope("some", "given", "all"), "some blocks, given inputs, all sizes"),
        (Scope("all", "drawn", not_taken=(7, 3, 7)), "all blocks, drawn inputs, these sizes; not taken: line 3, 7"),
        (Scope("all", "drawn", not_taken=(0,)), "all blocks, drawn inputs, these sizes; branches not taken"),
        (
            Scope("some", "drawn", limits=(Limit("blocks", "why", 4), Limit("inputs", "how"))),
            "some blocks, drawn inputs, these sizes; blocks: why (line 4); inputs: how",
        ),
    ],
)
def test_a_scope_in_words(scope: Scope, words: str) -> None:
    assert scope.words == words


def test_a_scope_is_whole_if_nothing_is_left_out() -> None:
    whole = Scope("all", "all")
    assert whole.is_whole
    assert not any(
        replace(whole, **less).is_whole for less in ({"blocks": "some"}, {"inputs": "drawn"}, {"not_taken": (3,)})
    )


def agreed(snapshot: Snapshot, execution: Execution, request: Request) -> Scope | None:
    """The scope of the only claim of an execution in which the first output agreed."""
    (claim,) = claims_of(snapshot, Diagnosis(execution, {}, None), request)
    return claim.scope


def test_the_scope_says_what_ran() -> None:
    snapshot = FORMS["gemm_store_fp32"]
    name = str(snapshot.checkpoints["source"].buffers[-1].data.value)
    one = Execution((OutputOutcome(name, "agreed"),), ((0, 0, 0),), 3, (0, 1), unreached=(12,))
    some = Limit("blocks", "2 of 3 did not run")
    assert agreed(snapshot, one, Request()) == Scope("some", "drawn", not_taken=(12,), limits=(some,))
    assert agreed(snapshot, replace(one, of=1), Request(given={0: {}})) == Scope("all", "given", not_taken=(12,))
    assert agreed(snapshot, replace(one, outputs=(OutputOutcome(name, "undecided"),)), Request()) is None
