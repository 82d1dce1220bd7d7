"""A trial on a cluster: its nodes lower and judge the text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from tests.cpu.checking import make_atomic
from tlcheck.cache.store import Cache
from tlcheck.execute.request import Request
from tlcheck.lower.client import Worker
from tlcheck.lower.machines import MachinePool
from tlcheck.remedy.reduction_trials import Benches, TrialBench, Trials, WantedFinding
from tlcheck.toolchain.resolve import Toolchain
from tlcheck.verdicts.kept import Verdicts, dumps
from tlcheck.worker.jobs import LowerJob

WRONG = replace(make_atomic("refuted", rule="TLO001"), kind="output")
RIGHT = replace(make_atomic("agreed"), kind="output")


class Cluster:
    """Lowers what `known` names with a release; a snapshot is the name of the release."""

    processors = 7

    def __init__(self, known: tuple[str, ...]) -> None:
        self.known = known

    def lowered(self, worker: Worker, job: LowerJob) -> bytes:
        release = worker.python.name
        assert Path(job.file).read_text() == "a kernel"
        return release.encode() if release in self.known else b""

    def judge(self) -> Cluster:
        return self

    def verdicts(self, snapshot: Path, *_: object) -> bytes:
        return dumps(Verdicts((WRONG if snapshot.read_text() == "0.1.9" else RIGHT,)))


@pytest.mark.parametrize(
    ("releases", "known", "is_shown"),
    [
        (("0.1.9", "0.1.10"), ("0.1.9", "0.1.10"), True),
        (("0.1.9", "0.1.10"), ("0.1.9",), False),
        (("0.1.9", "0.1.10"), ("0.1.10",), False),
        (("0.1.10", "0.1.9"), ("0.1.9", "0.1.10"), False),
    ],
)
def test_a_cluster_lowers_and_judges(
    tmp_path: Path, releases: tuple[str, ...], known: tuple[str, ...], is_shown: bool
) -> None:
    toolchains = tuple(Toolchain(name, "release", Path(name)) for name in releases)
    cluster = cast(MachinePool, Cluster(known))
    job = LowerJob("", "", output="", arch="sm_80")
    trials = Trials(WantedFinding.of(WRONG), "f", toolchains, Request(), job, cast(Any, None), cluster=cluster)
    assert trials.processors(None) == 7
    assert TrialBench(trials, tmp_path, {}).shows("a kernel") == is_shown


def test_a_text_is_tried_once_also_where_nothing_is_kept(tmp_path: Path) -> None:
    cluster = Cluster(("0.1.9",))
    toolchains = (Toolchain("0.1.9", "release", Path("0.1.9")),)
    job = LowerJob("", "", output="", arch="sm_80")
    trials = Trials(WantedFinding.of(WRONG), "f", toolchains, Request(), job, Cache(None), cluster=cast(Any, cluster))
    benches = Benches(trials, 1, tmp_path, {})
    assert benches.shows("a kernel")
    assert benches.shows("a kernel")
    assert benches.tried == 1
