"""Test which modules are kept of a pipeline, and what is done with those that cannot be saved; modules are plain
strings.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.cpu.worker.processes import WORKER


@pytest.fixture
def lowering(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """`tlcheck.worker.lowering`, imported with the stand-in for TileLang and forgotten afterwards."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(WORKER[1]["PYTHONPATH"])
    yield importlib.import_module("tlcheck.worker.lowering")
    for name in set(sys.modules) - before:
        if name.startswith(("tilelang", "tlcheck.worker")):
            del sys.modules[name]


# A pass is its name, or its name and those that run inside it.
Passes = Iterable[str | tuple[str, list[str]]]


def run(recorder: Any, passes: Passes) -> Any:
    """Run a pipeline over the module "0": each outer pass counts it up, inner ones see something else."""
    for number, entry in enumerate(passes):
        name, inner = (entry, []) if isinstance(entry, str) else entry
        recorder.before(str(number), name)
        for nested in inner:
            recorder.before("part", nested)
            recorder.after("part", nested)
        recorder.after(str(number + 1), name)
    recorder.finish()
    return recorder


PIPELINE: list[str | tuple[str, list[str]]] = [
    "pass_fn",
    "tl.LayoutInference",
    "tl.Simplify",
    ("tl.LowerTileOp", ["tl.Simplify"]),
    "tl.VectorizeLoop",
]


def test_the_module_before_or_after_a_pass(lowering: ModuleType) -> None:
    recorder = run(lowering._Recorder(every_pass=False), [*PIPELINE, "tir.Filter"])
    assert recorder.modules == {
        "source": "0",
        "intent": "1",
        "tile-ops": "3",
        "lower-tile-op": "4",
        "vectorize-loop": "5",
        "device-tir": "6",
    }
    assert recorder.passes["source"] == "pass_fn"
    assert recorder.passes["device-tir"] == "tir.Filter"
    assert list(recorder.modules) == list(recorder.passes)


def test_the_first_of_two_runs_of_a_pass_counts(lowering: ModuleType) -> None:
    recorder = run(lowering._Recorder(every_pass=False), [*PIPELINE, "tl.LowerTileOp", "tl.VectorizeLoop"])
    assert recorder.modules["lower-tile-op"] == "4"
    assert recorder.modules["vectorize-loop"] == "5"
    assert recorder.modules["device-tir"] == "7"


def test_a_pass_inside_another_one_is_no_checkpoint(lowering: ModuleType) -> None:
    nested = ["tl.LayoutInference", "tl.LowerTileOp", "pass_fn", "tl.VectorizeLoop"]
    recorder = run(lowering._Recorder(every_pass=False), [("tl.LowerTileOp", nested), "tl.VectorizeLoop"])
    assert "part" not in recorder.modules.values()
    assert list(recorder.modules) == ["source", "tile-ops", "lower-tile-op", "vectorize-loop", "device-tir"]


@pytest.mark.parametrize(
    ("has_type_cast", "passes", "expected"),
    [
        (True, ["pass_fn", "tl.LowerTileOp", "tl.Simplify", "pass_fn", "tl.VectorizeLoop", "pass_fn"], "4"),
        (True, ["tl.LowerTileOp", "tl.DecoupleTypeCast", "tl.VectorizeLoop", "pass_fn"], "2"),
        (True, ["pass_fn", ("tl.LowerTileOp", ["pass_fn"]), "tl.VectorizeLoop", "pass_fn"], None),
        (False, ["tl.LowerTileOp", "pass_fn", "tl.VectorizeLoop"], None),
    ],
)
def test_type_cast_is_named_or_the_python_pass_at_its_place(
    lowering: ModuleType, monkeypatch: pytest.MonkeyPatch, has_type_cast: bool, passes: Passes, expected: str | None
) -> None:
    monkeypatch.setattr(lowering, "_HAS_TYPE_CAST", has_type_cast)
    assert run(lowering._Recorder(every_pass=False), passes).modules.get("type-cast") == expected


def test_every_outer_pass(lowering: ModuleType) -> None:
    recorder = run(lowering._Recorder(every_pass=True), PIPELINE)
    assert list(recorder.modules.items()) == [
        ("000-input", "0"),
        ("001-pass_fn", "1"),
        ("002-tl.LayoutInference", "2"),
        ("003-tl.Simplify", "3"),
        ("004-tl.LowerTileOp", "4"),
        ("005-tl.VectorizeLoop", "5"),
    ]


def test_a_module_that_cannot_be_saved_is_named_and_the_others_are_saved(
    lowering: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def graph_text(value: Any) -> str:
        if "bad" in json.dumps(value):
            raise RuntimeError("no such node\nstack")
        return json.dumps(value)

    monkeypatch.setattr(lowering, "graph_text", graph_text)
    text, unsaved = lowering.save({"intent": "good", "tile-ops": "bad", "device-tir": "good too"})
    assert json.loads(text) == {"intent": "good", "device-tir": "good too"}
    assert unsaved == {"tile-ops": "RuntimeError: no such node"}
