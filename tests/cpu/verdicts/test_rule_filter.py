"""`--select` and `--ignore`."""

from __future__ import annotations

import pytest

from tests.cpu.checking import make_result
from tlcheck.cli.main import main
from tlcheck.errors import UsageError
from tlcheck.verdicts.acceptance import Acceptances
from tlcheck.verdicts.rule_filter import RuleFilter, rule_ids

WRONG = "tests/fixtures/rules/TLA001-bad.snapshot.json"


@pytest.mark.parametrize(
    ("select", "ignore", "left_out"),
    [
        ("", "", []),
        ("TLR,TLO001", "", ["TLA001", "TLO002"]),
        ("", "tlr", ["TLR001"]),
        ("TLO", "TLO002", ["TLA001", "TLO002", "TLR001"]),
        ("TLO002", "TLO", ["TLA001", "TLO001", "TLR001"]),  # the longer id
        ("TLO001", "TLO001", ["TLA001", "TLO001", "TLO002", "TLR001"]),
    ],
)
def test_rules_that_are_left_out(select: str, ignore: str, left_out: list[str]) -> None:
    rules = RuleFilter(rule_ids("--select", select), rule_ids("--ignore", ignore))
    assert [rule for rule in ("TLA001", "TLO001", "TLO002", "TLR001") if rules.reason(rule)] == left_out


@pytest.mark.parametrize(("ids", "said"), [("TLX", "lists all"), ("TLA101", "did you mean TLA")])
def test_an_id_that_is_none(ids: str, said: str) -> None:
    with pytest.raises(UsageError, match=rf"--ignore {ids}: no rule's id begins so.*{said}"):
        rule_ids("--ignore", f"TLR,{ids}")


def test_what_is_left_out_is_shown_as_accepted_by_the_option() -> None:
    result = make_result("proved", "refuted")
    assert result.claims[1].finding is not None
    assert result.claims[1].finding.rule == "TLA001"
    settled = Acceptances(rules=RuleFilter(ignore=("TLA001",))).settle(result)
    assert [settled.count(verdict) for verdict in ("proved", "refuted", "accepted")] == [1, 0, 1]
    assert Acceptances(rules=RuleFilter(select=("TLA",))).settle(result).count("refuted") == 1


def test_check_takes_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", WRONG, "--quick", "--ignore", "TLA001"]) == 0
    out = capsys.readouterr().out
    assert "accepted: --ignore TLA001" in out
    assert out.endswith("1 accepted\n")
    assert main(["check", WRONG, "--quick", "--select", "TLA"]) == 1
    assert "1 bug in TileLang" in capsys.readouterr().out


RACE = "tests/fixtures/wrong/wait-0.1.9.snapshot.json"


@pytest.mark.slow
@pytest.mark.usefixtures("kept_results")
@pytest.mark.parametrize(
    ("options", "code", "last"),
    [
        (("--ignore", "TLR"), 1, "1 bug in TileLang, 1 accepted\n"),
        (("--select", "TLO"), 1, "1 bug in TileLang, 1 accepted\n"),
        (("--ignore", "TLR,TLO"), 0, "1 accepted\n"),
    ],
)
def test_a_wrong_output_counts_without_the_rule_that_explains_it(
    options: tuple[str, str], code: int, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", RACE, *options]) == code
    out = capsys.readouterr().out
    assert out.endswith(last)
    assert ("TLO002 poison: C depends on" in out) == bool(code)
