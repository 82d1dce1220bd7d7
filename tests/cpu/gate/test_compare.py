"""Test what becomes of a kernel when the toolchain changes: on snapshots of real wheels, and on sides made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.checking import SAVED, make_atomic
from tests.cpu.gate.comparing import compared, failing, made, saved, side_of
from tests.fixtures.index import read
from tlcheck.gate.nvcc import CompiledCuda
from tlcheck.gate.outcome import LoweredPair, LoweredSide
from tlcheck.verdicts.claim import Claim
from tlcheck.worker.protocol import Failure

KERNELS = sorted(
    {f.kernel.partition("::")[2] for f in read().fixtures if f.path.startswith("era/")} - {"tail_tile_symbolic"}
)  # which takes seconds to prove


def found(compared: LoweredPair) -> list[tuple[str, str, str]]:
    return [(o.klass, o.kind, o.subject) for o in compared.outcomes]


def test_a_bug_that_a_release_has_is_wrong_and_its_end_is_a_fix() -> None:
    right, wrong = saved("invariant_rows", "0.1.7.post2"), saved("invariant_rows", "0.1.7.post3")
    into = compared(right, wrong)
    assert into.klass == "wrong"
    assert found(into)[0] == ("wrong", "TLA001", "B")
    assert into.outcomes[0].finding is not None
    assert into.outcomes[0].words.endswith("was proved")
    out = compared(wrong, right)
    assert found(out) == [("fixed", "TLA001", "B"), ("fixed", "atomic", "B")]  # more atomics belong to the fix


def test_scalarized_atomics_that_were_right_may_be_slower() -> None:
    out = compared(saved("explicit_x2", "0.1.7"), saved("explicit_x2", "0.1.7.post1"))
    assert out.klass == "same"
    out = compared(saved("memory_order_fp16", "0.1.7"), saved("memory_order_fp16", "0.1.7.post1"))
    assert ("slower-risk", "atomic", "B") in found(out)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_release_against_itself_has_no_differences(kernel: str) -> None:
    for file in sorted(SAVED.glob(f"{kernel}-*.snapshot.json"))[::4]:
        same = compared(side_of(file), side_of(file), one=True)
        assert (same.outcomes, same.klass) == ((), "same")


def test_one_toolchain_that_makes_two_things_of_a_kernel_is_not_deterministic() -> None:
    one, other = saved("invariant_rows", "0.1.7.post2"), saved("invariant_rows", "0.1.7.post3")
    (only,) = compared(one, other, one=True).outcomes
    assert (only.klass, only.kind) == ("changed", "not deterministic")
    assert "AtomicAdd" in only.words
    assert compared(one, replace(one, digest="other"), one=True).outcomes[0].words.endswith("text of the IR differs)")


@pytest.mark.parametrize(
    ("before", "after", "klass", "kind"),
    [
        (("proved",), ("proved",), None, ""),
        (("undecided",), ("undecided",), None, ""),
        (("refuted",), ("refuted",), None, ""),
        (("proved",), ("refuted",), "wrong", "TLA001"),
        (("undecided",), ("refuted",), "wrong", "TLA001"),
        ((), ("refuted",), "wrong", "TLA001"),
        (("proved",), ("undecided",), "weaker", "undecided"),
        (("proved",), (), "weaker", "unseen"),
        (("refuted",), (), None, ""),
        (("refuted",), ("undecided",), "changed", "undecided"),
        (("refuted",), ("proved",), "fixed", "TLA001"),
        (("undecided",), ("proved",), "fixed", "undecided"),
        (("proved", "proved"), ("proved", "refuted"), "wrong", "TLA001"),
        (("proved", "refuted"), ("refuted", "proved"), "wrong", "TLA001"),
        (("proved",), ("proved", "proved"), None, ""),  # copies of one atomic
        (("proved",), ("proved", "refuted"), "wrong", "TLA001"),
        (("refuted", "proved"), ("proved",), "fixed", "TLA001"),
        (("agreed",), ("agreed",), None, ""),
        (("agreed",), ("proved",), None, ""),
        (("proved",), ("agreed",), "changed", "agreed"),
        (("agreed",), ("undecided",), "weaker", "undecided"),
        (("agreed",), (), "weaker", "unseen"),
        (("undecided",), ("agreed",), "fixed", "undecided"),
        (("agreed",), ("refuted",), "wrong", "TLA001"),
    ],
)
def test_verdicts(before: tuple[str, ...], after: tuple[str, ...], klass: str | None, kind: str) -> None:
    out = compared(made(*before), made(*after))
    if klass is None:
        assert out.outcomes == ()
    else:
        assert (out.klass, kind) in [(o.klass, o.kind) for o in out.outcomes]


OUTPUT = replace(make_atomic("refuted", rule="TLO001"), kind="output", key="B")
RIGHT_OUTPUT = replace(OUTPUT, verdict="agreed", finding=None)
WRONG_BY_CAUSE = (replace(make_atomic("refuted"), also=(OUTPUT,)),)
RIGHT_BOTH = (make_atomic(), RIGHT_OUTPUT)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (RIGHT_BOTH, WRONG_BY_CAUSE, [("wrong", "TLA001", "B")]),
        (WRONG_BY_CAUSE, RIGHT_BOTH, [("fixed", "TLA001", "B")]),
        (WRONG_BY_CAUSE, WRONG_BY_CAUSE, []),
        (WRONG_BY_CAUSE, (make_atomic(), OUTPUT), [("fixed", "TLA001", "B")]),
        (RIGHT_BOTH, (make_atomic(), OUTPUT), [("wrong", "TLO001", "B")]),
    ],
)
def test_what_a_claim_explains_is_told_with_it(
    before: tuple[Claim, ...], after: tuple[Claim, ...], expected: list[tuple[str, str, str]]
) -> None:
    old, new = (replace(made(), result=replace(made().result, claims=claims)) for claims in (before, after))
    assert found(compared(old, new)) == expected


def test_failures() -> None:
    lowers = made("proved")
    assert found(compared(lowers, failing())) == [("broken", "error", "")]
    assert found(compared(failing(), lowers)) == [("fixed", "error", "")]
    assert found(compared(failing(), made("refuted"))) == [("fixed", "error", ""), ("wrong", "TLA001", "B")]
    (both,) = compared(failing("one"), failing("two")).outcomes
    assert both.klass == "fails-in-both"
    assert both.words == "build: two; before: one"
    assert compared(failing("same"), failing("same")).outcomes[0].words == "build: same"


def test_errors_that_differ_in_numbers_only_are_one_group() -> None:
    one, other = (compared(made(), failing(f"0x7f{n} of {n} bytes")).outcomes[0] for n in (12, 345))
    assert (one.before, one.after) == (other.before, other.after)
    assert one.words != other.words


def test_a_kernel_that_lowers_and_cannot_be_read_is_not_checked() -> None:
    unread = replace(made(), result=replace(made().result, failure=Failure("check", "check", "none could be read")))
    assert found(compared(made("proved"), unread)) == [("weaker", "not checked", "")]
    assert found(compared(unread, made("proved"))) == [("fixed", "not checked", "")]
    assert found(compared(unread, unread)) == [("fails-in-both", "not checked", "")]


def test_a_case_that_only_one_side_declares() -> None:
    assert compared(made(), None).outcomes[0].words == "the case is no longer declared"
    assert compared(None, made()).outcomes[0].words == "the case is declared only now"


@pytest.mark.parametrize(
    ("old", "new", "slower"),
    [(0.2, 14.0, True), (0.2, 1.1, False), (10.0, 19.0, False), (10.0, 21.0, True), (0.0, 9.0, False)],
)
def test_lowering_that_takes_much_longer(old: float, new: float, slower: bool) -> None:
    out = compared(replace(made(), seconds=old), replace(made(), seconds=new))
    assert (("slower-risk", "lowering time", "") in found(out)) == slower


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (CompiledCuda(64), CompiledCuda(64), None),
        (CompiledCuda(64), CompiledCuda(error="error: no such type"), ("broken", "compile")),
        (CompiledCuda(error="error"), CompiledCuda(64), ("fixed", "compile")),
        (CompiledCuda(error="one"), CompiledCuda(error="two"), ("fails-in-both", "compile")),
        (CompiledCuda(64, 0), CompiledCuda(64, 128), ("slower-risk", "spills")),
        (CompiledCuda(64, 128), CompiledCuda(64, 0), ("changed", "spills")),
        (CompiledCuda(64), CompiledCuda(65), ("changed", "ptxas registers")),
        (CompiledCuda(64, 0, 16), CompiledCuda(64, 0, 32), ("changed", "ptxas shared memory")),
        (None, CompiledCuda(64), None),
    ],
)
def test_what_nvcc_made_of_it(
    before: CompiledCuda | None, after: CompiledCuda, outcome: tuple[str, str] | None
) -> None:
    out = compared(replace(made(), compiled=before), replace(made(), compiled=after))
    assert [(o.klass, o.kind) for o in out.outcomes] == ([outcome] if outcome else [])


def test_outcomes_point_to_the_kernels_lines() -> None:
    side: LoweredSide = saved("annotated_gemm", "0.1.7.post1")
    (refuted, *_) = compared(side, saved("annotated_gemm", "0.1.7")).outcomes
    line = next(a.source.line for a in side.result.claims)
    assert refuted.line == line > 1
