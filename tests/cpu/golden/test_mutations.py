"""What differs between a kernel and one that is lowered wrong is shown as a difference, a renaming is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.golden.goldens import full, renamed, snapshot
from tests.cpu.mutations.mutants import mutants
from tlcheck.golden.comparison import compare_goldens
from tlcheck.golden.entry import Golden
from tlcheck.golden.textdiff import NESTED, RENAMED, SAME

KERNELS = ("annotated_gemm", "cast_bf16", "invariant_rows", "loop_pipelined", "tail_tile_odd", "shared_histogram")
BUILT_BY = ("0.1.7", "0.1.15")


@pytest.mark.parametrize("release", BUILT_BY)
@pytest.mark.parametrize("name", KERNELS)
def test_every_mutant_differs_in_more_than_names_and_order(name: str, release: str) -> None:
    original = snapshot(name, release)
    golden = full(original)
    seen = equal = 0
    for mutant in list(mutants(original))[::4]:
        now = full(replace(mutant.snapshot, checkpoints={**original.checkpoints, **mutant.snapshot.checkpoints}))
        assert now.digest != golden.digest, mutant.kind
        comparison = compare_goldens(golden, now)
        seen += 1
        if comparison.kind == "names":  # the other stride goes away modulo the number of rows
            equal += 1
            assert all(text.respelled == text.counts[RENAMED] for text in comparison.texts.values())
        else:
            assert comparison.kind == "changed", (mutant.kind, mutant.checkpoints, comparison.summary)
    assert seen > 5
    assert equal <= seen // 5


@pytest.mark.parametrize("release", BUILT_BY)
@pytest.mark.parametrize("name", KERNELS)
def test_a_renaming_is_called_so(name: str, release: str) -> None:
    s = snapshot(name, release)
    comparison = compare_goldens(full(s), full(renamed(s)))
    assert comparison.kind == "names", comparison.summary
    assert comparison.changes == ()
    for text in comparison.texts.values():
        assert set(text.counts) <= {SAME, RENAMED}
        assert not text.counts[NESTED]


@pytest.mark.parametrize("name", KERNELS)
def test_any_character_changed_in_a_golden_changes_its_hash(name: str) -> None:
    golden = full(snapshot(name))
    for part, text in golden.parts.items():
        for place in range(0, len(text), 97):
            changed = text[:place] + ("x" if text[place] != "x" else "y") + text[place + 1 :]
            assert Golden({**golden.parts, part: changed}).digest != golden.digest
        assert Golden({**golden.parts, part: text + "\n"}).digest != golden.digest
    assert Golden(dict(list(golden.parts.items())[1:])).digest != golden.digest
