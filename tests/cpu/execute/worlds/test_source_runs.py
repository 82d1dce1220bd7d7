"""A source runs once for all kernels that are lowered from an equal one, and no other kernel takes its run."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tlcheck.execute
from tests.cpu.execute.ops.tile.building import Kernel, load
from tests.cpu.execute.worlds.test_courses import RAGGED, sum_of_squares
from tests.cpu.mutations.lowered import lowered_mutants
from tlcheck.execute.compare.both_levels import execute
from tlcheck.execute.request import Request
from tlcheck.execute.worlds import source_runs
from tlcheck.execute.worlds.invocation import Invocation
from tlcheck.execute.worlds.source_runs import SourceRuns
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Expr, Snapshot, Store

Count = Callable[[], int]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Count:
    """Return how often a source has run since it was last asked; not with numbers changed, over a field, or watched."""
    found: list[bool] = []
    run = Invocation.run

    def counted(self: Invocation, *observing: object) -> None:
        options = self.options
        found.append(options.source and not options.plain and not options.jitter and options.field is None)
        run(self, *observing)  # type: ignore[arg-type]

    def count() -> int:
        ran = sum(found)
        found.clear()
        return ran

    monkeypatch.setattr(Invocation, "run", counted)
    return count


def rounded(call: str, release: str = "0.1.15", factor: float = 1.0) -> Snapshot:
    """C is what a function makes of A, times a number; as lowered without the number."""
    made = Kernel(threads=32)
    a, c = made.tensor("A", "float32", [32]), made.tensor("C", "float32", [32])
    value = Expr("call", "float32", (load(a, made.tx),), call)
    written = Expr("mul", "float32", (value, Expr("float", "float32", (), factor)))
    snapshot = made.snapshot([Store(c, (made.tx,), written)], [Store(c, (made.tx,), value)])
    return replace(snapshot, toolchain={"tilelang": release})


def verdicts(snapshot: Snapshot, request: Request) -> list[str]:
    return [outcome.verdict for outcome in execute(snapshot, request).outputs]


@pytest.mark.slow
def test_kernels_of_an_equal_source_are_judged_with_one_run_of_it(runs: Count) -> None:
    right, wrong = sum_of_squares(1), sum_of_squares(2)
    one_seed = Request(seeds=(0,))
    alone = execute(right, one_seed), execute(wrong, one_seed)
    assert runs() > 2
    request = replace(one_seed, sources=SourceRuns())
    first = execute(right, request)
    assert runs() > 0
    again = execute(codec.loads(codec.dumps(replace(wrong, toolchain={"tilelang": "0.1.9"}))), request)
    assert runs() == 0
    for one, other in zip(alone, (first, again), strict=True):
        assert [(o.name, o.verdict, o.reason) for o in one.outputs] == [
            (o.name, o.verdict, o.reason) for o in other.outputs
        ]
        assert (one.digest, one.statements, one.unreached) == (other.digest, other.statements, other.unreached)
    assert [o.verdict for o in again.outputs] == ["refuted"]


def test_a_mutant_is_refuted_as_it_is_alone() -> None:
    request = Request(sources=SourceRuns())
    assert execute(RAGGED, request).is_clean
    mutants = lowered_mutants(RAGGED.checkpoints["device-tir"])
    mutant = next(m for m in mutants if m.name == "delete mbarrier_wait_parity 0")
    changed = replace(RAGGED, checkpoints={**RAGGED.checkpoints, "device-tir": mutant.function})
    found, alone = execute(changed, request), execute(changed)
    assert not found.is_clean
    assert [(o.name, o.verdict) for o in found.outputs] == [(o.name, o.verdict) for o in alone.outputs]
    assert (found.races, found.illegal is None) == (alone.races, alone.illegal is None)


def given(value: float) -> Mapping[int, Mapping[str, np.ndarray]]:
    return {0: {"A": np.full(32, value), "C": np.zeros(32)}}


@pytest.mark.parametrize(
    "other",
    [
        lambda snapshot, request: (rounded("floor", factor=2.0), request),
        lambda snapshot, request: (rounded("ceil"), request),
        lambda snapshot, request: (replace(snapshot, target="sm_80"), request),
        lambda snapshot, request: (snapshot, replace(request, seeds=(3,))),
        lambda snapshot, request: (snapshot, replace(request, given=given(0.5), seeds=(0,))),
    ],
    ids=["another number", "another function", "another target", "another seed", "given inputs"],
)
def test_another_source_or_input_is_another_run(
    other: Callable[[Snapshot, Request], tuple[Snapshot, Request]], runs: Count
) -> None:
    snapshot, request = rounded("floor"), Request(sources=SourceRuns())
    assert verdicts(snapshot, request) == ["agreed"]
    runs()
    changed, asked = other(snapshot, request)
    found = verdicts(changed, asked)
    assert runs() > 0
    assert found == verdicts(changed, replace(asked, sources=None))


def test_a_case_s_own_inputs_are_compared_and_not_only_their_shapes(runs: Count) -> None:
    request = Request(seeds=(0,), given=given(0.5), sources=SourceRuns())
    snapshot = rounded("floor", factor=2.0)
    assert verdicts(snapshot, request) == ["agreed"]  # twice 0 is 0
    assert verdicts(snapshot, replace(request, given=given(1.5))) == ["refuted"]
    runs()
    assert verdicts(snapshot, replace(request, given=given(1.5))) == ["refuted"]
    assert runs() == 0


@pytest.mark.parametrize(("call", "again"), [("floor", 0), ("round", 1)])
def test_what_releases_understand_differently_runs_for_each(call: str, again: int, runs: Count) -> None:
    """T.round means another thing before 0.1.11."""
    request = Request(sources=SourceRuns())
    execute(rounded(call, "0.1.9"), request)
    runs()
    execute(rounded(call, "0.1.15"), request)
    assert (runs() > 0) == bool(again)
    execute(rounded(call, "0.1.9"), request)
    assert runs() == 0


def test_whoever_asks_for_the_release_is_noted() -> None:
    """Only `KernelProgram.release` reads it."""
    folder = Path(tlcheck.execute.__file__).parent
    direct = [p.name for p in folder.rglob("*.py") if re.search(r"options\.release\b", p.read_text())]
    assert direct == ["program.py"]


@pytest.mark.parametrize("bound", ["_BYTES", "_MOST"])
def test_what_is_kept_is_bounded(bound: str, runs: Count, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_runs, bound, 0)
    request = Request(sources=SourceRuns())
    execute(rounded("floor"), request)
    runs()
    execute(rounded("floor"), request)
    assert runs() > 0


def test_runs_stay_in_their_process() -> None:
    """A request is sent to the processes that judge, and its `repr` names kept verdicts."""
    request = Request(sources=SourceRuns())
    execute(rounded("floor"), request)
    assert len(pickle.dumps(request)) < 10_000
    assert repr(request) == repr(Request())
    assert request == Request()
