"""Test what the page of goldens says, and `tlcheck golden page` from the command line to the exit code."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from tests.cpu.checking import judge_here
from tests.cpu.page.pages import approved, era, large, recorded, unpacked, upgraded
from tlcheck.cli.main import main
from tlcheck.golden.recording import Recorded
from tlcheck.golden.states import ORPHANED, State
from tlcheck.page.golden_page import GoldenPage
from tlcheck.page.html import render
from tlcheck.page.shown import Page
from tlcheck.worker.protocol import Failure


@pytest.fixture(scope="module")
def page() -> Page:
    return upgraded()


def tags(page: Page) -> dict[str, list[str]]:
    return {entry.name: [tag.word for tag in entry.tags] for entry in page.entries}


def git(*argv: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *who, *argv], check=True, capture_output=True)


def test_every_state_and_verdict_is_a_tag(page: Page) -> None:
    found = tags(page)
    assert found["annotated_gemm"][:2] == ["changed", "refuted"]
    assert found["full"][:2] == ["missing", "refuted"]
    assert all("proved" in found[name] for name in ("cast_bf16", "loop_pipelined"))
    first = page.clusters[0]
    assert (first.tag.word, list(first.words)) == ("missing", ["nothing is approved yet"])
    assert list(first.members) == ["cases/attention_sink_bwd.py::full sm_90"]
    assert page.verdict == "5 goldens: 3 as approved, 1 changed, 1 missing"


def test_a_run_that_was_not_lowered_says_why_and_shows_the_golden() -> None:
    made = GoldenPage(approved(era("cast_bf16", "0.1.15")), judge_here)
    run = recorded(era("cast_bf16", "0.1.15"))
    failure = Failure("exception", "lower", "ValueError: no\nmore of it", "Traceback")
    made.add(Recorded(run.lowered, run.key, failure=failure))
    (entry,) = made.page().entries
    assert [tag.word for tag in entry.tags] == ["not lowered"]
    assert (entry.remarks[0].title, list(entry.remarks[0].lines), list(entry.remarks[0].code)) == (
        "ValueError: no",
        ["more of it"],
        ["Traceback"],
    )
    assert [view.note for view in entry.views] == ["the golden"]
    assert [list(cluster.words) for cluster in made.page().clusters] == [["ValueError: no"]]


def test_an_orphan_shows_what_was_approved() -> None:
    made = GoldenPage(approved(era("tile_small", "0.1.15")), judge_here)
    (key,) = made.approved.goldens
    made.add_orphan(State(key, ORPHANED, "no case of this name and target"))
    (entry,) = made.page().entries
    assert [tag.word for tag in entry.tags] == ["orphaned"]
    assert any("T.launch_thread" in line for line in entry.views[0].lines)


def test_what_is_as_approved_has_one_text_and_no_words() -> None:
    made = GoldenPage(approved(era("tile_small", "0.1.15")), judge_here)
    made.add(recorded(era("tile_small", "0.1.15")))
    (entry,) = made.page().entries
    assert entry.tags[0].word == "as approved"
    assert entry.words == ()
    assert [view.name for view in entry.views if view.diff is not None] == []
    assert {view.name for view in entry.views} >= {"intent", "lower-tile-op", "device-tir", "cuda"}


def test_equal_lines_pictures_and_texts_are_kept_once(page: Page) -> None:
    data = unpacked(render(page))
    assert len(set(data["lines"])) == len(data["lines"])
    twice = Page(page.title, page.verdict, page.tone, page.sides, [*page.entries, *page.entries])
    again = unpacked(render(twice))
    assert all(again[table] == data[table] for table in ("lines", "views", "pictures"))


def test_the_data_give_back_every_line(page: Page) -> None:
    data = unpacked(render(page))
    for entry, packed in zip(page.entries, data["entries"], strict=True):
        for view, found in zip(entry.views, packed["views"], strict=True):
            text = data["views"][found["text"]]
            if view.diff is None:
                assert [data["lines"][n] for n in text["lines"]] == list(view.lines)
            else:
                left = [data["lines"][n] for n in text["rows"][1::3] if n >= 0]
                assert left == [row.left.text for row in view.diff.rows if row.left is not None]


def test_the_file_is_the_same_every_time_and_asks_for_nothing(page: Page) -> None:
    html = render(page)
    assert html == render(page)
    assert html.isascii()
    assert re.findall(r"""(?:src|href)=["'](?!#)[^"']*""", html) == []
    assert "http://" not in html
    assert "https://" not in html
    assert "innerHTML" not in html
    for tag in ("style", "script"):
        text = html.rpartition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in html


def test_a_hundred_cases_are_below_ten_megabytes(page: Page) -> None:
    assert len(render(large(page, 100))) < 10_000_000


def test_the_command_compares_and_has_the_exit_code_of_golden_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("[tool.tlcheck]\n")
    assert main(["golden", "update", str(era("tile_small", "0.1.15"))]) == 0
    assert main(["golden", "accept", "--reason", "read"]) == 0
    capsys.readouterr()
    assert main(["golden", "page", str(era("tile_small", "0.1.15")), "-o", "r.html"]) == 0
    assert capsys.readouterr().out == "1 golden: 1 as approved: r.html\n"
    assert main(["golden", "page", str(era("cast_bf16", "0.1.15")), "-o", "r.html"]) == 1
    assert [entry["name"] for entry in unpacked(Path("r.html").read_text())["entries"]] == ["cast_bf16"]


def test_two_revisions_need_no_toolchain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text("[tool.tlcheck]\n")
    git("init", "-q")
    for release, names in (("0.1.8", ("loop_pipelined", "tile_small")), ("0.1.15", ("loop_pipelined", "cast_bf16"))):
        assert main(["golden", "update", *(str(era(name, release)) for name in names)]) == 0
        assert main(["golden", "accept", "--reason", "read"]) == 0
        git("add", ".")
        git("commit", "-qm", release)
    capsys.readouterr()
    assert main(["golden", "page", "--base", "HEAD~1", "-o", "r.html"]) == 0
    assert capsys.readouterr().out == "3 goldens: 1 changed, 1 added since HEAD~1; all approved: r.html\n"
    found = {e["name"]: e["tags"][0][0] for e in unpacked(Path("r.html").read_text())["entries"]}
    assert found == {"loop_pipelined": "changed", "tile_small": "the same", "cast_bf16": "added"}
    clusters = unpacked(Path("r.html").read_text())["clusters"]
    assert [cluster["tag"][0] for cluster in clusters] == ["added", "changed"]
    accepted = next(e for e in unpacked(Path("r.html").read_text())["entries"] if e["name"] == "loop_pipelined")
    assert "changed, accepted by " in str(accepted["remarks"])
    assert ": read (claims then: atomic B: proved)" in str(accepted["remarks"])
    Path("golden/approvals.toml").write_text("")
    assert main(["golden", "page", "--base", "HEAD~1", "-o", "r.html"]) == 1
    assert "not approved" in capsys.readouterr().out
    git("checkout", "golden")
    assert main(["golden", "page", "--base", "HEAD", "-o", "r.html"]) == 0


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["-o", "no/such/r.html"], "no/such/r.html: no folder"),
        (["-o", "."], ". is no file: -o FILE.html"),
        (["--head", "HEAD", "-o", "r.html"], "--head goes with --base"),
        (["--base", "HEAD", "k.py", "-o", "r.html"], "leave out CASE"),
        (["--base", "nowhere", "-o", "r.html"], "git knows no revision 'nowhere'"),
        (["nothing.py", "-o", "r.html"], "no such file or folder"),
    ],
)
def test_bad_usage_is_one_line_and_loses_no_page(
    argv: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.html").write_text("the last one")
    assert main(["golden", "page", *argv]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert Path("r.html").read_text() == "the last one"
