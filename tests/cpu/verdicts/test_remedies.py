"""What is known to avoid a finding. That it does is tested with a toolchain, beside the commands."""

from __future__ import annotations

import pytest

from tlcheck.verdicts.remedies import pass_config


@pytest.mark.parametrize("release", ["0.1.7.post3", "0.1.9", "0.1.14"])
@pytest.mark.parametrize("rule", ["TLA001", "TLA004", "TLA010"])
def test_what_was_tried(rule: str, release: str) -> None:
    assert pass_config(rule, "vectorize-loop", release) == "TIR_DISABLE_VECTORIZE"


@pytest.mark.parametrize(
    ("rule", "checkpoint", "release"),
    [
        ("TLA001", "lower-tile-op", "0.1.9"),  # wrong before anything is vectorized
        ("TLA005", "vectorize-loop", "0.1.11"),  # tried: stays wrong
        ("TLA001", "vectorize-loop", "0.1.7"),
        ("TLA001", "vectorize-loop", "0.1.16"),  # not tried
    ],
)
def test_nothing_else_is_promised(rule: str, checkpoint: str, release: str) -> None:
    assert pass_config(rule, checkpoint, release) == ""
