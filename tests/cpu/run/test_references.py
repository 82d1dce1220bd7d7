"""`check` of a case whose reference differs from what is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import RIGHT, installed, make_result, make_run, published
from tlcheck.cache.store import Cache
from tlcheck.cli.main import main
from tlcheck.cli.progress import bar
from tlcheck.execute.request import Request
from tlcheck.lower.runs import Lowered, Run
from tlcheck.lower.session import Settings
from tlcheck.report.check_text import write
from tlcheck.run import references
from tlcheck.run.blame import Blame
from tlcheck.run.device_results import DeviceFinding
from tlcheck.run.references import ReferenceCheck
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.acceptance import Acceptances
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.results import Result
from tlcheck.verdicts.rule_filter import RuleFilter
from tlcheck.worker.dependencies import Dependencies

CASES = Path(__file__).with_name("blamed_cases.py")
ELEMENT = {"index": [0, 1], "got": 3.0, "expected": 2.0}
DIFFERS = DeviceFinding("wrong", "B", "8 of 16 elements are wrong", "inputs of seed 0", (ELEMENT,))


class Asked:
    """Stands in for executing a source. answers: of each case. read: what its processes read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: dict[str, Blame], tmp_path: Path) -> None:
        self.cases: list[str] = []
        self.answers, self.folder, self.read = answers, tmp_path, [Dependencies()]
        monkeypatch.setattr(references, "against_reference", self.against_reference)
        monkeypatch.setattr(references, "resolve", lambda name, _: Toolchain(name, "release", Path(name)))

    def against_reference(self, run: Run, snapshot: object, folder: object, process: object, *_: object) -> Blame:
        self.cases.append(run.name)
        process.read.extend(self.read)  # type: ignore[attr-defined]
        return self.answers[run.name]

    def compared(self, *pairs: tuple[Lowered, Result], ignore: str = "") -> list[Result]:
        policy = Policy(Acceptances(rules=RuleFilter(ignore=tuple(filter(None, ignore.split(","))))))
        cache = Cache(self.folder / "cache")
        with bar() as watcher:
            check = ReferenceCheck(Settings("0.1.15"), policy, Request(), cache, self.folder, watcher)
            return check.compared(pairs)


def pair(name: str, verdict: str = "proved", *, inputs: bool = True, reference: bool = True) -> tuple[Lowered, Result]:
    run = replace(make_run("0.1.15"), name=name, has_inputs=inputs, has_reference=reference)
    return Lowered(run, RIGHT), make_result(verdict, run=run)


def blame(answer: str, **fields: object) -> Blame:
    return Blame(make_run(), answer, "not asked", **fields)  # type: ignore[arg-type]


def test_a_case_that_differs_is_its_authors_bug(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = Asked(monkeypatch, {"differs": blame("differs", findings=(DIFFERS,))}, tmp_path)
    (found,) = asked.compared(pair("differs"))
    claim = found.claims[0]
    assert (claim.kind, claim.verdict, claim.buffer, len(found.claims)) == ("source", "refuted", "B", 2)
    assert claim.finding is not None
    assert (claim.finding.rule, claim.finding.blame) == ("TLS010", "author")
    assert claim.finding.words == "B[0, 1] is 3.0, expected 2.0 (inputs of seed 0)"
    (ignored,) = asked.compared(pair("differs"), ignore="TLS010")
    assert ignored.count("refuted") == 0


def test_agreement_is_told_and_what_is_open_is_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tlcheck.report.console import console

    answers = {
        "agrees": blame("agrees", blocks=(2, 4)),
        "open": blame("undecided", reasons=("other blocks may add to B", "")),
    }
    found = Asked(monkeypatch, answers, tmp_path).compared(pair("agrees"), pair("open"))
    assert found[0].reference == "agrees with the reference in 2 of 4 blocks"
    write(console(), found, [])
    said = capsys.readouterr().out
    assert "; agrees with the reference in 2 of 4 blocks\n" in said
    assert "not compared with the reference (`tlcheck run k.py::open --device cpu --toolchain 0.1.15`): other " in said


def test_who_is_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = Asked(monkeypatch, {}, tmp_path)
    pairs = [pair("wrong", "refuted"), pair("drawn", inputs=False), pair("alone", reference=False)]
    assert asked.compared(*pairs) == [result for _, result in pairs]
    assert asked.cases == []


def test_an_answer_is_kept_until_what_it_read_changes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = Asked(monkeypatch, {"agrees": blame("agrees", blocks=(1, 1))}, tmp_path)
    helper = tmp_path / "helper.py"
    helper.write_text("")
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # of nothing
    asked.read = [Dependencies({str(helper): digest})]
    for _ in range(2):
        (found,) = asked.compared(pair("agrees"))
        assert found.reference == "agrees with the reference"
    assert asked.cases == ["agrees"]
    helper.write_text("factor = 3\n")
    asked.compared(pair("agrees"))
    assert asked.cases == ["agrees", "agrees"]


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
def test_check_says_that_the_reference_differs(capsys: pytest.CaptureFixture[str]) -> None:
    installed("0.1.15")
    cases = [f"{CASES}::{name}" for name in ("author", "right")]
    for _ in range(2):  # the second time nothing is executed
        assert main(["check", *cases, "--format", "json"]) == 1
        author, right = published(capsys.readouterr().out, "check")["runs"]
        finding = author["claims"][0]["finding"]
        assert (finding["rule"], finding["blame"]) == ("TLS010", "author")
        assert finding["what"] == "C differs from the reference: 256 of 256 elements are wrong"
        assert right["reference"] == "agrees with the reference"
    assert right["seconds"] == 0


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
def test_a_reference_that_raises_is_bad_usage_at_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    installed("0.1.15")
    cases = [f"{CASES}::{name}" for name in ("unreferred", "unnamed", "right")]
    assert main(["check", *cases, "--format", "json"]) == 2
    raised, listed, right = published(capsys.readouterr().out, "check")["runs"]
    line = 1 + CASES.read_text().splitlines().index('    return {"C": a.view(128, 2) @ a.view(128, 2)}')
    assert (raised["failure"]["kind"], raised["failure"]["phase"]) == ("usage", "reference")
    assert raised["failure"]["message"].startswith("the reference raised RuntimeError: mat1 and mat2")
    assert raised["failure"]["where"] == f"{CASES}:{line}"
    assert listed["failure"]["message"] == "the reference returns no dict of parameters and tensors"
    assert right["reference"] == "agrees with the reference"
    assert main(["check", cases[0]]) == 2  # the answer is kept
    shown = capsys.readouterr().out
    assert f"{CASES.name}:{line}: not checked: the reference raised RuntimeError" in shown
    assert main(["run", cases[0], "--device", "cpu", "--toolchain", "0.1.15"]) == 2
    assert f"{CASES}:{line}: the reference raised RuntimeError" in capsys.readouterr().err
