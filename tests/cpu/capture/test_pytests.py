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
        return SimpleNamespace(name=name, iter_markers=lambda: made)

    items = [
        item("reference", parametrize=""),
        item("slow", skipif="takes long"),
        item("marked", slow="", gpu=""),
        item("layer"),
        item("kernel", skipif="requires CUDA + TileLang"),
    ]
    watch = _Watch(Refusals(), FOREVER, lambda fields: None, lambda: None)
    watch.pytest_collection_modifyitems(items)
    assert [each.name for each in items] == ["marked", "kernel", "reference", "slow", "layer"]
