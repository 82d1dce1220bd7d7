"""Test what `check` found, in the formats for machines and reviewers: the same words, at the line that is wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

from tests.cpu.checking import WITNESS, failed, make_atomic, make_finding, make_result, make_run
from tlcheck.page.check_page import page_of
from tlcheck.page.shown import BAD, GOOD, WARN
from tlcheck.report import github, junit, markdown, sarif
from tlcheck.report.check_notices import document_of
from tlcheck.verdicts.claim import FindingOrigin
from tlcheck.verdicts.results import Result, exit_code


def found(**changes: object) -> Result:
    finding = replace(make_finding(), **changes)  # type: ignore[arg-type]
    return replace(make_result(), claims=(replace(make_atomic("refuted"), finding=finding),), seconds=2.5)


WRONG = found(origin=FindingOrigin("other-value", 3, 0, ("a",), "a[0] is stored at line 3 as 1"))
OPEN = make_result("proved", "undecided")


def in_format(made: object, *results: Result) -> str:
    document = document_of(results, [], exit_code(results, strict=False))
    return str(made.render(document))  # type: ignore[attr-defined]


def test_every_format_names_the_line_that_is_wrong_and_not_the_kernels() -> None:
    assert "::error file=k.py,line=3,title=tlcheck TLA001::" in in_format(github, WRONG)
    (told,) = json.loads(in_format(sarif, WRONG))["runs"][0]["results"]
    assert told["locations"][0]["physicalLocation"]["region"] == {"startLine": 3}
    assert "k.py:3: TLA001: " in in_format(junit, WRONG)
    assert "k.py:3: TLA001 some-name: it is wrong" in in_format(markdown, WRONG)


def test_every_format_says_who_is_to_blame_and_has_the_witness() -> None:
    for made in (github, sarif, junit, markdown):
        text = in_format(made, WRONG).replace("%0A", "\n").replace("%25", "%").replace("\\n", "\n")
        assert "[TileLang 0.1.7, sm_90]" in text, made
        assert f"witness: {WITNESS.words('B')}" in text, made
        assert "a[0] is stored at line 3 as 1" in text, made
    own = in_format(markdown, found(blame="author"))
    assert re.search(r"^:x: \*\*TLA001\*\*: `?A title \[your kernel\]", own, re.MULTILINE), own
    assert re.search(r"^:x: \*\*TLA001\*\*: `?A title \[TileLang 0.1.7\]", in_format(markdown, WRONG), re.MULTILINE)


def test_what_is_not_decided_is_no_pass_in_any_format() -> None:
    words = "not decided: U033 not understood (B). This is not a pass."
    assert in_format(markdown, OPEN).startswith("### :warning: tlcheck check\n\n")
    assert f"::warning file=k.py,line=7,title=tlcheck U033::k.py::case sm_90: {words}\n" in in_format(github, OPEN)
    assert "::warning title=tlcheck::1 not decided (U033)\n" in in_format(github, OPEN)
    (told,) = json.loads(in_format(sarif, OPEN))["runs"][0]["results"]
    assert (told["ruleId"], told["level"]) == ("U033", "warning")
    suite = ElementTree.fromstring(in_format(junit, OPEN))[0]
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    assert words in str(suite.find("testcase/skipped").attrib["message"])  # type: ignore[union-attr]


def test_only_what_is_decided_and_right_has_a_check_mark() -> None:
    right = make_result("proved")
    assert in_format(markdown, right).startswith("### :white_check_mark: ")
    assert in_format(markdown, right, failed()).startswith("### :x: ")
    tones = [page_of([r], [], [], exit_code([r], strict=False)).tone for r in (right, OPEN, WRONG)]
    assert tones == [GOOD, WARN, BAD]


def test_a_test_case_has_the_time_that_checking_took() -> None:
    suite = ElementTree.fromstring(in_format(junit, WRONG, replace(OPEN, run=make_run(target="sm_80"))))[0]
    assert [case.get("time") for case in suite.iter("testcase")] == ["2.500", "0.000"]
