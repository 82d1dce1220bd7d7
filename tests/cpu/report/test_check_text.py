"""The report for people."""

from __future__ import annotations

import io
from dataclasses import replace

import msgspec
import pytest
from rich.console import Console

from tests.cpu.checking import WITNESS, failed, make_atomic, make_finding, make_result, make_run
from tlcheck.report import check_text
from tlcheck.verdicts.claim import Claim, Excerpt, Excuse, Executed
from tlcheck.verdicts.results import Result
from tlcheck.worker.protocol import interrupted


def shown(*results: Result, notes: tuple[str, ...] = (), width: int = 80, color: bool = False) -> str:
    file = io.StringIO()
    check_text.write(
        Console(file=file, width=width, force_terminal=color, color_system=None), list(results), list(notes)
    )
    return file.getvalue()


def with_finding(**changes: object) -> Result:
    atomic = make_atomic("refuted")
    finding = replace(make_finding(), **changes)  # type: ignore[arg-type]
    return replace(make_result(), claims=(replace(atomic, finding=finding),))


def test_a_clean_run_says_what_was_proved_and_has_a_summary() -> None:
    assert shown(make_result("proved", "proved")).splitlines() == [
        "k.py::case sm_90 0.1.7  2 atomics: 2 proved",
        "    proved: B: additions proved, content not examined",
        "1 case, 2 atomics: 2 proved",
    ]


def test_an_atomic_that_is_not_compared_with_the_source_says_why() -> None:
    claims = tuple(replace(claim, not_source="the snapshot has no source") for claim in make_result("proved").claims)
    line = "    intent: B: compared with the kernel after the first passes, since the snapshot has no source"
    assert line in shown(replace(make_result(), claims=claims)).splitlines()


def test_an_atomic_whose_content_agreed_says_so() -> None:
    ran = Executed(((0, 0, 0),), 4, ("random",), (0, 1), ("float64",))
    result = replace(make_result(), claims=(replace(make_atomic("proved"), executed=ran),))
    assert shown(result).splitlines()[1] == "    agreed: content of additions to B (1 of 4 blocks, 2 inputs)"


def test_a_kernel_without_atomics() -> None:
    assert shown(make_result()).splitlines()[0] == "k.py::case sm_90 0.1.7  lowers; nothing decided"


def test_lines_are_not_broken_where_a_program_reads_them() -> None:
    run = replace(make_run(), file="a/very/long/path/" * 6 + "k.py")
    assert shown(make_result("proved", run=run)).splitlines()[0].endswith("k.py::case sm_90 0.1.7  1 atomic: 1 proved")


def test_an_undecided_atomic_says_why_and_where() -> None:
    assert "    undecided: B, k.py:7: not understood\n" in shown(make_result("proved", "undecided"))


def test_a_finding_is_boxed_with_all_that_it_names() -> None:
    excerpt = Excerpt(9, 10, ("        for i in T.unroll(8):", "            AtomicAddx2(dQ)", "        pass"))
    layout = "(i, j) -> (i // 8, j)"
    page = shown(with_finding(excerpt=excerpt, layout=layout, others=("TLA002", "TLA006"), advice="write it otherwise"))
    box = [line.strip("│ ") for line in page.splitlines()]
    for line in (
        "It is wrong.",
        "case     k.py::case, sm_90, tilelang 0.1.7",
        "source   k.py:7",
        "T.atomic_add(B, a)",
        "buffer   B",
        f"layout   {layout}",
        "found    at lower-tile-op, after tl.LowerTileOp",
        "TIR         9  for i in T.unroll(8):",
        "> 10      AtomicAddx2(dQ)",
        "also     TLA002, TLA006",
        "to do    try another release of TileLang; or write it otherwise",
        "more     tlcheck explain TLA001",
    ):
        assert line in box, page
    assert "╭─ TLA001 some-name [TileLang 0.1.7, tl.LowerTileOp] ─" in page


def test_another_release_is_no_advice_for_what_no_pass_makes() -> None:
    page = shown(with_finding(pass_name="", advice="write it otherwise"))
    assert "to do    write it otherwise" in page
    assert "to do    try another release" in shown(with_finding(pass_name=""))


@pytest.mark.parametrize("width", [40, 80, 200])
def test_boxes_keep_to_the_width(width: int) -> None:
    long = "T.call_extern(" + "dQ[thread_binding % 64 // 32 * 16], " * 30 + ")"
    page = shown(with_finding(excerpt=Excerpt(1, 1, (long,)), layout="x" * 300), width=width)
    boxed = [line for line in page.splitlines() if line.startswith(("│", "╭", "╰"))]
    assert len(boxed) > 10
    assert {len(line) for line in boxed} == {width}


def test_two_findings_of_one_kind_have_a_box_each() -> None:
    assert shown(make_result("refuted", "refuted")).count("TLA001 some-name") == 2


def test_texts_of_kernels_are_no_markup_and_no_emoji() -> None:
    nasty = "[red]no[/red] [/] :smile: [link=x]"
    result = replace(with_finding(what=nasty, advice=nasty), notes=(nasty,), broken=(nasty,))
    page = shown(result, failed(message=nasty), notes=(nasty,), width=300)
    assert page.count(nasty) == 6


def test_what_is_piped_has_no_colours() -> None:
    assert "\x1b" not in shown(make_result("refuted", "undecided"), failed())


def test_a_failure_is_not_checked_and_shows_the_first_lines() -> None:
    page = shown(failed(message="x" * 5000)).splitlines()
    assert page[0] == "k.py::case sm_90 0.1.7  not checked"
    assert page[1].startswith("    build: xxx")
    assert len(page[1]) < 500
    assert page[-1] == "1 case; 1 not checked"


def test_what_an_interruption_left_undone_is_one_line() -> None:
    runs = [replace(make_run(), name=f"k{number}") for number in range(5)]
    left = [Result(run, failure=interrupted("start")) for run in runs]
    lines = shown(make_result(), *left).splitlines()
    named = "k.py::k0 sm_90 0.1.7, k.py::k1 sm_90 0.1.7, k.py::k2 sm_90 0.1.7"
    assert lines[-2] == f"not checked, interrupted: {named} and 2 more"
    assert "; 5 not checked" in lines[-1]
    assert sum("k.py::k" in line for line in lines) == 1


def test_what_is_expected_or_accepted_is_marked() -> None:
    excuse = Excuse("expected", "issue 1366")
    atomic = replace(make_atomic("refuted"), excuse=excuse, finding=replace(make_finding(), right_from="0.1.7.post1"))
    page = shown(replace(make_result(), claims=(atomic,)), replace(failed(), excuse=excuse))
    assert "TLA001 some-name (expected)" in page
    assert "expected  issue 1366" in page
    assert "use TileLang 0.1.7.post1, which has it right" in page
    assert "k.py::case sm_90 0.1.7  expected error\n" in page
    assert page.endswith("1 case (2 runs), 1 atomic: 1 expected; 1 expected error\n")


def test_the_summary_counts_everything() -> None:
    broken = replace(make_result("proved", "undecided"), broken=("gone",))
    page = shown(broken, make_result("refuted"), failed(run=replace(make_run(), name="other")), notes=("a note",))
    assert page.splitlines()[-2:] == [
        "note: a note",
        "2 cases (3 runs), 3 atomics: 1 proved, 1 refuted, 1 undecided; 1 not checked; 1 unexpectedly fine",
    ]
    assert "    unexpectedly fine: gone\n" in page


def test_a_line_that_is_only_the_kernels_says_so() -> None:
    atomic = make_atomic("undecided")
    inexact = replace(atomic, source=replace(atomic.source, exact=False))
    assert "k.py:7 (the kernel; the line is not known)" in inexact.source.words


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "element B[0, 1] belongs at offset 32, is added at offset 1"),
        ({"written": None}, "element B[0, 1], offset 32"),
        ({"written": 32}, "element B[0, 1], offset 32"),
        ({"element": None, "intended": None}, "something is added at offset 1 of B, where nothing belongs"),
    ],
)
def test_a_witness_in_words(changes: dict[str, object], expected: str) -> None:
    witness = msgspec.structs.replace(WITNESS, **changes)
    place = "block (0, 1), k = 2, i = 3, thread 5, lane 1: "
    assert witness.words("B") == place + expected


def test_a_witness_without_a_place() -> None:
    witness = msgspec.structs.replace(WITNESS, instance={}, iteration={}, thread=None, lane=None)
    assert witness.words("B").startswith("element B")


def test_a_toolchain_that_is_no_release_is_named() -> None:
    run = replace(make_run("0.1.15+cu128"), toolchain="/src/tilelang")
    atomics: tuple[Claim, ...] = (make_atomic("refuted"),)
    assert "tilelang 0.1.15 (/src/tilelang)" in shown(Result(run, atomics))


def test_a_finding_without_a_pass_configuration_does_not_name_one() -> None:
    assert "pass config" not in shown(with_finding())
    assert "set the pass config X to True" in shown(with_finding(pass_config="X"), width=200)
