"""The gate says where two toolchains trace one file to two kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cpu.execute.test_sources import Written
from tests.cpu.gate.comparing import made
from tlcheck.cache.store import Cache
from tlcheck.cli.progress import bar
from tlcheck.execute.request import Request
from tlcheck.gate import traced as module
from tlcheck.gate.compare import outcomes
from tlcheck.gate.outcome import LoweredPair, OtherKernel
from tlcheck.gate.traced import traced
from tlcheck.lower.session import Settings
from tlcheck.snapshot import codec
from tlcheck.snapshot.ir import Snapshot

FOUND = OtherKernel("B", (3, 4), "1.0", "2.0", 0, 8)


def pair_of(folder: Path, *snapshots: Snapshot) -> LoweredPair:
    files = [folder / f"{number}.json" for number in range(2)]
    for file, snapshot in zip(files, snapshots, strict=True):
        file.write_text(codec.dumps(snapshot))
    before, after = (
        replace(made("agreed", release=release), snapshot=file, digest=file.name)
        for file, release in zip(files, ("0.1.11", "0.1.12"), strict=True)
    )
    return LoweredPair("k.py", "case", "sm_90", before, after)


def asked(pair: LoweredPair, folder: Path, kept: Cache) -> OtherKernel | None:
    with bar() as watcher:
        (found,) = traced([pair], Request(), Settings(), kept, folder, watcher)
    return found.traced


def test_other_outputs_of_the_kernels_as_written_are_weaker_without_a_reference(tmp_path: Path) -> None:
    written = Written()
    bx = written.kernel.bx
    one, other = (written.snapshot(written.store(bx, term)) for term in (1.0, 3.0))
    pair = pair_of(tmp_path, one, other)
    found = asked(pair, tmp_path, Cache(None))
    assert found is not None
    assert (found.buffer, found.index, found.before, found.after) == ("B", (0,), "", "")
    (outcome,) = outcomes(replace(pair, traced=found), one_toolchain=False)
    assert (outcome.klass, outcome.id, outcome.subject) == ("weaker", "weaker/as-written", "B")
    assert outcome.words.startswith("0.1.12 traces this file to another kernel: as written B[0] is ")
    assert outcome.words.endswith("; no reference says which is right")


def test_equal_outputs_are_no_difference(tmp_path: Path) -> None:
    written = Written()
    one, other = (written.snapshot(written.store(block, 1.0)) for block in (written.kernel.bx, written.mirrored))
    pair = pair_of(tmp_path, one, other)
    assert asked(pair, tmp_path, Cache(None)) is None
    assert outcomes(pair, one_toolchain=False) == ()


@pytest.mark.parametrize("terms", [(1.0, 3.0), (1.0, 1.0)])
def test_the_answer_is_kept(terms: tuple[float, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written()
    blocks = written.kernel.bx, written.mirrored
    pair = pair_of(tmp_path, *(written.snapshot(written.store(b, t)) for b, t in zip(blocks, terms, strict=True)))
    (tmp_path / "first").mkdir()
    first = asked(pair, tmp_path / "first", Cache(tmp_path / "cache"))
    monkeypatch.setattr(module, "differing_output", lambda *_: pytest.fail("executed again"))
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
    sides = made("agreed", release="0.1.11"), made("agreed", release="0.1.12")
    pair = LoweredPair("k.py", "case", "sm_90", *sides, traced=replace(FOUND, before=before, after=after))
    (outcome,) = outcomes(pair, one_toolchain=False)
    assert outcome.klass == klass
    assert outcome.words == (
        "0.1.12 traces this file to another kernel: as written B[3, 4] is 2.0, was 1.0"
        f" (inputs of seed 0; 8 elements differ); {said}"
    )
