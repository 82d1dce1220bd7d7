"""The order of a test file's tests."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tlcheck.worker.capture.patience import FOREVER
from tlcheck.worker.capture.pytests import _Watch
from tlcheck.worker.capture.refusals import Refusals


def test_tests_that_need_a_gpu_go_first() -> None:
    def item(name: str, **marks: str) -> Any:
        made = [SimpleNamespace(name=mark, kwargs={"reason": reason}) for mark, reason in marks.items()]
        return SimpleNamespace(name=name, nodeid=f"test_k.py::{name}", iter_markers=lambda: made)

    items = [
        item("reference", parametrize=""),
        item("slow", skipif="takes long"),
        item("marked", slow="", gpu=""),
        item("layer"),
        item("kernel", skipif="requires CUDA + TileLang"),
    ]
    assert ordered(items) == ["marked", "kernel", "reference", "slow", "layer"]


def test_the_first_variant_of_every_test_goes_before_all_second_ones() -> None:
    names = ["fwd[64-a::b[0]]", "fwd[128]", "fwd[256]", "small", "bwd[64]", "bwd[128]"]
    items = [SimpleNamespace(name=name, nodeid=f"test_k.py::{name}", iter_markers=list) for name in names]
    assert ordered(items) == ["fwd[64-a::b[0]]", "small", "bwd[64]", "fwd[128]", "bwd[128]", "fwd[256]"]


def ordered(items: list[Any]) -> list[str]:
    watch = _Watch(Refusals(), FOREVER, lambda fields: None, lambda: None)
    watch.pytest_collection_modifyitems(items)
    return [item.name for item in items]
