"""The commands that reports suggest."""

from __future__ import annotations

import shlex

from tlcheck.lower.runs import Run
from tlcheck.verdicts.words import bisect_of, bisect_passes_of


def test_commands_can_be_pasted() -> None:
    run = Run("my kernels/a.py", "f", "sm_80", "builds/my tl", {"tilelang": "0.1.15"})
    words = ["tlcheck", "bisect", "my kernels/a.py::f", "--arch", "sm_80"]
    assert shlex.split(bisect_of(run)) == words
    assert shlex.split(bisect_passes_of(run)) == [*words, "--toolchain", "builds/my tl", "--passes"]


def test_a_kernel_of_a_script_is_found_by_its_file() -> None:
    run = Run("my train.py", "f[n=1, name='a b']", "sm_80", "0.1.15", {})
    assert shlex.split(bisect_of(run)) == ["tlcheck", "bisect", "my train.py", "--arch", "sm_80"]
