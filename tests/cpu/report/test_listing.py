"""Checkpoints as files to read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cpu.checking import RIGHT, WRONG
from tlcheck.report.listing import listings
from tlcheck.snapshot.ir import Snapshot
from tlcheck.snapshot.text import render
from tlcheck.verdicts.results import read_snapshot


@pytest.fixture
def every_pass() -> Snapshot:
    """A snapshot as `--every-pass` makes it."""
    snapshot = read_snapshot(RIGHT)
    passes = {"000-input": "", "001-tl.LowerTileOp": "tl.LowerTileOp", "002-tir.Simplify": "tir.Simplify"}
    function = snapshot.checkpoints["intent"]
    return replace(snapshot, checkpoints=dict.fromkeys(passes, function), passes=passes)


def test_all_checkpoints_in_order_and_the_source() -> None:
    assert list(listings(read_snapshot(RIGHT))) == [
        "00-source.py",
        "01-intent.py",
        "02-tile-ops.py",
        "03-lower-tile-op.py",
        "04-type-cast.py",
        "05-vectorize-loop.py",
        "06-device-tir.py",
        "kernel.cu",
    ]


def test_lines_have_the_numbers_that_witnesses_name_and_a_comment_below_says_what_it_is() -> None:
    snapshot = read_snapshot(WRONG)
    text = listings(snapshot, "lower-tile-op")["03-lower-tile-op.py"].splitlines()
    end = text.index("")
    body, lines = text[:end], text[end + 1 :]
    assert tuple(body) == render(snapshot.checkpoints["lower-tile-op"]).lines
    assert lines[0] == "# cases/atomics.py::annotated_gemm, sm_90, apache-tvm-ffi 0.1.1, tilelang 0.1.7"
    assert lines[1] == "# arguments: annotated='B'"
    assert lines[2] == "# lower-tile-op: after tl.LowerTileOp"
    assert lines[3] == "# layouts:"
    assert "#   B: (i, j) -> (i // 8, j // 8, j % 2, i % 8 * 4 + j % 8 // 2)" in lines
    assert any("AtomicAddx2" in line for line in body)


def test_each_layout_is_listed_once() -> None:
    lines = [line for line in listings(read_snapshot(WRONG), "tile-ops").popitem()[1].splitlines() if " -> " in line]
    assert len(lines) == len(set(lines)) > 1


def test_the_cuda_source_has_a_header_too() -> None:
    (name, text), *rest = listings(read_snapshot(RIGHT), "cuda").items()
    assert (name, rest) == ("kernel.cu", [])
    assert text.startswith("// cases/atomics.py::annotated_gemm")
    assert "__global__" in text


def test_no_argument_leaves_the_comment() -> None:
    snapshot = replace(read_snapshot(RIGHT), args={"text": "'a\nimport os'"})
    assert "\n# import os'\n" in listings(snapshot, "intent")["01-intent.py"]


@pytest.mark.parametrize("at", ["nowhere", "tl.LowerTileOp", "LowerTileOp"])
def test_a_checkpoint_that_is_not_there(at: str) -> None:
    assert listings(read_snapshot(RIGHT), at) == {}


@pytest.mark.parametrize("at", ["lower-tile-op", "tl.LowerTileOp", "LowerTileOp", "001-tl.LowerTileOp"])
def test_of_every_pass_one_is_found_by_its_name(every_pass: Snapshot, at: str) -> None:
    assert list(listings(every_pass, at)) == ["001-tl.LowerTileOp.py"]


def test_what_no_pass_made_is_found_by_its_name_too(every_pass: Snapshot) -> None:
    assert list(listings(every_pass, "000-input")) == ["000-input.py"]


def test_every_pass_keeps_its_number(every_pass: Snapshot) -> None:
    assert list(listings(every_pass)) == ["000-input.py", "001-tl.LowerTileOp.py", "002-tir.Simplify.py", "kernel.cu"]
