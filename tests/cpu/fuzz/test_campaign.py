"""A campaign with benches that answer at once: what counts, what is kept, what goes on."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tlcheck.errors import UsageError
from tlcheck.fuzz import campaign as campaigns
from tlcheck.fuzz.bench import Judged
from tlcheck.fuzz.campaign import Campaign, CampaignPlan
from tlcheck.fuzz.campaign_folder import CampaignFolder, Met
from tlcheck.fuzz.outcome import outcome
from tlcheck.report.fuzz_index import write
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.claim import Claim, Finding, FindingOrigin, SourceLine
from tlcheck.verdicts.kept import Verdicts
from tlcheck.witness import Element
from tlcheck.worker.jobs import LowerJob
from tlcheck.worker.protocol import PASS_CONFIG, Answer, Failure

TOOLCHAIN = Toolchain("0.1.15", "release", Path("python"))


def claim(kind: Any = "output", verdict: Any = "agreed", line: int = 0, rule: str = "TLO001") -> Claim:
    finding = None
    if verdict == "refuted":
        origin = FindingOrigin("unwritten", line, 0, ("O",), "")
        witness = Element((0,), "1", "2", "")
        finding = Finding(rule, "", "", (), "device-tir", "tl.Pass", "O is wrong", witness, "", origin=origin)
    return Claim(kind, "O", "O", SourceLine("k.py", line, exact=True), verdict, "execution", finding=finding)


def judged(*claims: Claim, failure: Failure | None = None) -> Judged:
    return Judged(None, Verdicts(claims, failure), frozenset(["gemm_ss"]), 0.5, 1.0)


REFUSED = Judged(Failure("exception", "lower", "tl.LayoutInference: no layout for f12"), None, frozenset(), 0.2, 0.3)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., CampaignFolder]:
    """Run a campaign whose kernel number n is judged as the n-th of the answers."""

    def made(answers: list[Judged], folder: Path = tmp_path / "out", **plan: Any) -> CampaignFolder:
        class FuzzBench:
            def __init__(self, *_: Any) -> None: ...
            def close(self) -> None: ...
            def judged(self, text: str, name: str, arch: str, keep: Path | None = None) -> Judged:
                if keep is not None:
                    keep.write_text("{}")
                answer = answers.pop(0)
                if not answers:
                    working.stop()
                return answer

        monkeypatch.setattr(campaigns, "FuzzBench", FuzzBench)
        kept = CampaignFolder(folder, "0.1.15")
        working = Campaign(CampaignPlan(TOOLCHAIN, ("sm_80", "sm_90"), **plan), kept, 1)
        working.run(60)
        return kept

    return made


def test_outcomes_are_sorted_by_whose_fault_it_is() -> None:
    text = "x = 1\n"
    assert outcome(REFUSED, text).sort == "refused"
    assert outcome(Judged(Failure("crash", "lower", "SIGSEGV")), text).sort == "crashed"
    assert outcome(judged(claim()), text).sort == "agreed"
    assert outcome(judged(claim(), claim(verdict="undecided")), text).sort == "undecided"
    assert outcome(judged(), text).sort == "undecided"
    assert outcome(judged(claim(verdict="refuted")), text).sort == "refuted"
    assert outcome(judged(failure=Failure("internal", "check", "IndexError")), text).sort == "failed"


def test_a_claim_in_which_tlcheck_fails_is_a_failure() -> None:
    inside = replace(claim(verdict="undecided"), code="U041", reason="tlcheck itself failed: KeyError: -4")
    found = outcome(judged(claim(verdict="refuted"), inside), "x = 1\n")
    assert (found.sort, found.what) == ("failed", "tlcheck itself failed: KeyError: -4")


def test_a_source_at_fault_counts_for_nothing() -> None:
    both = judged(claim(verdict="refuted"), claim("source", "refuted", rule="TLS001"))
    assert outcome(both, "x = 1\n").sort == "author"


@pytest.mark.parametrize("rule", ["TLA013", "TLL003"])
def test_what_is_refused_before_it_runs_does_not_say_how_the_rest_is_wrong(rule: str) -> None:
    """By nvcc, or by the launch."""
    loud, silent = claim("atomic", "refuted", rule=rule), claim(verdict="refuted")
    assert outcome(judged(loud), "x = 1\n").sort == "refused"
    assert [shows.rule for shows in outcome(judged(loud, silent), "x = 1\n").symptoms] == ["TLO001"]


def test_an_atomic_that_is_spelled_wrong_is_the_authors() -> None:
    spelled = claim(verdict="refuted")
    assert spelled.finding is not None
    own = replace(spelled, finding=replace(spelled.finding, blame="author"))
    assert outcome(judged(own), "x = 1\n").sort == "author"


def test_a_finding_is_known_by_the_statement_and_not_by_the_line() -> None:
    text = "for i in T.Parallel(4):\n    s[i] = 1\nfor i in T.Parallel(8):\n    s[i] = 2\nT.copy(s, O)\n"
    first, second, third = (outcome(judged(claim(verdict="refuted", line=n)), text).symptoms for n in (2, 4, 5))
    assert first == second != third
    assert "T.copy" in third[0].words


def test_findings_are_kept_once_and_counted(run: Callable[..., CampaignFolder]) -> None:
    wrong, other = judged(claim(verdict="refuted")), judged(claim(verdict="refuted", rule="TLO002"))
    folder = run([judged(claim()), wrong, wrong, REFUSED, other])
    assert [(f.shows.rule, f.count, f.number, f.arch) for f in folder.state.found] == [
        ("TLO001", 2, 1, "sm_90"),
        ("TLO002", 1, 4, "sm_80"),
    ]
    assert all(folder.kernel(found).exists() for found in folder.state.found)
    assert folder.state.sorts == {"agreed": 1, "refuted": 3, "refused": 1}


def test_known_findings_are_told_when_they_are_met(
    run: Callable[..., CampaignFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first kernel is kept; another finding that shows alike is no known one."""
    monkeypatch.setattr(campaigns, "known", lambda shows, *_: {"TLO001": "loop"}.get(shows.rule, ""))
    wrong, other = judged(claim(verdict="refuted")), judged(claim(verdict="refuted", rule="TLO002"))
    folder = run([judged(claim()), other, wrong, wrong])
    assert folder.state.met == {"loop": Met(2, 3, 3.0, 2)}
    assert (folder.path / "known" / "loop.py").exists()
    assert [(f.shows.rule, f.known, f.count) for f in folder.state.found] == [("TLO002", "", 1), ("TLO001", "loop", 2)]
    again = CampaignFolder(folder.path, "0.1.15")
    assert again.state.met == folder.state.met
    write(again)
    assert "| loop | 2 | 3 | 0.1 | 2 |" in (folder.path / "index.md").read_text()


def test_the_lowering_says_which_release_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A toolchain that is named `current` has the known findings of its release, and no others."""

    class KernelBench:
        def __init__(self, *_: Any) -> None: ...
        def close(self) -> None: ...
        def lowered(self, side: int, job: LowerJob) -> Answer:
            Path(job.output).write_text("{}")
            return Answer({}, None, 0.0, 0.0, "")

        def verdicts(self, *_: Any) -> Verdicts:
            return Verdicts((claim(verdict="refuted"),))

        def release(self, side: int) -> str:
            working.stop()
            return "0.1.14"

    told: list[str] = []
    monkeypatch.setattr("tlcheck.fuzz.bench.KernelBench", KernelBench)
    monkeypatch.setattr(campaigns, "known", lambda shows, says, text, release: told.append(release))
    plan = CampaignPlan(Toolchain("current", "interpreter", Path("python")), ("sm_80",))
    working = Campaign(plan, CampaignFolder(tmp_path, "current"), 1)
    working.run(60)
    assert told == ["0.1.14"]


def test_what_does_not_count_reaches_nothing(run: Callable[..., CampaignFolder]) -> None:
    folder = run([REFUSED, judged(claim("source", "refuted"))])
    assert not folder.state.reached
    assert not folder.state.calls
    assert sum(folder.state.reasons.values()) == 2
    folder = run([judged(claim())])
    assert folder.state.calls == {"gemm_ss": 1}
    assert folder.state.reached["T.Kernel"] == 1


def test_a_campaign_goes_on_where_it_ended(run: Callable[..., CampaignFolder]) -> None:
    wrong = judged(claim(verdict="refuted"))
    first = run([judged(claim()), wrong])
    again = run([wrong, judged(claim())])
    assert first.state.next == 2
    assert again.state.next == 4
    assert [found.count for found in again.state.found] == [2]
    lines = [json.loads(line) for line in (again.path / "log.jsonl").read_text().splitlines()]
    assert [(number, sort) for number, _, sort, *_ in lines] == [
        (0, "agreed"), (1, "refuted"), (2, "refuted"), (3, "agreed"),
    ]  # fmt: skip


def test_the_same_call_again_goes_on_too(tmp_path: Path) -> None:
    folder = CampaignFolder(tmp_path, "0.1.15")
    folder.begin_at(1000)
    folder.state.next += 7
    folder.save()
    again = CampaignFolder(tmp_path, "0.1.15")
    again.begin_at(1000)
    assert again.state.next == 1007
    again.begin_at(2000)
    assert again.state.next == 2000


def test_a_finding_says_what_the_other_release_makes_of_it(run: Callable[..., CampaignFolder]) -> None:
    folder = run([judged(claim(verdict="refuted")), judged(claim())], against=TOOLCHAIN)
    assert [found.against for found in folder.state.found] == ["agreed"]


def test_snapshots_are_exported_of_what_counts(run: Callable[..., CampaignFolder], tmp_path: Path) -> None:
    run([judged(claim()), judged(claim("source", "refuted")), judged(claim(verdict="refuted"))], kept=tmp_path)
    assert sorted(file.name for file in tmp_path.glob("*.json")) == ["000000.snapshot.json", "000002.snapshot.json"]


def test_a_campaign_sets_pass_configurations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user hears of one that the release does not have, and not once for each kernel."""
    jobs: list[LowerJob] = []

    class KernelBench:
        def __init__(self, *_: Any) -> None: ...
        def close(self) -> None: ...
        def lowered(self, place: int, job: LowerJob) -> Answer:
            jobs.append(job)
            return Answer(None, Failure(PASS_CONFIG, "build", "there is none"), 0.0, 0.0, "")

    monkeypatch.setattr("tlcheck.fuzz.bench.KernelBench", KernelBench)
    plan = CampaignPlan(TOOLCHAIN, ("sm_80",), pass_configs={"TL_X": "True"})
    with pytest.raises(UsageError, match="there is none"):
        Campaign(plan, CampaignFolder(tmp_path, "0.1.15"), 1).run(60)
    assert [job.pass_configs for job in jobs] == [{"TL_X": "True"}]


def test_a_folder_is_of_one_release(tmp_path: Path) -> None:
    CampaignFolder(tmp_path, "0.1.15").save()
    with pytest.raises(UsageError, match=r"is of TileLang 0\.1\.15, not 0\.1\.14"):
        CampaignFolder(tmp_path, "0.1.14")
    (tmp_path / "state.json").write_text("[]")
    with pytest.raises(UsageError, match="not the state of a campaign"):
        CampaignFolder(tmp_path, "0.1.15")
