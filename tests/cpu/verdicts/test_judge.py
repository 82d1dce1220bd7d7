"""One policy, applied to what judging processes find; and what becomes of processes that die."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import INVARIANT, RIGHT, WRONG, make_result, make_run
from tlcheck.cache.store import Cache
from tlcheck.case import Expect
from tlcheck.cli.progress import Bar
from tlcheck.errors import UsageError
from tlcheck.execute.request import GivenInputs, Request
from tlcheck.lower.runs import Lowered, MadeInputs
from tlcheck.verdicts import judge as judging
from tlcheck.verdicts.acceptance import Acceptance, Acceptances
from tlcheck.verdicts.judge import Judge, JudgedSnapshot, JudgingProcess, Policy
from tlcheck.worker.protocol import Failure

EXPECTED = make_run(expects=[Expect(releases="<=0.1.7", rule="TLA001", reason="known")])
ACCEPTED = Acceptances(Path(), (Acceptance("TLA001", "k.py::*", "<=0.1.7", "not deployed"),))
NOTHING = Cache(None)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("fresh_processes")]


@pytest.mark.parametrize(
    ("policy", "excuse"),
    [
        (Policy(), "expected"),
        (Policy(excusing=False), None),
        (Policy(ACCEPTED), "expected"),
        (Policy(ACCEPTED, excusing=False), "accepted"),
    ],
)
def test_a_policy_says_what_is_excused(policy: Policy, excuse: str | None) -> None:
    (claim,) = policy.apply(make_result("refuted", run=EXPECTED)).claims
    assert (claim.excuse.kind if claim.excuse else None) == excuse
    assert claim.finding is not None
    assert claim.finding.right_from == "0.1.7.post1"


def test_what_is_lowered_is_judged_while_the_next_is_lowered() -> None:
    judged = threading.Event()

    def lowered() -> Iterator[Lowered]:
        yield Lowered(make_run(), WRONG)
        assert judge._threads._work_queue.empty()
        judged.wait(60)
        yield Lowered(make_run(), RIGHT)
        yield Lowered(make_run(), None, Failure("crash", "lower", "SIGABRT"))

    with Judge(Policy(), NOTHING, 2) as judge:
        first = judge._verdicts

        def verdicts(lowered: Lowered, snapshot: Path) -> object:
            try:
                return first(lowered, snapshot)
            finally:
                judged.set()

        judge._verdicts = verdicts  # type: ignore[method-assign, assignment]
        found = list(judge.each(lowered()))
    assert [result.failure is None for _, result in found] == [True, True, False]
    assert [result.count("refuted") for _, result in found] == [1, 0, 0]
    assert [one.snapshot for one, _ in found] == [WRONG, RIGHT, None]


def test_what_has_its_verdicts_is_judged_without_the_inputs_of_its_case(tmp_path: Path) -> None:
    kept = Cache(tmp_path)
    there = Lowered(make_run(), RIGHT, inputs=MadeInputs(GivenInputs("inputs", (), "k.py:1"), "d1"))
    gone = replace(there, inputs=MadeInputs(digest="d1"))
    others = replace(there, inputs=MadeInputs(digest="d2"))
    with Judge(Policy(), kept, 1) as judge:
        assert not judge.knows(gone)
        first = judge(there)
        assert judge.knows(gone)
        assert not judge.knows(others)
        assert not Judge(Policy(execute=Request()), kept, 1).knows(gone)
    with Judge(Policy(), kept, 1) as judge:
        assert judge.knows(gone)
        kept.clear()
        assert judge(gone) == first
        assert not judge._all
    assert not Judge(Policy(), NOTHING, 1).knows(gone)


def test_a_kernel_of_tests_that_still_run_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[tuple[Path, str]] = []

    def noted(judge: Judge, lowered: Lowered, snapshot: Path, *, silent: bool = False) -> JudgedSnapshot:
        judged.append((snapshot, (lowered.inputs or MadeInputs()).digest))
        return verdicts(judge, lowered, snapshot, silent=silent)

    verdicts = Judge._verdicts
    monkeypatch.setattr(Judge, "_verdicts", noted)
    right, wrong = Lowered(make_run(), RIGHT), Lowered(make_run(), WRONG)
    called_again = replace(right, inputs=MadeInputs(digest="more calls"))
    bar = Bar(lambda **changes: None)
    with Judge(Policy(), NOTHING, 2, watcher=bar) as judge:
        judge.anticipate(wrong)
        ((_, early),) = judge._early.values()
        assert early.result().verdicts.failure is None
        judge.anticipate(right)
        found = list(judge.each([called_again, wrong]))
    assert (judged.count((WRONG, "")), judged.count((RIGHT, "more calls"))) == (1, 1)
    assert [result.count("refuted") for _, result in found] == [0, 1]
    assert (bar.judged, bar.ahead) in ((2, 1), (2, 2))  # the second was called again: its turn may not have come


def test_what_an_interrupted_test_file_says_no_calls_of_keeps_its_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn inputs may accuse a kernel of what those of its tests exclude."""
    judged: list[str] = []

    def noted(judge: Judge, lowered: Lowered, snapshot: Path, *, silent: bool = False) -> JudgedSnapshot:
        judged.append((lowered.inputs or MadeInputs()).digest)
        return verdicts(judge, replace(lowered, inputs=None), snapshot, silent=silent)

    verdicts = Judge._verdicts
    monkeypatch.setattr(Judge, "_verdicts", noted)
    called = Lowered(make_run(), RIGHT, inputs=MadeInputs(digest="calls"))
    with Judge(Policy(), NOTHING, 2) as judge:
        judge.anticipate(called)
        ((_, early),) = judge._early.values()
        early.result()
        ((_, found),) = judge.each([replace(called, inputs=None)])
    assert judged == ["calls"]
    assert found.failure is None


def test_an_interruption_leaves_the_verdicts_of_a_kernels_first_calls() -> None:
    wrong = Lowered(make_run(), WRONG)
    with Judge(Policy(), NOTHING, 2) as judge:
        judge.anticipate(wrong)
        ((_, early),) = judge._early.values()
        early.result()
        judge.stop()
        called_again = replace(wrong, inputs=MadeInputs(digest="more calls"))
        ((_, known), (_, unknown)) = judge.each([called_again, Lowered(make_run(), RIGHT)])
    assert known.count("refuted") == 1
    assert unknown.failure is not None
    assert unknown.failure.kind == "interrupted"


def test_an_early_kernel_waits_for_a_process_like_any_other() -> None:
    with Judge(Policy(), NOTHING, 1) as judge, judge._room:
        judge.anticipate(Lowered(make_run(), RIGHT))
        ((_, early),) = judge._early.values()
        with pytest.raises(TimeoutError):
            early.result(0.2)
        assert not judge._all


def test_a_process_that_dies_is_the_failure_of_one_kernel() -> None:
    with Judge(Policy(), NOTHING, 1) as judge:
        assert judge(Lowered(make_run(), RIGHT)).failure is None
        (process,) = judge._all
        assert isinstance(process, JudgingProcess)
        os.kill(process._process.pid, signal.SIGKILL)
        failure = judge(Lowered(make_run(), WRONG)).failure
        assert failure is not None
        assert (failure.kind, failure.phase) == ("killed", "check")
        assert failure.message == "judging ended with signal SIGKILL"
        assert judge(Lowered(make_run(), WRONG)).count("refuted") == 1
        assert len(judge._all) == 2


def test_a_process_that_cannot_start_is_a_failure_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "_START", "raise SystemExit(5)")
    with Judge(Policy(), NOTHING, 1) as judge:
        failure = judge(Lowered(make_run(), RIGHT)).failure
    assert failure is not None
    assert (failure.kind, failure.message) == ("crash", "judging ended with exit code 5")


def test_a_file_that_is_no_snapshot_is_a_failure(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with Judge(Policy(), NOTHING, 1) as judge:
        failure = judge(Lowered(make_run(), broken)).failure
    assert failure is not None
    assert failure.kind == "internal"


def test_no_process_is_left(tmp_path: Path) -> None:
    """Also where the caller is interrupted."""

    def interrupted() -> Iterator[Lowered]:
        yield Lowered(make_run(), WRONG)
        yield Lowered(make_run(), INVARIANT)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Judge(Policy(), NOTHING, 2) as judge:
        list(judge.each(interrupted()))
    started = [process for process in judge._all if isinstance(process, JudgingProcess)]
    assert len(started) == len(judge._all)
    assert all(process._process.poll() is not None for process in started)


def test_what_cannot_be_read_of_an_expectation_is_bad_usage() -> None:
    run = make_run(expects=[Expect(releases="~0.1", rule="TLA001")])
    with pytest.raises(UsageError, match=r"k\.py::case: "), Judge(Policy(), NOTHING, 1) as judge:
        judge(Lowered(run, RIGHT))


def test_processes_start_as_they_are_needed() -> None:
    with Judge(Policy(), NOTHING, 8) as judge:
        assert not judge._all
        judge(Lowered(make_run(), RIGHT))
        judge(Lowered(make_run(), RIGHT))
        assert len(judge._all) == 1
