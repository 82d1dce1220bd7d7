"""The gate says where two toolchains trace one file to two kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.checking import declared, put_in_place
from tests.cpu.execute.compare.test_sources import SourceKernel
from tests.cpu.gate.comparing import made as side_of
from tests.cpu.lower.test_case_inputs import Maker
from tlcheck.cache.store import Cache
from tlcheck.cli.progress import bar
from tlcheck.execute.compare import sources
from tlcheck.execute.memory import state
from tlcheck.execute.request import ALL, GivenInputs, Request
from tlcheck.gate.compare import outcomes
from tlcheck.gate.outcome import LoweredPair, OtherKernel
from tlcheck.gate.source_outcomes import compare_sources
from tlcheck.lower.runs import MadeInputs
from tlcheck.lower.session import Settings
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot
from tlcheck.verdicts.judging import verdicts_of
from tlcheck.verdicts.results import Result
from tlcheck.worker.jobs import name_of, output_of

FOUND = OtherKernel("B", (3, 4), "1.0", "2.0", 0, 8)


def pair_of(folder: Path, *snapshots: Snapshot) -> LoweredPair:
    files = [folder / f"{number}.json" for number in range(2)]
    for file, snapshot in zip(files, snapshots, strict=True):
        file.write_text(codec.dumps(snapshot))
    before, after = (
        replace(side_of("agreed", release=release), snapshot=file, digest=file.name)
        for file, release in zip(files, ("0.1.11", "0.1.12"), strict=True)
    )
    return LoweredPair("k.py", "case", "sm_90", before, after)


def asked(pair: LoweredPair, folder: Path, kept: Cache) -> OtherKernel | None:
    with bar() as watcher:
        (found,) = compare_sources([pair], Request(), Settings(), kept, folder, watcher)
    return found.traced


def test_other_outputs_of_the_kernels_as_written_are_weaker_without_a_reference(tmp_path: Path) -> None:
    kernel = SourceKernel()
    bx = kernel.kernel.bx
    one, other = (kernel.snapshot(kernel.store(bx, term)) for term in (1.0, 3.0))
    pair = pair_of(tmp_path, one, other)
    found = asked(pair, tmp_path, Cache(None))
    assert found is not None
    assert (found.buffer, found.index, found.before, found.after) == ("B", (0,), "", "")
    (outcome,) = outcomes(replace(pair, traced=found), one_toolchain=False)
    assert (outcome.klass, outcome.id, outcome.subject) == ("weaker", "weaker/as-written", "B")
    assert outcome.words.startswith("0.1.12 traces this file to another kernel: as written B[0] is ")
    assert outcome.words.endswith("; no reference says which is right")


def test_equal_outputs_are_no_difference(tmp_path: Path) -> None:
    kernel = SourceKernel()
    one, other = (kernel.snapshot(kernel.store(block, 1.0)) for block in (kernel.kernel.bx, kernel.mirrored))
    pair = pair_of(tmp_path, one, other)
    assert asked(pair, tmp_path, Cache(None)) is None
    assert outcomes(pair, one_toolchain=False) == ()


def test_blocks_with_other_parts_of_the_work_are_not_all_executed_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = SourceKernel()
    one, other = (kernel.snapshot(kernel.store(block, 1.0)) for block in (kernel.kernel.bx, kernel.mirrored))
    pair = pair_of(tmp_path, one, other)
    monkeypatch.setattr(sources, "_SECONDS", -1.0)
    monkeypatch.setattr(state, "_BETWEEN_TIMES", 0)
    found = asked(pair, tmp_path, Cache(tmp_path / "cache"))
    assert found is not None
    (outcome,) = outcomes(replace(pair, traced=found), one_toolchain=False)
    assert (outcome.klass, outcome.id) == ("weaker", "weaker/as-written")
    assert "takes more than is allowed (time): --blocks all" in outcome.words
    with bar() as watcher:
        (every,) = compare_sources([pair], Request(ALL), Settings(), Cache(tmp_path / "cache"), tmp_path, watcher)
    assert every.traced is None


@pytest.mark.parametrize("made", [GivenInputs("gone", (), "k.py:1"), None])
def test_inputs_that_are_not_there_are_made_again(
    made: GivenInputs | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has made large inputs if verdicts were known, and those of a node stay there."""
    worker = Maker(
        "0.1.11", {"k.py": (replace(declared("other"), inputs=True), replace(declared("case"), inputs=True))}
    )
    put_in_place(monkeypatch, {"0.1.11": worker})
    given: list[GivenInputs] = []

    def with_given(request: Request, snapshot: Snapshot, inputs: GivenInputs) -> Request:
        given.append(inputs)
        return request

    monkeypatch.setattr("tlcheck.verdicts.judging.with_given", with_given)
    kernel = SourceKernel()
    one, other = (kernel.snapshot(kernel.store(kernel.kernel.bx, term)) for term in (1.0, 3.0))
    pair = pair_of(tmp_path, one, other)
    assert pair.before is not None
    pair = replace(pair, before=replace(pair.before, inputs=MadeInputs(made, "d1")))
    with bar() as watcher:
        (found,) = compare_sources([pair], Request(), Settings(seeds=(0,)), Cache(None), tmp_path, watcher)
    assert found.traced is not None
    assert [(name_of(job), job.arch) for job in worker.made] == [("case", "sm_90")]
    assert [one.file for one in given] == [output_of(worker.made[0])]


@pytest.mark.parametrize("terms", [(1.0, 3.0), (1.0, 1.0)])
def test_the_answer_is_kept(terms: tuple[float, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = SourceKernel()
    blocks = kernel.kernel.bx, kernel.mirrored
    pair = pair_of(tmp_path, *(kernel.snapshot(kernel.store(b, t)) for b, t in zip(blocks, terms, strict=True)))
    (tmp_path / "first").mkdir()
    first = asked(pair, tmp_path / "first", Cache(tmp_path / "cache"))
    monkeypatch.setattr("tlcheck.execute.compare.sources.differing_output", lambda *_: pytest.fail("executed again"))
    (tmp_path / "second").mkdir()
    assert asked(pair, tmp_path / "second", Cache(tmp_path / "cache")) == first
    assert (first is None) == (terms[0] == terms[1])


@pytest.mark.parametrize(
    ("before", "after", "klass", "said"),
    [
        ("agrees", "differs", "wrong", "it agreed with the reference, and does not now"),
        ("differs", "agrees", "fixed", "it agrees with the reference now, and did not"),
        ("agrees", "agrees", "changed", "both agree with the reference"),
        ("differs", "differs", "weaker", "both differ from the reference"),
        ("agrees", "undecided", "weaker", "no reference says which is right"),
    ],
)
def test_a_reference_says_which_is_right(before: str, after: str, klass: str, said: str) -> None:
    sides = side_of("agreed", release="0.1.11"), side_of("agreed", release="0.1.12")
    pair = LoweredPair("k.py", "case", "sm_90", *sides, traced=replace(FOUND, before=before, after=after))
    (outcome,) = outcomes(pair, one_toolchain=False)
    assert outcome.klass == klass
    assert outcome.words == (
        "0.1.12 traces this file to another kernel: as written B[3, 4] is 2.0, was 1.0"
        f" (inputs of seed 0; 8 elements differ); {said}"
    )


def test_kernels_that_judging_has_found_to_leave_the_same_are_not_executed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = SourceKernel()
    one, other = (kernel.snapshot(kernel.store(kernel.kernel.bx, *terms)) for terms in ((1.0,), (0.0, 1.0)))
    pair = pair_of(tmp_path, one, other)
    assert pair.before is not None
    assert pair.after is not None
    judged = [
        replace(side, result=judge_source(side.result, file))
        for side, file in ((pair.before, one), (pair.after, other))
    ]
    asked_for: list[object] = []
    monkeypatch.setattr("tlcheck.execute.compare.sources.differing_output", lambda *given: asked_for.append(given))
    assert asked(replace(pair, before=judged[0], after=judged[1]), tmp_path, Cache(None)) is None
    assert not asked_for
    elsewhere = replace(judged[1], inputs=MadeInputs(digest="d2"))
    asked(replace(pair, before=judged[0], after=elsewhere), tmp_path, Cache(None))
    assert len(asked_for) == 1


def judge_source(result: Result, snapshot: Snapshot) -> Result:
    """With what judging says of the source."""
    return replace(result, source_digest=verdicts_of(snapshot, Request()).source_digest)


def test_what_is_left_tells_kernels_apart() -> None:
    """By one value, one element, the blocks and the seeds that were executed."""
    kernel = SourceKernel()
    bx = kernel.kernel.bx
    first = kernel.snapshot(kernel.store(bx, 1.0))
    others = [verdicts_of(kernel.snapshot(kernel.store(bx, 3.0)), Request())]
    others += [verdicts_of(first, request) for request in (Request(seeds=(1,)), Request(blocks=((0, 0, 0),)))]
    found = verdicts_of(first, Request()).source_digest
    assert found
    assert found == verdicts_of(first, Request()).source_digest
    assert len({found, *(verdicts.source_digest for verdicts in others)}) == 4
    assert verdicts_of(first).source_digest == ""
