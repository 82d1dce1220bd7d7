"""Annotations of GitHub Actions: one line for each, nothing of a kernel's text read as a command."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.report.documents import DOCUMENT, EMPTY, WRONG
from tlcheck.lower.runs import Run
from tlcheck.report import check_notices, github
from tlcheck.report.notices import Document, Subject
from tlcheck.verdicts.results import Result
from tlcheck.worker.protocol import Failure

COMMAND = re.compile(r"^::(error|warning|notice) ((file=[^:,]+,line=[1-9]\d*,)?title=[^:,]+)::(.+)$")


def test_each_notice_is_one_command_and_the_verdict_is_last() -> None:
    lines = github.render(DOCUMENT).splitlines()
    assert all(COMMAND.match(line) for line in lines)
    assert lines[0] == (
        "::error file=kernels/k.py,line=7,title=tlcheck wrong::"
        "kernels/k.py::full sm_90: B: it is wrong%0Awitness: lane 1"
    )
    assert lines[1] == (
        "::warning file=k.py,line=3,title=tlcheck slower-risk::AtomicAddx4 -> 4 x AtomicAdd"
        "%0Akernels/k.py::full (sm_90)%0Ak.py::a (sm_80)%0Ak.py::b (sm_80)"
    )
    assert lines[-1] == "::error title=tlcheck::FAIL: 1 wrong"
    assert len(lines) == 4  # what is accepted is no annotation


def test_each_line_has_its_own_annotation_as_far_as_github_shows_them() -> None:
    def rendered(count: int) -> list[str]:
        notices = tuple(replace(WRONG, line=n + 1) for n in range(count))
        return github.render(Document("check", "", (Subject("k.py", "a", "sm_80", notices),))).splitlines()[:-1]

    assert [line.partition(",title")[0] for line in rendered(3)] == [
        f"::error file=kernels/k.py,line={n}" for n in (1, 2, 3)
    ]
    assert rendered(30) == [
        "::error file=kernels/k.py,line=1,title=tlcheck wrong::it is wrong%0Ak.py::a (sm_80)%0Asuch as witness: lane 1"
    ]


def test_no_more_than_github_shows() -> None:
    notices = tuple(replace(WRONG, title=f"wrong {n}") for n in range(30))
    lines = github.render(Document("gate", "FAIL", (Subject("k.py", "a", "sm_80", notices),), failed=True)).splitlines()
    assert [line.split("::")[-1] for line in lines[-2:]] == ["21 more: see the report", "FAIL"]
    assert len(lines) == 11


def test_a_clean_report_is_a_notice() -> None:
    assert github.render(EMPTY) == "::notice title=tlcheck::PASS: nothing\n"


@pytest.mark.parametrize(
    ("name", "where", "line"),
    [("second", "", 4), ("second", "k.py:2", 2), ("second", "other.py:9", 4), ("absent", "", 1), ("", "", 1)],
)
def test_an_error_is_annotated_where_it_was_raised_else_at_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, where: str, line: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text("first = Case(f)\nseconds = 1\n\nsecond = Case(g)\n")
    failure = Failure("exception", "lower", "ValueError: no", where=where)
    failed = Result(Run("k.py", name, "sm_80", "pinned", {}), failure=failure)
    text = github.render(check_notices.document_of([failed], [], 3))
    assert f"::error file=k.py,line={line},title=tlcheck not-checked::" in text
