"""A kernel that nobody wrote shows a finding that is known from another one, with a real release."""

from pathlib import Path

import pytest

from tlcheck.fuzz.bench import FuzzBench
from tlcheck.fuzz.campaign import REQUEST
from tlcheck.fuzz.making import make
from tlcheck.fuzz.outcome import outcome
from tlcheck.toolchain.resolve import resolve


@pytest.mark.slow
@pytest.mark.toolchain
def test_a_loop_that_begins_at_a_thread_is_found_again(tmp_path: Path) -> None:
    """`begun` of docs/findings.md, in a composed kernel of one such loop: wrong in 0.1.15."""
    kernel = make(428)
    assert "T.serial(tx" in kernel.text
    bench = FuzzBench(resolve("0.1.15", ()), tmp_path, REQUEST, {})
    try:
        found = outcome(bench.judged(kernel.text, kernel.name, "sm_80"), kernel.text)
    finally:
        bench.close()
    assert found.sort == "refuted"
    assert ("TLL001", "store shared") in {(symptom.rule, symptom.statement) for symptom in found.symptoms}
    assert list(tmp_path.iterdir()) == []
