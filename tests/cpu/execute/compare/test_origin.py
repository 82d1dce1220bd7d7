"""Where a wrong output begins: the first access in which lowered differs from source."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tlcheck.execute.compare.origin import ValueOrigin, origin_of
from tlcheck.execute.compare.run import execute
from tlcheck.execute.request import LOWERED, Request
from tlcheck.snapshot.ir import Alloc, Snapshot
from tlcheck.snapshot.walk import statements
from tlcheck.verdicts.origins import origin_in_words
from tlcheck.verdicts.results import read_snapshot

WRONG = Path(__file__).parents[3] / "fixtures" / "wrong"


def origin(snapshot: Snapshot) -> ValueOrigin | None:
    execution = execute(snapshot, Request())
    output = next(o for o in execution.outputs if o.difference is not None)
    assert output.difference is not None
    return origin_of(snapshot, Request(), output.name, output.difference)


def test_a_buffer_is_overwritten_through_the_name_of_another() -> None:
    right = read_snapshot(WRONG.parent / "era" / "annotated_gemm-0.1.9.snapshot.json")
    lowered = right.checkpoints[LOWERED]
    shared = [
        s.buffer for s in statements(lowered.body) if isinstance(s, Alloc) and s.buffer.scope.startswith("shared")
    ]
    overlapping = replace(lowered, places=tuple((buffer.data, 0) for buffer in shared))
    snapshot = replace(right, checkpoints={**right.checkpoints, LOWERED: overlapping})
    found = origin(snapshot)
    assert found is not None
    assert found.other is not None
    assert (found.kind, found.access.buffer, found.other.buffer) == ("overwritten", "a", "w")
    assert origin_in_words(snapshot, found).words == (
        "a[0, 2] is read (TIR line 25) with the value that w[0, 2] stored (TIR line 12): "
        "both lie at bytes 0 to 8,191 of the shared memory since tl.MergeSharedMemoryAllocations"
    )


@pytest.mark.parametrize("name", ["wait-0.1.9", "short_wait-0.1.9"])
def test_a_tile_is_read_while_its_copy_is_under_way(name: str) -> None:
    snapshot = read_snapshot(WRONG / f"{name}.snapshot.json")
    found = origin(snapshot)
    assert found is not None
    assert (found.kind, found.access.buffer, found.access.index) == ("early", "a", (0, 0))
    races = execute(snapshot, Request()).races
    words = origin_in_words(snapshot, found, races).words
    assert words.startswith("a[0, 0] is read")
    assert words.endswith("is under way: between the two a wait for the copy is missing")


def test_elements_that_are_never_stored_are_counted() -> None:
    snapshot = read_snapshot(WRONG / "loop-0.1.15.snapshot.json")
    found = origin(snapshot)
    assert found is not None
    assert (found.kind, found.access.index, found.count) == ("unwritten", (100,), 156)
    told = origin_in_words(snapshot, found)
    assert told.line == 63
    assert told.words == "C[100] is never stored, which the source does at line 63, nor are 155 other elements"
