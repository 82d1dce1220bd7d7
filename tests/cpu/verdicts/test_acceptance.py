"""The acceptance file and comments in the source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import make_atomic, make_result, make_run
from tlcheck.errors import UsageError
from tlcheck.verdicts.acceptance import Acceptances, read_acceptances
from tlcheck.verdicts.results import Result, exit_code

ENTRY = """
[[accept]]
id = "TLA001"
case = "kernels/k.py::*"
releases = "<=0.1.7"
reason = "not deployed"
"""


def read(folder: Path, text: str = ENTRY) -> Acceptances:
    file = folder / "tlcheck-accept.toml"
    file.write_text(text)
    return read_acceptances(file)


@pytest.fixture
def refuted(tmp_path: Path) -> Result:
    return make_result("proved", "refuted", run=make_run(file=str(tmp_path / "kernels" / "k.py")))


def commented(line: str = "", above: str = "", exact: bool = True) -> Result:
    """A refuted atomic with these comments."""
    atomic = make_atomic("refuted")
    source = replace(atomic.source, text=f"T.atomic_add(B, a)  {line}", above=above, exact=exact)
    return replace(make_result(), claims=(replace(atomic, source=source),))


def test_an_accepted_finding_is_counted_apart_and_is_no_error(tmp_path: Path, refuted: Result) -> None:
    result = read(tmp_path).settle(refuted)
    assert [result.count(v) for v in ("proved", "refuted", "accepted")] == [1, 0, 1]
    assert result.claims[1].excuse is not None
    assert result.claims[1].excuse.reason == "not deployed"
    assert exit_code([result], strict=True) == 0


@pytest.mark.parametrize(
    ("old", "new"), [("TLA001", "TLA002"), ("k.py::*", "k.py::other"), ("<=0.1.7", "<0.1.7"), ("kernels/", "")]
)
def test_another_rule_case_or_release_is_not_accepted(tmp_path: Path, refuted: Result, old: str, new: str) -> None:
    assert read(tmp_path, ENTRY.replace(old, new)).settle(refuted).count("refuted") == 1


@pytest.mark.parametrize("case", ["k.py::add[n=64,block=32]", "k.py::add*", "*::add?n=*"])
def test_a_captured_kernel_is_named_as_in_reports(tmp_path: Path, refuted: Result, case: str) -> None:
    """A bracket is one of a pattern as well."""
    captured = replace(refuted, run=replace(refuted.run, name="add[n=64,block=32]"))
    assert read(tmp_path, ENTRY.replace("k.py::*", case)).settle(captured).count("accepted") == 1
    assert read(tmp_path, ENTRY.replace("k.py::*", "k.py::add[n=64]")).settle(captured).count("accepted") == 0


def test_cases_are_named_from_the_files_folder(
    tmp_path: Path, refuted: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernels").mkdir()
    monkeypatch.chdir(tmp_path / "kernels")
    result = make_result("refuted", run=make_run(file="k.py"))
    assert read(tmp_path).settle(result).count("accepted") == 1


def test_an_entry_that_matches_nothing_is_told_where_its_case_was_checked(tmp_path: Path, refuted: Result) -> None:
    accepted = read(tmp_path)
    assert not list(accepted.unused([accepted.settle(refuted)]))
    clean = make_result("proved", run=refuted.run)
    assert "acceptance of TLA001 in kernels/k.py::*" in next(accepted.unused([clean]))
    elsewhere = make_result("proved", run=make_run("0.1.15", file=refuted.run.file))
    assert not list(accepted.unused([elsewhere]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[accept]\n", "tlcheck-accept.toml: "),
        ("accept = 3\n", "expected .*accept"),
        ("[accepted]\nx = 1\n", "and nothing else"),
        (ENTRY.replace('reason = "not deployed"', ""), "an .*accept.* entry has id, case, releases, reason"),
        (ENTRY + ENTRY + 'extra = "x"\n', "toml:8: .* and nothing else; unknown: extra"),
        (ENTRY + ENTRY.replace('id = "TLA001"', 'rule = "x"'), "toml:8: .*; missing: id; unknown: rule"),
        (ENTRY.replace("not deployed", " "), "toml:2: reason of an"),
        (ENTRY.replace('"TLA001"', "1"), "id of an"),
        (ENTRY.replace("<=0.1.7", "old ones"), "toml:2: releases='old ones'"),
        ("accept = [1]\n", "toml: an .* missing: id, case, releases, reason"),
    ],
)
def test_a_wrong_file_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        read(tmp_path, text)
    assert "\n" not in str(error.value).strip()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        read_acceptances(tmp_path / "nowhere.toml")
    assert str(error.value) == f"{tmp_path / 'nowhere.toml'}: No such file or directory"


@pytest.mark.parametrize(
    "result",
    [
        commented("# tlcheck: ignore[TLA001] the layout is undone later"),
        commented(above="# tlcheck: ignore[TLA006, TLA001] the layout is undone later"),
    ],
)
def test_a_comment_at_the_atomic_accepts(result: Result) -> None:
    result = Acceptances().settle(result)
    assert result.claims[0].excuse is not None
    assert (result.claims[0].excuse.kind, result.claims[0].excuse.reason) == (
        "accepted",
        "the layout is undone later",
    )
    assert not result.notes


def test_a_comment_without_a_reason_has_no_effect_and_is_told() -> None:
    result = Acceptances().settle(commented("# tlcheck: ignore[TLA001]"))
    assert result.count("refuted") == 1
    assert result.notes == ("k.py:7: ignore[TLA001] needs a reason",)


@pytest.mark.parametrize(
    "result",
    [commented("# tlcheck: ignore[TLA002] why"), commented("# tlcheck: ignore[TLA001] why", exact=False)],
)
def test_a_comment_about_another_rule_or_line_has_no_effect(result: Result) -> None:
    assert Acceptances().settle(result).count("refuted") == 1
