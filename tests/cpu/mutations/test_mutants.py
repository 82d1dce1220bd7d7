"""Each way of lowering a kernel wrong that changes what it adds is refuted; what does not change it is not."""

from __future__ import annotations

import pytest

from tests.cpu.mutations.judge import CHANGED, judged
from tests.cpu.mutations.mutants import LOWERED
from tests.fixtures.index import Fixture, read
from tlcheck.verdicts.claim import PROVED

RELEASES = ("0.1.7", "0.1.15")
TOO_LARGE = ("annotated_gemm", "attention", "cast_bf16", "loop_pipelined", "tail_tile_symbolic")  # for the oracle
NOT_READ = ("tma_tile", "loop_ragged")  # by the oracle, whose made-up memory gives loops without iterations
LARGE = ("annotated_source", "loop_serial", "pitch_symbolic", "tail_parallel_odd", "tail_tile_odd", "tile_x4")
CHOSEN = [f for f in read().fixtures if f.release in RELEASES and not f.path.startswith("rules/")]
FIXTURES = [pytest.param(f, id=f.path) for f in CHOSEN if not any(name in f.path for name in (*TOO_LARGE, *NOT_READ))]


@pytest.mark.parametrize("fixture", FIXTURES)
def test_mutants(fixture: Fixture) -> None:
    """Of large kernels only those of the last checkpoint and of the layouts."""
    large = any(name in fixture.path for name in LARGE)
    found = list(judged(fixture.snapshot(), ("device-tir",) if large else LOWERED))
    wrong = [j for j in found if not j.right]
    assert not wrong, "\n".join(map(str, wrong))
    if all(a.verdict == PROVED for a in fixture.report().claims):
        assert len({j.kind for j in found if j.truth == CHANGED}) >= 7
