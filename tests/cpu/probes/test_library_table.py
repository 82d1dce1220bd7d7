from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.fixtures import index
from tlcheck.probes.library_table import results, text
from tlcheck.program.device_library import (
    LOST,
    OK,
    WRONG,
    Behaviour,
    LibraryCall,
    device_library,
    library_of,
    made_for,
    read,
)
from tlcheck.snapshot import codec
from tlcheck.verdicts.atomic_claims import judge_atomics
from tlcheck.worker.headers import digest

ADD = LibraryCall("add", "float32", "float32")
ORDERED = LibraryCall("add", "float32", "float32", order=4)
PAIR = LibraryCall("add", "float16", "float32", 2, pointer=True, returns=True, shared=True)
RIGHT = Behaviour(OK, "", ("atom.add.f32",), (4, 4))
WEAK = Behaviour(LOST, "acq_rel is asked for", ("atom.add.f32",), (4, 4))
OTHER = Behaviour(WRONG, "adds 0", ("cvt.rn.f16x2.f32", "atom.add.noftz.f16x2"))
WHEELS = {"0.1.10": "b", "0.1.9": "a"}
HEADERS = {"0.1.9": "h9", "0.1.10": "h10"}
MEASURED = {
    ("0.1.9", 90): {ADD: RIGHT, ORDERED: WEAK, PAIR: OTHER},
    ("0.1.10", 90): {ADD: RIGHT, PAIR: RIGHT},
    ("0.1.9", 80): {ADD: RIGHT},
}


def test_a_table_says_what_was_put_into_it_and_nothing_else() -> None:
    table = read(text("2026-01-02", "nvcc 13.0", WHEELS, HEADERS, MEASURED))
    assert results(table) == MEASURED
    assert list(table.wheels) == ["0.1.9", "0.1.10"]
    assert table.behaviour("0.1.9", 90, ORDERED) == WEAK
    assert table.behaviour("0.1.9+cu128", 90, PAIR) == OTHER
    assert table.behaviour("0.1.10", 90, ORDERED) is None
    assert table.behaviour("0.1.10", 80, ADD) is None
    assert table.behaviour("0.1.9", 100, ADD) is None
    assert table.behaviour("0.1.11", 90, ADD) is None
    assert table.behaviour("unknown", 90, ADD) is None


def test_a_table_is_of_the_headers_that_were_measured() -> None:
    table = read(text("2026-01-02", "nvcc 13.0", WHEELS, HEADERS, MEASURED))
    assert table.has("0.1.9", "h9")
    assert table.has("0.1.9+cu128", "h9")
    assert table.has("0.1.9", "")  # old snapshots do not say
    assert not table.has("0.1.9", "h10")
    assert not table.has("0.1.11", "h9")


def test_edited_headers_are_known_when_somebody_has_measured_them(cache: Path) -> None:
    assert library_of("0.1.9", "edited").behaviour("0.1.9", 90, ADD) is None
    made = text("2026-01-02", "nvcc 13.0", {"0.1.9": ""}, {"0.1.9": "edited"}, {("0.1.9", 90): {ADD: OTHER}})
    made_for("edited").parent.mkdir(parents=True)
    made_for("edited").write_text(made)
    assert library_of("0.1.9", "edited").behaviour("0.1.9", 90, ADD) == OTHER
    assert library_of("0.1.9", device_library().headers["0.1.9"]) is device_library()


def test_an_atomic_that_comes_to_headers_which_nobody_measured_is_undecided(cache: Path) -> None:
    fixture = next(f for f in index.read().fixtures if f.path == "edges/ragged_source-0.1.15")
    known, edited = (replace(fixture.snapshot(), headers=h) for h in (device_library().headers["0.1.15"], "edited"))
    assert [c.verdict for c in judge_atomics(known).claims] == ["proved"]
    (claim,) = judge_atomics(edited).claims
    assert claim.verdict == "undecided"
    assert "headers of its device library are not those that were measured for TileLang 0.1.15" in claim.reason
    assert codec.loads(codec.dumps(edited)).headers == "edited"


def test_the_hash_of_headers_is_that_of_their_content(tmp_path: Path) -> None:
    place = tmp_path / "tilelang" / "src" / "tl_templates" / "cuda"
    place.mkdir(parents=True)
    assert digest(tmp_path) == ""
    (place / "atomic.h").write_text("int a;")
    first = digest(tmp_path / "tilelang")
    (place / "atomic.h").write_text("int b;")
    assert len({first, digest(tmp_path / "tilelang")}) == 2
    (tmp_path / "src").symlink_to(tmp_path / "tilelang" / "src")
    assert digest(tmp_path / "checkout") == digest(tmp_path / "tilelang")


def test_the_table_of_tlcheck_is_as_the_tool_writes_it() -> None:
    table = device_library()
    assert read(text(table.date, table.compiler, table.wheels, table.headers, results(table))) == table
