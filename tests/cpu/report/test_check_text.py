"""The report for people."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from tests.cpu.checking import WITNESS, failed, make_atomic, make_finding, make_result, make_run
from tlcheck.report import check_text
from tlcheck.report.check_statistics import write_statistics
from tlcheck.verdicts.brief_names import brief_names
from tlcheck.verdicts.claim import Claim, Excerpt, Excuse, Executed, FindingOrigin, Kind, SourceLine
from tlcheck.verdicts.results import Result
from tlcheck.witness import Accesses, Act, Element
from tlcheck.worker.protocol import interrupted

RAN = Executed(((0, 0, 0),), 4, ("random",), (0, 1), ("float64",))
KINDS: tuple[Kind, ...] = ("output", "order")


def shown(
    *results: Result, notes: tuple[str, ...] = (), width: int = 80, color: bool = False, verbose: bool = False
) -> str:
    file = io.StringIO()
    made = Console(file=file, width=width, force_terminal=color, color_system="standard" if color else None)
    check_text.write(made, list(results), list(notes), check_text.TextForm(verbose=verbose))
    return file.getvalue()


def with_finding(**changes: object) -> Result:
    atomic = make_atomic("refuted")
    finding = replace(make_finding(), **changes)  # type: ignore[arg-type]
    return replace(make_result(), claims=(replace(atomic, finding=finding),))


def executed(*verdicts: str) -> Result:
    """A kernel with an output and an order of accesses, both agreed."""
    claims = tuple(
        Claim(kind, "C", "C", SourceLine("k.py", 7, True), "agreed", "execution", executed=RAN) for kind in KINDS
    )
    return replace(make_result(*verdicts), claims=(*make_result(*verdicts).claims, *claims))


def test_a_kernel_that_is_fine_is_one_line() -> None:
    timed = replace(executed("proved"), saved="k.json", seconds=1.23)
    line = "ok  k.json  sm_90  same results as the source in 1 of 4 blocks, 2 inputs; no races; 1 atomic proved  1.2 s"
    assert shown(timed).splitlines() == [line, "1 ok"]


def test_what_is_proved_without_an_output_says_so() -> None:
    assert shown(make_result("proved")).startswith(
        "ok  k.py::case@0.1.7  sm_90  1 atomic proved; no output was compared\n"
    )


def test_targets_of_one_kernel_stand_together() -> None:
    both = [replace(executed(), run=make_run(target=target)) for target in ("sm_80", "sm_90")]
    lines = shown(*both).splitlines()
    assert lines[0].startswith("ok  k.py::case@0.1.7  sm_80 sm_90  same results")
    assert lines[-1] == "1 ok"


def test_claims_are_counted_for_those_who_ask() -> None:
    counts = "1 atomic, 1 output, 1 order claim: 1 proved, 2 agreed"
    assert counts not in shown(executed("proved"))
    assert f"    k.py::case sm_90: {counts}\n" in shown(executed("proved"), verbose=True)


def test_without_a_reference_the_report_says_what_agreement_does_not() -> None:
    page = shown(executed())
    assert "no reference: tlcheck compared the compiler with the source, not the source with what you meant" in page
    assert "`tlcheck case k.py::case` writes the stub" in page
    assert "no reference" not in shown(replace(executed(), run=replace(make_run(), has_reference=True)))
    assert "no reference" not in shown(make_result("refuted"))


def test_an_atomic_that_is_not_compared_with_the_source_says_why() -> None:
    claims = tuple(replace(claim, not_source="the snapshot has no source") for claim in make_result("proved").claims)
    note = "note: B: compared with the kernel after the first passes, since the snapshot has no source"
    assert f"k.py::case@0.1.7  sm_90  {note}" in shown(replace(make_result(), claims=claims)).splitlines()


def test_a_kernel_without_claims_is_not_decided() -> None:
    page = shown(make_result()).splitlines()
    assert page[0].startswith("k.py::case@0.1.7  sm_90  not decided: U040 it has no atomic to prove")
    assert page[-1] == "1 not decided (U040)"


def test_lines_are_not_broken_where_a_program_reads_them() -> None:
    run = replace(make_run(), file="a/very/long/path/" * 6 + "k.py")
    assert "k.py::case@0.1.7  sm_90  1 atomic proved" in shown(make_result("proved", run=run)).splitlines()[0]


def test_what_is_not_decided_says_why_of_what_and_that_it_is_no_pass() -> None:
    page = shown(make_result("proved", "undecided"))
    assert page.splitlines() == [
        "k.py::case@0.1.7  sm_90  not decided: U033 not understood (B). This is not a pass.",
        "1 not decided (U033)",
    ]


@pytest.mark.parametrize(
    ("result", "style"),
    [(make_result("proved"), "32"), (make_result("proved", "undecided"), "33"), (make_result("refuted"), "31")],
)
def test_only_what_is_decided_and_right_is_green(result: Result, style: str) -> None:
    last = shown(result, color=True).splitlines()[-1]
    assert last.startswith(f"\x1b[1;{style}m"), last


def test_a_finding_begins_with_the_place_the_rule_and_the_blame(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text("\n" * 6 + "    T.atomic_add(B, a)\n")
    source = SourceLine(str(tmp_path / "k.py"), 7, True)
    result = with_finding(advice="write it otherwise")
    page = shown(replace(result, claims=(replace(result.claims[0], source=source),)), width=200).splitlines()
    assert page == [
        f"{tmp_path}/k.py:7: TLA001 some-name: it is wrong   [TileLang 0.1.7, sm_90]",
        "      7 | T.atomic_add(B, a)",
        f"   {WITNESS.words('B')}",
        "   kernel: k.py::case",
        "   blame: TileLang 0.1.7 (tl.LowerTileOp)",
        "   help: write it otherwise; `tlcheck fix k.py::case --arch sm_90 --toolchain 0.1.7` looks for a workaround; "
        "`tlcheck explain TLA001`",
        "",
        "1 bug in TileLang",
    ]


def test_a_kernel_that_its_script_makes_is_offered_a_bisection_of_the_script() -> None:
    """`fix` imports the file by name, which runs an unguarded script or finds no such builder."""
    result = with_finding()
    captured = replace(result, run=replace(result.run, is_captured=True))
    assert "`tlcheck fix k.py::case" in shown(result, width=200)
    said = shown(captured, width=200)
    assert "tlcheck fix" not in said
    assert "`tlcheck bisect k.py --arch sm_90` says which release is right" in said


def test_accesses_stand_beside_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "k.py").write_text("copy(A, a)\ngemm(a)\n")
    monkeypatch.chdir(tmp_path)
    write = Act("write", (0, 0, 0), 5, {}, 42, 1, "device-tir")
    read = Act("read", (0, 0, 0), 0, {}, 72, 2, "device-tir")
    found = replace(make_finding("TLR001"), witness=Accesses((0, 1), write, read))
    claim = Claim("order", "a", "a", SourceLine("k.py", 1, True), "refuted", "execution", finding=found)
    result = replace(make_result(), claims=(claim,))
    wide, narrow = (shown(result, width=width).splitlines() for width in (100, 40))
    assert wide[1:3] == [
        "      1 | copy(A, a)   write: block (0, 0, 0), thread 5, TIR line 42",
        "      2 | gemm(a)      read: block (0, 0, 0), thread 0, TIR line 72",
    ]
    assert narrow[2:6] == [
        "      1 | copy(A, a)",
        "        |   write: block (0, 0, 0), thread 5, TIR line 42",
        "      2 | gemm(a)",
        "        |   read: block (0, 0, 0), thread 0, TIR line 72",
    ]


def test_the_line_is_where_it_begins() -> None:
    origin = FindingOrigin("other-value", 3, 0, ("a",), "a[0] is stored at line 3 as 1")
    page = shown(with_finding(origin=origin), width=200)
    assert page.startswith("k.py:3: TLA001")
    assert "\n   a[0] is stored at line 3 as 1\n" in page


def test_the_source_is_blamed_on_its_author() -> None:
    page = shown(with_finding(blame="author", advice="clear it"))
    assert "it is wrong   [your kernel]\n" in page
    assert "blame:" not in page
    assert "   help: clear it; `tlcheck explain TLA001`\n" in page
    assert page.endswith("\n1 bug in your kernel\n")


def test_an_undefined_element_says_what_it_should_be() -> None:
    element = Element((0, 1), "poison: never written", "2.0", "inputs of seed 0; 3 elements differ")
    page = shown(with_finding(witness=element), width=200)
    line = "   B[0, 1] is undefined (never written), should be 2.0 (inputs of seed 0; 3 elements differ)"
    assert line in page.splitlines()
    assert "undefined" not in shown(with_finding(witness=replace_element(element, "nan")), width=200)


def replace_element(element: Element, got: str) -> Element:
    return msgspec.structs.replace(element, got=got)


def test_one_finding_of_two_targets_is_told_once() -> None:
    found = [replace(make_result("refuted"), run=make_run(target=target)) for target in ("sm_80", "sm_90")]
    page = shown(*found, width=300)
    assert page.count("TLA001 some-name") == 1
    assert "[TileLang 0.1.7, sm_80 sm_90]" in page


def test_more_is_said_to_those_who_ask() -> None:
    excerpt = Excerpt(9, 10, ("        for i in T.unroll(8):", "            AtomicAddx2(dQ)", "        pass"))
    result = with_finding(excerpt=excerpt, layout="(i, j) -> (i // 8, j)", others=("TLA002", "TLA006"))
    page = shown(result, verbose=True).splitlines()
    for line in (
        "   found: at lower-tile-op, after tl.LowerTileOp",
        "   layout: (i, j) -> (i // 8, j)",
        "   also: TLA002, TLA006",
    ):
        assert line in page, page
        assert line not in shown(result).splitlines()
    assert any(line.endswith("10     AtomicAddx2(dQ)") for line in page), page


@pytest.mark.parametrize("width", [40, 80, 200])
def test_rows_keep_to_the_width_of_a_terminal(width: int) -> None:
    page = shown(with_finding(advice="word " * 100), width=width).splitlines()
    rows = page[page.index("   kernel: k.py::case") :]
    assert len(rows) > 4
    assert max(map(len, rows)) <= width
    assert sum(len(line) - len(line.lstrip()) == 9 for line in rows) > 1, "further lines stand below the first"


def test_rules_and_reasons_are_counted_with_their_kernels() -> None:
    other = replace(make_result("undecided"), run=replace(make_run(), name="other"))
    file = io.StringIO()
    write_statistics(Console(file=file, width=100), [make_result("refuted", "undecided"), other], ["a note"])
    assert file.getvalue().splitlines() == [
        "TLA001      1 kernel   some-name",
        "U033        2 kernels  value-not-read: the value or address of an atomic cannot be followed",
        "note: a note",
        "1 bug in TileLang, 2 not decided (U033)",
    ]


def test_two_findings_of_one_kind_are_two() -> None:
    second = replace(make_atomic("refuted"), source=replace(make_atomic().source, line=9))
    both = replace(make_result(), claims=(make_atomic("refuted"), second))
    assert shown(both).count("TLA001 some-name") == 2
    assert shown(both).endswith("\n2 bugs in TileLang\n")


def test_texts_of_kernels_are_no_markup_and_no_emoji() -> None:
    nasty = "[red]no[/red] [/] :smile: [link=x]"
    result = replace(with_finding(what=nasty, advice=nasty), notes=(nasty,), broken=(nasty,))
    page = shown(result, failed(message=nasty), notes=(nasty,), width=300)
    assert page.count(nasty) == 6


def test_what_is_piped_has_no_colours() -> None:
    assert "\x1b" not in shown(make_result("refuted", "undecided"), failed())


def test_a_failure_is_not_checked_and_shows_the_first_lines() -> None:
    page = shown(failed(message="x" * 5000)).splitlines()
    assert page[0].startswith("k.py: not checked: build: xxx")
    assert page[0].endswith("...   [case, TileLang 0.1.7, sm_90]")
    assert len(page[0]) < 500
    assert page[-1] == "1 not checked"


def test_what_an_interruption_left_undone_is_one_line() -> None:
    runs = [replace(make_run(), name=f"k{number}") for number in range(5)]
    left = [Result(run, failure=interrupted("start")) for run in runs]
    lines = shown(make_result(), *left).splitlines()
    assert lines[-2] == "not checked, interrupted: k.py::k0 sm_90, k.py::k1 sm_90, k.py::k2 sm_90 and 2 more"
    assert lines[-1] == "1 not decided (U040), 5 not checked"
    assert sum("k.py::k" in line for line in lines) == 1


def test_what_is_expected_or_accepted_is_marked() -> None:
    excuse = Excuse("expected", "issue 1366")
    atomic = replace(make_atomic("refuted"), excuse=excuse, finding=replace(make_finding(), right_from="0.1.7.post1"))
    other = replace(failed(), excuse=excuse, run=replace(make_run(), name="other"))
    page = shown(replace(make_result(), claims=(atomic,)), other)
    assert ": it is wrong   [TileLang 0.1.7, sm_90, expected]\n" in page
    assert "   expected: issue 1366\n" in page
    assert "; right in 0.1.7.post1\n" in page
    assert "   help: use TileLang 0.1.7.post1; `tlcheck explain TLA001`\n" in page
    assert "k.py: fails as expected: build: boom   [other, TileLang 0.1.7, sm_90]\n" in page
    assert page.endswith("\n1 expected, 1 expected error\n")


def test_the_summary_counts_everything() -> None:
    broken = replace(make_result("proved"), broken=("gone",), run=replace(make_run(), name="broken"))
    results = [broken, make_result("refuted"), failed(run=replace(make_run(), name="other"))]
    page = shown(*results, executed(), notes=("a note",), width=200)
    assert page.splitlines()[-2:] == ["note: a note", "1 bug in TileLang, 1 not checked, 1 unexpectedly fine"]
    assert "k.py::broken sm_90  unexpectedly fine: gone\n" in page


def test_a_line_that_is_only_the_kernels_says_so() -> None:
    atomic = make_atomic("refuted")
    inexact = replace(make_result(), claims=(replace(atomic, source=replace(atomic.source, exact=False)),))
    assert "the kernel begins here; the line is not known" in shown(inexact)
    assert "k.py:7 (the kernel; the line is not known)" in inexact.claims[0].source.words


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "element B[0, 1] belongs at offset 32, is added at offset 1"),
        ({"written": None}, "element B[0, 1], offset 32"),
        ({"written": 32}, "element B[0, 1], offset 32"),
        ({"element": None, "intended": None}, "something is added at offset 1 of B that the source does not add"),
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
    assert "[TileLang 0.1.15 (/src/tilelang), sm_90]" in shown(Result(run, atomics), width=200)


def test_a_finding_without_a_pass_configuration_does_not_name_one() -> None:
    assert "pass config" not in shown(with_finding())
    assert "set the pass config X to True" in shown(with_finding(pass_config="X"), width=200)


def test_long_names_of_captured_kernels_keep_the_arguments_in_which_they_differ() -> None:
    same = (
        "strides=(2048, 2048, 128, 1),scale=0.08838834764831843,dtype=torch.bfloat16,causal=True,window=None,groups=4"
    )
    runs = [replace(make_run(), name=f"scan[n={n},{same}]") for n in (64, 128)]
    results = [replace(executed("proved"), run=run) for run in runs]
    lines = shown(*results).splitlines()
    assert lines[0].startswith("ok  k.py::scan[n=64,...]@0.1.7  sm_90  same results")
    assert lines[1].startswith("ok  k.py::scan[n=128,...]@0.1.7  sm_90  same results")
    assert runs[0].name in shown(*results, verbose=True)
    wrong = [replace(with_finding(), run=run) for run in runs]
    assert "kernel: k.py::scan[n=64,...]\n" in shown(*wrong)


def test_short_names_and_those_that_would_be_alike_stay() -> None:
    long = "x" * 120
    assert brief_names(["k.py::f[n=1]", "k.py::f[n=2]", f"k.py::{long}"]) == {}
    assert brief_names([f"k.py::f[n=1,a={long}]"]) == {f"k.py::f[n=1,a={long}]": "k.py::f[...]"}
