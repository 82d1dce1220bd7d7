"""The goldens that this repository keeps of its own cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cpu.checking import installed
from tests.fixtures.index import read
from tlcheck.cli.main import main
from tlcheck.facts import from_json
from tlcheck.golden.comparison import compare_goldens
from tlcheck.golden.entry import FACTS, TEXT_SUFFIX, key_of
from tlcheck.golden.normal import parse
from tlcheck.golden.recording import golden_of
from tlcheck.golden.store import GoldenStore
from tlcheck.toolchain.releases import PINNED

ROOT = Path(__file__).parents[3]
STORE = GoldenStore(ROOT / "golden")


def test_each_is_approved_with_a_reason_and_of_the_pinned_release() -> None:
    contents = STORE.read()
    assert len(contents.goldens) >= 170
    assert STORE.pending() == []
    for key, golden in contents.goldens.items():
        assert contents.problem(key) == ""
        assert len(contents.approvals.approved[str(key)].reason) > 20
        assert (ROOT / key.file).is_file()
        header = parse(golden.parts["lower-tile-op.tir"]).header
        assert (header["tilelang"], header["target"]) == (PINNED, key.target)
        assert from_json(json.loads(golden.parts[FACTS])).release == PINNED
        assert sum(map(len, golden.parts.values())) < 60_000
    assert set(contents.approvals.approved) == {str(key) for key in contents.goldens}


def test_what_is_derived_from_a_snapshot_is_as_approved() -> None:
    """Snapshots that were saved need no compiler, and have the facts and texts that their goldens have."""
    goldens = {str(key): golden for key, golden in STORE.read().goldens.items()}
    compared = 0
    for fixture in read().fixtures:
        if fixture.path.endswith(f"-{PINNED}") and fixture.path.startswith("era/"):
            snapshot = fixture.snapshot()
            key = str(key_of(str(ROOT / snapshot.file), snapshot.case, snapshot.target, ROOT))
            if key in goldens:
                approved = goldens[key].parts
                checkpoints = [part.removesuffix(TEXT_SUFFIX) for part in approved if part.endswith(TEXT_SUFFIX)]
                assert golden_of(snapshot, checkpoints).parts == approved, key
                compared += 1
    assert compared >= 16


def test_two_targets_of_one_kernel_compare() -> None:
    goldens = {str(key): golden for key, golden in STORE.read().goldens.items()}
    name = "cases/atomics.py::tile_x4"
    comparison = compare_goldens(goldens[f"{name} sm_90"], goldens[f"{name} sm_80"])
    assert [change.words for change in comparison.changes if change.kind == "atomic"] == [
        "B: AtomicAddx4 -> 4 x AtomicAdd"
    ]


@pytest.mark.slow
@pytest.mark.toolchain
def test_kernels_still_lower_to_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    installed(PINNED)
    monkeypatch.chdir(ROOT)
    cases = ("atomics.py::tile_x4", "atomic_operations.py::tma_tile", "attention_fast.py::causal_1024")
    assert main(["golden", "check", *(f"cases/{case}" for case in cases)]) == 0
    assert "4 as approved" in capsys.readouterr().out
