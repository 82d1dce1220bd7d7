"""A search ends with the smallest change that helps, and says what else was tried."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.cpu import wrong_kernels
from tests.cpu.checking import installed, make_atomic, make_finding, make_run
from tlcheck.cli.main import main
from tlcheck.lower.runs import Lowered
from tlcheck.lower.selection import Variation
from tlcheck.lower.session import Settings
from tlcheck.remedy import search as module
from tlcheck.remedy.kernel_changes import KernelChange
from tlcheck.remedy.search import ALIKE, FAILS, MENDS, OPEN, WRONG, Attempt, WorkaroundSearch, WrongKernel, _trial
from tlcheck.report import fix_json, fix_text
from tlcheck.report.console import console
from tlcheck.verdicts.claim import Claim, Verdict
from tlcheck.verdicts.judge import Policy
from tlcheck.verdicts.results import Result
from tlcheck.worker.protocol import Failure, interrupted


def claim(verdict: Verdict = "refuted", key: str = "C") -> Claim:
    finding = make_finding("TLO001") if verdict == "refuted" else None
    return replace(make_atomic(), kind="output", key=key, buffer=key, verdict=verdict, finding=finding)


KERNEL = WrongKernel(Result(make_run(), (claim(), claim("undecided", "D"))), cast(Any, None))


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Search where these changes have these outcomes, and all others change nothing."""

    def searched(outcomes: Mapping[str, str], *, everything: bool = False, whole: Any = None) -> module.Workarounds:
        def judged(
            self: object, wrong: WrongKernel, wanted: Sequence[KernelChange], *, brief: bool
        ) -> dict[KernelChange, Attempt]:
            return {change: Attempt(change, outcomes.get(change.words, ALIKE)) for change in wanted}

        monkeypatch.setattr(WorkaroundSearch, "_judged", judged)
        monkeypatch.setattr(module, "installed_around", lambda *_: (["0.1.8"], ["0.1.10", "0.1.11"]))
        watcher = cast(Any, SimpleNamespace(goal=lambda text: None))
        search = WorkaroundSearch(Settings(), Policy(), tmp_path, watcher, everything, whole=whole)
        kernel = replace(KERNEL, result=replace(KERNEL.result, run=replace(make_run(), numbers={"stages": "2"})))
        return search.search(kernel)

    return searched


def test_the_first_kind_that_helps_is_the_last_that_is_tried(searched: Any) -> None:
    found = searched({"TL_DISABLE_WGMMA=True": MENDS, "stages=1": MENDS, "TileLang 0.1.10": MENDS})
    assert [trial.change.words for trial in found.found] == ["TL_DISABLE_WGMMA=True"]
    found = searched({"stages=0": MENDS, "TileLang 0.1.10": MENDS})
    assert [trial.change.words for trial in found.found] == ["stages=0"]
    found = searched({"TileLang 0.1.11": MENDS, "TileLang 0.1.8": MENDS})
    assert [trial.change.words for trial in found.found] == ["TileLang 0.1.11"], "newer ones first, the nearest first"


def test_a_change_that_mends_the_small_kernel_alone_does_not_help(searched: Any) -> None:
    outcomes = {"TL_DISABLE_WGMMA=True": MENDS, "stages=1": MENDS, "TileLang 0.1.10": MENDS}
    found = searched(outcomes, whole=lambda change: Attempt(change, MENDS if change.words == "stages=1" else WRONG))
    assert [trial.change.words for trial in found.found] == ["stages=1"]
    assert {t.change.words: t.outcome for t in found.trials}["TL_DISABLE_WGMMA=True"] == WRONG


def test_everything_is_tried_where_that_is_asked_for(searched: Any) -> None:
    outcomes = {"TL_DISABLE_WGMMA=True": MENDS, "stages=1": MENDS, "TileLang 0.1.8": MENDS}
    assert [trial.change.words for trial in searched(outcomes, everything=True).found] == list(outcomes)


def test_what_is_likely_to_help_is_executed_once(monkeypatch: pytest.MonkeyPatch, searched: Any) -> None:
    asked: list[tuple[int, bool]] = []
    searched({})

    def judged(self: object, wrong: WrongKernel, wanted: Sequence[KernelChange], *, brief: bool) -> Any:
        asked.append((len(wanted), brief))
        return {change: Attempt(change, MENDS) for change in wanted}

    monkeypatch.setattr(WorkaroundSearch, "_judged", judged)
    search = WorkaroundSearch(Settings(), Policy(), Path(), cast(Any, SimpleNamespace(goal=lambda text: None)))
    search.search(replace(KERNEL, result=replace(KERNEL.result, pass_configs={"tl.disable_wgmma": "True"})))
    assert asked == [(1, False)]
    asked.clear()
    search.search(KERNEL)
    assert asked == [(8, True), (8, False)]


def test_what_the_user_has_ended_is_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    changes = [KernelChange("pass config", Variation(pass_configs=((name, "True"),))) for name in ("A", "B")]
    failures = [interrupted("lower"), Failure("exception", "lower", "no such tile")]
    lowered = [Lowered(replace(make_run(), position=(n,)), failure=failure) for n, failure in enumerate(failures)]
    judge = SimpleNamespace(each=lambda found: [(one, None) for one in found])
    checks = SimpleNamespace(judge=judge, session=SimpleNamespace(lower=lambda selections: lowered), stop=None)
    monkeypatch.setattr(module, "checking", lambda *_: nullcontext(checks))
    search = WorkaroundSearch(Settings(), Policy(), tmp_path, cast(Any, None))
    trials = search._judged(KERNEL, changes, brief=True)
    assert {change.words: trial.outcome for change, trial in trials.items()} == {"B=True": FAILS}


def test_pairs_are_tried_of_what_changes_the_kernel(searched: Any) -> None:
    some = {"TL_DISABLE_WGMMA=True": WRONG, "TIR_DISABLE_CSE=True": OPEN, "TL_DISABLE_TMA_LOWER=True": FAILS}
    found = searched({**some, "TL_DISABLE_WGMMA=True and TIR_DISABLE_CSE=True": MENDS})
    assert [trial.change.words for trial in found.found] == ["TL_DISABLE_WGMMA=True and TIR_DISABLE_CSE=True"]


@pytest.mark.parametrize(
    ("claims", "failure", "outcome"),
    [
        ((claim("refuted"),), None, WRONG),
        ((claim("agreed"), claim("refuted", "E")), None, WRONG),
        ((claim("undecided"),), None, OPEN),
        ((), None, OPEN),
        ((claim("agreed"),), Failure("internal", "check", "no"), OPEN),
        ((claim("agreed"), claim("undecided", "D")), None, MENDS),  # D was open before
        ((claim("agreed"), replace(claim("undecided", "D"), code="U017")), None, OPEN),  # and now for another reason
        ((claim("agreed"), replace(claim("refuted", "E"), kind="source")), None, WRONG),  # a fault that it had not
        ((claim("undecided", "D"),), None, OPEN),  # nothing of what was wrong is settled
    ],
)
def test_only_agreement_of_everything_mends(
    monkeypatch: pytest.MonkeyPatch, claims: tuple[Claim, ...], failure: Failure | None, outcome: str
) -> None:
    monkeypatch.setattr(module, "_costs", lambda *_: ())
    monkeypatch.setattr(module, "read_snapshot", lambda *_: None)
    result = Result(make_run(), claims, failure)
    assert _trial(KernelChange("release", release="0.1.9"), result, KERNEL, Path()).outcome == outcome


def test_what_is_printed(capsys: pytest.CaptureFixture[str], searched: Any) -> None:
    found = searched({"TL_DISABLE_WGMMA=True": MENDS, "TIR_DISABLE_CSE=True": WRONG})
    right = Result(make_run(), (claim("agreed"),))
    fix_text.write(console(), [found.kernel.result, right], [found])
    out = capsys.readouterr().out
    assert "  TL_DISABLE_WGMMA=True: all claims agree\n" in out
    assert "@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_WGMMA: True})  # TileLang" in out
    assert "C is wrong (TLO001) without it" in out
    assert out.endswith(": TileLang has nothing wrong in it\n")
    report = json.loads(fix_json.render([found.kernel.result, right], [found], 0))
    assert [one["change"] for one in report["kernels"][0]["tried"] if one["outcome"] == "mends"] == [
        "TL_DISABLE_WGMMA=True"
    ]


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.xdist_group("0.1.9")
def test_a_kernel_whose_copies_are_waited_for_too_late(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    installed("0.1.9")
    file = wrong_kernels.written("gemm", tmp_path)
    sizes = [word for size in ("m=32", "n=32", "k=160", "block=32") for word in ("--arg", size)]
    command = ["fix", f"{file}::gemm", *sizes, "--toolchain", "0.1.9", "--arch", "sm_80", "-q"]
    assert main(command) == 0
    assert "  TIR_USE_ASYNC_COPY=False: all claims agree\n" in capsys.readouterr().out
