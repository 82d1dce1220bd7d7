"""Equal differences of many kernels are one group; what is accepted does not count."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.gate.comparing import compared, made, outcome
from tlcheck.gate.gate import Gate
from tlcheck.gate.groups import groups, members_in_words
from tlcheck.gate.outcome import LoweredPair, Outcome, accepted, unused
from tlcheck.gate.words import lasting_in_words, verdict_in_words
from tlcheck.report import gate_text, markdown
from tlcheck.report.gate_notices import document_of
from tlcheck.verdicts.acceptance import Acceptance, Acceptances


def kernel(name: str, *outcomes: Outcome, target: str = "sm_90", release: str = "0.1.15") -> LoweredPair:
    base = compared(made(), made(release=release), name=name, target=target)
    return replace(base, outcomes=outcomes)


NEW = {"tilelang": "0.1.15"}
X4 = outcome("slower-risk")
X2 = outcome("slower-risk", before="x2", after="2 x")


def test_the_worst_class_first_then_the_largest_group() -> None:
    found = groups(
        [kernel("a", X2), kernel("b", X4), kernel("c", X4, outcome("changed", "layout")), kernel("d", outcome("wrong"))]
    )
    assert [(g.klass, g.before, len(g.members)) for g in found] == [
        ("wrong", "x4", 1),
        ("slower-risk", "x4", 2),
        ("slower-risk", "x2", 1),
        ("changed", "x4", 1),
    ]


def test_a_group_has_the_sentence_of_one_or_what_all_have_in_common() -> None:
    other = replace(X4, subject="dQ", words="dQ: x4 -> 4 x")
    assert groups([kernel("a", X4), kernel("b", X4)])[0].words == "B: x4 -> 4 x"
    assert groups([kernel("a", X4), kernel("b", other)])[0].words == "atomic: x4 -> 4 x"


def test_kernels_are_listed_by_file_with_subjects_and_targets() -> None:
    members = groups(
        [
            kernel("a", X4, target="sm_80"),
            kernel("a", X4, target="sm_90"),
            kernel("b", X4, target="sm_80"),
            kernel("b", X4, target="sm_90"),
            replace(kernel("c", X4), file="other.py"),
        ]
    )[0].members
    assert members_in_words(members) == ["k.py: a, b (B; sm_80, sm_90)", "other.py: c (B; sm_90)"]
    same = ",".join(f"stride_{number}=(4096, 64, 1)" for number in range(8))
    members = groups([kernel(f"scan[n={n},{same}]", X4) for n in (1, 2)])[0].members
    assert members_in_words(members) == ["k.py: scan[n=1,...], scan[n=2,...] (B; sm_90)"]


def acceptances(*entries: tuple[str, str, str]) -> Acceptances:
    return Acceptances(Path.cwd(), tuple(Acceptance(*entry, "because") for entry in entries))


@pytest.mark.parametrize(
    ("entry", "klass"),
    [
        (("slower-risk", "k.py::a", ">=0.1.15"), "same"),
        (("slower-risk/atomic", "k.py::*", "==0.1.15"), "same"),
        (("slower-risk/read", "k.py::a", "==0.1.15"), "slower-risk"),
        (("slower-risk", "k.py::a", "<0.1.15"), "slower-risk"),
        (("slower-risk", "k.py::b", "==0.1.15"), "slower-risk"),
        (("broken", "k.py::a", "==0.1.15"), "slower-risk"),
    ],
)
def test_an_acceptance_counts_for_its_class_case_and_release(entry: tuple[str, str, str], klass: str) -> None:
    settled = accepted(kernel("a", X4), acceptances(entry), NEW)
    assert settled.klass == klass
    assert [o.accepted for o in settled.outcomes] == (["because"] if klass == "same" else [None])


def test_a_refuted_atomic_is_accepted_by_its_rule_too() -> None:
    wrong = compared(made("proved"), made("refuted"))
    assert accepted(wrong, acceptances(("TLA001", "k.py::case", ">0")), NEW).klass == "same"
    assert accepted(wrong, acceptances(("TLA002", "k.py::case", ">0")), NEW).klass == "wrong"


def test_a_kernel_that_is_gone_is_accepted_for_the_new_release() -> None:
    gone = compared(made(release="0.1.7"), None, name="add[n=64]")
    entry = ("changed/declaration", "k.py::add[n=64]", "==0.1.15")
    assert accepted(gone, acceptances(entry), NEW).klass == "same"
    assert accepted(gone, acceptances(entry), {"tilelang": "0.1.14"}).klass == "changed"


def test_an_acceptance_that_matches_nothing_is_told() -> None:
    entries = acceptances(
        ("slower-risk", "k.py::a", ">0"),
        ("broken", "k.py::a", ">0"),  # compared, and not broken
        ("broken", "k.py::z", ">0"),  # not compared
        ("wrong", "k.py::a", "<0.1"),  # of other releases
        ("TLA001", "k.py::a", ">0"),  # told by `tlcheck check`
    )
    told = list(unused([kernel("a", X4)], entries, NEW))
    assert told == ["acceptance of broken in k.py::a (>0) matches nothing: remove it"]


def test_what_both_toolchains_have_wrong_is_named() -> None:
    """It is no difference, and who signs the report has to know of it."""
    sides = (made("refuted", release="0.1.14"), made("refuted"))
    lasting = compared(*sides, name="first"), compared(*sides, name="second")
    right, newly = compared(made("proved"), made("proved")), compared(made("proved"), made("refuted"))
    gate = Gate("0.1.14", "0.1.15", ({}, {}), (*lasting, right, newly), ())
    assert list(lasting_in_words(gate)) == ["TLA001: k.py: first, second (sm_90)"]
    printed = [line.plain for line in gate_text._lines(gate)]
    title = printed.index("refuted with both toolchains, which is no difference:")
    assert printed[title + 1 : -1] == ["  TLA001: k.py: first, second (sm_90)"]
    assert "refuted with both toolchains: TLA001: k.py: first, second (sm_90)" in markdown.render(document_of(gate))


def test_the_verdict_says_that_most_tests_did_not_run() -> None:
    same = compared(made("proved"), made("proved"))
    gate = Gate("0.1.14", "0.1.15", ({}, {}), (same,), (), is_partial=True)
    assert verdict_in_words(gate).endswith(", 1 case: 1 same; most tests did not run to their end")
    assert verdict_in_words(replace(gate, is_partial=False)).endswith(", 1 case: 1 same")
