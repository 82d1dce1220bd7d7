"""Bisecting says what each release traces a case to, where it has a reference."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.cpu.checking import RIGHT, WRONG, installed, make_result, make_run
from tlcheck.cli.main import main
from tlcheck.cli.progress import bar
from tlcheck.execute.compare.interpreter import interpret
from tlcheck.execute.request import ALL, Request
from tlcheck.gate import source_reference
from tlcheck.gate.bisect import rows
from tlcheck.gate.source_reference import SourceAnswer
from tlcheck.lower.runs import Lowered, Run
from tlcheck.lower.session import Settings
from tlcheck.report.bisect_report import Bisected, write
from tlcheck.run import blame, processes
from tlcheck.run.blame import Blame, against_reference
from tlcheck.run.device_results import DeviceFinding
from tlcheck.run.examination import RunRequest
from tlcheck.run.processes import CopiedProcess, EndedProcess
from tlcheck.snapshot import codec
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.worker.gpu.task import ReferTask, Task

DIFFERENT = SourceAnswer("differs", "C: 3 of 4 elements are never written, the first at [1]")
CASES = Path(__file__).parents[1] / "run" / "blamed_cases.py"


def shown(answers: Mapping[str, SourceAnswer], verdicts: Mapping[str, str]) -> tuple[list[str], bool]:
    """The report of releases that fare so as written and as lowered."""
    runs = {name: replace(make_run(name), position=(place,)) for place, name in enumerate(verdicts)}
    results = [make_result(verdict, run=runs[name]) for name, verdict in verdicts.items()]
    written = {runs[name].position: answer for name, answer in answers.items()}
    found = Bisected(rows=tuple(rows(results, list(verdicts), written)))
    text = StringIO()
    write(Console(file=text, width=200), found)
    return text.getvalue().splitlines(), found.is_wrong


def test_what_some_releases_trace_wrongly_is_wrong_there() -> None:
    answers = {"0.1.9": DIFFERENT, "0.1.10": DIFFERENT, "0.1.11": SourceAnswer("agrees")}
    said, is_wrong = shown(answers, dict.fromkeys(answers, "proved"))
    assert said[1:] == [
        "  0.1.9   wrong      as written: C: 3 of 4 elements are never written, the first at [1]",
        "  0.1.10  wrong      as written: C: 3 of 4 elements are never written, the first at [1]",
        "  0.1.11  right",
        "  wrong in 0.1.10, right in 0.1.11",
        "  as written: differs from the reference in 0.1.9 to 0.1.10, agrees with the reference in 0.1.11: "
        "TileLang traces the same file to another kernel",
    ]  # no pass is to be looked for
    assert is_wrong


def test_what_all_of_them_trace_wrongly_is_its_authors() -> None:
    said, is_wrong = shown(dict.fromkeys(("1", "2"), DIFFERENT), {"1": "refuted", "2": "proved"})
    assert said[-2] == "  as written: differs from the reference in all of them: the kernel's author, or the reference"
    assert said[-1].startswith("by which pass: ")
    assert said[-1].endswith("--toolchain 1")
    assert is_wrong


def test_a_reference_that_all_of_them_keep_is_said() -> None:
    said, is_wrong = shown(dict.fromkeys(("1", "2"), SourceAnswer("agrees")), dict.fromkeys(("1", "2"), "proved"))
    assert said[1:] == [
        "  1  right",
        "  2  right",
        "  right in all of them",
        "  as written: agrees with the reference in all of them",
    ]
    assert not is_wrong


def test_releases_that_trace_it_to_the_same_are_asked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def against_reference(run: Run, *_: object) -> Blame:
        asked.append(run.toolchain)
        finding = DeviceFinding("wrong", "C", "all of it")
        return Blame(run, "differs" if run.toolchain == "1" else "agrees", "not asked", findings=(finding,))

    def resolve(name: str, _: object) -> Toolchain:
        return Toolchain(name, "release", Path(name))

    monkeypatch.setattr(source_reference, "against_reference", against_reference)
    monkeypatch.setattr(source_reference, "resolve", resolve)
    other = codec.loads(WRONG.read_text())
    function = codec.loads(RIGHT.read_text()).checkpoints["intent"]
    (tmp_path / "a.json").write_text(codec.dumps(replace(other, checkpoints={"source": function})))
    (tmp_path / "b.json").write_text(codec.dumps(replace(other, checkpoints={"source": replace(function, params=())})))
    runs = [replace(make_run(str(n)), has_inputs=n != 4, position=(n,)) for n in range(1, 5)]
    files = ["a.json", "a.json", "b.json", "b.json"]
    found = [Lowered(run, tmp_path / file) for run, file in zip(runs, files, strict=True)]
    with bar() as watcher:
        answers = source_reference.with_reference(found, RunRequest((), Settings("1")), Request(), tmp_path, watcher)
    assert asked == ["1", "3"]
    differs, agrees = SourceAnswer("differs", "C: all of it"), SourceAnswer("agrees")
    assert answers == {(1,): differs, (2,): differs, (3,): agrees}  # the last one has no inputs


class NoProcess(CopiedProcess):
    """A process that must not be asked: neither inputs nor a reference are wanted."""

    def run(self, task: Task) -> EndedProcess:
        raise AssertionError(f"asked for {task}")


def test_a_sum_over_more_blocks_than_run_is_left_open_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(blame, "_SMALL", 1)
    run = replace(make_run("0.1.15"), has_inputs=True)
    request, snapshot = RunRequest((), Settings("1")), codec.loads(RIGHT.read_text())
    with closing(NoProcess(Toolchain("0.1.15", "release", tmp_path))) as process:
        found = against_reference(run, snapshot, tmp_path, process, request, Request(blocks=1))
    assert found.source == "undecided"
    assert found.reasons[0] == (
        "other blocks may add to B: comparing with the reference takes all 2 blocks (--blocks all)"
    )


def test_the_source_runs_in_the_blocks_that_are_asked_for() -> None:
    snapshot = codec.loads(RIGHT.read_text())
    some, every = (interpret(snapshot, Request(blocks, (0,))) for blocks in (1, ALL))
    assert (len(some.blocks), len(every.blocks), some.of, every.of) == (1, 2, 2, 2)
    (left, whole) = (next(iter(execution.left.values())) for execution in (some, every))
    assert 0 < len(left.elements) <= len(whole.elements)


def test_a_reference_has_no_more_time_than_an_execution(tmp_path: Path) -> None:
    output = tmp_path / "answer.json"
    output.write_text('{"phase": "compare"}')
    task = ReferTask(
        output=str(output), file="k.py", name="k", folder="", names=(), executed={}, seeds=(0,), processor=20.0
    )
    done = processes._done(task, -signal.SIGXCPU, "")
    assert done.failure is not None
    assert done.failure.message == "no end after 20 s of the processor"


@pytest.mark.slow
@pytest.mark.toolchain
@pytest.mark.usefixtures("kept_results")
def test_a_real_case_that_differs_one_that_agrees_and_one_without_a_reference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    installed("0.1.15")
    cases = [f"{CASES}::{name}" for name in ("author", "right", "alone")]
    command = ["bisect", *cases, "--arch", "sm_80", "--from", "0.1.15", "--to", "0.1.15", "--format", "json"]
    assert main(command) == 1
    author, right, alone = (row["points"][0] for row in json.loads(capsys.readouterr().out)["rows"])
    assert (author["state"], author["as_written"]["answer"]) == ("wrong", "differs")
    assert author["as_written"]["why"].startswith("C: 256 of 256 elements are wrong")
    assert (right["state"], right["as_written"]) == ("right", {"answer": "agrees", "why": ""})
    assert (alone["state"], alone["as_written"]) == ("right", None)
