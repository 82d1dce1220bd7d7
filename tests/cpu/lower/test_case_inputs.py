"""The inputs of cases: made once for all archs and toolchains, and not at all where nobody reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.cpu.checking import StandInWorker, declared, make_run, put_in_place
from tests.cpu.lower.test_session import Watcher
from tlcheck.lower.cached import AnsweredJob
from tlcheck.lower.case_inputs import CaseInputs, InputsRequest
from tlcheck.lower.runs import Lowered, MadeInputs
from tlcheck.lower.selection import Selection
from tlcheck.lower.session import Session, Settings
from tlcheck.worker.jobs import InputsJob, Job, output_of, task_of
from tlcheck.worker.protocol import Answer, Failure

MADE = {"sets": [[0, [0]]], "where": "k.py:1", "updates": None, "digest": "d1"}
FAILED = Failure("exception", "inputs", "no")


@dataclass(eq=False)
class Maker(StandInWorker):
    """Makes inputs too. takes: the kernel's parameters, by arch. able: whether it can."""

    takes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    able: bool = True

    @property
    def made(self) -> list[InputsJob]:
        """The jobs that it had to make inputs."""
        return [job for job in self.jobs if isinstance(job, InputsJob)]

    def _answer(self, job: Job) -> Answer:
        if task_of(job) != "inputs":
            return super()._answer(job)
        Path(output_of(job)).write_text("numbers")
        return Answer(MADE, None, 0.0, 0.0, "") if self.able else Answer(None, FAILED, 0.0, 0.0, "")

    def _lower(self, job: Job) -> dict[str, Any]:
        return {**super()._lower(job), "parameters": self.takes.get(job.arch, ())}


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Maker]:
    """Two toolchains."""
    files = {"k.py": (replace(declared("a"), inputs=True),)}
    found = {"old": Maker("0.1.7", files), "new": Maker("0.1.15", files)}
    put_in_place(monkeypatch, found)
    return found


@pytest.fixture
def lower(workers: dict[str, Maker], tmp_path: Path) -> Callable[[], list[Lowered]]:
    """`k.py::a` with both, one after the other, in the order of reports."""

    def run() -> list[Lowered]:
        made = Session(Settings(seeds=(0,), jobs=1), tmp_path, Watcher())
        selections = [Selection(Path("k.py"), "", name) for name in workers]
        return sorted(made.lower(selections), key=lambda done: done.run.position)

    return run


def test_all_archs_and_toolchains_get_the_same(workers: dict[str, Maker], lower: Callable[[], list[Lowered]]) -> None:
    found = lower()
    assert [(one.run.toolchain, one.run.target) for one in found] == [
        ("old", "sm_80"), ("old", "sm_90"), ("new", "sm_80"), ("new", "sm_90")
    ]  # fmt: skip
    (job,) = [job for worker in workers.values() for job in worker.made]
    for one in found:
        assert one.inputs is not None
        assert one.inputs.given is not None
        assert (one.inputs.given.file, one.inputs.digest) == (output_of(job), "d1")


def test_kernels_that_take_other_parameters_have_their_own(
    workers: dict[str, Maker], lower: Callable[[], list[Lowered]]
) -> None:
    workers["new"].takes = {"sm_90": ("float16 ['64']",)}
    found = lower()
    assert sorted(job.parameters for worker in workers.values() for job in worker.made) == [(), ("float16 ['64']",)]
    files = [one.inputs.given.file for one in found if one.inputs and one.inputs.given]
    assert files[0] == files[1] == files[2] != files[3]


@pytest.mark.parametrize("unable", ["old", "new"])
def test_a_toolchain_that_cannot_make_them_fails_alone(
    workers: dict[str, Maker], lower: Callable[[], list[Lowered]], unable: str
) -> None:
    workers[unable].able = False
    found = lower()
    failed = {one.run.toolchain for one in found if one.inputs and one.inputs.failure}
    assert failed <= {unable}
    assert all(one.inputs for one in found)


def test_what_waits_for_inputs_is_answered_where_the_user_ends_it(
    workers: dict[str, Maker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Session(Settings(seeds=(0,), jobs=1), tmp_path, Watcher())
    monkeypatch.setattr(Maker, "_answer", _stopping(made, Maker._answer))
    found = list(made.lower([Selection(Path("k.py"), "", "old")]))
    assert [one.inputs.failure.kind for one in found if one.inputs and one.inputs.failure] == ["interrupted"] * 2
    assert len(workers["old"].made) == 1


def _stopping(made: Session, first: Callable[[Maker, Job], Answer]) -> Callable[[Maker, Job], Answer]:
    """The user ends a session while inputs are made."""

    def answer(worker: Maker, job: Job) -> Answer:
        if task_of(job) != "inputs":
            return first(worker, job)
        made.stop()
        return Answer(None, Failure("interrupted", "inputs", "interrupted"), 0.0, 0.0, "")

    return answer


@dataclass
class Asked:
    """A record of what `CaseInputs` has asked for. judged: the archs whose verdicts are known."""

    judged: tuple[str, ...]
    folder: Path
    jobs: list[tuple[Job, str, bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.inputs = CaseInputs(self._ask, self._knows)

    def _ask(self, one: InputsRequest, key: str, anew: bool) -> None:
        self.jobs.append((one.job, key, anew))

    def _knows(self, lowered: Lowered) -> bool:
        assert lowered.inputs == MadeInputs(digest="d1")
        return lowered.run.target in self.judged

    def want(self, arch: str) -> list[Lowered]:
        job = InputsJob("k.py", "a", arch=arch, seeds=(), output=str(self.folder / arch))
        return list(self.inputs.request(InputsRequest(Lowered(make_run(target=arch)), job)))

    def end(self, *, known: bool) -> list[Lowered]:
        job, key, _ = self.jobs[-1]
        return list(
            self.inputs.ended(key, AnsweredJob(job, Answer(MADE, None, 0, 0, ""), {}, "", known), stopped=False)
        )


def targets(found: list[Lowered]) -> list[str]:
    return [one.run.target for one in found]


def test_large_ones_that_an_earlier_run_has_made_are_not_made_for_known_verdicts(tmp_path: Path) -> None:
    asked = Asked(("sm_80", "sm_90"), tmp_path)
    assert asked.want("sm_80") == []
    found = asked.end(known=True) + asked.want("sm_90")
    assert targets(found) == ["sm_80", "sm_90"]
    assert [one.inputs for one in found] == [MadeInputs(digest="d1")] * 2
    assert len(asked.jobs) == 1


def test_they_are_made_again_for_the_first_kernel_without_a_verdict(tmp_path: Path) -> None:
    asked = Asked(("sm_80",), tmp_path)
    for arch in ("sm_80", "sm_90", "sm_100"):
        assert asked.want(arch) == []
    assert targets(asked.end(known=True)) == ["sm_80"]
    assert [(job.arch, anew) for job, _, anew in asked.jobs] == [("sm_80", False), ("sm_90", True)]
    found = asked.end(known=False)
    assert targets(found) == ["sm_90", "sm_100"]
    assert {one.inputs.given.file for one in found if one.inputs and one.inputs.given} == {str(tmp_path / "sm_90")}
    assert targets(asked.want("sm_80")) == ["sm_80"]
