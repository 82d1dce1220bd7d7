"""Markdown for a comment on a pull request."""

from __future__ import annotations

from dataclasses import replace

from tests.cpu.report.documents import DOCUMENT, EMPTY, SLOWER, WRONG
from tlcheck.report import markdown
from tlcheck.report.notices import Document, Subject


def test_the_verdict_comes_first_then_a_table_then_each_notice_once() -> None:
    text = markdown.render(DOCUMENT)
    lines = text.splitlines()
    assert lines[:3] == ["### :x: tlcheck gate", "", "FAIL: 1 wrong"]
    assert "| :x: | wrong | 1 |" in lines
    assert "| :warning: | slower-risk | 3 |" in lines
    assert text.count("AtomicAddx4 -> 4 x AtomicAdd") == 1
    assert "- `k.py::a (sm_80)`" in lines
    assert "accepted: not deployed" in text
    assert "> something to know" in lines


def test_texts_of_kernels_are_no_markup_and_still_readable_as_they_are() -> None:
    (line,) = (line for line in markdown.render(DOCUMENT).splitlines() if line.startswith(":information_source:"))
    code = line.partition(": ``")[2]
    assert code.endswith(" ``")
    assert "``" not in code.removesuffix(" ``")
    assert "a | b <b>" in code
    assert "`code` @someone % 100" in code
    assert code.endswith("end second line ``")


def test_words_without_markup_stay_words() -> None:
    assert markdown.inert("loop k: 2 -> 3 stages") == "`loop k: 2 -> 3 stages`"
    assert markdown.inert("2 wrong, 3 the same") == "2 wrong, 3 the same"


def test_many_kernels_are_folded() -> None:
    subjects = tuple(Subject("k.py", f"case_{n}", "sm_80", (SLOWER,)) for n in range(40))
    text = markdown.render(Document("gate", "PASS", subjects))
    assert "<details><summary>40 kernels</summary>" in text
    assert text.count("- `k.py::case_") == 40


def test_a_comment_is_never_longer_than_github_takes() -> None:
    subjects = tuple(Subject("k.py", f"c{n}", "sm_80", (replace(WRONG, title=f"{n} " * 80),)) for n in range(900))
    text = markdown.render(Document("gate", "FAIL", subjects, failed=True))
    assert len(text) < 65_536
    assert text.startswith("### :x: tlcheck gate\n\nFAIL")
    assert text.endswith("more parts are in the other reports._\n")


def test_a_clean_report_is_short() -> None:
    assert markdown.render(EMPTY) == "### :white_check_mark: tlcheck gate\n\nPASS: nothing\n\n"
